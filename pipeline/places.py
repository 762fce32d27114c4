"""Where this user's files are kept, also for a user without a home folder; and who else may read them.

Recordings, and the log with what callers said, are for their owner's eyes alone, whatever the umask.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import platformdirs

CACHE_VARIABLE = "REJOINDER_CACHE"
_APPLICATION = "rejoinder"
_OTHERS = 0o077
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENOENT, errno.ENAMETOOLONG)


class NoPlace(OSError):
    """There is no folder for what is to be kept; the message names the setting that gives one."""


def cache() -> Path:
    """The folder of the models: REJOINDER_CACHE, else the user's cache folder. Raises NoPlace."""
    moved = os.environ.get(CACHE_VARIABLE)
    folder = expanded(moved) if moved else _of_user(platformdirs.user_cache_path, "~/.cache")
    if without_home(folder):
        raise NoPlace(
            f"there is no home folder to keep models in: set {CACHE_VARIABLE} to a folder that this user may "
            "write to"
        )
    return folder


def data() -> Path:
    """The folder of what is logged, unless a setting says otherwise. Without a home it begins with `~`."""
    return _of_user(platformdirs.user_data_path, "~/.local/share")


def _of_user(folder: Callable[[str], Path], without: str) -> Path:
    """platformdirs' folder for us. Without a home its versions differ: some raise, some leave the `~`."""
    try:
        return folder(_APPLICATION)
    except RuntimeError:
        return Path(without, _APPLICATION)


def expanded(path: str | Path) -> Path:
    """With the home folder in the place of `~`, and as it is where nobody knows that folder."""
    return Path(os.path.expanduser(path))


def behind_links(path: Path) -> Path:
    """The path that links lead to. One whose links go round in a circle stays as it is: using it says so.
    (Path.resolve raises RuntimeError for that, up to Python 3.12.)"""
    return Path(os.path.realpath(path))


def without_home(path: Path) -> bool:
    """Whether the path is in a home folder that nobody knows."""
    return path.parts[:1] != () and path.parts[0].startswith("~")


def writable(folder: Path) -> bool:
    """Whether this user may write into the folder, or make it."""
    there = next(place for place in (folder, *folder.parents) if exists(place))
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def exists(path: Path) -> bool:
    """Whether something is there, as far as this user may see."""
    return os.path.exists(path)


def in_words(error: BaseException) -> str:
    """An error's message; where the models' folder cannot be used, with the variable that names another."""
    message = str(error)
    reason: BaseException | None = error
    while reason is not None and CACHE_VARIABLE not in message:
        if isinstance(reason, OSError) and reason.errno in _REFUSED and _in_cache(reason.filename):
            return f"{message}. Set {CACHE_VARIABLE} to a folder that this user may write to."
        reason = reason.__cause__
    return message


def _in_cache(file: object) -> bool:
    """Whether the file is in the models' folder, or that folder in it."""
    if not isinstance(file, str):
        return False
    try:
        folder, place = cache(), Path(file)
    except NoPlace:
        return False
    return place.is_relative_to(folder) or folder.is_relative_to(place)


def make_private_folder(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for this user alone. One that is there keeps its
    rights, unless it is `data()`, which is ours. Raises OSError."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    for place in reversed(missing):
        with contextlib.suppress(FileExistsError):  # another process was faster
            place.mkdir(mode=stat.S_IRWXU)
            place.chmod(stat.S_IRWXU)
    if folder == data() and not folder.is_symlink():
        _take_from_others(folder, stat.S_ISDIR)


def make_private_file(file: Path) -> None:
    """Make a file that this user alone may read; one that is there, too. Raises OSError."""
    file = behind_links(file)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, stat.S_IRUSR))
        file.chmod(stat.S_IRUSR | stat.S_IWUSR)
    make_private(file)


def make_private(file: Path) -> None:
    """Take others' rights from a file, where there is one and it is this user's own. Raises OSError.

    Left alone: folders, devices and pipes, and what lies where there are no such rights.
    """
    _take_from_others(file, stat.S_ISREG)


def _take_from_others(path: Path, is_kind: Callable[[int], bool]) -> None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return
    if is_kind(found.st_mode) and found.st_uid == os.geteuid() and found.st_mode & _OTHERS:
        with contextlib.suppress(PermissionError):
            path.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS)
