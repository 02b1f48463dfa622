"""The folder of the disk cache: where it is, whether it may be trusted, and its files read, written and pruned.

What is found there is run, so it is read only if nobody but the user (and root) could have written it: the folder and
the file belong to one of the two and are not writable for others, and every folder that is made here is made for its
owner alone. Size and age of the whole are bounded.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import platformdirs

PREFIX = "plaingrad_native_"  # how the files of derived programs begin
HELPERS = "helpers_"  # how the folders of compiled helpers begin
DRAFT = "plaingrad_draft_"  # how files begin that are still being written
PRUNED = "plaingrad_pruned"  # its time of change says when the folder was last pruned
PROGRAM = re.compile(PREFIX + r"[0-9a-f]{40}")
DAY = 86400.0
AGE = 90 * DAY  # what was not used for so long is deleted
SIZE = 1 << 30  # bytes; beyond it what was not used for longest is deleted
UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
READ_ONLY = os.O_RDONLY | getattr(os, "O_BINARY", 0)
READ_ONLY |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # no link, and no waiting for a pipe

_log = logging.getLogger("plaingrad")
_trusted: dict[str, bool] = {}  # folders that have been looked at, by this process
_written = 0  # files, by this process


# -- where -------------------------------------------------------------------------------------------------------------


def place() -> Path | None:
    """Where the settings put the cache: `PLAINGRAD_CACHE_DIR`, else the platform's place; None for nowhere.

    Nowhere is an empty `PLAINGRAD_CACHE_DIR`, and a user without a home. A relative `XDG_CACHE_HOME` is as good as
    none, as its specification demands.
    """
    told = os.environ.get("PLAINGRAD_CACHE_DIR")
    if told is not None:
        return Path(os.path.abspath(os.path.expanduser(told))) if told else None
    home = os.path.expanduser("~")
    has_home = os.environ.get("HOME") != "" and os.path.isabs(home) and os.path.isdir(home)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not has_home and not os.path.isabs(base):
        return None
    try:
        found = platformdirs.user_cache_path("plaingrad", appauthor=False)
    except RuntimeError:  # it knows no home
        return None
    # Early versions of platformdirs take a relative path as it is.
    return found if found.is_absolute() else Path(home, ".cache", "plaingrad")


def folder() -> Path | None:
    """Where compiled code is kept; None where nothing may be, which is logged once if the reason is a lack of trust."""
    where = place()
    if where is None:
        return None
    return where if _is_trusted(where) is not False else None


def _is_trusted(where: Path) -> bool | None:
    """Whether nobody else can write in a folder; None where there is none yet."""
    known = _trusted.get(str(where))
    if known is None:
        try:
            reason = why_not(where)
        except FileNotFoundError:
            return None
        except OSError as error:
            reason = str(error)
        known = _trusted[str(where)] = reason is None
        if reason is not None:
            _log.warning(
                "Compiled derivatives are neither read from %s nor kept there: %s. "
                "See `plaingrad cache`, or set PLAINGRAD_CACHE_DIR.",
                where,
                reason,
            )
    return known


def why_not(where: Path) -> str | None:
    """Why a folder is not trusted, or None.

    Raises:
        FileNotFoundError: there is none.
        OSError: it cannot be looked at.
    """
    real = where.resolve(strict=True)
    about = os.stat(real)
    if not stat.S_ISDIR(about.st_mode):
        return "it is not a folder"
    if not hasattr(os, "geteuid"):  # Windows keeps a user's folders from the others by itself
        return None
    reason = _why_not(about)
    if reason is not None:
        return f"{reason}; `chmod go-w` it after `plaingrad cache clear`"
    for parent in real.parents:
        mode = os.stat(parent).st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            return f"everybody may write in {parent}, and so replace it"
    return None


def _why_not(about: os.stat_result) -> str | None:
    if about.st_uid not in (os.geteuid(), 0):
        return f"it belongs to the user with number {about.st_uid}"
    if about.st_mode & OTHERS_WRITE:
        return "others than its owner may write to it"
    return None


# -- files -------------------------------------------------------------------------------------------------------------


def read(path: Path) -> bytes | None:
    """The content of a file that only the user could have written; None if there is no such file."""
    if not _is_trusted(path.parent):
        return None
    try:
        handle = os.open(path, READ_ONLY)
    except OSError:
        return None
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode) or (hasattr(os, "geteuid") and _why_not(about) is not None):
            return None
        if time.time() - about.st_mtime > DAY:  # its age is the time since it was last used
            with contextlib.suppress(OSError):
                os.utime(path)
        with open(handle, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(handle)


def write_whole(path: Path, content: bytes) -> None:
    """Make a file that no reader sees in part, and the folders for it; a draft that cannot be finished is removed.

    Raises:
        OSError: it cannot be written, or the folder is not trusted.
    """
    global _written
    make(path.parent)
    if not _is_trusted(path.parent):
        raise PermissionError(f"{path.parent} is not trusted")
    handle, draft = tempfile.mkstemp(prefix=DRAFT, suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise
    _written += 1
    if _written % 100 == 1:
        with contextlib.suppress(OSError):
            prune_if_due(_written > 1)


def make(where: Path) -> None:
    """Make a folder and those above it that are missing, each for its owner alone.

    Raises:
        OSError: it cannot be made.
    """
    missing = []
    while not where.exists():
        missing.append(where)
        where = where.parent
    for each in reversed(missing):
        with contextlib.suppress(FileExistsError):  # another process was quicker
            os.mkdir(each, 0o700)


# -- size and age ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Entry:
    """What is kept of one derived program, or one helper.

    Attributes:
        name: of the program, or of the helper's file.
        files: all of it.
        size: in bytes.
        used: when it was last used, in seconds since the epoch, to a day.
    """

    name: str
    files: list[Path]
    size: int = 0
    used: float = 0.0

    def delete(self) -> None:
        """Delete its files."""
        for path in self.files:
            with contextlib.suppress(OSError):
                path.unlink()


def entries(where: Path) -> list[Entry]:
    """What is kept in a folder; of other files there nothing is said."""
    found: dict[str, Entry] = {}
    for path in _files(where):
        program = PROGRAM.match(path.name)
        name = program.group() if program else f"{path.parent.name}/{path.name}"
        try:
            about = path.lstat()
        except OSError:  # deleted by another process
            continue
        entry = found.setdefault(name, Entry(name, []))
        entry.files.append(path)
        entry.size += about.st_size
        entry.used = max(entry.used, about.st_mtime)
    return list(found.values())


def _files(where: Path) -> Iterator[Path]:
    try:
        inside = sorted(os.scandir(where), key=lambda item: item.name)
    except OSError:
        return
    for item in inside:
        if item.is_dir(follow_symlinks=False):
            if item.name.startswith(HELPERS) or item.name == "__pycache__":  # Numba's, of earlier versions
                yield from (p for p in Path(item.path).iterdir() if _is_ours(p.name, item.name))
        elif _is_ours(item.name, ""):
            yield Path(item.path)


def _is_ours(name: str, above: str) -> bool:
    if name.startswith((PREFIX, DRAFT)):
        return True
    return above.startswith(HELPERS) and name.endswith((".bin", ".tmp"))


def limit() -> int:
    """The largest size of the whole in bytes: `PLAINGRAD_CACHE_SIZE`, else 1G."""
    try:
        return bytes_of(os.environ.get("PLAINGRAD_CACHE_SIZE", ""))
    except ValueError:
        return SIZE


def bytes_of(text: str) -> int:
    """A number of bytes, with K, M or G for 1024, its square or its cube.

    Raises:
        ValueError: it is not one.
    """
    told = re.fullmatch(r"\s*(\d{1,15})\s*([kKmMgG]?)[bB]?\s*", text)
    if told is None:
        raise ValueError(text)
    return int(told[1]) * UNITS[told[2].lower()]


def prune_if_due(now: bool = False) -> None:
    """Prune the folder if that was not done for a day, or now."""
    where = folder()
    if where is None:
        return
    stamp = where / PRUNED
    try:
        due = time.time() - stamp.stat().st_mtime > DAY
    except OSError:
        due = True
    if due or now:
        stamp.touch(0o600)
        prune(where, limit(), AGE)


def prune(where: Path, size: int, age: float) -> list[Entry]:
    """Delete what was not used for `age` seconds, and, if the rest is above `size` bytes, what was not for longest.

    Returns:
        what was deleted.
    """
    kept = sorted(entries(where), key=lambda entry: entry.used, reverse=True)
    now = time.time()
    total = sum(entry.size for entry in kept)
    room = size if total <= size else size * 4 // 5  # so that the next file is not at the limit again
    deleted, taken = [], 0
    for entry in kept:
        old = now - entry.used > (min(age, DAY) if DRAFT in entry.name else age)
        taken += entry.size
        if old or taken > room:
            taken -= entry.size
            entry.delete()
            deleted.append(entry)
    return deleted


def clear(where: Path) -> list[Entry]:
    """Delete all that is kept in a folder, and the folders inside it that were made for it."""
    deleted = entries(where)
    for entry in deleted:
        entry.delete()
    with contextlib.suppress(OSError):
        (where / PRUNED).unlink()
    with contextlib.suppress(OSError):
        for item in list(os.scandir(where)):
            if item.is_dir(follow_symlinks=False) and item.name.startswith((HELPERS, "__pycache__")):
                with contextlib.suppress(OSError):  # not empty: somebody else's
                    os.rmdir(item.path)
    return deleted
