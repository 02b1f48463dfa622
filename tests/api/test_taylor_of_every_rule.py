"""Every rule in jet arithmetic, against forward mode applied to itself.

Each function is tried at its first sample and at one in eight of the others; at all of them with PLAINGRAD_TEST_ALL=1.
"""

import copy
import math

import numpy as np
import pytest
from tests.rules.numpy.checks import leaves
from tests.rules.numpy.composed_samples import COMPOSED
from tests.rules.numpy.test_through_the_engine import PUBLIC, SAMPLES, name_of
from tests.rules.test_forward_through_the_engine import after, tangent_like
from tests.rules.samples import is_of_scipy
from tests.sampling import sample_of

import plaingrad
from plaingrad import rulebook
from plaingrad.api.taylor import taylor

pytestmark = pytest.mark.filterwarnings("ignore")

ORDER = 3


def numbers(z):
    """All numbers in a result, as complex ones."""
    parts = [np.ravel(np.asarray(x, complex)) for x in leaves(z)]
    return np.concatenate(parts) if parts else np.zeros(0, complex)


def check_rule(function, args, kwargs):
    xs = [copy.deepcopy(x) for x in leaves((*args, *kwargs.values()))]
    if not xs or any(np.asarray(x).dtype.char in "efFgG" for x in xs):
        return
    rng = np.random.default_rng(5)
    dots = [tangent_like(rng, x) for x in xs]

    def f(values):
        return after(function, args, kwargs, values)

    def along(t):
        """The results on the way through xs along dots."""
        moved = [np.array(x + t * d) if isinstance(x, np.ndarray) else x + t * d for x, d in zip(xs, dots)]
        return [np.asarray(z) for z in f(moved)]

    with np.errstate(all="ignore"):
        plain = f(copy.deepcopy(xs))
        if any(np.asarray(z).dtype.char in "efFgG" for z in plain):  # too coarse
            return
        found = taylor(f, copy.deepcopy(xs), ORDER, dots)
        level = along
        truth = [numbers(plain)]
        for k in range(1, ORDER + 1):
            before = level
            level = lambda t, before=before: plaingrad.jvp(before, (t,), (1.0,))[1]
            truth.append(numbers([np.zeros(()) if d is None else d for d in level(0.0)]) / math.factorial(k))
    assert len(found) == len(plain)
    for c, z in zip(found, plain):
        if c is not None:
            assert c.shape == (ORDER + 1, *np.shape(z))
            np.testing.assert_array_equal(c[0], z)
    got = [numbers([np.zeros(np.shape(z)) if c is None else c[k] for c, z in zip(found, plain)]) for k in range(ORDER + 1)]
    for k in range(1, ORDER + 1):
        scale = max(1.0, *[np.max(np.abs(t[np.isfinite(t)]), initial=0.0) for t in truth])
        usable = np.isfinite(truth[k])
        np.testing.assert_allclose(got[k][usable], truth[k][usable], rtol=1e-8, atol=1e-9 * scale, err_msg=f"coefficient {k}: {args} {kwargs}")


@pytest.mark.parametrize("function", PUBLIC, ids=name_of)
def test_a_rule_of_numpy_in_jet_arithmetic(function):
    for args, kwargs in sample_of(SAMPLES[function], name_of(function), 8):
        check_rule(function, args, kwargs)


@pytest.mark.parametrize("function", [f for f in COMPOSED if f not in SAMPLES], ids=name_of)
def test_a_definition_of_numpy_in_jet_arithmetic(function):
    for args, kwargs in sample_of(COMPOSED[function], name_of(function), 8):
        check_rule(function, args, kwargs)


ROWS = [
    rule for rule in rulebook.rules() if rule.kind == "scalar" and rule.domain and not rule.users and not is_of_scipy(rule)
]


def types_for(rule):
    """The types of number that a row's function takes."""
    owner = getattr(rule.function, "__objclass__", None)
    if owner is not None:
        return [owner] if owner in (float, complex, np.float64, np.complex128) else []
    module = getattr(rule.function, "__module__", "")
    if module in ("fractions", "decimal"):
        return []
    if module == "cmath":
        return [complex]
    return [float, complex] if isinstance(rule.function, np.ufunc) else [float]


@pytest.mark.parametrize("rule", ROWS, ids=lambda rule: f"{getattr(rule.function, '__module__', None) or 'method'}.{rule.name}")
def test_a_row_in_jet_arithmetic(rule):
    for number in types_for(rule):
        f = rule.function
        for point in sample_of(zip(*rule.domain), rule.name, 8):
            if number in (complex, np.complex128):
                point = [x * (1 + 0.1j) for x in point]
                if not all(type(p) is int or callable(p) for p in rule.partials) or rule.name in ("phase",):
                    continue
            xs = [number(x) if type(x) is not int else x for x in point]
            dots = [type(x)(0.7 - 0.3 * n) if type(x) is not int else None for n, x in enumerate(xs)]

            def along(t):
                return f(*[x if d is None else x + type(x)(t) * d for x, d in zip(xs, dots)])

            try:
                plain = f(*xs)
            except TypeError:  # real numbers only
                continue
            truth = [plain]
            level = along
            for k in range(1, 5):
                level = lambda t, before=level: plaingrad.jvp(before, (t,), (1.0,))[1]
                truth.append(level(0.0) / math.factorial(k))
            found = taylor(lambda xs: f(*xs), xs, 4, dots)
            assert found[0] == plain
            np.testing.assert_allclose(found, np.array(truth, found.dtype), rtol=1e-9, atol=1e-11, err_msg=f"{rule.name}{tuple(xs)}")
            if isinstance(f, np.ufunc):
                column = [np.array([[x], [x]]) if d is not None else x for x, d in zip(xs, dots)]
                step = [np.array([[d], [2 * d]]) if d is not None else None for d in dots]
                in_arrays = taylor(lambda xs: f(*xs), column, 4, step)
                np.testing.assert_allclose(in_arrays[:, 0, 0], found, rtol=1e-11, atol=1e-13)
                np.testing.assert_allclose(in_arrays[:, 1, 0], found * 2.0 ** np.arange(5), rtol=1e-11, atol=1e-13)
                if len(xs) > 1 and dots[0] is not None:
                    row, row_step = np.array([xs[0]] * 3), np.array([1, 2, 0]) * dots[0]
                    broadcast = taylor(lambda xs: f(*xs), [row, *column[1:]], 4, [row_step, *step[1:]])
                    assert broadcast.shape == (5, 2, 3)
                    np.testing.assert_allclose(broadcast[:, 0, 0], found, rtol=1e-11, atol=1e-13)
                    np.testing.assert_allclose(broadcast[:, 1, 1], found * 2.0 ** np.arange(5), rtol=1e-11, atol=1e-13)
