"""What mpmath has beside its numbers: matrices, extrapolation, functions with orders; its handlers of exceptions."""

import pytest

from plaingrad import MissingRuleError, grad, jvp

mpmath = pytest.importorskip("mpmath")
mp = mpmath.mp
mpf = mp.mpf


def agrees(a, b):
    return abs(a - b) <= mpf(10) ** -12 * max(1, abs(b))


# the program, where
WITH_ORDERS = {
    "zeta": (lambda s: mp.zeta(s), "2.3"),
    "a derivative of zeta": (lambda s: mp.zeta(s, 1, 1), "2.3"),
    "zeta of Hurwitz": (lambda a: mp.zeta(mpf("2.5"), a), "0.7"),
    "its derivative": (lambda a: mp.zeta(mpf("2.5"), a, 1), "0.7"),
    "a derivative of a Bessel function": (lambda x: mp.besselj(0, x, 1) + mp.bessely(1, x, 2), "1.3"),
    "normal distribution": (lambda x: mp.ncdf(x, 1, 2) * mp.npdf(x, 1, 2), "1.3"),
    "its mean": (lambda m: mp.ncdf(mpf("0.3"), m, 2) * mp.npdf(mpf("0.3"), m, 2), "1.3"),
    "its width": (lambda w: mp.ncdf(mpf("0.3"), 1, w) * mp.npdf(mpf("0.3"), 1, w), "1.3"),
    "a conjugate": (lambda x: (mp.mpc(1, x).conjugate() * mp.conj(mp.mpc(x, x * x))).imag, "1.3"),
}


@pytest.mark.parametrize("name", WITH_ORDERS)
def test_functions_with_an_order_or_further_parameters(name):
    f, x = WITH_ORDERS[name][0], mpf(WITH_ORDERS[name][1])
    assert agrees(grad(f)(x), mp.diff(f, x))
    assert agrees(jvp(f, (x,), (mpf(1),))[1], mp.diff(f, x))
    if name != "its derivative":  # mpmath has no such derivative of zeta of Hurwitz at this order
        assert agrees(grad(grad(f))(x), mp.diff(f, x, 2))


def by_elements(x):
    A, v = mp.matrix(2, 2), mp.matrix(2, 1)
    A[0, :] = mp.matrix([[x, 1]])
    A[1, 0] = x
    v[1], v[0] = x, 3
    return (A * v)[1] + A[0, 0] * v[1] + v[0] * A[0, 0]


def by_a_slice(x):
    A = mp.matrix(2, 2)
    A[0:2, 0] = x
    return A[0, 0] + 2 * A[1, 0]


def by_solution(x):
    return mp.lu_solve(mp.matrix([[x, 1], [2, x + 5]]), mp.matrix([1, x]))[0]


@pytest.mark.parametrize("f", [by_elements, by_a_slice, by_solution, lambda x: sum(mp.matrix([[x, 1]]).T)])
@pytest.mark.parametrize("at", [0, 1])
def test_an_element_that_is_zero_keeps_its_derivative(f, at):
    x = mpf(at)
    assert agrees(grad(f)(x), mp.diff(f, x))
    assert agrees(jvp(f, (x,), (mpf(1),))[1], mp.diff(f, x))
    assert agrees(grad(grad(f))(x), mp.diff(f, x, 2))


def test_constant_zeros_are_not_stored():
    A = mp.matrix([1, 2])

    def f(x):
        A[0] = 0
        A[1] = x
        return x

    assert grad(f)(mpf(3)) == 1 and A._matrix__data == {(1, 0): 3}


def test_extrapolation_by_differences_of_terms_is_refused():
    def series(x, **options):
        return mp.nsum(lambda k: x ** (-k), [1, mp.inf], **options)

    x = mpf("1.3")
    with pytest.raises(MissingRuleError, match="extrapolates from differences"):
        grad(series)(x)
    assert mp.isnan(jvp(series, (x,), (mpf(1),))[1])
    assert agrees(grad(lambda x: series(x, method="richardson"))(x), -1 / (x - 1) ** 2)
    assert agrees(grad(lambda x: mp.nsum(lambda k: x / k**2, [1, mp.inf]))(x), mp.pi**2 / 6)


def test_bisection_is_refused_as_it_only_looks_at_signs():
    def root(c, **options):
        return mp.findroot(lambda s: s * s - c, (1, 2), **options)

    assert agrees(grad(lambda c: root(c, solver="anderson"))(mpf(2)), 1 / (2 * mp.sqrt(2)))
    for derive in (grad(root), lambda c, **options: jvp(lambda c: root(c, **options), (c,), (mpf(1),))):
        with pytest.raises(MissingRuleError, match="only looks at signs"):
            derive(mpf(2), solver="bisect")
    assert agrees(grad(lambda c: c * root(mpf(2), solver="bisect"))(mpf(3)), mp.sqrt(2))


def test_what_a_package_catches_as_not_implemented_is_raised_in_the_end():
    code = compile(
        "def package(f, g):\n    try:\n        return f()\n    except NotImplementedError:\n        return g()",
        "/site-packages/package.py",
        "exec",
    )
    space = {"__name__": "package"}
    exec(code, space)
    package = space["package"]
    with pytest.raises(MissingRuleError, match="airyai"):
        grad(lambda x: package(lambda: mp.airyai(x), lambda: 2 * x))(mpf("1.3"))


def test_a_context_that_is_made_later_leaves_the_rules_of_functions():
    """It wraps mpmath's functions anew, for all contexts."""
    other = mp.clone()
    other.prec = mp.prec
    for context in (mp, other):
        x = context.mpf("0.3")
        assert agrees(grad(lambda x, m=context: m.ncdf(x))(x), mp.npdf(mpf("0.3")))
        assert agrees(
            grad(lambda x, m=context: m.expm1(x) * x)(x),
            mp.expm1(mpf("0.3")) + mp.exp(mpf("0.3")) * mpf("0.3"),
        )
