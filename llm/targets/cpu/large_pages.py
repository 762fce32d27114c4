"""Maps a file so that it lies in large pages, where the system has them.

A pass over a model reads every weight once, and in pages of 4 KiB the processor also looks up a quarter of a
million addresses on the way: on two cores that was a quarter of a one-row pass. Linux gives a mapped file
large pages only if the page cache took them when it read the file. What was just written, or first read by
another program, lies there in small ones and stays until it is evicted, so here it is, where that helps.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from pathlib import Path

import numpy as np

_POPULATE_READ = 22  # MADV_POPULATE_READ of Linux 5.14, which the module `mmap` has no name for
_SAMPLE = 32 << 20
_ENOUGH = 0.9


def map_file(path: Path) -> mmap.mmap:
    """The file, mapped for reading and already in memory. Raises `OSError` as `open` and `mmap` do."""
    with path.open("rb") as stream:
        file = stream.fileno()
        size = os.fstat(file).st_size
        mapping = _map(file)
        if size < _SAMPLE or _in_large_pages(mapping, size):
            return mapping
        for length in (_SAMPLE, size):  # the sample tells whether this file system has large pages at all
            mapping.close()
            os.posix_fadvise(file, 0, length, os.POSIX_FADV_DONTNEED)
            mapping = _map(file)
            if not _in_large_pages(mapping, length):
                break
        return mapping


def _map(file: int) -> mmap.mmap:
    mapping = mmap.mmap(file, 0, access=mmap.ACCESS_READ)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        for advice in (mmap.MADV_HUGEPAGE, _POPULATE_READ):
            with contextlib.suppress(OSError):  # a system without it loses nothing but speed
                mapping.madvise(advice)
    return mapping


def _in_large_pages(mapping: mmap.mmap, length: int) -> bool:
    """Whether most of the first `length` bytes are. A system that can't tell has none to give: `True`."""
    start = np.frombuffer(mapping, np.uint8, 1).ctypes.data
    large = 0
    inside = False
    try:
        with open("/proc/self/smaps", encoding="utf-8") as smaps:
            for line in smaps:
                name, _, rest = line.partition(" ")
                if not name.endswith(":"):
                    inside = name.startswith(f"{start:x}-")
                elif inside and name == "FilePmdMapped:":
                    large = int(rest.split()[0]) << 10
                    break
            else:
                return True
    except OSError:
        return True
    return large >= _ENOUGH * length
