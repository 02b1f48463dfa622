"""What compiled code on disk depends on besides its own text: versions, settings, and the sources of plaingrad."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import sys
import time
from pathlib import Path

import numba
import numpy as np
from numba.core import config

from plaingrad.native.machine import c_library

PACKAGE = Path(__file__).parents[2]
SETTINGS = (
    "OPT",
    "BOUNDSCHECK",
    "LOOP_VECTORIZE",
    "SLP_VECTORIZE",
    "DEBUGINFO_DEFAULT",
)  # Numba's environment


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
