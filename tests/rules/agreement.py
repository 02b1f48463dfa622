"""Independent truth for rules: differences of eighth order along the real and imaginary directions of each argument."""

import numpy as np

from plaingrad.tangents import is_zero, unthunk

WEIGHTS = ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))


def difference(f, x, direction=1.0, h=None):
    """The derivative of f at x along `direction`, to about twelve digits where f is smooth."""
    if h is None:
        h = 4e-3 * max(1e-2, min(1.0, abs(x)))
    h = type(h)(2.0 ** np.round(np.log2(float(h))))
    return sum(w * (f(x + k * h * direction) - f(x - k * h * direction)) for k, w in WEIGHTS) / h


def inner(z_bar, z_dot):
    """The real pairing of a cotangent with a tangent: for z = x + iy the cotangent is x_bar + i y_bar."""
    if isinstance(z_bar, (list, tuple)):
        return sum(inner(a, b) for a, b in zip(z_bar, z_dot, strict=True))
    return float(np.sum(np.real(np.conjugate(np.asarray(z_bar, complex)) * np.asarray(z_dot, complex))))


def directions(x):
    return (1.0, 1j) if isinstance(x, (complex, np.complexfloating)) else (1.0,)


def assert_partials_agree(rrule, args, function=None, skip=(), rel=1e-9):
    """Each partial of an elementwise rule at numbers `args` against differences of the function."""
    z, pullback = rrule(*args)
    function = function or (lambda *a: rrule(*a)[0])
    z_bars = (1.0, 1j) if isinstance(z, (complex, np.complexfloating)) else (1.0,)
    for z_bar in z_bars:
        cotangents = pullback(z_bar)
        for i, x in enumerate(args):
            if i in skip or not isinstance(x, (float, complex, np.inexact)):
                continue
            x_bar = unthunk(cotangents[i]) if i < len(cotangents) else 0.0
            x_bar = 0.0 if is_zero(x_bar) else x_bar
            for direction in directions(x):
                z_dot = difference(lambda t, i=i: function(*args[:i], t, *args[i + 1 :]), x, direction)
                truth = inner(z_bar, z_dot)
                found = inner(x_bar, direction)
                assert abs(found - truth) <= rel * max(1.0, abs(truth)), (args, i, direction, found, truth)
