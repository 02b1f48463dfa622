"""How a function may branch at a place that moves: the derivative has what that adds, or is refused. It is never 0."""

import functools
import itertools
import math
import operator

import numpy as np
import plaingrad
import pytest

integrate = pytest.importorskip("scipy.integrate")
interpolate = pytest.importorskip("scipy.interpolate")
signal = pytest.importorskip("scipy.signal")
stats = pytest.importorskip("scipy.stats")
pytestmark = pytest.mark.filterwarnings("ignore")


class Valve:
    """Open above zero, by every operator."""

    def __init__(self, u):
        self.u = u

    @property
    def rate(self):
        return 0.3 if self.u > 0 else 1.0

    def __getitem__(self, k):
        return self.rate

    def __bool__(self):
        return bool(self.u > 0)

    def __len__(self):
        return int(self.u > 0)

    def __contains__(self, u):
        return u > 0

    def __add__(self, other):
        return self.rate


class Stored:
    def __init__(self, u):
        self.rate = 0.3 if u > 0 else 1.0


def by_exception(u):
    try:
        math.sqrt(u)
    except ValueError:
        return 1.0
    return 0.3


@functools.lru_cache
def cached(u):
    return 0.3 if u > 0 else 1.0


LEVELS = [(1.0, -0.5), (0.3, 0.5)]
PIECES = np.array([-10.0, 0.0, 10.0])
FOLLOWED = {  # 1 below zero, 0.3 above
    "copysign": lambda u: 0.65 - 0.35 * math.copysign(1.0, u),
    "np.copysign": lambda u: 0.65 - 0.35 * np.copysign(1.0, u),
    "min by a key": lambda u: min(LEVELS, key=lambda level: abs(level[1] - u))[0],
    "sorted by a key": lambda u: sorted(LEVELS, key=lambda level: abs(level[1] - u))[0][0],
    "map": lambda u: next(map(lambda v: 0.3 if v > 0 else 1.0, [u])),
    "filter": lambda u: 0.3 if list(filter(lambda v: v > 0, [u])) else 1.0,
    "reduce": lambda u: functools.reduce(lambda a, v: 0.3 if v > 0 else 1.0, [u], 0),
    "apply_along_axis": lambda u: float(
        np.apply_along_axis(lambda v: np.where(v > 0, 0.3, 1.0), 0, np.array([u]))[0]
    ),
    "property": lambda u: Valve(u).rate,
    "constructor": lambda u: Stored(u).rate,
    "round": lambda u: [1.0, 0.3][int(round(u / 10 + 0.05, 1) > 0.05)],
    "modf": lambda u: 1.0 if math.modf(u + 3)[1] < 3 else 0.3,
    "fix": lambda u: 1.0 if np.fix(u + 3) < 3 else 0.3,
    "atan2": lambda u: 0.65 + 0.35 * math.atan2(-u * 1e-12, -1.0) / math.pi,
    "operator.gt": lambda u: 0.3 if operator.gt(u, 0) else 1.0,
    "signal.square": lambda u: 0.65 - 0.35 * signal.square(u * math.pi / 5),
    "stats.uniform.pdf": lambda u: 1.0 - 0.7 * 9 * stats.uniform.pdf(u, 0, 9),
}
REFUSED = {
    "item": lambda u: Valve(u)[0],
    "truth": lambda u: 0.3 if Valve(u) else 1.0,
    "length": lambda u: [1.0, 0.3][len(Valve(u))],
    "membership": lambda u: 0.3 if u in Valve(0) else 1.0,
    "sum": lambda u: Valve(u) + 1,
    "exception": by_exception,
    "text": lambda u: 1.0 if str(u).startswith("-") else 0.3,
    "cache": lambda u: cached(float(u)),
    "argmax": lambda u: [1.0, 0.3][int(np.argmax([0.0, u]))],
    "interp": lambda u: float(np.interp(u, [0.0, 10.0], [0.3, 0.3], left=1.0)),
    "PPoly": lambda u: float(interpolate.PPoly(np.array([[1.0, 0.3]]), PIECES)(u)),
}
ENTRIES = {
    "solve_ivp": lambda s: lambda p: integrate.solve_ivp(lambda t, y: [s(y[0] - p)], (0, 2), [0.0], rtol=1e-9, atol=1e-10).y[0, -1],
    "odeint": lambda s: lambda p: integrate.odeint(lambda y, t: s(t - p) * 1.0, [0.0], [0.0, 2.0])[-1, 0],
    "quad": lambda s: lambda p: integrate.quad(lambda x: s(x - p), 0, 2)[0],
    "quad_vec": lambda s: lambda p: integrate.quad_vec(lambda x: np.array([s(x - p)]), 0, 2)[0][0],
}  # fmt: skip


@pytest.mark.parametrize("way", [*FOLLOWED, *REFUSED])
def test_a_place_that_moves_counts_or_is_refused(way):
    """The integral of 1 up to p and of 0.3 from there to 2: its derivative is 0.7."""
    s = FOLLOWED.get(way) or REFUSED[way]
    assert s(-0.1) == pytest.approx(1.0)
    assert s(0.1) == pytest.approx(0.3)
    names = [*ENTRIES] if way in ("copysign", "property", "item") else [*ENTRIES][len(way) % 2 :: 2]
    for f in [ENTRIES[name](s) for name in names]:
        if way in REFUSED:
            with pytest.raises(plaingrad.MissingRuleError, match="jumps at"):
                plaingrad.grad(f)(0.83)
        else:
            assert plaingrad.grad(f)(0.83) == pytest.approx(0.7, rel=1e-5)


@pytest.mark.parametrize("table", ["interp1d", "interp", "dictionary"])
def test_a_jump_of_a_table_stays_where_it_is(table):
    """y' = p forcing(t), which jumps from 1 to 0.3 at the time 0.83, of which only the table knows."""
    tables = {
        "interp1d": interpolate.interp1d([0.0, 0.83, 3.0], [1.0, 0.3, 0.3], kind="previous"),
        "interp": lambda t: np.interp(t, [0.0, 0.83, 0.83, 3.0], [1.0, 1.0, 0.3, 0.3]),
        "dictionary": lambda t: {True: 0.3, False: 1.0}[t > 0.83],
    }
    forcing = tables[table]
    f = lambda p: integrate.solve_ivp(lambda t, y: [p * forcing(t)], (0, 2), [0.0], rtol=1e-8, atol=1e-9).y[
        0, -1
    ]
    assert plaingrad.grad(f)(0.7) == pytest.approx(0.83 + 0.3 * 1.17, rel=1e-6)
    g = lambda p: integrate.quad(lambda t: p * forcing(t), 0, 2, limit=200)[0]
    assert plaingrad.grad(g)(0.7) == pytest.approx(0.83 + 0.3 * 1.17, rel=1e-6)


STEPS = [1.0] * 3 + [0.3] * 5


def by_store(u):
    found = np.zeros(2, int)
    found[1] = u + 3
    return STEPS[found[1]]


def by_store_into_slice(u):
    found = np.zeros(2, int)
    found[0:1] = np.array([u + 3])
    return STEPS[found[0]]


WHOLE = {
    "np.int64": lambda u: STEPS[np.int64(u + 3)],
    "astype": lambda u: STEPS[np.array([u + 3]).astype(int)[0]],
    "array": lambda u: STEPS[np.array([[u + 3]], dtype=int)[0, 0]],
    "full": lambda u: STEPS[np.full(1, u + 3, int)[0]],
    "store": by_store,
    "store into a slice": by_store_into_slice,
    "around": lambda u: 1.0 - 0.7 * np.around(u + 0.5),
    "divmod": lambda u: 1.0 - 0.7 * np.divmod(u + 3, 3.0)[0],
    "takewhile": lambda u: 1.0 - 0.7 * len(list(itertools.takewhile(lambda limit: u > limit, [0.0, 5.0]))),
}


@pytest.mark.parametrize("way", WHOLE)
def test_numbers_that_become_whole_and_predicates_of_iterators_are_seen(way):
    s = WHOLE[way]
    f = lambda p: integrate.solve_ivp(lambda t, y: [s(y[0] - p)], (0, 2), [0.0], rtol=1e-8, atol=1e-9).y[
        0, -1
    ]
    assert plaingrad.grad(f)(0.83) == pytest.approx(0.7, rel=1e-5)


@pytest.mark.parametrize(
    "s",
    [
        lambda u: (sum(u > 100 + k for k in range(2500)), 0.3 if u > 0 else 1.0)[1],
        lambda u: STEPS[np.fromiter([u + 3], int)[0]],
    ],
)
def test_more_comparisons_than_are_told_and_iterators_that_become_whole_are_refused(s):
    f = lambda p: integrate.solve_ivp(lambda t, y: [s(y[0] - p)], (0, 2), [0.0], rtol=1e-6).y[0, -1]
    with pytest.raises(plaingrad.MissingRuleError, match="jumps at"):
        plaingrad.grad(f)(0.83)


def test_two_switches_at_one_place_are_refused_unless_they_move_together():
    f = lambda p: integrate.quad(lambda x: float(np.sum(x > p)), 0, 2)[0]
    rate = lambda p: lambda t, y: [1.0 - 0.3 * (y[0] > p[0]) - 0.3 * (y[0] > p[1])]
    g = lambda p: integrate.solve_ivp(rate(p), (0, 2), [0.0], rtol=1e-8, atol=1e-9).y[0, -1]
    for h in (f, g):
        with pytest.raises(plaingrad.MissingRuleError, match="two reasons"):
            plaingrad.grad(h)(np.array([0.5, 0.5]))
    assert plaingrad.grad(f)(np.array([0.5, 0.7])) == pytest.approx([-1.0, -1.0])
    both = lambda p: integrate.quad(lambda x: np.exp(-x) * (x < p) + np.sin(x) * (2 * x >= 2 * p), 0, 2)[0]
    assert plaingrad.grad(both)(0.5) == pytest.approx(np.exp(-0.5) - np.sin(0.5), rel=1e-8)
    twice = lambda p: lambda t, y: [1.0 - 0.3 * (y[0] > p) - 0.3 * (2 * y[0] > p + p)]
    together = lambda p: integrate.solve_ivp(twice(p), (0, 2), [0.0], rtol=1e-8, atol=1e-9).y[0, -1]
    assert plaingrad.grad(together)(0.5) == pytest.approx(0.6, rel=1e-6)


class Settings:
    dose = None


def test_an_integrand_and_a_right_side_that_read_a_global_in_a_short_time_only():
    def f(p):
        SETTINGS.dose = p
        return integrate.quad(lambda x: SETTINGS.dose if 0.1 < x < 0.15 else 0.0, 0, 1, points=[0.1, 0.15])[0]

    def g(p):
        SETTINGS.dose = p
        rate = lambda t, y: [SETTINGS.dose if 0.5 < t < 0.6 else 0.0]
        return integrate.solve_ivp(rate, (0, 2), [1.0], "LSODA", t_eval=[0, 2.0], max_step=0.02, rtol=1e-8).y[
            0, -1
        ]

    assert plaingrad.grad(f)(0.8) == pytest.approx(0.05)
    assert plaingrad.grad(g)(0.8) == pytest.approx(0.1, rel=1e-3)


SETTINGS = Settings()


def test_functions_of_no_module():
    scope = {"integrate": integrate}
    exec("def f(p): return integrate.odeint(lambda y, t: -p * y, [1.0], [0, 0.5, 1.0])[-1, 0]", scope)
    assert plaingrad.grad(scope["f"])(0.8) == pytest.approx(-math.exp(-0.8), rel=1e-6)
