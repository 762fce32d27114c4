"""Phonemes from the program espeak-ng, run beside us as its own process.

The program keeps the GPL out of this one and its global state out of our threads.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence

PROGRAM = "espeak-ng"
TIMEOUT_SECONDS = 10.0
LANGUAGE_SWITCH = re.compile(r"\([a-z-]+\)")  # "(en)" around words that it reads by another language's rules


class EspeakError(RuntimeError):
    """espeak-ng is missing, does not know the voice, or failed."""


class Espeak:
    """Grapheme to phoneme conversion in one of espeak-ng's languages, by its voice name ("en-us")."""

    def __init__(self, voice: str) -> None:
        """Raises EspeakError when the program is missing or has no such voice."""
        program = shutil.which(PROGRAM)
        if program is None:
            raise EspeakError(
                f"{PROGRAM} is not installed; Piper voices take their phonemes from it. "
                f"On Debian and Ubuntu: apt install {PROGRAM}"
            )
        self._command = [program, "-q", "--ipa", "-v", voice]
        self.phonemes(["a"])

    def phonemes(self, lines: Sequence[str]) -> list[str]:
        """The International Phonetic Alphabet for each line, words apart by spaces, from one process.

        A line is a few words without punctuation or control characters.
        """
        if not lines:
            return []
        spoken = self._run("".join(f"{line}\n" for line in lines)).split("\n")
        if len(spoken) == len(lines) + 1:
            return [self._cleaned(line) for line in spoken[:-1]]
        # It broke a line in two; alone, each line's pieces are known.
        return [self._cleaned(self._run(f"{line}\n").replace("\n", " ")) for line in lines]

    def _run(self, text: str) -> str:
        try:
            done = subprocess.run(
                self._command, input=text.encode(), capture_output=True, timeout=TIMEOUT_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise EspeakError(f"{PROGRAM} did not answer: {error}") from error
        if done.returncode:
            reason = done.stderr.decode(errors="replace").strip().splitlines()
            raise EspeakError(
                f"{' '.join(self._command)} failed: {reason[-1] if reason else done.returncode}"
            )
        return done.stdout.decode()

    @staticmethod
    def _cleaned(line: str) -> str:
        return " ".join(LANGUAGE_SWITCH.sub("", line).split())
