"""What an integrand reads, in whatever way: the derivative of its integral is computed from what it is seen to read where
that is all, and followed where it may read more."""

import functools
import math
import sys
import threading
import types

import numpy as np
import pytest
from scipy import integrate

from plaingrad import grad, jvp
from plaingrad.rules.scipy.integrate import planning
from plaingrad.rules.scipy.integrate.leaves import reads_of
from plaingrad.rules.scipy.integrate.nodes import NODES
from plaingrad.rules.scipy.integrate.reused import panels_of

P = np.array([0.7, 1.3])
FACTOR = 1.7
HOLDER = types.SimpleNamespace(rate=1.0)
LIST = [1.0]


def quad(f, *args, **kwargs):
    return integrate.quad(f, 0.0, 2.0, *args, **kwargs)[0]


def decayed(rate, size):
    """The integral of size exp(-rate x) from 0 to 2."""
    return size * (1.0 - np.exp(-2.0 * rate)) / rate


def captured(p):
    return quad(lambda x: np.exp(-p[0] * x) * p[1])


def through_a_function(p):
    a, b = p[0], p[1]
    g = lambda x: np.exp(-a * x)
    return quad(lambda x: g(x) * b + 0.0 * a)


def by_two_names(p):
    v, w = p, p
    return quad(lambda x: np.exp(-v[0] * x) * w[1])


def in_views(p):
    v, w = p[::-1], p[:1]
    return quad(lambda x: np.exp(-w[0] * x) * v[0])


def of_a_product(p):
    q = (np.outer(p, p) / p)[:, ::-1]
    return quad(lambda x: np.exp(-q[0, 0] * x) * q[1, 1])


def as_arguments(p):
    return quad(lambda x, a, q: np.exp(-a * x) * q[1], args=(p[0], p))


def as_a_function_among_the_arguments(p):
    return quad(lambda x, g: g(x) * p[1], args=(lambda x: np.exp(-p[0] * x),))


def as_defaults(p):
    def f(x, a=p[0], *, b=p[1]):
        return math.exp(-a * x) * b

    return quad(f)


def in_a_list(p):
    held = [p[0], p[1]]
    return quad(lambda x: np.exp(-held[0] * x) * held[1])


def in_an_object(p):
    o, b = types.SimpleNamespace(rate=p[0]), p[1]
    return quad(lambda x: np.exp(-o.rate * x) * b)


def in_a_global_object(p):
    HOLDER.rate, b = p[0], p[1]
    return quad(lambda x: np.exp(-HOLDER.rate * x) * b)


def in_a_global_list(p):
    LIST[0], b = p[0], p[1]
    return quad(lambda x: np.exp(-LIST[0] * x) * b)


def in_a_global(p):
    global FACTOR
    FACTOR, b = p[0], p[1]
    return quad(lambda x: np.exp(-FACTOR * x) * b)


def in_an_attribute_of_a_function(p):
    def g(x):
        return np.exp(-g.rate * x)

    g.rate, b = p[0], p[1]
    return quad(lambda x: g(x) * b)


def in_a_module_that_it_imports(p):
    sys.modules["rates_of_this_test"].rate, b = p[0], p[1]

    def f(x):
        import rates_of_this_test

        return math.exp(-rates_of_this_test.rate * x) * b

    return quad(f)


def in_a_memo(p):
    remembered = functools.lru_cache(lambda k: p[k])
    return quad(lambda x: np.exp(-remembered(0) * x) * p[1])


def backwards(p):
    return -integrate.quad(lambda x: np.exp(-p[0] * x) * p[1], 2.0, 0.0)[0]


def with_points(p):
    return quad(lambda x: np.exp(-p[0] * x) * p[1], points=[0.3])


@pytest.mark.parametrize(
    "f",
    [
        captured, through_a_function, by_two_names, in_views, of_a_product, as_arguments, in_a_list, in_an_object,
        as_a_function_among_the_arguments, as_defaults, in_a_global_object, in_a_global_list, in_a_global,
        in_an_attribute_of_a_function, in_a_module_that_it_imports, in_a_memo, backwards, with_points,
    ],
)  # fmt: skip
def test_whatever_way_an_integrand_reads_its_parameters_their_derivative_is_the_same(f, monkeypatch):
    monkeypatch.setitem(sys.modules, "rates_of_this_test", types.ModuleType("rates_of_this_test"))
    a, b = P
    by_hand = np.array([b * (2 * np.exp(-2 * a) / a - (1 - np.exp(-2 * a)) / a**2), decayed(a, 1.0)])
    assert f(P) == pytest.approx(decayed(a, b), rel=1e-12)
    np.testing.assert_allclose(grad(f)(P), by_hand, rtol=1e-10)
    np.testing.assert_allclose(jvp(f, (P,), (np.array([0.3, -0.8]),))[1], by_hand @ [0.3, -0.8], rtol=1e-10)


def test_the_derivative_of_the_derivative_is_not_that_of_a_sum_of_constants():
    a, b = P
    e = np.exp(-2 * a)
    bent = b * (-4 * e / a - 4 * e / a**2 + 2 * (1 - e) / a**3)
    assert grad(lambda a: grad(lambda a: captured(np.array([a, b])))(a))(a) == pytest.approx(bent, rel=1e-9)


def test_what_an_integrand_reads_is_told_only_if_that_is_all():
    a, o = 0.5, types.SimpleNamespace(rate=0.5)
    assert [path for path, _ in reads_of(lambda x: np.exp(a * x), (2.0,)).leaves] == [("a",), (0,)]
    assert reads_of(lambda x: o.rate * x, ()) is None
    assert reads_of(lambda x: HOLDER.rate * x, ()) is None
    assert reads_of(lambda x: eval("a") * x, ()) is None
    assert reads_of(math.sin, ()) is None


def test_an_integrand_is_not_evaluated_anew_where_scipy_has_done_so(monkeypatch):
    places, of = [], planning.heights_of
    monkeypatch.setattr(planning, "heights_of", lambda f, args, x: places.append(x.size) or of(f, args, x))
    grad(captured)(P)
    assert not places
    grad(with_points)(P)
    assert places


def test_panels_are_those_of_quadpack_or_none():
    seen = []
    integrate.quad(lambda x: seen.append((x, math.sqrt(x))) or seen[-1][1], 0.2, 3.0)
    panels = panels_of(seen, 0.2, 3.0)
    assert (0.0, 1.0) in panels and (0.0, 0.5) in panels
    for (low, high), (x, z) in panels.items():
        np.testing.assert_allclose(x, 0.2 + 2.8 * (low + (high - low) * NODES), rtol=1e-14)
        np.testing.assert_array_equal(z, np.sqrt(x))
    assert panels_of(seen[:-1], 0.2, 3.0) is None
    assert panels_of([(x + 1e-3, z) for x, z in seen], 0.2, 3.0) is None
    assert panels_of([], 0.2, 3.0) is None and panels_of(seen, 0.2, np.inf) is None


def test_integrals_in_two_threads_keep_apart():
    found = {}

    def work(k):
        found[k] = [grad(captured)(P + 0.01 * k) for _ in range(5)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(2):
        for slope in found[k]:
            assert slope[1] == pytest.approx(decayed(P[0] + 0.01 * k, 1.0), rel=1e-10)
