"""The same programs over numbers of every kind: derivatives are exact in the arithmetic of the kind, to second order."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from contextlib import ExitStack
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from tests.types.rational_programs import PROGRAMS, jet

from plaingrad import MissingRuleError, grad, jvp, number_class, value_and_grad


class Rational:
    """A class of the program: fractions that are not lowered, with operators alone."""

    def __init__(self, over, under=1):
        self.over, self.under = (over.over, over.under) if isinstance(over, Rational) else (over, under)

    def __add__(self, other):
        other = Rational(other)
        return Rational(self.over * other.under + other.over * self.under, self.under * other.under)

    def __neg__(self):
        return Rational(-self.over, self.under)

    def __sub__(self, other):
        return self + -Rational(other)

    def __rsub__(self, other):
        return Rational(other) - self

    def __mul__(self, other):
        other = Rational(other)
        return Rational(self.over * other.over, self.under * other.under)

    def __truediv__(self, other):
        other = Rational(other)
        return Rational(self.over * other.under, self.under * other.over)

    def __rtruediv__(self, other):
        return Rational(other) / self

    def __pow__(self, n):
        return Rational(self.over**n, self.under**n) if n >= 0 else Rational(self.under**-n, self.over**-n)

    def __abs__(self):
        return -self if self < 0 else self

    def difference(self, other):
        difference = self - other
        return difference.over * difference.under

    def __lt__(self, other):
        return self.difference(other) < 0

    def __gt__(self, other):
        return self.difference(other) > 0

    def __le__(self, other):
        return self.difference(other) <= 0

    def __eq__(self, other):
        return self.difference(other) == 0

    __radd__, __rmul__ = __add__, __mul__


number_class(Rational)


def mpf():
    mpmath = pytest.importorskip("mpmath")
    return mpmath.mpf("1.3"), mpmath.mpf(10) ** -47


def mpfr():
    gmpy2 = pytest.importorskip("gmpy2")
    return gmpy2.mpfr("1.3"), gmpy2.mpfr("1e-47")


#: kind: (a number, how far a derivative may be from the truth, measured by its size)
NUMBERS = {
    "Fraction": lambda: (Fraction(3, 2), 0),
    "negative Fraction": lambda: (Fraction(-3, 7), 0),
    "Decimal": lambda: (Decimal("1.3"), Decimal("1e-25")),
    "mpf": mpf,
    "mpq": lambda: (pytest.importorskip("gmpy2").mpq(3, 2), 0),
    "mpfr": mpfr,
    "class of the program": lambda: (Rational(3, 2), 0),
    "float": lambda: (1.3, 1e-14),
    "complex": lambda: (1.3 + 0j, 1e-14),
    "float16": lambda: (np.float16(1.3), 0.06),
    "float32": lambda: (np.float32(1.3), np.float32(1e-5)),
    "longdouble": lambda: (np.longdouble("1.3"), np.longdouble(2e-18) * (1 + (np.finfo(np.longdouble).eps > 1e-18) * 200)),
}  # fmt: skip
ORDERED = ("modulus", "branches", "sorted", "taken while")
#: Programs that are the same for a whole array as for each of its elements.
WHOLE = ("polynomial", "quotient", "reflected", "powers", "minus", "modulus", "product", "horner", "accumulated",
         "partial", "default", "dictionary", "object", "babylonian root", "continued fraction", "exception",
         "determinant", "closure", "unpacked")  # fmt: skip


@pytest.fixture(autouse=True)
def fifty_digits():
    with ExitStack() as stack:
        if find_spec("mpmath"):
            stack.enter_context(import_module("mpmath").workdps(50))
        if find_spec("gmpy2"):
            gmpy2 = import_module("gmpy2")
            stack.enter_context(gmpy2.context(gmpy2.get_context(), precision=170))
        yield


def near(found, truth, tolerance):
    return found == truth if not tolerance else abs(found - truth) <= tolerance * (1 + abs(truth))


@pytest.mark.parametrize("kind", NUMBERS)
def test_programs_are_exact_in_both_modes_to_second_order(kind):
    x, tolerance = NUMBERS[kind]()
    one = x * 0 + 1
    for name, f in PROGRAMS.items():
        if kind == "complex" and name in ORDERED:
            continue
        value, slope, half = f(jet(x)).parts

        def forward(x, f=f):
            return jvp(f, (x,), (one,))[1]

        found = {"forward": (forward(x), slope), "forward twice": (jvp(forward, (x,), (one,))[1], half * 2)}
        if kind != "complex":
            y, by_reverse = value_and_grad(f)(x)
            found |= {"value": (y, value), "reverse": (by_reverse, slope)}
            found["reverse twice"] = grad(grad(f))(x), half * 2
        for mode, (derivative, truth) in found.items():
            assert type(derivative) is type(x), (name, mode)
            assert near(derivative, truth, tolerance), (name, mode, derivative, truth)
        assert type(f(x)) is type(x) and near(f(x), value, tolerance)


@pytest.mark.parametrize("kind", ["Fraction", "Decimal", "mpf", "class of the program"])
def test_programs_over_arrays_of_objects_are_exact(kind):
    x, tolerance = NUMBERS[kind]()
    numbers = [x, x + 1 - 2 * x, x * x + x, x / 3]
    a = np.array(numbers, dtype=object)
    for name, f in PROGRAMS.items():
        truths = [f(jet(x)).parts[1] for x in numbers]
        of_elements = grad(lambda a, f=f: sum(f(x) for x in a))(a)
        assert all(near(d, truth, tolerance) for d, truth in zip(of_elements, truths, strict=True)), name
        if name in WHOLE:
            of_array = grad(lambda a, f=f: f(a).sum())(a)
            assert of_array.dtype == object
            assert all(near(d, truth, tolerance) for d, truth in zip(of_array, truths, strict=True)), name


def test_numbers_with_uncertainties_run_them_too():
    pytest.importorskip("uncertainties")
    program = """
        from tests.types.rational_programs import PROGRAMS, jet
        import uncertainties
        from uncertainties import umath
        from plaingrad import MissingRuleError, grad, jvp, number_class

        kind = uncertainties.core.AffineScalarFunc
        number_class(
            kind,
            functions=umath,
            copy=lambda u: u * 1.0,
            made=lambda x, n: n if isinstance(n, kind) else x * 0.0 + n,
        )
        x = uncertainties.ufloat(1.37, 0.02)
        names = "polynomial quotient reflected powers minus modulus sum product horner accumulated partial default dictionary"
        names += " exception in_place closure branches queue sorted generator taken_while unpacked"
        for name in names.split():  # the others have thousands of sums, each with what it depends on
            f = PROGRAMS[name.replace("_", " ")]
            _, slope, half = f(jet(x)).parts
            for found, truth in (
                (grad(f)(x), slope),
                (jvp(f, (x,), (x * 0 + 1,))[1], slope),
                (grad(grad(f))(x), half * 2),
            ):
                rest = found - truth  # they are correlated: no uncertainty is left
                assert abs(rest.n) < 1e-11 * (1 + abs(truth.n)) and rest.s < 1e-11 * (1 + truth.s), name
    """
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=120, cwd=Path(__file__).parents[2]
    )


M = np.array([[Fraction(1), Fraction(2)], [Fraction(3), Fraction(5)]], object)
W = np.array([[1, 2], [3, 4]])
#: what NumPy does with a matrix m of objects, and the gradient of the sum of its elements times 1, 2, 3, ...
OF_NUMPY = {
    "cumsum along 0": (lambda m: np.cumsum(m, axis=0), [[4, 6], [3, 4]]),
    "cumsum along 1": (lambda m: m.cumsum(1), [[3, 2], [7, 4]]),
    "cumsum": (lambda m: np.cumsum(m), [[10, 9], [7, 4]]),
    "accumulate": (lambda m: np.add.accumulate(m, 1), [[3, 2], [7, 4]]),
    "cumprod": (lambda m: np.cumprod(m, axis=1), [[1 + 4, 2], [3 + 20, 12]]),
    "keepdims by position": (lambda m: np.sum(m, 0, None, None, True), [[1, 2], [1, 2]]),
    "keepdims": (lambda m: m.mean(axis=1, keepdims=True), [[Fraction(1, 2)] * 2, [1, 1]]),
    "axes": (lambda m: np.prod(m, axis=(0, 1), keepdims=True), [[30, 15], [10, 6]]),
    "outer": (lambda m: np.outer(m[0], [1, 2]), [[1 + 4, 3 + 8], [0, 0]]),
    "negative": (lambda m: -m, -W),
    "absolute": (lambda m: abs(-m), W),
    "positive": (lambda m: +m, W),
    "square": (lambda m: np.square(m), 2 * M * W),
    "reciprocal": (lambda m: np.reciprocal(m), -W / M**2),
    "over an int": (lambda m: m / 3, W * Fraction(1, 3)),
    "product": (lambda m: m @ W, None),
    "transposed": (lambda m: m.T * 1, W.T),
    "sorted": (lambda m: np.sort(-m, axis=1), [[-2, -1], [-4, -3]]),
    "chosen": (lambda m: np.where(m > 2, m * m, m), [[1, 2], [18, 40]]),
    "power": (lambda m: m**-2, -2 * W / M**3),
    "joined": (lambda m: np.concatenate([m[:1], m[1:] * 2]), [[1, 2], [6, 8]]),
    "largest": (lambda m: m.max(axis=0, keepdims=True), [[0, 0], [1, 2]]),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_NUMPY)
def test_functions_of_numpy_over_arrays_of_objects_are_exact(name):
    f, expected = OF_NUMPY[name]

    def weighted(m):
        z = f(m)
        assert z.shape == f(M).shape and (z == f(M)).all()
        return (z * np.arange(1, z.size + 1).reshape(z.shape)).sum()

    expected = W @ W.T if expected is None else np.asarray(expected)
    found = grad(weighted)(M.copy())
    assert found.dtype == object and (found == expected).all()
    v = M * W - 3
    assert jvp(weighted, (M.copy(),), (v,))[1] == (v * expected).sum()


def test_options_that_sums_of_objects_do_not_follow_are_refused():
    for f in (
        lambda m: np.sum(m, initial=Fraction(1)),
        lambda m: np.prod(m, where=np.eye(2, dtype=bool)),
        lambda m: np.mean(m, dtype=float),
        lambda m: np.dot(m[None], m).sum(),
    ):
        with pytest.raises(MissingRuleError):
            grad(f)(M.copy())


def test_functions_of_decimals_in_arrays_are_exact():
    a = np.array([Decimal(2), Decimal(3)], object)
    assert list(grad(lambda a: np.exp(a).sum())(a)) == list(np.exp(a))
    assert list(grad(lambda a: np.sqrt(a).sum())(a)) == [1 / (2 * x.sqrt()) for x in a]
    assert list(grad(lambda a: np.log10(a).sum())(a)) == [1 / (x * Decimal(10).ln()) for x in a]
