"""Integrals have the derivative under the integral sign and at ends that move: by closed forms, nested, in both modes."""

import itertools
import math

import numpy as np
import plaingrad
import pytest
from tests.scipy.agreement import agrees

si = pytest.importorskip("scipy.integrate")
special = pytest.importorskip("scipy.special")
pytestmark = pytest.mark.filterwarnings("ignore")

A = 1.3


def check(f, first, second=None, tolerance=1e-8):
    assert plaingrad.grad(f)(A) == pytest.approx(first, rel=tolerance)
    assert plaingrad.jvp(f, (A,), (1.0,))[1] == pytest.approx(first, rel=tolerance)
    if second is not None:
        slope = plaingrad.grad(f)
        assert plaingrad.grad(slope)(A) == pytest.approx(second, rel=10 * tolerance)
        assert plaingrad.jvp(slope, (A,), (1.0,))[1] == pytest.approx(second, rel=10 * tolerance)
        assert 2 * plaingrad.taylor(f, A, 2)[2] == pytest.approx(second, rel=10 * tolerance)


def quad(*args, **kwargs):
    return si.quad(*args, **kwargs)[0]


def test_finite_and_infinite_intervals():
    e = math.exp(-A)
    check(lambda a: quad(lambda x: np.exp(-a * x), 0, 1), (e * (A + 1) - 1) / A**2, (2 - e * (A * A + 2 * A + 2)) / A**3)
    check(lambda a: quad(lambda x: np.exp(-a * x), 0, np.inf), -1 / A**2, 2 / A**3)
    check(lambda a: quad(lambda x, b: np.exp(b * x), -np.inf, 0, args=(a,)), -1 / A**2, 2 / A**3)
    root = math.sqrt(math.pi)
    check(lambda a: quad(lambda x: np.exp(-a * x * x), -np.inf, np.inf), -root / 2 * A**-1.5, 0.75 * root * A**-2.5)


def test_ends_that_move():
    check(lambda a: quad(lambda x: x**2, -a, a * a), A * A + 2 * A**5, 2 * A + 10 * A**4)
    check(lambda a: quad(lambda x: x**2, a * a, -a), -(A * A) - 2 * A**5, -2 * A - 10 * A**4)
    check(lambda a: quad(lambda x: np.exp(-a * x), a, np.inf), math.exp(-A * A) * (-2 - 1 / A**2))


def test_a_parameter_that_only_part_of_the_interval_sees():
    check(lambda a: quad(lambda x: a * x if x < 0.2 else 1.0, 0, 1, points=[0.2]), 0.02)


def test_singular_ends_and_kinks():
    check(lambda a: quad(lambda x: x ** (-a / 3), 0, 1), 1 / 3 / (1 - A / 3) ** 2, tolerance=1e-6)
    check(lambda a: quad(lambda x: np.log(x) * x**a, 0, 1), 2 / (A + 1) ** 3, tolerance=1e-7)
    check(lambda a: quad(lambda x: a * a * abs(x - 0.3), 0, 1, points=[0.3]), 2 * A * (0.045 + 0.245))


def test_weights():
    def beta(a):  # integral of x^-1/2 (1 - x)^0.3 x^a
        return special.beta(0.5 + a, 1.3)

    slope = special.beta(0.5 + A, 1.3) * (special.psi(0.5 + A) - special.psi(1.8 + A))
    check(lambda a: quad(lambda x: x**a, 0, 1, weight="alg", wvar=(-0.5, 0.3)), slope, tolerance=1e-6)
    wave = -(A * A - 1) / (A * A + 1) ** 2  # of the integral of exp(-a x) cos(x) from 0, a / (a*a + 1)
    check(lambda a: quad(lambda x: np.exp(-a * x), 0, 40, weight="cos", wvar=1.0), wave, tolerance=1e-6)
    check(lambda a: quad(lambda x: a * x, 0, 3, weight="cauchy", wvar=1.0), 3 + math.log(2))
    check(lambda a: quad(lambda x: a, 0, 1, weight="alg-loga", wvar=(0, 0)), -1.0)


def test_an_integrand_that_vanishes_where_its_derivative_does_not():
    def peak(x):
        return np.exp(-1000 * (x - 3.3) ** 2)

    exact = math.sqrt(math.pi / 1000)
    assert plaingrad.grad(lambda a: quad(lambda x: a * peak(x), 0, 10))(0.0) == pytest.approx(exact, rel=1e-7)


def test_nodes_of_a_function_that_vanishes_say_nothing_about_its_derivative():
    with pytest.raises(plaingrad.MissingRuleError, match="the integral is zero"):
        plaingrad.grad(lambda a: si.quad_vec(lambda x: a * np.exp(-1000 * (x - 3.3) ** 2), 0, 10)[0])(0.0)


def test_a_gradient_by_what_a_closure_holds():
    c = np.array([0.5, -1.0, 2.0])
    found = plaingrad.grad(lambda c: quad(lambda x: c[0] + c[1] * x + c[2] * x * x, 0, 2))(c)
    np.testing.assert_allclose(found, [2.0, 2.0, 8 / 3], rtol=1e-12)


def test_integrals_of_integrals():
    exact = 0.25  # of the integral of a x y over the unit square
    check(lambda a: si.dblquad(lambda y, x: a * x * y, 0, 1, 0, 1)[0], exact)
    check(lambda a: si.dblquad(lambda y, x: x * y, 0, 1, 0, lambda x: a * x)[0], A / 4)
    check(lambda a: si.nquad(lambda x, y: x * y, [(0, a), (0, 1)])[0], A / 2)


def test_functions_that_are_followed():
    slope = (math.exp(A * A) * (2 * A * A - 1) + 1) / A**2  # of the integral of exp(a x) from 0 to a
    check(lambda a: si.fixed_quad(lambda x: np.exp(a * x), 0, a, n=12)[0], slope)
    check(lambda a: si.quad_vec(lambda x: np.exp(a * x), 0, a)[0], slope)
    y = np.array([1.0, 2.0, 4.0, 3.0, 0.5])
    for name in ("simpson", "trapezoid", "romb"):
        rule = getattr(si, name)
        plain = rule(y)
        np.testing.assert_allclose(plaingrad.grad(lambda y, rule=rule: rule(y))(y) @ y, plain)  # linear
    if hasattr(si, "tanhsinh"):
        check(lambda a: si.tanhsinh(lambda x: np.exp(a * x), 0, a).integral, slope)


@pytest.mark.skipif(not hasattr(si, "tanhsinh"), reason="newer SciPy")
def test_tanhsinh_to_infinity():
    """It asks for the integrand at infinity, where slopes are nothing times infinity: they were nan."""
    root = math.sqrt(math.pi)
    check(
        lambda a: si.tanhsinh(lambda x, b: np.exp(-b * x * x), -np.inf, np.inf, args=(a,)).integral,
        -root / 2 * A**-1.5, 0.75 * root * A**-2.5,
    )  # fmt: skip
    check(lambda a: si.tanhsinh(lambda x: 1 / (a + x * x), -np.inf, np.inf).integral, -math.pi / 2 * A**-1.5)
    check(lambda a: si.tanhsinh(lambda x: np.exp(-x), a, np.inf).integral, -math.exp(-A))
    check(lambda a: si.tanhsinh(lambda x: -a * x * x, -np.inf, np.inf, log=True).integral, -0.5 / A)
    ends = np.array([0.3, 0.4, 0.5])
    plain = si.tanhsinh(lambda x: np.exp(-x), ends, np.inf).integral.sum()
    value, slopes = plaingrad.value_and_grad(lambda a: si.tanhsinh(lambda x: np.exp(-x), a, np.inf).integral.sum())(ends)
    assert value == plain
    np.testing.assert_allclose(slopes, -np.exp(-ends))


@pytest.mark.skipif(not hasattr(si, "nsum"), reason="newer SciPy")
def test_infinite_sums():
    geometric = math.exp(-A)
    slope = -geometric / (1 - geometric) ** 2
    check(lambda a: si.nsum(lambda k: np.exp(-a * k), 0, np.inf).sum, slope, tolerance=1e-7)
    s = A + 1
    h = 1e-3
    zetas = [special.zeta(s + k * h) for k in (-2, -1, 1, 2)]
    exact = (zetas[0] - 8 * zetas[1] + 8 * zetas[2] - zetas[3]) / (12 * h)
    check(lambda a: si.nsum(lambda k: 1 / k ** (a + 1), 1, np.inf).sum, exact, tolerance=1e-8)
    check(lambda a: si.nsum(lambda k: a / k, 1, 10).sum, np.sum(1 / np.arange(1.0, 11.0)))


def test_what_is_refused():
    refused = pytest.raises(plaingrad.MissingRuleError, match=r"`scipy.integrate.quad` at .*test_integrate_quad.py")
    with refused:
        plaingrad.grad(lambda a: quad(lambda x: np.exp(-a * x), 0, np.inf, weight="cos", wvar=2.0))(A)
    with refused:
        plaingrad.grad(lambda a: quad(lambda x: x, 0, 1, weight="cos", wvar=a))(A)
    with refused:  # it does not exist
        plaingrad.grad(lambda a: quad(lambda x: a / x, 0, 1))(A)
    with pytest.raises(ZeroDivisionError):
        plaingrad.grad(lambda a: quad(lambda x: a / 0.0, 0, 1))(A)


def test_where_nothing_depends_on_the_inputs_it_is_scipys_value():
    assert plaingrad.grad(lambda a: a * quad(lambda x: 1 / np.sqrt(x), 0, 1))(A) == quad(lambda x: 1 / np.sqrt(x), 0, 1)


def test_break_points_that_move():
    """The integrand jumps at p, or its slope does: p**4 / 3 + 4 - p**2, and p[0] * (p[1]**2 + (2 - p[1])**2) / 2."""

    def jumping(p):
        return si.quad(lambda t: t * t * p if t < p else 2.0 * t, 0.0, 2.0, points=[p])[0]

    def kinked(p):
        return si.quad(lambda t: abs(t - p[1]) * p[0], 0.0, 2.0, points=[p[1]])[0]

    p = 0.7
    assert plaingrad.grad(jumping)(p) == pytest.approx(4 * p**3 / 3 - 2 * p, rel=1e-12)
    assert plaingrad.jvp(jumping, (p,), (1.0,))[1] == pytest.approx(4 * p**3 / 3 - 2 * p, rel=1e-12)
    assert plaingrad.grad(plaingrad.grad(jumping))(p) == pytest.approx(4 * p**2 - 2, rel=1e-9)
    assert plaingrad.grad(lambda p: si.quad(lambda t: 1.0 if t < p else 2.0, 2.0, 0.0, points=[p])[0])(p) == 1.0
    hessian = plaingrad.hessian(kinked)(np.array([1.3, 0.7]))
    np.testing.assert_allclose(hessian, [[0.0, 2 * 0.7 - 2], [2 * 0.7 - 2, 2 * 1.3]], rtol=1e-9, atol=1e-12)


def test_complex_functions_are_taken_apart():
    def wave(x):
        return np.array(si.quad(lambda t: np.exp(1j * x[0] * t), 0.0, x[1], complex_func=True)[0])

    agrees(wave, [0.8, 1.3])
    decay = lambda x: np.array(si.quad(lambda t, a: np.exp((1j * a - 1) * t), 0.0, np.inf, args=(x[0],), complex_func=True)[0])
    slope = plaingrad.grad(lambda a: decay(np.stack([a])).real.sum())(0.7)
    assert abs(slope - (1j / (1 - 0.7j) ** 2).real) < 1e-9  # the integral is 1 / (1 - i a)


def test_an_integrand_is_called_with_all_nodes_only_where_that_is_the_same():
    seen = []

    def remembering(p):
        return si.quad(lambda x: (seen.append(x), np.exp(-p * x))[1], 0.0, 1.0)[0]

    expected = np.exp(-0.7) / 0.7 - (1 - np.exp(-0.7)) / 0.7**2
    assert plaingrad.grad(remembering)(0.7) == pytest.approx(expected, rel=1e-9)
    assert {type(x) for x in seen} == {float}

    def kept(x):
        seen.append(x)
        return x

    def remembering_in_another(p):
        return si.quad(lambda x: np.exp(-p * kept(x)), 0.0, 1.0)[0]

    assert plaingrad.grad(remembering_in_another)(0.7) == pytest.approx(expected, rel=1e-9)
    assert {type(x) for x in seen} == {float}


def test_parameters_in_lists_dicts_and_objects():
    """The convergence of the derivative is looked at one level out, which had put the caller's numbers back: zeros."""
    line = lambda p: quad(lambda x: p[0] * x + p[1], 0.0, 3.0)
    assert plaingrad.grad(line)([1.3, 2.0]) == pytest.approx([4.5, 3.0])
    assert plaingrad.jvp(line, ([1.3, 2.0],), ([1.0, 2.0],))[1] == pytest.approx(10.5)
    named = plaingrad.grad(lambda p: quad(lambda x: p[0]["a"] * x + p[0]["b"], 0.0, 3.0))
    found = named([{"a": 1.3, "b": 2.0}])[0]
    assert (found["a"], found["b"]) == pytest.approx((4.5, 3.0))

    class Speed:
        def __init__(self, v):
            self.v = v

        def time(self, x):
            return x / self.v

    speed = Speed(2.0)
    assert plaingrad.grad(lambda s: quad(s.time, 0.0, 3.0))(speed).v == pytest.approx(-9 / 8)
    assert plaingrad.grad(lambda s: quad(lambda x: s.time(x), 0.0, 3.0))(speed).v == pytest.approx(-9 / 8)
    assert speed.v == 2.0


SEEN = []


def test_an_integrand_that_changes_something_sees_numbers_only():
    global SEEN
    expected = np.exp(-0.7) / 0.7 - (1 - np.exp(-0.7)) / 0.7**2

    class Log:
        def __init__(self):
            self.last, self.all, self.items = [], [], {}

        def note(self, x):
            self.last = [*self.last, x]
            return x

        def count(self, x):
            self.items[len(self.items)] = x
            return x

    log = Log()
    nonlocal_log = []

    def extending(x, p):
        log.all += [x]
        return np.exp(-p * x)

    def global_log(x, p):
        global SEEN
        SEEN = [*SEEN, x]
        return np.exp(-p * x)

    def nonlocal_one(x, p):
        nonlocal nonlocal_log
        nonlocal_log = [*nonlocal_log, x]
        return np.exp(-p * x)

    def alias(x, p):
        mine = log.all
        mine += [x]
        return np.exp(-p * x)

    methods = [lambda x, p: np.exp(-p * log.note(x)), lambda x, p: np.exp(-p * log.count(x))]
    for integrand in (extending, global_log, nonlocal_one, alias, *methods):
        found = plaingrad.grad(lambda p, f=integrand: si.quad(lambda x: f(x, p), 0.0, 1.0)[0])(0.7)
        assert found == pytest.approx(expected, rel=1e-9)
    noted = [*log.all, *log.last, *log.items.values(), *SEEN, *nonlocal_log]
    assert noted and {type(x) for x in noted} == {float}


def test_whole_arrays_are_told_from_numbers_by_what_comes_out():
    def spread(q):  # of a number there is none, of all nodes there is
        return si.quad(lambda x: np.exp(-0.7 * x) + q * np.std(x) + q * x, 0.0, 1.0)[0]

    assert plaingrad.grad(spread)(0.0) == pytest.approx(0.5, rel=1e-9)

    def counted(q):
        return si.quad(lambda x: x + q * np.size(x) * x, 0.0, 1.0)[0]

    assert plaingrad.grad(counted)(0.0) == pytest.approx(0.5, rel=1e-9)

    def branching(q):
        return si.quad(lambda x: q * x * x if x < 2.0 else q * x, 0.0, 1.0)[0]

    assert plaingrad.grad(branching)(1.5) == pytest.approx(1 / 3, rel=1e-9)


def test_an_integrand_of_arrays_is_evaluated_once_for_its_derivative():
    counter = itertools.count()
    tick = counter.__next__

    class Model:
        def __init__(self, p):
            self.p = p

        def at(self, x):
            tick()  # C code, which does not say what it changes
            return np.exp(-self.p[0] * x) * np.sin(self.p[1] * x)

    def f(p):
        model = Model(p)
        return si.quad(lambda x: model.at(x), 0.0, 3.0)[0]

    p = np.array([0.7, 1.3])
    f(p)
    plain = tick()
    slopes = plaingrad.grad(f)(p)
    assert tick() - plain < 6 * plain
    h = 1e-5
    differences = [(f(p + h * e) - f(p - h * e)) / (2 * h) for e in np.eye(2)]
    np.testing.assert_allclose(slopes, differences, rtol=1e-8)
    curve = plaingrad.hessian(f)(p)
    steps = [(plaingrad.grad(f)(p + 1e-4 * e) - plaingrad.grad(f)(p - 1e-4 * e)) / 2e-4 for e in np.eye(2)]
    np.testing.assert_allclose(curve, steps, rtol=1e-6)


def test_an_integrand_of_numbers_is_evaluated_a_few_times_more_for_its_derivative():
    tick, lines = itertools.count().__next__, np.linspace(0.1, 2.9, 30)

    def f(p):
        def absorbed(x):
            tick()
            return 1.0 - np.exp(-np.sum(p / (1.0 + 30.0 * (x - lines) ** 2)))  # takes no arrays

        return si.quad(absorbed, 0.0, 3.0)[0]

    p = np.linspace(0.5, 1.5, 30)
    f(p)
    plain = tick()
    slopes = plaingrad.grad(f)(p)
    assert tick() - plain < 6 * plain
    h = 1e-5 * np.eye(30)[7]
    assert slopes[7] == pytest.approx((f(p + h) - f(p - h)) / 2e-5, rel=1e-7)
