"""Densities and probabilities that SciPy evaluates in compiled code, stated by functions of `scipy.special`."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special, stats
from scipy.stats import _ksstats, _stats

from plaingrad.rules.pushforwards import dot_of, lined_up, varies
from plaingrad.rules.scipy.compiled import constant, enter
from plaingrad.rules.scipy.forms import defined
from plaingrad.rules.scipy.implicit import called, carrying, fresh, is_active, refuse
from plaingrad.rules.scipy.stats.integrals import probability
from plaingrad.rules.scipy.stats.names import RULES, method_of, methods
from plaingrad.tangents import NoTangent, Thunk, ZeroTangent

MODULE = ("scipy.stats._stats",)


# -- generalised hyperbolic and inverse Gaussian distributions --------------------------------------------------------


@defined("geninvgauss_logpdf", MODULE)
def inverse_gauss_logpdf(x, p, b):
    """Of the density x^(p - 1) exp(-b (x + 1/x) / 2) / (2 K_p(b))."""
    x, p, b = np.asarray(x), np.asarray(p), np.asarray(b)
    inside = x > 0
    y = np.where(inside, x, 1.0)
    z = (p - 1) * np.log(y) - b * (y + 1 / y - 2) / 2 - np.log(2 * special.kve(p, b))
    return np.where(inside, z, -np.inf)[()]


@defined("genhyperbolic_logpdf", MODULE)
def hyperbolic_logpdf(x, p, a, b):
    """Of the density with K_p and K_(p - 1/2), both scaled by exp."""
    x, p, a, b = np.asarray(x), np.asarray(p), np.asarray(a), np.asarray(b)
    d, r = np.sqrt((a - b) * (a + b)), np.sqrt(1.0 + x * x)
    constant = p * np.log(d) - np.log(2 * np.pi) / 2 - (p - 0.5) * np.log(a) - np.log(special.kve(p, d)) + d
    return constant + (p - 0.5) * np.log(r) + np.log(special.kve(p - 0.5, a * r)) - a * r + b * x


@defined("genhyperbolic_pdf", MODULE)
def hyperbolic_pdf(x, p, a, b):
    return np.exp(hyperbolic_logpdf(x, p, a, b))


@methods(stats.genhyperbolic, "_logpdf")
def genhyperbolic_logpdf(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """The same for arrays."""
    return carrying(fresh(called(function, call)), hyperbolic_logpdf(*call[0][1:]))


@methods(stats.genhyperbolic, "_pdf")
def genhyperbolic_pdf(function: Any, call: Any, given: dict[str, Any]) -> Any:
    return carrying(fresh(called(function, call)), hyperbolic_pdf(*call[0][1:]))


@methods(stats.geninvgauss, "_logpdf")
def geninvgauss_logpdf(function: Any, call: Any, given: dict[str, Any]) -> Any:
    return carrying(fresh(called(function, call)), inverse_gauss_logpdf(*call[0][1:]))


def integrated(name: str, method: str, density: Any, low: Any, high: Any) -> None:
    """Enter a probability that SciPy integrates in compiled code: between low(x) and high(x), element by element."""
    instance = getattr(stats, name)

    @methods(instance, method)
    def probability_of(function: Any, call: Any, given: dict[str, Any]) -> Any:
        values = fresh(np.asarray(called(function, call)))
        if not is_active(call[0]):
            return values if values.ndim else values[()]
        arrays = np.broadcast_arrays(*[np.asarray(arg) for arg in call[0][1:]])
        parts = []
        for index in np.ndindex(values.shape):
            x, *shapes = [array[index] for array in arrays]
            y = probability(density, tuple(shapes), low(x), high(x), values[index])
            if y is None:
                refuse(getattr(instance, method.strip("_")), f"the integral of the density of `{name}` does not converge")
            parts.append(y)
        z = np.reshape(np.array(parts), values.shape) if parts else values
        return carrying(values if values.ndim else values[()], z if values.ndim else z[()])


def itself(x: Any) -> Any:
    return x


integrated("genhyperbolic", "_cdf", hyperbolic_pdf, lambda x: -np.inf, itself)
integrated("genhyperbolic", "_sf", hyperbolic_pdf, itself, lambda x: np.inf)
integrated("geninvgauss", "_cdf", lambda x, p, b: np.exp(inverse_gauss_logpdf(x, p, b)), lambda x: 0.0, itself)


# -- von Mises: the integral of a periodic density ---------------------------------------------------------------------

ring_cdf = _stats.von_mises_cdf
TERMS = 60
POINTS, WEIGHTS = np.polynomial.legendre.leggauss(TERMS)


def ring_density(kappa: Any, x: Any) -> Any:
    """exp(kappa cos x) / (2 pi I0(kappa))."""
    return np.exp(-2 * kappa * np.sin(x / 2) ** 2) / (2 * np.pi * special.i0e(kappa))


def ring_cdf_slope(kappa: Any, x: Any) -> Any:
    """The integral of (cos t - I1/I0) times the density from 0 to the x of this turn, in which it is odd.

    The density falls off on the scale of 1/sqrt(kappa): beyond 12 of it nothing is left.
    """
    kappa, x = np.broadcast_arrays(np.asarray(kappa, float), np.asarray(x, float))
    turn = x - 2 * np.pi * np.round(x / (2 * np.pi))
    width = np.minimum(np.pi, 12.0 / np.sqrt(np.maximum(kappa, 1e-300)))
    end = np.clip(turn, -width, width)
    t = end[..., None] * (POINTS + 1) / 2
    k = kappa[..., None]
    gap = special.i1e(k) / special.i0e(k)
    return ((np.cos(t) - gap) * ring_density(k, t) * WEIGHTS).sum(-1) * end / 2


def ring_cdf_rrule(kappa: Any, x: Any) -> Any:
    def ring_cdf_pullback(z_bar: Any) -> tuple[Any, ...]:
        slope = Thunk(lambda: z_bar * ring_cdf_slope(kappa, x))
        return slope, Thunk(lambda: z_bar * ring_density(kappa, x))

    return ring_cdf(kappa, x), ring_cdf_pullback


def ring_cdf_frule(kappa: Any, x: Any) -> Any:
    z = ring_cdf(kappa, x)
    ndim = np.ndim(z)

    def ring_cdf_pushforward(dots: Any) -> Any:
        parts = []
        if varies(dot_of(dots, 0)):
            parts.append(lined_up(dot_of(dots, 0), kappa, ndim) * ring_cdf_slope(kappa, x))
        if varies(dot_of(dots, 1)):
            parts.append(lined_up(dot_of(dots, 1), x, ndim) * ring_density(kappa, x))
        return sum(parts) if parts else ZeroTangent

    return z, ring_cdf_pushforward


enter(ring_cdf, ring_cdf_rrule, ring_cdf_frule)


# -- Kolmogorov's distribution of n numbers ----------------------------------------------------------------------------


def kolmogorov(name: str, slope: Any) -> None:
    """Enter a function of (n, x, cdf=True) by its slope in x; n is a count."""
    function = getattr(_ksstats, name, None)
    if function is None:
        return

    def kolmogorov_rrule(n: Any, x: Any, cdf: Any = True) -> Any:
        z = function(n, x, cdf=cdf)

        def kolmogorov_pullback(z_bar: Any) -> tuple[Any, ...]:
            return NoTangent, Thunk(lambda: z_bar * slope(n, x, z) * np.where(cdf, 1.0, -1.0)), NoTangent

        return z, kolmogorov_pullback

    def kolmogorov_frule(n: Any, x: Any, cdf: Any = True) -> Any:
        z = function(n, x, cdf=cdf)

        def kolmogorov_pushforward(dots: Any) -> Any:
            if varies(dot_of(dots, 0)):
                refuse(function, "it is known for whole numbers n only")
            x_dot = lined_up(dot_of(dots, 1), x, np.ndim(z)) if varies(dot_of(dots, 1)) else ZeroTangent
            return x_dot * slope(n, x, z) * np.where(cdf, 1.0, -1.0) if varies(x_dot) else ZeroTangent

        return z, kolmogorov_pushforward

    enter(function, kolmogorov_rrule, kolmogorov_frule)


def kolmogorov_density(n: Any, x: Any) -> Any:
    """SciPy's, which takes no empty arrays."""
    return _ksstats.kolmognp(n, x) if np.size(n) and np.size(x) else np.zeros(np.broadcast_shapes(np.shape(n), np.shape(x)))


kolmogorov("kolmogn", lambda n, x, z: kolmogorov_density(n, x))
kolmogorov("kolmogni", lambda n, q, z: 1.0 / kolmogorov_density(n, z))
RULES.refused("the slope of its density has no short formula", getattr(_ksstats, "kolmognp", None))

# -- statistics of ranks, sums over cases ------------------------------------------------------------------------------

constant(getattr(_stats, "_weightedrankedtau", None), getattr(_stats, "_kendall_dis", None), getattr(_stats, "_toint64", None))


def number_of_successes(p: Any) -> Any:
    """The probability of 0, 1, ... successes in trials with probabilities p[0], p[1], ...: one more trial at a time."""
    masses = [p[0] * 0.0 + 1.0]
    for q in p:
        up = [0.0 * q, *[mass * q for mass in masses]]
        stay = [*[mass * (1 - q) for mass in masses], 0.0 * q]
        masses = [a + b for a, b in zip(up, stay, strict=True)]
    return np.stack(masses)


@methods(getattr(stats, "poisson_binom", None), "_pmf", "_cdf")
def poisson_binomial(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """SciPy's masses and sums of them."""
    value = fresh(np.asarray(called(function, call)))
    _, k, *p = call[0]
    k, *p = np.broadcast_arrays(np.atleast_1d(k), *p)
    masses = number_of_successes([np.ravel(q) for q in p])
    if function is method_of(stats.poisson_binom, "_cdf"):
        masses = np.cumsum(masses, axis=0)
    k = np.ravel(k).astype(int)
    z = np.where((k >= 0) & (k <= len(p)), masses[np.clip(k, 0, len(p)), np.arange(k.size)], 0.0)
    return carrying(value, np.reshape(z, value.shape))


# -- double gamma: SciPy evaluates both tails everywhere, one of them outside of its domain ----------------------------


@methods(stats.dgamma, "_cdf", "_sf")
def double_gamma(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """Half of the upper tail beyond |x|, or the rest."""
    _, x, a = call[0]
    lower = function is method_of(stats.dgamma, "_cdf")
    tail = special.gammaincc(a, np.abs(x)) / 2
    y = np.where((np.asarray(x) > 0) == lower, 1.0 - tail, tail)
    return carrying(fresh(called(function, call)), y)


@methods(stats.dgamma, "_ppf", "_isf")
def double_gamma_quantile(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """The quantile of the tail that q is in."""
    _, q, a = call[0]
    q = np.asarray(q)
    upper = q > 0.5
    tail = 2 * np.where(upper, 1 - q, q)
    middle = fresh(tail * 1.0) == 1.0  # there 1 - tail = z^a / gamma(a + 1)
    power = 0.0
    if is_active(q):
        power = (np.where(middle, 1.0 - tail, 1.0) * special.gamma(a + 1.0)) ** (1.0 / np.asarray(a))
    z = np.where(middle, power, special.gammainccinv(a, np.where(middle, 0.5, tail)))
    sign = 1.0 if function is method_of(stats.dgamma, "_ppf") else -1.0
    return carrying(fresh(called(function, call)), np.where(upper, z, -z) * sign)


# -- Skellam: SciPy evaluates a noncentral chi squared density on both sides, outside of its domain on one ----------------


@methods(stats.skellam, "_pmf")
def skellam_pmf(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """exp(-a - b) (a/b)^(k/2) I_|k|(2 sqrt(a b))."""
    _, k, a, b = call[0]
    r = np.sqrt(a * b)
    y = special.ive(np.abs(k), 2 * r) * np.exp(2 * r - a - b + np.asarray(k) / 2 * np.log(a / b))
    return carrying(fresh(called(function, call)), y)


@methods(stats.skellam, "_cdf")
def skellam_cdf(function: Any, call: Any, given: dict[str, Any]) -> Any:
    """A noncentral chi squared probability, of the side that k is on."""
    _, k, a, b = call[0]
    k = np.floor(k)
    low = k < 0
    freedom = np.where(low, -2.0 * k, 2.0 * (k + 1))
    z = special.chndtr(np.where(low, 2 * b, 2 * a), freedom, np.where(low, 2 * a, 2 * b))
    return carrying(fresh(called(function, call)), np.where(low, z, 1.0 - z))
