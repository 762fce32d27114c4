"""The embedded voice: `hibari-tts`, in English, on one CPU core, streamed inside the sentence."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hibari import voices

from tts.hibari_network import SAMPLE_RATE, HibariNetwork
from tts.hibari_phonemes import HibariPhonemes
from tts.segmented import SegmentedVoice

GAIN = 2.0
"""Brings the voice's speech to the common loudness."""
LONGEST_LAST_PHONEME = 0.15
"""Seconds; the network gives the pause after a word to the word's last phoneme."""


class HibariVoice(SegmentedVoice):
    """An English voice of `hibari-tts`; "heart" (American) is inside the package.

    The others are fetched from their publisher once, into the folder `cache` or the package's own. Raises
    ValueError for an unknown voice and RuntimeError for one that cannot be fetched.
    """

    def __init__(
        self,
        voice: str = "heart",
        *,
        threads: int = 1,
        cache: Path | None = None,
        pronunciations: Mapping[str, str] | None = None,
    ) -> None:
        if voice not in voices.VOICES:
            raise ValueError(f"hibari has no voice {voice!r}; it has {', '.join(voices.VOICES)}")
        super().__init__(
            "hibari" if voice == "heart" else f"hibari:{voice}",
            SAMPLE_RATE,
            HibariPhonemes(british=voices.VOICES[voice]["british"]),
            HibariNetwork(_model_file(voice, cache).read_bytes(), threads=threads),
            language="en",
            gain=GAIN,
            pronunciations=pronunciations,
            longest_last=LONGEST_LAST_PHONEME,
        )


def _model_file(voice: str, cache: Path | None) -> Path:
    entry = voices.VOICES[voice]
    if cache is None or entry.get("bundled"):
        return Path(voices.voice_path(voice))
    path = cache / str(entry["file"])
    if not path.exists():
        voices.download(voices.BASE_URL + entry["file"], str(path), entry["sha256"])
    return path
