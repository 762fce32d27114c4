"""Coqui's networks, loaded from their folders: XTTS, streamed token by token, and VITS, streamed in windows.

Everything that touches the package `coqui-tts` (imported as TTS) and torch is here; it is an optional extra.
"""

from __future__ import annotations

import importlib
import io
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import numpy as np
import soundfile

from tts.voice import Samples
from tts.windows import Frames, ramped, reach, with_context

SEED = 0
"""Of every unit: the same text always gives the same audio."""
REFERENCE_SECONDS = 30
"""Of a speaker's recording that is used, from its beginning."""
XTTS_LONGEST_TEXT, VITS_LONGEST_TEXT = 180, 400
"""Characters of a unit; XTTS was trained on short ones."""
XTTS_TOKENS_A_CHUNK = 20
"""Audio tokens of 46 ms between two chunks; all audio so far is decoded again for each."""
WEIGHTS = ("model.pth", "model_file.pth", "best_model.pth")

for _name in ("TTS.tts.utils.text.tokenizer", "TTS.tts.layers.xtts.tokenizer"):
    logging.getLogger(_name).setLevel(logging.ERROR)  # they warn with the text that is being said


class CoquiError(ValueError):
    """The package, the model's files or the speaker is missing; the message says which and what to do."""


class CoquiModel(Protocol):
    """A loaded network; safe across threads."""

    sample_rate: int
    longest_text: int

    def say(self, text: str) -> Iterator[Samples]:
        """The audio of at most `longest_text` characters, float32 at `sample_rate`, as it is made."""


def load_model(where: str, *, speaker: str | None, language: str) -> CoquiModel:
    """The model in the folder `where`, or of that name in Coqui's catalogue, which is fetched once.

    `speaker` is a recording of the voice to speak with (XTTS) or the name of one of the model's own speakers;
    None takes the model's first. Raises CoquiError.
    """
    load_config = _package("TTS.config").load_config
    folder, weights = _files(where)
    config = load_config(folder / "config.json")
    if config.model not in ("xtts", "vits"):
        raise CoquiError(f"{where} is a {config.model} model; XTTS and VITS models are supported")
    try:
        model = _package("TTS.tts.models").setup_model(config)
        model.load_checkpoint(config, checkpoint_path=weights, eval=True)
    except (RuntimeError, ValueError, LookupError, OSError, ImportError) as error:
        raise CoquiError(f"cannot load {weights}: {str(error)[:300]}") from error
    torch = _package("torch")
    model.to("cuda" if torch.cuda.is_available() else "cpu")
    if config.model == "xtts":
        return XttsModel(model, *_xtts_speaker(model, speaker, where), language=language)
    return VitsModel(model, _vits_speaker(model, speaker, where), language=language)


class XttsModel:
    """XTTS (Casanova et al., 2406.04904): a language model over audio tokens, decoded as they are sampled.

    The running unit's state lies inside the network, so units wait for one another.
    """

    longest_text = XTTS_LONGEST_TEXT

    def __init__(self, model: Any, latents: Any, embedding: Any, *, language: str) -> None:
        """`latents` and `embedding` are the speaker's, as the model computes them."""
        if language not in model.config.languages:
            raise CoquiError(f"XTTS speaks {', '.join(model.config.languages)}, not {language}")
        self.sample_rate = int(model.args.output_sample_rate)
        self._model = model
        self._speaker = (latents, embedding)
        self._language = language
        self._lock = Lock()

    def say(self, text: str) -> Iterator[Samples]:
        config = self._model.config
        with self._lock, _seeded():
            chunks = self._model.inference_stream(
                text,
                self._language,
                *self._speaker,
                stream_chunk_size=XTTS_TOKENS_A_CHUNK,
                temperature=config.temperature,
                length_penalty=config.length_penalty,
                repetition_penalty=config.repetition_penalty,
                top_k=config.top_k,
                top_p=config.top_p,
            )
            for chunk in chunks:
                yield _samples(chunk)


class VitsModel:
    """VITS (Kim et al., 2106.06103): latents of the whole unit, decoded in windows that equal the whole."""

    longest_text = VITS_LONGEST_TEXT

    def __init__(self, model: Any, speaker: int | None, *, language: str) -> None:
        """`speaker` is the number of one of the model's speakers."""
        torch = _package("torch")
        self.sample_rate = int(model.config.audio.sample_rate)
        self._torch = torch
        self._model = model
        self._decoder = model.waveform_decoder
        self._language = _vits_language(model, language)
        self._inputs = {
            "x_lengths": None,
            "d_vectors": None,
            "speaker_ids": None if speaker is None else torch.tensor([speaker], device=model.device),
            "language_ids": None,
            "durations": None,
        }
        if self._language is not None:
            number = model.language_manager.name_to_id[self._language]
            self._inputs["language_ids"] = torch.tensor([number], device=model.device)
        self._latents = _kept_latents(torch)
        model.waveform_decoder = self._latents
        self._lock = Lock()
        self._context: int | None = None  # not known before there is something to decode

    def say(self, text: str) -> Iterator[Samples]:
        latents, condition = self._encode(text)
        if latents is None:
            return
        frames = latents.shape[2]
        if self._context is None:
            self._context = reach(lambda window: self._decode(window, condition), latents.shape[1])
        for begin, end in ramped(frames):
            first, last = with_context(begin, end, self._context, frames)
            audio = self._decode(latents[:, :, first:last], condition)
            hop = audio.size // (last - first)
            yield audio[(begin - first) * hop : (end - first) * hop]

    def whole(self, text: str) -> Samples:
        """The audio at once, as the model itself makes it."""
        latents, condition = self._encode(text)
        return np.zeros(0, np.float32) if latents is None else self._decode(latents, condition)

    def _encode(self, text: str) -> tuple[Frames | None, Any]:
        """The unit's latents, float32[1, channels, frames], None without a known character; what the decoder
        is conditioned on."""
        torch = self._torch
        ids = self._model.tokenizer.text_to_ids(text, language=self._language)
        if not ids:
            return None, None
        with self._lock, _seeded(), torch.inference_mode():
            tokens = torch.tensor([ids], device=self._model.device)
            outputs = self._model.inference(tokens, self._inputs)
            return outputs["model_outputs"].cpu().numpy(), self._latents.condition

    def _decode(self, latents: Frames, condition: Any) -> Samples:
        torch = self._torch
        with torch.inference_mode():
            window = torch.from_numpy(np.ascontiguousarray(latents)).to(self._model.device)
            return _samples(self._decoder(window, g=condition))


def _kept_latents(torch: Any) -> Any:
    """What stands in for the decoder while a unit is encoded: it hands the latents out as they are."""

    class KeptLatents(torch.nn.Module):  # type: ignore[misc]  # torch is imported when it is needed
        condition: Any = None

        def forward(self, latents: Any, g: Any = None) -> Any:
            self.condition = g
            return latents

    return KeptLatents()


def _files(where: str) -> tuple[Path, Path]:
    """The model's folder and the file of its weights."""
    path = Path(os.path.expanduser(where))
    if not path.exists():
        path = _fetched(where)
    if path.is_file():
        return path.parent, path
    weights = [path / name for name in WEIGHTS if (path / name).is_file()]
    if not weights or not (path / "config.json").is_file():
        raise CoquiError(f"{path} is no Coqui model: config.json and {' or '.join(WEIGHTS)} belong in it")
    return path, weights[0]


def _fetched(name: str) -> Path:
    """The folder or file of a model in Coqui's catalogue."""
    if not name.startswith("tts_models/"):
        raise CoquiError(f"there is no folder {name}; models of Coqui's catalogue begin with tts_models/")
    if "xtts" in name and os.environ.get("COQUI_TOS_AGREED") != "1":
        raise CoquiError(
            f"the weights of {name} may not be used commercially (Coqui Public Model License, "
            "https://coqui.ai/cpml); COQUI_TOS_AGREED=1 in the environment says that you agree to it"
        )
    manager = _package("TTS.utils.manage").ModelManager(progress_bar=False)
    try:
        weights, *_ = manager.download_model(name)
    except (KeyError, ValueError) as error:
        raise CoquiError(f"Coqui's catalogue has no model {name}: {error}") from error
    return Path(weights)


def _xtts_speaker(model: Any, speaker: str | None, where: str) -> tuple[Any, Any]:
    """Conditioning latents and speaker embedding of a recording or of one of the model's own speakers."""
    own = model.speaker_manager.speakers if model.speaker_manager is not None else {}
    name = speaker or next(iter(own), None)
    if name is None:
        raise CoquiError(f"{where} has no speakers of its own: name a recording with ?speaker=FILE.wav")
    if name in own:
        latents, embedding = own[name].values()
        return latents, embedding
    audio, rate = _recording(name, own)
    reference = _package("torch").from_numpy(audio[None, : rate * REFERENCE_SECONDS])
    config = model.config
    lengths = {"length": config.gpt_cond_len, "chunk_length": config.gpt_cond_chunk_len}
    return model.get_gpt_cond_latents(reference, rate, **lengths), model.get_speaker_embedding(
        reference, rate
    )


def _recording(path: str, speakers: Any) -> tuple[Samples, int]:
    try:
        content = io.BytesIO(
            Path(os.path.expanduser(path)).read_bytes()
        )  # without a name, which may be a wrong one
        audio, rate = soundfile.read(content, dtype="float32", always_2d=True)
    except (OSError, soundfile.SoundFileError) as error:
        known = f"; its speakers are: {', '.join(list(speakers)[:10])}" if speakers else ""
        raise CoquiError(f"cannot read the speaker's recording {path}: {_reason(error)}{known}") from error
    if len(audio) < rate:
        raise CoquiError(f"the speaker's recording {path} is shorter than a second; give it six or more")
    heard = np.nan_to_num(audio, nan=0.0, posinf=0.0, neginf=0.0)
    heard /= max(float(np.abs(heard).max()), 1.0)  # some floats are in the scale of integers
    return heard[:, heard.var(axis=0).argmax()], rate  # an average may cancel out what the channels share


def _reason(error: Exception) -> str:
    return str(getattr(error, "error_string", None) or getattr(error, "strerror", None) or error)


def _vits_speaker(model: Any, speaker: str | None, where: str) -> int | None:
    names: dict[str, int] = dict(model.speaker_manager.name_to_id) if model.speaker_manager else {}
    if speaker is None:
        return next(iter(names.values()), None)
    if speaker not in names:
        raise CoquiError(f"{where} has no speaker {speaker!r}; it has: {', '.join(names) or 'one, unnamed'}")
    return names[speaker]


def _vits_language(model: Any, language: str) -> str | None:
    """The model's own name for the language, None for a model with one."""
    names = list(model.language_manager.name_to_id) if model.language_manager else []
    if not names:
        return None
    matching = [name for name in names if name.split("-")[0] == language]
    if not matching:
        raise CoquiError(f"the model speaks {', '.join(names)}, not {language}")
    return str(matching[0])


def _samples(tensor: Any) -> Samples:
    return np.asarray(tensor.detach().reshape(-1).cpu(), np.float32)


@contextmanager
def _seeded() -> Iterator[None]:
    """Sampling that begins at the same place every time, and leaves torch's own sequence as it was."""
    torch = _package("torch")
    with torch.random.fork_rng():
        torch.manual_seed(SEED)
        yield


def _package(name: str) -> Any:
    """A module of the optional extra. Raises CoquiError."""
    try:
        return importlib.import_module(name)
    except (ImportError, OSError) as error:  # OSError: torchaudio built for another torch
        raise CoquiError(
            f"Coqui voices need the package coqui-tts (pip install 'rejoinder[coqui]'): {error}".strip()
        ) from error
