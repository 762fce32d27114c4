"""What must be on this machine before the first call: the models that the settings name, the kernel, and the
language models in its layout."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from pipeline.config import Settings
from pipeline.models import catalogue
from pipeline.models.catalogue import Artifact

ALWAYS = ("voice activity", "end of turn")


def models(settings: Settings) -> list[Artifact]:
    """The catalogue's models that calls with these settings use; paths and addresses need no pull."""
    named = {settings.asr_model, settings.llm, settings.draft_model, settings.voice.removeprefix("piper:")}
    return [
        artifact
        for artifact in catalogue.artifacts().values()
        if artifact.name in named or artifact.role in ALWAYS
    ]


def build_kernel(progress: Callable[[str], None]) -> str:
    """Build the language model's kernel unless it is built; why it cannot be built, or nothing.

    Without it the language model runs on torch alone, more slowly.
    """
    from llm.targets.cpu.build import CompilerMissing, ensure_built

    try:
        ensure_built(cache=catalogue.converted(), progress=progress)
    except CompilerMissing as error:
        return str(error)
    return ""


def pack_models(settings: Settings, progress: Callable[[str], None]) -> list[str]:
    """Lay the embedded language models out for the kernel, which must be built, unless that is done.

    Returns the models that are laid out: the kernel may not cover them all. Raises `CheckpointError` where
    one cannot be read.
    """
    from llm.checkpoints import UnsupportedCheckpoint
    from llm.targets.cpu.build import ensure_built
    from llm.targets.cpu.packed import open_packed
    from pipeline.loading.language import is_remote, place

    if is_remote(settings):
        return []
    folder = catalogue.converted()
    packed = []
    for model in filter(None, (settings.llm, settings.draft_model)):
        with contextlib.suppress(UnsupportedCheckpoint):
            open_packed(place(model), ensure_built(cache=folder), folder=folder, progress=progress)
            packed.append(model)
    return packed


def kernel_built() -> bool:
    """Whether the kernel has been built on this machine, since it or torch were last changed."""
    from llm.targets.cpu.build import is_built

    return is_built(cache=catalogue.converted())
