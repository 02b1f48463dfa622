"""Numba's own Python code: it compiles, so it is called as it is, with no level in force, and never rewritten.

It keeps its types in tables of weak references and runs its own code at any time, so rewriting that code would
break it for good. What it makes is another matter: a compiled function is differentiated natively or from the Python
function that it was made of, and so is an element-wise one of `numba.vectorize`.
"""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from plaingrad.engine.refusals.refuse import missing_rule
from plaingrad.rewrite import PLAIN, in_force

if TYPE_CHECKING:
    from plaingrad.engine.calls.level import Level

COMPILERS = ("numba.", "llvmlite.")


def owns(x: Any) -> bool:
    """Whether a function or class is a compiler's own, or a class that one makes (`jitclass`)."""
    module = x.__module__
    if type(module) is str and module.startswith(COMPILERS):
        return True
    return isinstance(x, type) and type(x) is not type and str(type(x).__module__).startswith(COMPILERS)


def method_of_jitclass(level: Level, f: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]] | None:
    """(function, arguments) to call where `f` is what Numba makes to reach into an instance of a `jitclass`, else None.

    For a method or a property that is the user's Python function, for a field `f` itself, with no level in force. `f`
    asks the instance for the very attribute that it stands behind, so it must not run as Python code.
    """
    code = f.py_func.__code__
    if code.co_varnames[:1] != ("__numba_self_",) or not args:
        return None
    of = getattr(getattr(type(args[0]), "_numba_type_", None), "class_type", None)
    if of is None:
        return None
    name = code.co_names[0]
    if name in of.jit_static_methods:
        return level.prep(of.jit_static_methods[name]), args[1:]
    parts = of.jit_props.get(name, {})
    method = of.jit_methods.get(name) or parts.get("set" if code.co_name == "mutator" else "get")
    return (called_natively(level, f), args) if method is None else (level.prep(method.py_func), args)


def called_natively(level: Level, f: Any) -> Any:
    """What to call instead of `f`, a compiler's own: `f` with no level in force, refused where a value is active."""

    def native(*args: Any, **kwargs: Any) -> Any:
        for x in (*args, *kwargs.values()):
            if level.calls.finds_active(x):
                missing_rule(
                    f,
                    "It keeps numbers outside of Python's objects. In Python code, use a list, a dict or a class of "
                    "Python's.",
                    what="is code of Numba without a derivative rule",
                )
        return plainly(f, *args, **kwargs)

    return native


def elementwise(level: Level, f: Any) -> Any:
    """A function of `numba.vectorize`: with active arguments, the Python function it was made of, for each element."""
    if type(getattr(f, "_pyfunc", None)) is FunctionType:  # numba.cfunc, called from Python
        return level.prep(f._pyfunc)
    body = getattr(getattr(f, "_dispatcher", None), "py_func", None)
    native = called_natively(level, f)
    if type(body) is not FunctionType or getattr(f, "signature", None) is not None:  # numba.guvectorize
        return native

    def over_elements(*args: Any, **kwargs: Any) -> Any:
        if kwargs or not any(map(level.calls.finds_active, args)):
            return native(*args, **kwargs)
        y = plainly(f, *args)
        if np.asarray(y).dtype.kind not in "fc":
            return y
        z = level.prep(np.vectorize(body, otypes=[np.asarray(y).dtype]))(*args)
        z = level.getitem(z, ()) if z.ndim == 0 else z
        if not np.allclose(y, z, rtol=1e-9, atol=0.0, equal_nan=True):
            missing_rule(
                f,
                "Numba's compiled form of it gives other numbers than the Python function.",
                what="is code of Numba without a derivative rule",
            )
        rounding = np.zeros_like(y)  # the value is that of the compiled form, to the last bit
        np.subtract(y, z, out=rounding, where=np.isfinite(y))
        return level.add(z, rounding if isinstance(y, np.ndarray) else rounding[()]) if rounding.any() else z

    return over_elements


def plainly(f: Any, *args: Any, **kwargs: Any) -> Any:
    """f(*args, **kwargs) with no level in force."""
    return in_force(PLAIN, f, *args, **kwargs)
