"""The page about types of numbers and arrays: each program is tried, and what happens stands in the table."""

from __future__ import annotations

import array
import ctypes
import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import plaingrad

PAGE = Path(__file__).parent / "reference" / "types.md"
HEAD = """# Types of numbers and arrays

What a differentiated argument, or a number that depends on one, may be. `docs/types_table.py` tries each line: an
expression in `x`, at a value of the type, in reverse mode, in forward mode, and where `x` is a single real number to
second order. Nothing is left out without a word: what is not differentiated is refused.

A derivative has the type of what it belongs to, and its precision: `mpf` of 50 digits have gradients of 50 digits.
Numbers of mpmath and gmpy2 are known; a class of your own, or of another library, is made known by
`plaingrad.number_class`.
"""


def mpmath() -> Any:
    return import_module("mpmath")


def gmpy2() -> Any:
    return import_module("gmpy2")


def uncertain() -> Any:
    return import_module("uncertainties").ufloat(3.67, 0.02)


def doubled_in_place(x: Any) -> Any:
    x *= x
    return x.sum()


#: (type, the value, a function of it, how it is written)
ROWS: list[tuple[str, Callable[[], Any], Callable[[Any], Any], str]] = [
    ("float", lambda: 1.5, lambda x: x * math.sin(x), "x * math.sin(x)"),
    ("complex", lambda: 1.5 + 1j, lambda x: abs(x * x), "abs(x * x)"),
    ("Fraction", lambda: Fraction(1, 3), lambda x: 3 * x * x + 1 / x, "3 * x * x + 1 / x"),
    ("Fraction", lambda: Fraction(2), lambda x: Fraction(1, 3) ** x, "Fraction(1, 3) ** x"),
    ("Decimal", lambda: Decimal("1.1"), lambda x: x.exp() * x, "x.exp() * x"),
    ("numpy.float16", lambda: np.float16(1.5), lambda x: x * x, "x * x"),
    ("numpy.longdouble", lambda: np.longdouble(1.5), lambda x: np.exp(x), "np.exp(x)"),
    ("numpy.ndarray", lambda: np.array([1.0, 2.0]), lambda x: (x * x).sum(), "(x * x).sum()"),
    (
        "array of objects",
        lambda: np.array([Fraction(1, 3), Fraction(2)]),
        lambda x: (x * x).sum(),
        "(x * x).sum()",
    ),
    ("masked array", lambda: np.ma.array([1.0, 2.0], mask=[0, 1]), lambda x: (x * x).sum(), "(x * x).sum()"),
    ("structured array", lambda: np.zeros(2, [("a", float)]), lambda x: x["a"].sum(), 'x["a"].sum()'),
    ("array.array", lambda: array.array("d", [1, 2]), lambda x: x[0] * x[1], "x[0] * x[1]"),
    ("memoryview", lambda: memoryview(array.array("d", [1, 2])), lambda x: x[0] * x[1], "x[0] * x[1]"),
    ("array of ctypes", lambda: (ctypes.c_double * 2)(1, 2), lambda x: x[0] * x[1], "x[0] * x[1]"),
    ("mpmath.mpf", lambda: mpmath().mpf("1.5"), lambda x: mpmath().gamma(x) ** x, "mpmath.gamma(x) ** x"),
    ("mpmath.mpc", lambda: mpmath().mpc(1, 2), lambda x: abs(x * x), "abs(x * x)"),
    (
        "mpmath.mpf",
        lambda: mpmath().mpf("1.5"),
        lambda x: mpmath().hyp2f1(1, 2, 3, x / 4),
        "mpmath.hyp2f1(1, 2, 3, x / 4)",
    ),
    ("gmpy2.mpfr", lambda: gmpy2().mpfr("1.5"), lambda x: gmpy2().sin(x) * x, "gmpy2.sin(x) * x"),
    ("gmpy2.mpq", lambda: gmpy2().mpq(1, 3), lambda x: x**3 - 1 / x, "x**3 - 1 / x"),
    ("uncertainties.ufloat", uncertain, lambda x: (x * x).n, "(x * x).n"),
    ("sympy.Symbol", lambda: import_module("sympy").Symbol("x"), lambda x: x * x, "x * x"),
    ("sympy.Rational", lambda: import_module("sympy").Rational(1, 3), lambda x: x * x, "x * x"),
    (
        "ml_dtypes.bfloat16",
        lambda: np.ones(2, import_module("ml_dtypes").bfloat16),
        lambda x: (x * x).sum(),
        "(x * x).sum()",
    ),
    ("pint.Quantity", lambda: import_module("pint").Quantity(2.0, "m"), lambda x: (x * x).m, "(x * x).m"),
    (
        "astropy Quantity",
        lambda: np.ones(2) * import_module("astropy.units").m,
        lambda x: (x * x).sum().value,
        "(x * x).sum().value",
    ),
    (
        "unyt_array",
        lambda: import_module("unyt").unyt_array([1.0, 2.0], "m"),
        lambda x: (x * x).sum().value,
        "(x * x).sum().value",
    ),
    (
        "xarray.DataArray",
        lambda: import_module("xarray").DataArray([1.0, 2.0]),
        lambda x: float((x * x).sum()),
        "float((x * x).sum())",
    ),
    (
        "pandas.Series",
        lambda: import_module("pandas").Series([1.0, 2.0]),
        lambda x: (x * x).sum(),
        "(x * x).sum()",
    ),
    (
        "scipy.sparse.csr_array",
        lambda: import_module("scipy.sparse").csr_array(np.eye(2)),
        lambda x: (x @ np.ones(2)).sum(),
        "(x @ np.ones(2)).sum()",
    ),
    ("jax.Array", lambda: import_module("jax.numpy").ones(2), lambda x: (x * x).sum(), "(x * x).sum()"),
    (
        "jax.Array",
        lambda: import_module("jax.numpy").ones(2),
        lambda x: x.at[0].set(2.0).sum(),
        "x.at[0].set(2.0).sum()",
    ),
    ("torch.Tensor", lambda: import_module("torch").ones(2), lambda x: (x * x).sum(), "(x * x).sum()"),
    ("torch.Tensor", lambda: import_module("torch").ones(2), doubled_in_place, "x *= x; x.sum()"),
    (
        "torch.Tensor",
        lambda: import_module("torch").ones(2),
        lambda x: np.sin(x.numpy()).sum(),
        "np.sin(x.numpy()).sum()",
    ),
    ("torch.Tensor", lambda: import_module("torch").ones(2), lambda x: np.sin(x).sum(), "np.sin(x).sum()"),
    (
        "torch.Tensor",
        lambda: import_module("torch").ones(2),
        lambda x: (x.detach() * x).sum(),
        "(x.detach() * x).sum()",
    ),
]


def outcome(x: Any, f: Callable[[Any], Any]) -> str:
    """What the derivative of f at x is, in which modes and orders, or why it is refused."""
    try:
        d = plaingrad.grad(f)(x)
    except plaingrad.PlaingradError as error:
        return f"refused: `{type(error).__name__}`"
    also = []
    for what, derivative in (
        ("forward", lambda: plaingrad.jvp(f, (x,), (d,))),
        ("second order", lambda: plaingrad.grad(plaingrad.grad(f))(x)),
    ):
        try:
            derivative()
            also.append(what)
        except (
            plaingrad.PlaingradError,
            TypeError,
            RecursionError,
        ):  # a tangent of an object that holds itself
            pass
    return f"`{type(d).__name__}`" + "".join(f", {what}" for what in also)


def rows() -> Iterator[str]:
    """The lines of the table; of libraries that are not installed there are none."""
    for name, value, f, text in ROWS:
        try:
            x = value()
        except ImportError:
            continue
        yield f"| `{name}` | `{text}` | {outcome(x, f)} |"


def page() -> str:
    """The whole page."""
    table = ["| type of `x` | function | gradient |", "|---|---|---|", *rows()]
    return HEAD + "\n" + "\n".join(table) + "\n" + TAIL


TAIL = """
A gradient by an array of a subclass is a plain array; by an object (`Quantity` of pint, `DataArray`, `Series`) it is a
`Tangent` with the fields that hold numbers.

## Quantities with units

`plaingrad.units.grad` and `plaingrad.units.value_and_grad` take functions of quantities of pint, astropy and unyt. A
derivative has the unit of the result over that of the argument, in every order:

```text
unit = pint.UnitRegistry()
energy = lambda v: 0.5 * (3.0 * unit.kilogram) * v**2
plaingrad.units.grad(energy)(2.0 * unit.meter / unit.second)  # 6.0 kilogram * meter / second
plaingrad.units.grad(plaingrad.units.grad(energy))(2.0 * unit.meter / unit.second)  # 3.0 kilogram
```

## Uncertain numbers

A number of `uncertainties` is an object, of which what it holds is differentiated, its standard deviation too. To
have a gradient with an uncertainty of its own, correlated with the argument, declare the class:

```text
from uncertainties import ufloat, umath
from uncertainties.core import AffineScalarFunc

plaingrad.number_class(
    AffineScalarFunc,
    functions=umath,
    copy=lambda u: u * 1.0,
    made=lambda u, number: number if isinstance(number, AffineScalarFunc) else u * 0.0 + number,
)
plaingrad.grad(lambda x: 3 * x**2 + umath.sin(x))(ufloat(3.67, 0.02))  # 21.16+/-0.13
```

## Other systems of automatic differentiation

| | |
|---|---|
| what is called of PyTorch or JAX in a plain function | one step, which they differentiate: {doc}`/how-to/pytorch` |
| function of the program as one such step | `plaingrad.torch.inside(f)`, `plaingrad.jax.inside(f)` |
| plain function inside PyTorch | `plaingrad.torch.function(f)`: to any order (a `torch.autograd.Function`) |
| plain function inside a JAX one | `plaingrad.jax.function(f)`: reverse mode, to any order (a `custom_vjp`) |
| HIPS autograd inside | it is Python, and is differentiated as such |
| SymPy's expressions | refused; `sympy.lambdify` gives a function that is differentiated |

"""

if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
