"""Builds the C++ kernel once for this machine and loads it.

The library is cached under a key of what it has to fit: the sources, the flags, torch, Python and the kind of
machine. Instruction sets are chosen when it runs, so it serves any processor of the kind; and once built it
needs no compiler, so it can be built into an image. Two processes may ask at once: one builds, one waits.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import ninja
import torch
from filelock import FileLock
from platformdirs import user_cache_path

SOURCES = Path(__file__).parent / "kernel"
MODULE = "rejoinder_kernel"
FLAGS = (
    "-std=c++17",
    "-O3",
    # A product and a sum are contracted where the source says so and nowhere else: bits must not depend on
    # how a loop was compiled.
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fvisibility=hidden",
)

_loaded: dict[str, ModuleType] = {}


class CompilerMissing(RuntimeError):
    """There is no C++ compiler, or it cannot build the kernel. The torch engine runs without one."""


def ensure_built(
    *, cache: Path | None = None, progress: Callable[[str], None] = lambda message: None
) -> ModuleType:
    """The kernel's module, built first if it is not in `cache` yet (default: where the service keeps it).

    `progress` is told in a sentence when a build starts; that takes about half a minute. Raises
    `CompilerMissing`.
    """
    folder = _folder(cache)
    if str(folder) not in _loaded:
        library = folder / f"{MODULE}.so"
        if not library.exists():
            _build(folder, progress)
        _loaded[str(folder)] = _load(library)
    return _loaded[str(folder)]


def is_built(*, cache: Path | None = None) -> bool:
    """Whether `ensure_built` would find it: a kernel of these sources, this torch and this Python."""
    return (_folder(cache) / f"{MODULE}.so").exists()


def _folder(cache: Path | None) -> Path:
    return (cache or user_cache_path("rejoinder") / "converted") / "kernels" / kernel_key()


def kernel_key() -> str:
    """16 hexadecimal digits naming a build: the sources, the flags, torch, Python and the kind of machine."""
    digest = hashlib.sha256()
    for source in sorted([*SOURCES.glob("*.h"), *SOURCES.glob("*.cpp")]):
        digest.update(source.name.encode() + b"\0" + source.read_bytes())
    digest.update("\n".join((*FLAGS, torch.__version__, sys.version, platform.machine())).encode())
    return digest.hexdigest()[:16]


def _compiler() -> str | None:
    return os.environ.get("CXX") or next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)


@contextlib.contextmanager
def _tools(compiler: str) -> Iterator[None]:
    """torch finds the compiler and ninja through the environment; ninja may be in our own one only."""
    changed = {"CXX": compiler, "PATH": os.pathsep.join((ninja.BIN_DIR, os.environ.get("PATH", os.defpath)))}
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _build(folder: Path, progress: Callable[[str], None]) -> None:
    compiler = _compiler()
    if compiler is None:
        raise CompilerMissing("no C++ compiler was found: install g++, or use the torch engine")
    from torch.utils import cpp_extension

    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):
        library = folder / f"{MODULE}.so"
        if library.exists():
            return
        progress("building the language model's kernel for this machine (once)")
        workspace = folder / "build"
        # What a build that was killed has left includes torch's own lock, which the next would wait for.
        shutil.rmtree(workspace, ignore_errors=True)
        workspace.mkdir()
        try:
            with _tools(compiler):
                cpp_extension.load(
                    name=MODULE,
                    sources=[str(source) for source in sorted(SOURCES.glob("*.cpp"))],
                    extra_cflags=list(FLAGS),
                    build_directory=str(workspace),
                    is_python_module=False,
                )
        except (RuntimeError, OSError, subprocess.SubprocessError) as error:
            raise CompilerMissing(f"the kernel could not be built with {compiler}: {error}") from error
        (workspace / f"{MODULE}.so").replace(library)
        shutil.rmtree(workspace, ignore_errors=True)


def _load(library: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(MODULE, library)
    if spec is None or spec.loader is None:
        raise CompilerMissing(f"{library} cannot be loaded; delete it and start again")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
