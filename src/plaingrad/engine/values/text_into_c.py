"""Text on its way into C code without a rule, which may read a number from it, run it, or send it away."""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Iterable, Iterator
from types import BuiltinFunctionType, GeneratorType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from plaingrad.class_keys import is_among
from plaingrad.engine.memory.kinds import is_heap
from plaingrad.engine.refusals.refuse import missing_rule, name_of
from plaingrad.engine.users_code import earlier_frames
from plaingrad.engine.values.texts import (
    TEXT,
    check_conversion,
    check_number,
    first_number,
    refuse_round_trip,
    texts_in,
)

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level

STEPPED = frozenset(
    map(type, (*map(iter, ((), [], {}, set(), {}.values(), {}.items())), reversed([]), reversed({})))
)  # iterators of containers
#: C code that moves, compares, prints or hashes text, and reads no number from it. By module.
MOVING = frozenset(
    """builtins _io io os posix nt sys _sre re _operator operator itertools _functools functools _collections
    _collections_abc _string _locale time _warnings _thread _weakref _abc _stat unicodedata _bisect _heapq
    _contextvars _asyncio _queue gc atexit faulthandler _signal signal syslog _tracemalloc _csv _random _uuid
    _hashlib _md5 _sha1 _sha2 _sha3 _sha256 _sha512 _blake2 select fcntl termios pwd grp errno _json _pickle marshal
    _struct array types typing _typing _tokenize _symtable _ast _imp pyexpat _elementtree math cmath mmap
    _opcode""".split()
)
#: And of those modules, the functions that do.
READING = frozenset(
    """putenv system popen execv execve posix_spawn posix_spawnp fork_exec from_bytes fromhex fromisoformat""".split()
)
#: Functions that make other text, or bytes, of text: free if the digits can still be seen.
RECODING = frozenset("_codecs zlib binascii _bz2 _lzma _multibytecodec _compression _zstd".split())
#: Functions that keep text as text, or make arrays of numbers of it, which are looked at.
CONVERTING = tuple(
    f"pandas._libs.{name}"
    for name in """lib algos arrays groupby hashing hashtable index indexing internals interval join missing ops
    ops_dispatch properties reshape sort writers""".split()
)
#: Modules that make checksums; and those whose C functions make no numbers of bytes otherwise.
DIGESTS = frozenset("_hashlib _md5 _sha1 _sha2 _sha3 _sha256 _sha512 _blake2 xxhash._xxhash".split())
HASHING = DIGESTS | frozenset(
    "_collections _functools _operator _io io _heapq _bisect _weakref _thread _queue _asyncio _contextvars _sre re "
    "_abc typing".split()
)
#: Modules whose C functions copy numbers out of iterators.
COPYING = frozenset(("array",))
CHECKSUMS = frozenset(("crc32", "adler32", "crc_hqx"))


def reader_kind(f: Any) -> str:
    """What a C function without a rule may do with text: "moving", "recoding", "converting", "writing" or "reading"."""
    if isinstance(f, type):  # what its C code does, which a class of the program inherits
        f = next((base for base in f.__mro__[:-1] if not is_heap(base)), f)
    owner = getattr(f, "__objclass__", None)
    if owner is None and not isinstance(f, type):
        owner = getattr(f, "__self__", None)
        owner = owner if isinstance(owner, type) or owner is None else type(owner)
    module = getattr(f, "__module__", None)
    if type(module) is not str:
        module = getattr(owner, "__module__", None)
        if owner is None and type(f) is not BuiltinFunctionType:
            module = type(f).__module__
    module = module if type(module) is str else ""
    name = getattr(f, "__name__", "")
    root = module.partition(".")[0]
    if root == "numpy" or module.startswith(CONVERTING):
        return "converting"
    if name in READING:
        return "reading"
    if root in ("posix", "nt", "_io") and name in ("write", "writev", "pwrite", "writelines"):
        return "writing"
    if module in RECODING:
        return "moving" if name in CHECKSUMS else "recoding"
    if module in MOVING or name.startswith("is_"):
        return "moving"
    return "reading"


def takes_items(f: Any, kind: str) -> bool:
    """Whether a C function may make something of what iterators that it is given yield, other than move it."""
    modules = (getattr(f, "__module__", None), getattr(getattr(f, "__objclass__", None), "__module__", None))
    return kind == "reading" or any(type(m) is str and m in COPYING for m in modules)


def only_digests(f: Any) -> bool:
    """Whether a C function makes a checksum of memory, and nothing else."""
    modules = (getattr(f, "__module__", None), getattr(getattr(f, "__objclass__", None), "__module__", None))
    return getattr(f, "__name__", "") in CHECKSUMS or any(type(m) is str and m in DIGESTS for m in modules)


def only_hashes(f: Any, kind: str) -> bool:
    """Whether a C function without a rule compares, hashes, prints or writes bytes, and makes no numbers of them."""
    module = getattr(f, "__module__", None)
    name = getattr(f, "__name__", "")
    if name in CHECKSUMS or kind == "writing" or (type(module) is str and module in HASHING):
        return True
    owner = getattr(f, "__objclass__", None)
    return owner is not None and (
        getattr(owner, "__module__", None) in HASHING or owner in (str, bytes, bytearray)
    )


def check_arguments(level: Level, f: Any, kind: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse text that carries a differentiated number on its way to C code that may read it."""
    if kind == "reading" or kind == "writing":
        values = [*args, *kwargs.values()]
        found = first_number(level, values)
        if found is None:
            if kind == "reading" and level.texts.files:
                for x in itertools.chain(values, texts_in(values)):
                    if path_of(x) in level.texts.files:
                        refuse_text(level, f, f"of a differentiated value, in the file {path_of(x)!r},")
        elif kind == "reading" or (args and is_pipe(args[0])):
            refuse_text(level, f, found)
        elif args:
            wrote(level, args[0])


def check_result(level: Level, f: Any, kind: str, args: tuple[Any, ...], result: Any) -> None:
    """Refuse what C code made of text that carries a differentiated number, if it is that number or hides it."""
    if kind == "recoding":
        found = first_number(level, args)
        if found is not None and first_number(level, result) is None:
            refuse_text(level, f, found)
    elif kind == "converting":
        check_conversion(level, args, result)
    if any(map(may_read_text, args)):
        check_number(level, result)


def refuse_text(level: Level, f: Any, number: str) -> NoReturn:
    """Refuse to give text with `number` to the C function `f`."""
    refuse_round_trip(
        level,
        f"`{name_of(f)}` is given text in which the number {number} stands",
        "The number depends on the inputs, and C code without a rule may read it from the text (or run the text, or "
        "send it away), which loses its derivative.",
        "pass the number itself; or plaingrad.stop_gradient(x) before it is written out, if it does not matter",
    )


def wrote(level: Level, file: Any) -> None:
    """Text with a differentiated number may have been written to `file`."""
    path = path_of(file)
    if path is not None:
        level.texts.files.add(path)


def path_of(x: Any) -> str | None:
    """Where the file that `x` is or names lies; None if it names none."""
    name = x if isinstance(x, (str, os.PathLike)) else getattr(x, "name", None)
    try:
        return os.path.abspath(os.fspath(name)) if isinstance(name, (str, os.PathLike)) else None
    except (TypeError, ValueError, OSError):
        return None


def check_returned(level: Level, f: Any, result: Any) -> None:
    """Refuse text with a differentiated number that the callback `f` returns to C code."""
    if not isinstance(result, (str, bytes, list, tuple, dict, np.ndarray)):
        return
    found = first_number(level, result)
    if found is not None:
        refuse_round_trip(
            level,
            f"`{name_of(f)}` is called by C code without a rule, and returns text in which the number {found} stands",
            "The number depends on the inputs, and the C code may read it from the text.",
            "pass the number itself; or plaingrad.stop_gradient(x) before it is written out, if it does not matter",
        )


def is_pipe(file: Any) -> bool:
    """Whether what is written to a file, or descriptor, goes to somebody else: a pipe or a socket, not our output."""
    try:
        fd = file if type(file) is int else file.fileno()
        mode = os.fstat(fd).st_mode
    except (OSError, ValueError):  # closed, or no file of the system
        return False
    return fd not in (1, 2) and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))


def checked_items(level: Level, f: Any, it: Iterable[Any]) -> Iterator[Any]:
    """The items of an iterator for the C function `f`: none may be differentiated, or text with such a number."""
    for x in level.iterable(it):
        if level.calls.open:
            if level.calls.finds_active(x):
                missing_rule(
                    f, "It is given an iterator, an item of which depends on the differentiated inputs."
                )
            if level.texts:
                found = first_number(level, x)
                if found is not None:
                    refuse_text(level, f, found)
        yield x


def is_stepped(x: Any) -> bool:
    """Whether `x` is an iterator that runs Python code, or moves what is behind it, at every step."""
    return type(x) is GeneratorType or earlier_frames.is_iterator(type(x)) or is_among(type(x), STEPPED)


def may_read_text(x: Any) -> bool:
    """Whether C code may get numbers from text out of `x`: text, a file or its path, an iterator."""
    return isinstance(x, TEXT) or any(hasattr(type(x), name) for name in ("__next__", "read", "__fspath__"))
