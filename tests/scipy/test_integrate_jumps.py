"""Integrands that jump or bend at places that move with the inputs, against closed forms: nothing is lost there."""

import bisect
import functools
import math

import numpy as np
import plaingrad
import pytest

si = pytest.importorskip("scipy.integrate")
interp1d = pytest.importorskip("scipy.interpolate").interp1d
pytestmark = pytest.mark.filterwarnings("ignore")


def quad(*args, **kwargs):
    return si.quad(*args, **kwargs)[0]


def stepped(x, p):
    if x < p:
        return math.cos(x)
    return math.cos(x) + math.sin(x)


def stair(x, p, shift=0.0):
    return math.floor(x / p + shift)


# a name, the integral as a function of p, its first and its second derivative
CASES = [
    ("if", lambda p: quad(lambda x: p * p * x if x < p else 2.0 * x, 0, 1), lambda p: 2 * p**3 - 2 * p, lambda p: 6 * p * p - 2),
    ("call", lambda p: quad(lambda x: stepped(x, p), 0, 2), lambda p: -math.sin(p), lambda p: -math.cos(p)),
    ("args", lambda p: quad(stepped, 0, 2, args=(p * p,)), lambda p: -math.sin(p * p) * 2 * p,
     lambda p: -2 * math.sin(p * p) - 4 * p * p * math.cos(p * p)),
    ("partial", lambda p: quad(functools.partial(stepped, p=p), 0, 2), lambda p: -math.sin(p), lambda p: -math.cos(p)),
    ("where", lambda p: quad(lambda x: np.where(x > p * p, x, 0.0), 0, 1), lambda p: -2 * p**3, lambda p: -6 * p * p),
    ("sign", lambda p: quad(lambda x: np.sign(x - p), -1, 1), lambda p: -2.0, lambda p: 0.0),
    ("bend", lambda p: quad(lambda x: abs(x - p), 0, 1), lambda p: 2 * p - 1, lambda p: 2.0),
    ("pay", lambda p: quad(lambda x: max(x - p, 0.0) * np.exp(-x), 0, np.inf), lambda p: -np.exp(-p), lambda p: np.exp(-p)),
    ("clip", lambda p: quad(lambda x: np.clip(x, p, 2.0) ** 2, 0, 1), lambda p: 2 * p * p, lambda p: 4 * p),
    ("infinite", lambda p: quad(lambda x: np.exp(-x * x) if x > p else 0.0, -np.inf, np.inf),
     lambda p: -np.exp(-p * p), lambda p: 2 * p * np.exp(-p * p)),
    ("ends", lambda p: quad(lambda x: 1.0 if x < p else 3.0, p * p, 2 * p), lambda p: 4 - 2 * p, lambda p: -2.0),
    ("down", lambda p: quad(lambda x: 1.0 if x < p else 3.0, 2 * p, p * p), lambda p: 2 * p - 4, lambda p: 2.0),
    ("stays", lambda p: quad(lambda x: p * p * x if x < 0.4 else 2.0, 0, 1), lambda p: p * 0.16, lambda p: 0.16),
    ("remainder", lambda p: quad(lambda x: x % p, 0, 1, limit=200), lambda p: -math.floor(1 / p) * (1 + math.floor(1 / p)) * p
     + (math.floor(1 / p) * p + 0.0) * math.floor(1 / p), None),
]  # fmt: skip
# x % p over (0, 1), n whole periods: n p^2 / 2 + (1 - n p)^2 / 2, whose slope is n p - n (1 - n p)
CASES[-1] = (
    *CASES[-1][:2],
    lambda p: (n := math.floor(1 / p)) * p - n * (1 - n * p),
    lambda p: (n := math.floor(1 / p)) + n * n,
)


@pytest.mark.parametrize("name,f,first,second", CASES, ids=[case[0] for case in CASES])
@pytest.mark.parametrize("p", [0.5, 0.71])  # at the first a panel ends where the integrand branches
def test_what_a_place_that_moves_adds(name, f, first, second, p):
    if name == "remainder":
        p -= 0.07  # at 0.5 a new period begins at the end
    slope = plaingrad.grad(f)
    assert slope(p) == pytest.approx(first(p), rel=1e-8, abs=1e-9)
    if p == 0.71:
        assert plaingrad.jvp(f, (p,), (1.0,))[1] == pytest.approx(first(p), rel=1e-8, abs=1e-9)
    elif name in ("if", "partial", "sign", "pay", "remainder"):
        assert plaingrad.grad(slope)(p) == pytest.approx(second(p), rel=1e-6, abs=1e-7)
        assert 2 * plaingrad.taylor(f, p, 2)[2] == pytest.approx(second(p), rel=1e-6, abs=1e-7)


def test_the_area_of_a_disc():
    """The inner integral's jump is at sqrt(r*r - x*x)."""
    x, w = np.polynomial.legendre.leggauss(6)

    def area(r):
        inside = lambda y, x: 1.0 if x * x + y * y < r * r else 0.0
        heights = [quad(inside, 0.0, 2.0, args=(0.3 + 0.3 * place,)) for place in x.tolist()]
        return sum(0.3 * weight * height for weight, height in zip(w.tolist(), heights, strict=True))

    r = 1.1  # of r^2 / 2 asin(0.6 / r) + 0.3 sqrt(r^2 - 0.36)
    assert plaingrad.grad(area)(r) == pytest.approx(r * math.asin(0.6 / r), rel=1e-6)


def test_places_in_closures_arrays_and_objects():
    class Layer:
        def __init__(self, edge, speed):
            self.edge, self.speed = edge, speed

        def slowness(self, z):
            return 1.0 / self.speed if z < self.edge else 0.2

    def time(layer):
        return quad(layer.slowness, 0.0, 3.0)

    found = plaingrad.grad(time)(Layer(1.3, 2.0))
    assert found.edge == pytest.approx(0.5 - 0.2, rel=1e-9)
    assert found.speed == pytest.approx(-1.3 / 4, rel=1e-9)
    edges = np.array([0.4, 1.1, 1.9])
    step = lambda e: quad(lambda x: sum(x > edge for edge in e) * 1.0, 0.0, 3.0)
    np.testing.assert_allclose(plaingrad.grad(step)(edges), [-1.0, -1.0, -1.0], rtol=1e-9)


def test_a_jump_that_nothing_explains_is_refused_if_it_may_move_unless_the_interval_is_split_there():
    table, levels = np.array([0.0, 0.3, 0.7, 1.0]), np.array([1.0, 4.0, 2.0, 3.0])
    fixed = interp1d(table, levels, kind="previous")
    assert plaingrad.grad(lambda a: quad(lambda x: a * fixed(x), 0, 1))(1.5) == pytest.approx(2.5, rel=1e-9)

    def area(a, **split):
        moved = interp1d(table * a, levels, kind="previous")
        return quad(lambda x: a * moved(a * x), 0.0, 1.0, **split)

    with pytest.raises(plaingrad.MissingRuleError, match="its integrand jumps at 0.[37], and whether that place moves"):
        plaingrad.grad(area)(1.5)
    assert plaingrad.grad(area)(1.5, points=[0.3, 0.7]) == pytest.approx(2.5, rel=1e-9)


TABLE = [0.3, 0.7]
LEVELS = [4.0, 2.0, 3.0]


def masked(x, a, edge):
    x = np.atleast_1d(x)
    z = np.full_like(x, a)
    z[x < edge] = a * a
    return z[0]


@pytest.mark.parametrize(
    "height",
    [
        lambda x, a, edge: LEVELS[bisect.bisect([edge, 0.7], x)] * a,
        lambda x, a, edge: LEVELS[int(np.digitize(x, [edge, 0.7]))] * a,
        lambda x, a, edge: LEVELS[np.array([edge, 0.7]).searchsorted(x)] * a,
        lambda x, a, edge: np.vectorize(lambda x: a * a if x < edge else a)(x),
        masked,
        lambda x, a, edge: a * a if np.any(np.array([x, x]) < edge) else a,
    ],
    ids=["bisect", "digitize", "searchsorted", "vectorize", "masked", "any"],
)
def test_tables_and_arrays_tell_which_jumps_move(height):
    """On (0, e) it is u, on (e, 0.7) v, on (0.7, 1) w: d/da is of these, and (u - v) de/da."""
    a, h = 1.3, 1e-6
    u, v, w = [[height(x, a + s, 0.3) for s in (-h, 0, h)] for x in (0.1, 0.5, 0.9)]
    slopes = [(part[2] - part[0]) / (2 * h) for part in (u, v, w)]
    stays = 0.3 * slopes[0] + 0.4 * slopes[1] + 0.3 * slopes[2]
    assert plaingrad.grad(lambda a: quad(lambda x: height(x, a, 0.3), 0, 1))(a) == pytest.approx(stays, rel=1e-6)
    moves = stays + (u[1] - v[1]) * 0.3 / a
    f = lambda s: quad(lambda x: height(x, s, 0.3 * s / a), 0, 1)
    assert plaingrad.grad(f)(a) == pytest.approx(moves, rel=1e-6)
    assert plaingrad.jvp(f, (a,), (1.0,))[1] == pytest.approx(moves, rel=1e-6)


def test_jumps_that_are_no_integrands_of_quad():
    vector = lambda p: np.sum(si.quad_vec(lambda x: np.array([x, 2.0]) * (1.0 if x < p else p), 0, 2)[0])
    # p^2 / 2 + 2 p + p ((4 - p^2) / 2 + 2 (2 - p))
    assert plaingrad.grad(vector)(0.8) == pytest.approx(0.8 + 2 + 2 - 1.5 * 0.64 + 4 - 4 * 0.8, rel=1e-8)
    if hasattr(si, "tanhsinh"):
        with pytest.raises(plaingrad.MissingRuleError, match="jumps at 0.8, which moves"):
            plaingrad.grad(lambda p: si.tanhsinh(lambda x: np.where(x > p, 0.3, 1.0) * p, 0, 2).integral)(0.8)
        smooth = lambda p: si.tanhsinh(lambda x: np.exp(-p * np.abs(x)), 0, np.inf).integral
        assert plaingrad.grad(smooth)(0.8) == pytest.approx(-1 / 0.64, rel=1e-8)

    def ends(a, b):
        return np.array([a[0], b[0] - 1])

    def bent(p, jump):
        rate = lambda x, y: np.vstack([y[1], np.where(x > (p if jump else 0.5), 1.0, p)])
        return si.solve_bvp(rate, ends, np.linspace(0, 1, 41), np.zeros((2, 41))).y[1, 0]

    # with y'' = p on the first half, 1 on the second: y'(0) = 1 - 3 p / 8 - 1 / 8
    assert plaingrad.grad(bent)(0.6, False) == pytest.approx(-3 / 8, rel=1e-3)
    with pytest.raises(plaingrad.MissingRuleError, match="jumps at 0.6, which moves"):
        plaingrad.grad(bent)(0.6, True)


def test_what_has_a_weight_and_moves_is_refused():
    weighted = lambda p: quad(lambda x: 1.0 if x < p else 2.0, 0.0, 1.0, weight="cos", wvar=2.0)
    with pytest.raises(plaingrad.MissingRuleError, match="branches at 0.37, which moves"):
        plaingrad.grad(weighted)(0.37)


def test_exceptions_of_the_integrand_come_through():
    class Stop(Exception):
        pass

    def picky(x, p):
        if p < 0.3 < x < 0.300001:
            raise Stop
        return 1.0 if x < p else 2.0

    assert plaingrad.grad(lambda p: quad(picky, 0, 1, args=(p,)))(0.4) == pytest.approx(-1.0, rel=1e-9)

    def stopping(x, p):
        raise Stop

    with pytest.raises(Stop):
        plaingrad.grad(lambda p: quad(stopping, 0, 1, args=(p,)))(0.4)


class Profile:
    def __init__(self, edge):
        self.edge = edge

    def __call__(self, x):
        return self.height(x) * self.table(x)

    def height(self, x):
        return self.edge if x < 0.5 else 2.0 * self.edge

    def table(self, *place):
        return self.weight(*place)

    def weight(self, x):
        return 1.0 if 0.3 < x < self.edge else 0.0


def test_what_methods_and_calls_with_stars_compare_is_seen():
    def area(p):
        return quad(Profile(p), 0, 2)

    def area_of_a_method(p):
        profile = Profile(p)
        return quad(lambda x: profile.height(x) * profile.table(x), 0, 2)

    # p (0.5 - 0.3) + 2 p (p - 0.5), whose derivative is 4 p - 0.8
    for f in (area, area_of_a_method):
        assert plaingrad.grad(f)(1.3) == pytest.approx(4.4, rel=1e-7)


@pytest.mark.parametrize(("height", "place"), [(-3e-4, 0.57), (1e-4, 0.3), (2e-4, 0.7)])
def test_a_small_jump_beside_a_steep_slope_is_seen(height, place):
    """Its step is not among the largest between nodes; what the integrand compares tells where it is."""

    def f(p):
        return quad(lambda x: 100.0 * p[1] * x + (height if x > p[0] else 0.0), 0, 1)

    found = plaingrad.grad(f)(np.array([place, 1.0]))
    assert found[0] == pytest.approx(-height, rel=1e-6)
    assert found[1] == pytest.approx(50.0, rel=1e-6)
