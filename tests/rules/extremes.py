"""Partial derivatives in closed form, by mpmath, for arguments near the ends of the range of floating-point numbers."""

import functools
import math

import mpmath
import numpy as np

DIGITS = 700  # the argument of a sine may be 1e308, and 1 + x * x of 1e-308 is not 1

ln2, ln10 = (lambda: mpmath.log(2)), (lambda: mpmath.log(10))


def power_in_base(x, y):
    return mpmath.mpf(0) if y == 0 else y * x ** (y - 1)


def power_in_exponent(x, y):
    return mpmath.mpf(0) if x == 0 else x**y * mpmath.log(x if isinstance(x**y, mpmath.mpc) else abs(x))


def share(x, y, base=mpmath.e):
    return 1 / (1 + mpmath.mpf(base) ** (y - x)) if abs(y - x) < 1e4 else mpmath.mpf(x > y)


def whole(x):
    return mpmath.floor(x)


def nearest(x):
    return mpmath.nint(x)


def digamma(x):
    with mpmath.workdps(60):  # nothing cancels, and 700 digits take a second
        return mpmath.digamma(x)


def gamma_derivative(x):
    with mpmath.workdps(60):
        return mpmath.gamma(x) * mpmath.digamma(x)


# name of a row: dz/d(argument) in order, for real and complex numbers
PARTIALS = {
    "add": (lambda x, y: 1, lambda x, y: 1),
    "radd": (lambda x, y: 1, lambda x, y: 1),
    "sub": (lambda x, y: 1, lambda x, y: -1),
    "subtract": (lambda x, y: 1, lambda x, y: -1),
    "rsub": (lambda x, y: -1, lambda x, y: 1),
    "mul": (lambda x, y: y, lambda x, y: x),
    "multiply": (lambda x, y: y, lambda x, y: x),
    "rmul": (lambda x, y: y, lambda x, y: x),
    "truediv": (lambda x, y: 1 / y, lambda x, y: -x / y**2),
    "divide": (lambda x, y: 1 / y, lambda x, y: -x / y**2),
    "rtruediv": (lambda y, x: -x / y**2, lambda y, x: 1 / y),
    "neg": (lambda x: -1,),
    "negative": (lambda x: -1,),
    "pos": (lambda x: 1,),
    "positive": (lambda x: 1,),
    "abs": (lambda x: mpmath.conj(x) / abs(x),),
    "absolute": (lambda x: mpmath.conj(x) / abs(x),),
    "fabs": (mpmath.sign,),
    "square": (lambda x: 2 * x,),
    "reciprocal": (lambda x: -1 / x**2,),
    "mod": (lambda x, y: 1, lambda x, y: -whole(x / y)),
    "remainder": (lambda x, y: 1, lambda x, y: -whole(x / y)),
    "ieee_remainder": (lambda x, y: 1, lambda x, y: -nearest(x / y)),
    "rmod": (lambda y, x: -whole(x / y), lambda y, x: 1),
    "fmod": (lambda x, y: 1, lambda x, y: -mpmath.sign(x / y) * whole(abs(x / y))),
    "pow": (power_in_base, power_in_exponent),
    "power": (power_in_base, power_in_exponent),
    "float_power": (power_in_base, power_in_exponent),
    "rpow": (lambda y, x: power_in_exponent(x, y), lambda y, x: power_in_base(x, y)),
    "sqrt": (lambda x: 1 / (2 * mpmath.sqrt(x)),),
    "cbrt": (lambda x: 1 / (3 * mpmath.cbrt(abs(x)) ** 2),),
    "exp": (mpmath.exp,),
    "exp2": (lambda x: ln2() * mpmath.mpf(2) ** x,),
    "expm1": (mpmath.exp,),
    "log": (lambda x, base=None: 1 / x if base is None else 1 / (x * mpmath.log(base)),
            lambda x, base: -mpmath.log(x) / (base * mpmath.log(base) ** 2)),
    "log2": (lambda x: 1 / (x * ln2()),),
    "log10": (lambda x: 1 / (x * ln10()),),
    "log1p": (lambda x: 1 / (1 + x),),
    "logaddexp": (share, lambda x, y: share(y, x)),
    "logaddexp2": (lambda x, y: share(x, y, 2), lambda x, y: share(y, x, 2)),
    "sin": (mpmath.cos,),
    "cos": (lambda x: -mpmath.sin(x),),
    "tan": (lambda x: 1 / mpmath.cos(x) ** 2,),
    "asin": (lambda x: 1 / (mpmath.sqrt(1 - x) * mpmath.sqrt(1 + x)),),
    "acos": (lambda x: -1 / (mpmath.sqrt(1 - x) * mpmath.sqrt(1 + x)),),
    "atan": (lambda x: 1 / (1 + x * x),),
    "atan2": (lambda y, x: x / (x * x + y * y), lambda y, x: -y / (x * x + y * y)),
    "sinh": (mpmath.cosh,),
    "cosh": (mpmath.sinh,),
    "tanh": (lambda x: 1 / mpmath.cosh(x) ** 2,),
    "asinh": (lambda x: 1 / mpmath.sqrt(1 + x * x) if not isinstance(x, mpmath.mpc) else 1 / (mpmath.sqrt(1 - 1j * x) * mpmath.sqrt(1 + 1j * x)),),
    "acosh": (lambda x: 1 / (mpmath.sqrt(x - 1) * mpmath.sqrt(x + 1)),),
    "atanh": (lambda x: 1 / ((1 - x) * (1 + x)),),
    "degrees": (lambda x: 180 / mpmath.pi,),
    "radians": (lambda x: mpmath.pi / 180,),
    "hypot": (lambda x, y: x / mpmath.sqrt(x * x + y * y), lambda x, y: y / mpmath.sqrt(x * x + y * y)),
    "erf": (lambda x: 2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-x * x),),
    "erfc": (lambda x: -2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-x * x),),
    "gamma": (gamma_derivative,),
    "lgamma": (digamma,),
    "digamma": (lambda x: mpmath.psi(1, x),),
    "polygamma": (None, lambda n, x: mpmath.psi(int(n) + 1, x)),
    "maximum": (lambda x, y: x >= y, lambda x, y: x < y),
    "minimum": (lambda x, y: x <= y, lambda x, y: x > y),
    "fmax": (lambda x, y: x >= y, lambda x, y: x < y),
    "fmin": (lambda x, y: x <= y, lambda x, y: x > y),
    "heaviside": (lambda x, y: 0, lambda x, y: x == 0),
    "copysign": (lambda x, y: mpmath.sign(x) * (1 if math.copysign(1.0, y) > 0 else -1), lambda x, y: 0),
    "nextafter": (lambda x, y: 1, lambda x, y: 0),
    "clip": (lambda x, low, high: low <= x <= high, lambda x, low, high: x < low <= high, lambda x, low, high: max(x, low) > high),
    "fma": (lambda x, y, c: y, lambda x, y, c: x, lambda x, y, c: 1),
    "phase": (lambda x: -1j / x if isinstance(x, mpmath.mpc) else 0,),
    "rect": (lambda r, phi: mpmath.exp(1j * phi), lambda r, phi: 1j * r * mpmath.exp(1j * phi)),
    "fraction": (lambda x: 1,),
    "mantissa": (lambda x: mpmath.mpf(2) ** -math.frexp(x)[1],),
}  # fmt: skip
ALIASES = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh", "rad2deg": "degrees", "deg2rad": "radians",
}  # fmt: skip


def name_of_row(function):
    name = function.__name__.strip("_")
    if function is math.remainder:
        return "ieee_remainder"
    return ALIASES.get(name, name)


def exact_number(x):
    if isinstance(x, (complex, np.complexfloating)):
        return mpmath.mpc(float(x.real), float(x.imag))
    return mpmath.mpf(float(x))


def partial_of(function, position, args):
    """dz/d(argument at `position`) as an mpmath number; None where there is none. Of arguments that are not 0."""
    return known_partial(name_of_row(function), position, args, tuple([isinstance(x, (complex, np.complexfloating)) for x in args]))


@functools.cache
def known_partial(name, position, args, are_complex):
    """The same by the name: rows of Python, of its methods and of NumPy have the same function and points."""
    partial = PARTIALS[name][position]
    with mpmath.workdps(DIGITS):
        try:
            found = mpmath.mpmathify(partial(*[exact_number(x) for x in args]))
        except ZeroDivisionError:
            return None
    with mpmath.workdps(50):  # which is enough to compare with
        return +found


@functools.cache
def limits(kind):
    """The largest number of floating-point type `kind`, and the smallest normal one."""
    info = np.finfo(kind)
    return float(info.max), float(info.tiny)


def is_close(found, truth, kind, rel, floor=0.0):
    """Whether a number of floating-point type `kind` is the exact `truth`, as near as the type can have it.

    What is not a normal number of that type may be 0, and what overflows must be an infinity of its sign.
    """
    largest, smallest = limits(kind)
    if isinstance(truth, mpmath.mpc) or isinstance(found, (complex, np.complexfloating)):
        truth, found = mpmath.mpc(truth), complex(found)
        scale = abs(truth)
        if scale > largest / 4:
            return True  # complex arithmetic of infinities has no agreed result
        parts = ((found.real, truth.real), (found.imag, truth.imag))
    else:
        scale = abs(truth)
        parts = ((float(found), truth),)
    for number, exact in parts:
        if abs(exact) > largest * (1 - rel):
            if not (abs(number) > largest / 4 and (number > 0) == (exact > 0)):
                return False
        elif not math.isfinite(number) or abs(number - exact) > rel * scale + smallest + floor:
            return False
    return True
