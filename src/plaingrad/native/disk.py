"""Where compiled code is kept on disk, what it depends on, and Numba's cache of machine code as it is used here.

The folder is `PLAINGRAD_CACHE_DIR`, else the platform's place for caches; where that variable is empty nothing is kept.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import config
from numba.core.caching import FunctionCache

from plaingrad.native import c_library

PACKAGE = Path(__file__).parent.parent
SETTINGS = (
    "OPT",
    "BOUNDSCHECK",
    "LOOP_VECTORIZE",
    "SLP_VECTORIZE",
    "DEBUGINFO_DEFAULT",
)  # Numba's environment


def folder() -> Path | None:
    """Where compiled code is kept; None for nowhere."""
    told = os.environ.get("PLAINGRAD_CACHE_DIR")
    if told is not None:
        return Path(told) if told else None
    home = Path.home()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "plaingrad"


def stamps() -> list[tuple[str, int, int]]:
    """(path, size, time of change) of every source of plaingrad."""
    found = []
    for root, _, names in os.walk(PACKAGE):
        for name in names:
            if name.endswith(".py"):
                stat = os.stat(os.path.join(root, name))
                found.append((os.path.join(root, name), stat.st_size, stat.st_mtime_ns))
    return sorted(found)


STAMPS = stamps()  # of the sources of plaingrad, as they were when they were imported


@functools.cache
def surroundings() -> str:
    """A hash of the versions, Numba's settings, and the sources of plaingrad itself as they were imported."""
    versions = (
        sys.version,
        sys.implementation.cache_tag,
        numba.__version__,
        np.__version__,
        platform.machine(),
        c_library.fingerprint(),  # machine code holds functions that were found to have its bits
    )
    settings = [str(getattr(config, name, None)) for name in SETTINGS]
    return hashlib.sha256(str((versions, settings, STAMPS)).encode("utf-8", "surrogatepass")).hexdigest()


_looked = (
    -1.0,
    False,
)  # when the sources were last compared with those that were imported, and what came of it


def is_as_imported(age: float = 0.0) -> bool:
    """Whether the sources of plaingrad are still those that run: nothing is kept under the name of others.

    A look at all of them takes milliseconds; one that is not older than `age` seconds does as well.
    """
    global _looked
    now = time.monotonic()
    if now - _looked[0] > age:
        try:
            _looked = now, stamps() == STAMPS
        except OSError:
            _looked = now, False
    return _looked[1]


def write_whole(path: Path, content: bytes) -> None:
    """Make a file that no reader sees in part, and the folder for it.

    Raises:
        OSError: it cannot be written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(suffix=".tmp", dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    os.replace(draft, path)


class Forgiving(FunctionCache):
    """Numba's cache of machine code, but a damaged file is as good as none."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function; None if it is not there or damaged."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:
            with contextlib.suppress(Exception):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function, if that is possible."""
        with contextlib.suppress(Exception):
            super().save_overload(sig, data)
