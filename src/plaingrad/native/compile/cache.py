"""Derived programs kept on disk: found by a hash of all that they follow from, with the machine code that Numba made.

A file is a module: it imports what the program refers to, and compiles it, with the machine code in files beside it.
Kept are only programs all of whose references can be imported; others are derived anew in every process. Where they are
kept, and what is trusted, is told in `machine/folder.py`.
"""

from __future__ import annotations

import builtins
import contextlib
import hashlib
import importlib
import sys
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
from numba.core import config, types

from plaingrad import rulebook
from plaingrad.native.frontend.current import dispatcher_of
from plaingrad.native.machine.fingerprint import is_as_imported, surroundings
from plaingrad.native.machine.folder import PREFIX, folder, read, write_whole
from plaingrad.native.machine.machine_code import KeptCode
from plaingrad.native.program.dispatchers import is_dispatcher
from plaingrad.native.rules import scalars
from plaingrad.native.runtime import declare, special_functions

START, END = "# the program\n", "# its end\n"
TRUSTED = frozenset(
    ("math", "cmath", "numpy", "numba", "scipy", "plaingrad", "builtins", "operator", "random")
)
NUMBERS = (int, float, complex, str, bytes, bool, type(None), type(...))


class Nameless(Exception):
    """Something that has no name by which another process could find it."""


# -- the key -----------------------------------------------------------------------------------------------------------


def key_of(mode: str, function: Any, signature: Any, active: Any, options: dict[str, Any]) -> str | None:
    """The hash of all that a derived program follows from; None if it must not be kept."""
    if folder() is None or config.DISABLE_JIT or any(rule.users for rule in rulebook.entered()):
        return None
    try:
        if not all(map(_is_named, signature)):
            return None
        words = [mode, str(signature), str(active), _options(options), surroundings()]
        _Digest(words).add(function)
    except Nameless:
        return None
    return _hashed(words)


def _hashed(words: list[str]) -> str:
    return hashlib.sha256("\0".join(words).encode("utf-8", "surrogatepass")).hexdigest()[:40]


def _is_named(t: Any) -> bool:
    """Whether the text of a type says all about it."""
    if isinstance(t, (types.NamedTuple, types.NamedUniTuple)):
        return False
    if isinstance(t, types.BaseTuple):
        return all(map(_is_named, t))
    if isinstance(t, types.Array):
        return _is_named(t.dtype)
    return isinstance(t, (types.Number, types.Boolean, types.NoneType, types.UnicodeType))


def _options(options: dict[str, Any]) -> str:
    return str([(k, sorted(v) if isinstance(v, (set, frozenset)) else v) for k, v in sorted(options.items())])


class _Digest:
    """Collects the words that tell a function: its code, its constants, and all that it names, recursively."""

    def __init__(self, words: list[str]) -> None:
        self.words = words
        self.seen: dict[int, int] = {}
        self.open: set[int] = set()

    def add(self, x: Any) -> None:
        """The words of an object."""
        if isinstance(x, NUMBERS):
            self.words.append(f"{type(x).__name__} {x!r}")
        elif type(x) in (tuple, frozenset):
            parts = list(x) if type(x) is tuple else sorted(x, key=repr)
            self.words.append(f"{type(x).__name__} of {len(parts)}")
            for part in parts:
                self.add(part)
        elif isinstance(x, ModuleType):
            if not is_trusted(x.__name__):  # its constants may change
                raise Nameless
            self.words.append(f"module {x.__name__}{of_scipy(x.__name__)}")
        elif isinstance(x, CodeType):
            self.code(x)
        elif is_dispatcher(x):
            self.words.append(f"compiled {_options(dict(x.targetoptions))}")
            if _is_ours(x):
                self.words.append(expression(x))
            else:
                self.add(x.py_func)
        elif is_trusted(getattr(x, "__module__", None)) or isinstance(x, (np.ufunc, BuiltinFunctionType)):
            module, name = place_of(x)
            self.words.append(f"at {module} {name}{of_scipy(module)}")
        elif type(x) is FunctionType:
            self.function(x)
        else:
            raise Nameless

    def function(self, f: FunctionType) -> None:
        """A Python function."""
        if id(f) in self.open:
            raise Nameless  # Numba loads recursive functions with symbols that it cannot resolve
        if id(f) in self.seen:
            self.words.append(f"function {self.seen[id(f)]} again")
            return
        self.seen[id(f)] = len(self.seen)
        self.open.add(id(f))
        self.words.append(f"function {f.__module__} {f.__qualname__}")
        self.add(f.__code__)
        self.add(f.__defaults__)
        if f.__kwdefaults__:
            raise Nameless
        for cell in f.__closure__ or ():
            try:
                self.add(cell.cell_contents)
            except ValueError:
                raise Nameless from None
        for name in sorted(_names(f.__code__)):
            self.words.append(f"global {name}")
            if name in f.__globals__:
                self.add(f.__globals__[name])
            elif hasattr(builtins, name):
                self.words.append("of Python")
        self.open.discard(id(f))

    def code(self, code: CodeType) -> None:
        """Bytecode, with the lines that comments name."""
        flags = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        names = (code.co_name, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        tables = (code.co_code, code.co_exceptiontable, code.co_linetable, code.co_firstlineno)
        self.words.append(str((flags, names, tables)))
        self.add(code.co_consts)


def _names(code: CodeType) -> set[str]:
    found = set(code.co_names)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found |= _names(inner)
    return found


def _is_ours(x: Any) -> bool:
    """Whether a dispatcher is a helper, a slope or a derived program: `expression` tells all about it."""
    module = getattr(x, "__module__", None)
    return is_trusted(module) or str(module).startswith(PREFIX)


def is_trusted(module: Any) -> bool:
    """Whether all in a module is told by its name and the versions that the key has."""
    return isinstance(module, str) and module.partition(".")[0] in TRUSTED


def of_scipy(module: str) -> str:
    """What the key says of a module of SciPy's besides its name; "" for one of others.

    Raises:
        Nameless: Numba was told what functions of `scipy.special` are, and may be told otherwise in other processes.
    """
    if module.partition(".")[0] != "scipy":
        return ""
    if special_functions.are_overloaded():
        raise Nameless
    return f" {sys.modules['scipy'].__version__}"


# -- names -------------------------------------------------------------------------------------------------------------


def place_of(x: Any) -> tuple[str, str]:
    """(module, qualified name) by which `x` is imported.

    Raises:
        Nameless: there is none.
    """
    name = getattr(x, "__qualname__", None) or getattr(x, "__name__", None)
    module = "numpy" if isinstance(x, np.ufunc) else getattr(x, "__module__", None)
    for home in (module, "numpy", "scipy.special") if isinstance(x, np.ufunc) else (module, "numpy"):
        if isinstance(name, str) and isinstance(home, str) and home != "__main__" and home in sys.modules:
            found: Any = sys.modules[home]
            for part in name.split("."):
                found = getattr(found, part, None)
            if found is x:
                return home, name
    raise Nameless


def at(module: str, name: str) -> Any:
    """What `place_of` found, in another process."""
    found: Any = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def users(module: str, name: str, digest: str) -> Any:
    """A function of the user's, as it is called by derived programs: compiled.

    Raises:
        ImportError: it is not the one that it was.
    """
    found = at(module, name)
    if _digest(found) != digest:
        raise ImportError(name)
    return found if is_dispatcher(found) else dispatcher_of(found)


def _digest(x: Any) -> str:
    words: list[str] = []
    _Digest(words).add(x)
    return _hashed(words)


def slope(module: str, name: str, position: int) -> Any:
    """The compiled partial derivative of a function that the rulebook tells."""
    row = scalars.row_of(at(module, name))
    assert row is not None
    return scalars.compiled_partial(row[position])


def derived(key: str, name: str) -> Any:
    """Another derived program that is kept."""
    module = load(key)
    if module is None:
        raise ImportError(key)
    return getattr(module, name)


def expression(x: Any) -> str:
    """Source, of the functions above, that finds `x` in another process."""
    if isinstance(x, ModuleType):
        if sys.modules.get(x.__name__) is not x or not is_trusted(x.__name__):
            raise Nameless
        return f"_cache.importlib.import_module({x.__name__!r})"
    module = getattr(x, "__module__", None)
    if isinstance(module, str) and module.startswith(PREFIX):
        if getattr(sys.modules.get(module), x.__name__, None) is not x:
            raise Nameless
        return f"_cache.derived({module[len(PREFIX) :]!r}, {x.__name__!r})"
    if is_trusted(module) or isinstance(x, np.ufunc):
        with contextlib.suppress(Nameless):
            return "_cache.at({!r}, {!r})".format(*place_of(x))
    elif is_dispatcher(x):
        return _users_expression(x)
    function = getattr(x, "py_func", None)
    code, written = getattr(function, "__code__", None), getattr(function, scalars.WRITTEN, None)
    for rule in rulebook.entered() if code is not None else ():
        for k, partial in enumerate(map(scalars.as_written, rule.partials)):
            alike = partial is written if written is not None else getattr(partial, "__code__", None) is code
            if alike and scalars.compiled_partial(partial) is x:
                with contextlib.suppress(Nameless):
                    return "_cache.slope({!r}, {!r}, {})".format(*place_of(rule.function), k)
    raise Nameless


def _users_expression(x: Any) -> str:
    f = x.py_func
    home, name = f.__module__, f.__qualname__
    if home == "__main__" or home not in sys.modules:
        raise Nameless
    try:
        found = at(home, name)
        digest = _digest(found)
    except AttributeError:
        raise Nameless from None
    if found is not x and (type(found) is not FunctionType or dispatcher_of(found) is not x):
        raise Nameless
    return f"_cache.users({home!r}, {name!r}, {digest!r})"


# -- files -------------------------------------------------------------------------------------------------------------


def load(key: str | None) -> ModuleType | None:
    """The module kept for a key; a file that is damaged is deleted."""
    where = folder()
    if key is None or where is None:
        return None
    name = PREFIX + key
    if name in sys.modules:
        return sys.modules[name]
    path = where / f"{name}.py"
    content = read(path)
    if content is None:
        return None
    try:
        return _module(name, path, content.decode())
    except Exception:
        with contextlib.suppress(OSError):
            path.unlink()
        return None


def keep(
    key: str | None, options: dict[str, dict[str, Any]], text: str, space: dict[str, Any], **facts: Any
) -> ModuleType | None:
    """Write a program to its file; the module made from that, or None where it cannot be kept.

    Args:
        key: its hash, of `key_of`.
        options: for the name of every function in `text`, the options of `numba.njit`.
        text: the program.
        space: what it refers to.
        facts: constants of the module, in capitals.
    """
    where = folder()
    if key is None or where is None or not is_as_imported():
        return None
    try:
        lines = [f"{ref} = {expression(x)}" for ref, x in space.items()]
    except Nameless:
        return None
    lines += [f"{fact} = {value!r}" for fact, value in {"NAMES": tuple(options), **facts}.items()]
    body = (
        '"""A derived program, written by plaingrad; it may be deleted at any time."""\n'
        "from plaingrad.native.compile import cache as _cache\n"
        + "".join(f"{line}\n" for line in lines)
        + f"{START}{text}{END}"
        + "".join(f"{name} = _cache.compiled({name}, {given!r})\n" for name, given in options.items())
    )
    content = f"# {_checksum(PREFIX + key, body)}\n{body}"
    path = where / f"{PREFIX}{key}.py"
    try:
        write_whole(path, content.encode())
        return _module(PREFIX + key, path, content)
    except Exception:
        return None


def _checksum(name: str, body: str) -> str:
    return hashlib.sha256(
        f"{name}\n{body}".encode()
    ).hexdigest()  # the file of another program is not this one


def _module(name: str, path: Path, content: str) -> ModuleType:
    first, _, body = content.partition("\n")
    checksum = _checksum(name, body)
    if first != f"# {checksum}":
        raise ValueError("damaged")
    module = ModuleType(name)
    module.CHECKSUM = checksum  # type: ignore[attr-defined]
    module.__file__ = str(path)
    module.TEXT = body.partition(START)[2].rpartition(END)[0]  # type: ignore[attr-defined]
    sys.modules[name] = module  # before Numba looks for it
    try:
        exec(compile(content, str(path), "exec"), module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def compiled(f: Any, options: dict[str, Any]) -> Any:
    """`f` compiled by Numba, its machine code kept beside its file."""
    run = declare.program(f, options)
    if run is not f:  # Numba may be told not to compile
        run._cache = KeptCode(f"{f.__globals__['__name__']}_{f.__name__}", f.__globals__["CHECKSUM"])
    return run
