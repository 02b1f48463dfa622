"""Numba's machine code kept on disk: one file for each signature, with a checksum of its content.

Numba's own cache reads its files unchecked, and code with one wrong bit kills the process; nor does it know the flags
of a caller (`declare.py`). An index, which two processes could write at once, is not needed: the name says all.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
from pathlib import Path
from typing import Any

from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from plaingrad.native.machine import fingerprint
from plaingrad.native.machine import folder as cache_folder


class KeptCode(NullCache):  # type: ignore[misc]
    """The machine code of one function on disk, in the place of Numba's cache.

    Attributes:
        name: how its files begin, different from those of all other functions.
        told: what the code follows from besides the signature, the processor, and `fingerprint.surroundings`.
    """

    def __init__(self, name: str, told: str = "") -> None:
        self.name = name
        self.told = told

    def key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        """What tells one machine code of the function from another."""
        return sig, codegen.magic_tuple(), self.told

    def folder(self) -> Path | None:
        """Where its files are; None if nothing is kept."""
        return cache_folder.folder()

    def path(self, key: tuple[Any, ...]) -> Path | None:
        """The file for a key; None if nothing is kept."""
        where = self.folder()
        told = hashlib.sha256(str(key).encode()).hexdigest()[:16]
        return None if where is None else where / f"{self.name}_{told}.bin"

    def reduced(self, data: Any) -> tuple[Any, ...]:
        """What a compiled function is made of, to be pickled."""
        return data._reduce()

    def rebuilt(self, context: Any, kept: tuple[Any, ...]) -> Any:
        """The compiled function from what `reduced` gave."""
        return CompileResult._rebuild(context, *kept)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function; None if it is not there, of other sources, or damaged."""
        key = self.key(sig, target_context.codegen())
        path = self.path(key)
        content = None if path is None else cache_folder.read(path)
        if content is None or hashlib.sha256(content[32:]).digest() != content[:32]:
            return None
        try:
            stamp, kept_for, kept = pickle.loads(content[32:])
            if stamp != fingerprint.surroundings() or kept_for != key:
                return None
            target_context.refresh()
            return self.rebuilt(target_context, kept)
        except Exception:
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function, if another process can ask for it and the sources are still those that run."""
        key = self.key(sig, data.codegen)
        path = self.path(key)
        if path is None or " at 0x" in str(sig) or data.library.has_dynamic_globals or data.lifted:
            return
        with contextlib.suppress(Exception):
            if not fingerprint.is_as_imported(age=1.0):
                return
            content = dumps((fingerprint.surroundings(), key, self.reduced(data)))
            cache_folder.write_whole(path, hashlib.sha256(content).digest() + content)
