"""Slopes of `scipy.special` as native code: the Python of `rules/scipy` with its NumPy said for numbers.

A row there computes with arrays: `np.where(c, x, y)[()]`, `z.astype(kind)`. Of one number that is `x if c else y`, and
`z`; SciPy's functions are those of `special_functions`. What a row calls is brought into this form along with it, and
differentiated from it. Functions that fill arrays with nodes of a quadrature have a form of their own (`OWN`), and the
rows that they have in the plain tier.
"""

from __future__ import annotations

import ast
import dis
import functools
import inspect
import textwrap
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np

from plaingrad import rulebook
from plaingrad.native.rules import scalars
from plaingrad.native.rules.scalars import Unavailable
from plaingrad.native.runtime import declare
from plaingrad.native.runtime import special_functions as special
from plaingrad.native.runtime import special_numbers as numbers
from plaingrad.native.runtime.special_tails import incomplete
from plaingrad.rules.scipy.special import elliptic, gamma, inverses, normal, quadrature
from plaingrad.rules.special import polygamma

# What slopes call that is no formula: how it is natively. With rules of their own are all but the first.
OWN: dict[Any, Any] = {
    quadrature.kind_of: numbers.kind_of,
    gamma.polygamma: polygamma,
    incomplete.gamma_density: incomplete.gamma_density,
    incomplete.beta_density: incomplete.beta_density,
    incomplete.gamma_tail: incomplete.gamma_tail,
    incomplete.beta_tail: incomplete.beta_tail,
    incomplete.gammainc_in_a: incomplete.gammainc_in_a,
    incomplete.betainc_in_a: incomplete.betainc_in_a,
    incomplete.betainc_in_b: incomplete.betainc_in_b,
    elliptic.carlson: elliptic.carlson,
}
OF_NUMBERS = {
    normal.dawsn_slope: normal.real_dawsn_slope
}  # what takes complex numbers, too: the part for real ones

ROWS: dict[Any, Any] = {
    numbers.where: (
        None,
        lambda m, c, x, y, z: numbers.where(c, 1.0, 0.0),
        lambda m, c, x, y, z: numbers.where(c, 0.0, 1.0),
    ),
    numbers.any: (1,),
    numbers.asarray: (1,),
    numbers.real: (1,),
    numbers.imag: (0,),
}


def _parameter_slopes() -> dict[Any, Any]:
    """Rows of slopes in parameters, which in the plain tier are differentiated from their code."""
    again, once, beta = map(
        native_form, (incomplete.gammainc_twice_in_a, incomplete.gamma_density_in_a, incomplete.betainc_twice)
    )
    density_in_a, density_in_b = map(
        native_form, (incomplete.beta_density_in_a, incomplete.beta_density_in_b)
    )
    return {
        incomplete.gammainc_in_a: (lambda m, a, x, z: again(a, x), lambda m, a, x, z: once(a, x)),
        incomplete.betainc_in_a: (
            lambda m, a, b, x, z: beta(2, 0, a, b, x),
            lambda m, a, b, x, z: beta(1, 1, a, b, x),
            lambda m, a, b, x, z: density_in_a(a, b, x),
        ),
        incomplete.betainc_in_b: (
            lambda m, a, b, x, z: beta(1, 1, a, b, x),
            lambda m, a, b, x, z: beta(0, 2, a, b, x),
            lambda m, a, b, x, z: density_in_b(a, b, x),
        ),
    }


class _OfNumbers(ast.NodeTransformer):
    """Code for arrays as code for numbers: without `[()]`, `.astype`, and annotations."""

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        self.generic_visit(node)
        empty = isinstance(node.slice, ast.Tuple) and not node.slice.elts
        return node.value if empty else node

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "astype":
            return node.func.value
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        self.generic_visit(node)
        return ast.copy_location(ast.Assign([node.target], node.value), node) if node.value else ast.Pass()


@functools.cache
def code_of_numbers(f: FunctionType) -> CodeType:
    """The code of a function of a module, for numbers.

    Raises:
        Unavailable: its source is not there.
    """
    if f.__closure__ or f.__name__ == "<lambda>":
        return f.__code__
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(f)))
    except (OSError, SyntaxError) as error:
        raise Unavailable(f"the source of {f.__name__} is not there") from error
    ast.increment_lineno(tree, f.__code__.co_firstlineno - 1)
    whole = compile(ast.fix_missing_locations(_OfNumbers().visit(tree)), f.__code__.co_filename, "exec")
    return next(x for x in whole.co_consts if isinstance(x, CodeType) and x.co_name == f.__name__)


@functools.cache
def native_form(f: FunctionType) -> Any:
    """`f`, a slope or what one calls, compiled for numbers.

    Raises:
        Unavailable: it needs something that there is no native form of.
    """
    if f in OWN:
        return OWN[f]
    if rulebook.find(f) is not None:
        raise Unavailable(f.__name__)
    if f in inverses.SOLVED:
        return of_inverse(f)
    written, f = f, OF_NUMBERS.get(f, f)
    code = code_of_numbers(f)
    if code.co_flags & inspect.CO_VARARGS:
        raise Unavailable(f.__name__)
    space = {
        name: replaced(f.__globals__[name], code, name) for name in names_of(code) if name in f.__globals__
    }
    cells = tuple([CellType(replaced(cell.cell_contents, code)) for cell in f.__closure__ or ()])
    defaults = tuple([replaced(x, code) for x in f.__defaults__ or ()])
    made = FunctionType(code, space, f.__name__, defaults or None, cells or None)
    made.__module__ = scalars.__name__  # where functions are differentiated from their code
    return compiled(made, written)


def compiled(f: FunctionType, written: FunctionType) -> Any:
    """`f`, the native form of the slope `written`, compiled."""
    run = declare.compiled(f, error_model="numpy")
    setattr(run.py_func, scalars.WRITTEN, written)
    return run


def of_inverse(written: FunctionType) -> Any:
    """A slope of an inverse: 1 / rise, or -part / rise, as in `inverses.inverse`.

    Raises:
        Unavailable: one of the slopes of the function that is inverted is.
    """
    forward, arguments, value, place = inverses.SOLVED[written]
    solved = arguments.index(inverses.Z)
    count = max(arguments + (value,)) + 1
    given = ", ".join(["m", *["z" if k == inverses.Z else f"a{k}" for k in arguments], f"a{value}"])
    space: dict[str, Any] = {"rise": slope_of(forward[solved])}
    top = "1.0"
    if place != value:
        part = forward[arguments.index(place)]
        space["part"] = slope_of(part)
        top = f"-part({given})"
    names = ", ".join([f"a{k}" for k in range(count)])
    exec(f"def slope(m, {names}, z):\n    return {top} / rise({given})\n", space)
    made = space["slope"]
    made.__module__ = scalars.__name__
    return compiled(made, written)


def slope_of(partial: Any) -> Any:
    """A partial of a row, which may be a number, as a function that Numba compiles."""
    written = scalars.as_written(partial)
    if written == scalars.REFUSED:
        raise Unavailable("refused")
    if callable(written):
        return native_form(written)
    number = float(written)
    return declare.compiled(lambda *args: number, error_model="numpy")


def names_of(code: CodeType) -> set[str]:
    """The names that code and the functions inside it look up."""
    inner = [names_of(x) for x in code.co_consts if isinstance(x, CodeType)]
    return set(code.co_names).union(*inner)


def replaced(x: Any, code: CodeType, name: str = "") -> Any:
    """What stands natively for something that slopes refer to."""
    if x is np:
        return numbers
    if isinstance(x, ModuleType) and x.__name__ == "scipy.special":
        for attribute in attributes_of(code, name):
            if not special.has(attribute):
                raise Unavailable(f"scipy.special.{attribute}")
            getattr(special, attribute)  # Numba knows it from now on
        return special
    if type(x) is np.ufunc:
        found = special.of_scipy(x)
        if found is None:
            raise Unavailable(f"scipy.special.{x.__name__}")
        return found
    if isinstance(x, FunctionType) and scalars.is_special(x):
        return native_form(x)
    return x


def attributes_of(code: CodeType, module: str) -> list[str]:
    """The attributes that code reads of the global `module`."""
    found, last = [], None
    for i in dis.get_instructions(code):
        if i.opname in ("LOAD_ATTR", "LOAD_METHOD") and last is not None and last.argval == module:
            found.append(i.argval)
        last = i if i.opname in ("LOAD_GLOBAL", "LOAD_NAME") else None
    for x in code.co_consts:
        if isinstance(x, CodeType):
            found += attributes_of(x, module)
    return found


@functools.cache
def elementwise(partial: FunctionType, count: int) -> Any:
    """A slope of `count` numbers (the result among them) as one of arrays, which are broadcast."""
    slope = native_form(partial)
    return numba.vectorize(BY_ELEMENT[count](slope))


BY_ELEMENT: dict[int, Any] = {
    2: lambda f: lambda a, z: f(np, a, z),
    3: lambda f: lambda a, b, z: f(np, a, b, z),
    4: lambda f: lambda a, b, c, z: f(np, a, b, c, z),
    5: lambda f: lambda a, b, c, d, z: f(np, a, b, c, d, z),
}


scalars.ROWS_OF_SLOPES.update({**ROWS, **_parameter_slopes()})
