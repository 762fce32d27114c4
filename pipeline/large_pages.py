"""Gives the process's own memory large pages, where the system offers them.

What the recogniser and the voices work on comes from the C library's allocator, in pages of 4 KiB that are
taken and given back with every pass; on a virtual machine that was half of a recognition pass. glibc (2.35)
asks for large ones if it is told so before it starts. The price is about 200 MB with the default models.
"""

from __future__ import annotations

import contextlib
import os
import platform
import sys
from pathlib import Path

_TUNABLES = "GLIBC_TUNABLES"
_WANTED = "glibc.malloc.hugetlb"
_SYSTEM = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def start_with_large_pages() -> None:
    """Start this process anew, as the same process, with an allocator that asks for large pages.

    Call it first. Does nothing where that has been said already, either way (`GLIBC_TUNABLES` names
    `glibc.malloc.hugetlb`; 0 is no), where the C library is another, where the system has none, or where this
    Python cannot be started again.
    """
    said = os.environ.get(_TUNABLES, "")
    if _WANTED in said or platform.libc_ver()[0] != "glibc" or not _offered():
        return
    os.environ[_TUNABLES] = ":".join(filter(None, (said, f"{_WANTED}=1")))
    with contextlib.suppress(OSError):
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    # The interpreter may not be started again, as by another user than who installed it: then without.
    os.environ[_TUNABLES] = said
    if not said:
        del os.environ[_TUNABLES]


def _offered() -> bool:
    try:
        return "[never]" not in _SYSTEM.read_text(encoding="ascii")
    except OSError:
        return False
