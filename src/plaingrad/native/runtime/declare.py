"""How the functions that derived programs call are declared, so that Numba compiles them once a machine.

`overload`, `register_jitable` and `njit` are Numba's, but what they compile is kept on disk (`machine.folder`). The
cache that Numba has would not do: it tells functions of one file apart by their instructions only, without names and
constants, and compiles a function with flags of the one that calls it (`fastmath`, `error_model`) without remembering
which. Here a function is told by all that its code says and by what it encloses, and its machine code by the flags.
Nor is there an index that two processes could write at once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numba
from numba.core import types
from numba.core.serialize import dumps
from numba.core.targetconfig import ConfigStack
from numba.core.typing.templates import infer, infer_global, make_overload_template

from plaingrad.native.machine import fingerprint
from plaingrad.native.machine.folder import HELPERS
from plaingrad.native.machine.machine_code import KeptCode
from plaingrad.native.runtime import linked
from plaingrad.native.runtime.allocation import ProgramCompiler

UNWRAPPED = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}  # called from compiled code only
OF_MOVES = {"fastmath": False, "error_model": "python"}  # of functions that no flags of a caller would change
INSTALLATION = hashlib.sha256(str(fingerprint.PACKAGE).encode()).hexdigest()[:12]


class Cache(KeptCode):
    """Machine code of one helper on disk, for each kind of arguments and flags.

    Attributes:
        is_linked: whether there is code to link only (`linked.py`).
        moves: whether it is the same for all flags.
    """

    def __init__(self, name: str, is_linked: bool, moves: bool = False) -> None:
        super().__init__(name)
        self.is_linked = is_linked
        self.moves = moves

    def key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        """What tells one machine code of the helper from another."""
        above = None if self.moves else ConfigStack.top_or_none()  # the flags of the function that calls
        flags = above and (sorted(above.fastmath.flags), above.error_model, above.forceinline, above.nrt)
        return sig, codegen.magic_tuple(), str(flags)

    def folder(self) -> Path | None:
        """Where its files are; None if nothing is kept."""
        where = super().folder()
        return None if where is None else where / f"{HELPERS}{INSTALLATION}"

    def reduced(self, data: Any) -> tuple[Any, ...]:
        """What a compiled helper is made of, to be pickled."""
        return linked.reduced(data) if self.is_linked else super().reduced(data)

    def rebuilt(self, context: Any, kept: tuple[Any, ...]) -> Any:
        """The compiled helper from what `reduced` gave."""
        return linked.rebuilt(context, kept) if self.is_linked else super().rebuilt(context, kept)


def _words(code: CodeType) -> list[Any]:
    """All that code says."""
    constants = [
        _words(x)
        if isinstance(x, CodeType)
        else (type(x).__name__, repr(sorted(x, key=repr) if isinstance(x, frozenset) else x))
        for x in code.co_consts
    ]
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return [
        code.co_filename,
        code.co_qualname,
        code.co_firstlineno,
        code.co_code,
        code.co_flags,
        names,
        constants,
    ]


def digest(f: FunctionType, options: dict[str, Any]) -> str | None:
    """What tells a function of plaingrad's own, compiled with `options`, from all others.

    None if it is not one, or encloses what has no name.
    """
    if not f.__code__.co_filename.startswith(str(fingerprint.PACKAGE)):
        return None
    try:
        enclosed = dumps(tuple([cell.cell_contents for cell in f.__closure__ or ()]))
    except Exception:
        return None
    words = str(
        (f.__module__, _words(f.__code__), f.__defaults__, f.__kwdefaults__, sorted(options.items()))
    ).encode()
    return hashlib.sha256(words + enclosed).hexdigest()[:16]


def compiled(f: FunctionType, **options: Any) -> Any:
    """`f` compiled by Numba under a name that no other function has, its machine code kept.

    Numba names machine code by the qualified name and a count that starts anew in every process: two functions of one
    name, one of them loaded, would be taken for one.
    """
    told = digest(f, options)
    if told is None:
        return numba.njit(**options)(f)
    if told in _moving:
        return _moving[told]
    made = FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__)
    made.__kwdefaults__ = f.__kwdefaults__
    made.__module__ = f.__module__
    made.__qualname__ = f"{f.__qualname__}_{told}"
    is_linked = options.get("no_cpython_wrapper", False)
    run = numba.njit(pipeline_class=linked.HelperCompiler if is_linked else ProgramCompiler, **options)(made)
    if run is not made:  # Numba may be told not to compile
        moves = OF_MOVES.items() <= options.items()
        run._cache = Cache(f"{f.__name__.strip('<>')}_{told}", is_linked, moves)
        if moves:
            _moving[told] = run
    return run


_moving: dict[str, Any] = {}  # what `compiled` made of functions that are the same for all flags


def njit(f: Any = None, **options: Any) -> Any:
    """`numba.njit` for a function of a module, which Python may call too."""
    if f is None:
        return lambda f: njit(f, **options)
    run = numba.njit(no_cfunc_wrapper=True, pipeline_class=ProgramCompiler, **options)(f)
    told = digest(f, options)
    if run is not f and told is not None:
        run._cache = Cache(f"{f.__name__}_{told}", False)
    return run


def program(f: Any, options: dict[str, Any]) -> Any:
    """A derived program compiled with these options of `numba.njit`."""
    return numba.njit(nogil=True, no_cfunc_wrapper=True, pipeline_class=ProgramCompiler, **options)(f)


def overload(
    function: Any,
    inline: Any = "never",
    prefer_literal: bool = False,
    strict: bool = True,
    moves: bool = False,
) -> Any:
    """`numba.extending.overload`.

    Args:
        function: what is called.
        inline: as in Numba.
        prefer_literal: as in Numba.
        strict: as in Numba.
        moves: it moves and counts: the flags of the caller (`fastmath`, `error_model`) would change nothing, and it
            is compiled once for all of them.
    """

    def decorate(chosen: Callable[..., Any]) -> Callable[..., Any]:
        given = {**UNWRAPPED, **OF_MOVES} if moves else UNWRAPPED
        template = make_overload_template(function, chosen, given, strict, inline, prefer_literal)
        if inline == "never":
            template._get_jit_decorator = lambda self: lambda **options: lambda f: compiled(f, **options)
        infer(template)
        if callable(function):
            infer_global(function, types.Function(template))
        return chosen

    return decorate


def register_jitable(f: Any = None, inline: Any = "never", moves: bool = False) -> Any:
    """`numba.extending.register_jitable`, with `moves` as in `overload`."""
    if f is None:
        return lambda f: register_jitable(f, inline, moves)

    @overload(f, inline=inline, strict=False, moves=moves)
    def chosen(*args: Any, **kwargs: Any) -> Any:
        return f

    return f
