"""Noncentral chi squared, F and t distributions: mixtures over Poisson weights, or over the scale."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special as sc

from plaingrad.rules.scipy.forms import keep_quiet, row
from plaingrad.rules.scipy.special.distributions import fdtr_parts, log_scale_density, scales, score
from plaingrad.rules.scipy.special.gamma import psi_gap
from plaingrad.rules.scipy.special.incomplete import (
    beta_density,
    betainc_in_a,
    betainc_in_b,
    gamma_density,
    gammainc_in_a,
)
from plaingrad.rules.scipy.special.normal import bell

MOST = 1e4  # the largest noncentrality
CHI = ((0.9, 2.3, 5.1), (1.4, 3.9, 3.3), (0.7, 1.8, 0.55))
F_SAMPLES = ((3.6, 2.3), (1.4, 4.9), (0.8, 2.2), (0.7, 1.8))
T_SAMPLES = ((3.6, 2.3, 7.0), (1.4, -0.9, 0.3), (0.7, 1.8, -0.4))


def places(half: Any) -> Any:
    """For each mean of a Poisson variable the values that it takes, on an axis behind the others."""
    half = np.where(np.isfinite(half) & np.less_equal(half, MOST), half, 0.0)
    spread = 9 * np.sqrt(half)
    first = np.floor(np.maximum(half - spread - 10, 0.0))
    count = int(np.max(half + spread - first, initial=0.0)) + 45
    return first[..., None] + np.arange(count)


def weights(half: Any, j: Any) -> Any:
    """exp(-half) half^j / j!."""
    return np.exp(sc.xlogy(j, half) - half - sc.gammaln(j + 1))


keep_quiet(places)


def with_axis(*args: Any) -> list[Any]:
    """Each with an axis for the mixture; broadcast, so that lengths of that axis agree."""
    shape = np.broadcast_shapes(*[np.shape(x) for x in args])
    return [np.broadcast_to(np.multiply(x, 1.0), shape)[..., None] for x in args]


def allowed(nc: Any, z: Any) -> Any:
    """`z` where the mixture has not too many terms."""
    return np.where(np.greater_equal(nc, 0) & np.less_equal(nc, 2 * MOST), z, np.nan)[()]


# Chi squared: chndtr(x, df, nc) --------------------------------------------------------------------------------------


def chi_density(x: Any, df: Any, nc: Any) -> Any:
    """The sum of Poisson weights times densities with 2 j more degrees of freedom."""
    j = places(np.broadcast_arrays(np.multiply(nc, 0.5), x, df)[0])
    y, d, c = with_axis(x, df, nc)
    return allowed(nc, (weights(c / 2, j) * gamma_density(d / 2 + j, y / 2)).sum(-1) / 2)


def chi_in_freedom(x: Any, df: Any, nc: Any) -> Any:
    """The slope of the distribution function in df."""
    j = places(np.broadcast_arrays(np.multiply(nc, 0.5), x, df)[0])
    y, d, c = with_axis(x, df, nc)
    return allowed(nc, (weights(c / 2, j) * gammainc_in_a(d / 2 + j, y / 2)).sum(-1) / 2)


def chi_density_in_freedom(x: Any, df: Any, nc: Any) -> Any:
    """The slope of the density in df."""
    j = places(np.broadcast_arrays(np.multiply(nc, 0.5), x, df)[0])
    y, d, c = with_axis(x, df, nc)
    a = d / 2 + j
    return allowed(nc, (weights(c / 2, j) * gamma_density(a, y / 2) * (np.log(y / 2) - sc.psi(a))).sum(-1) / 4)


row("chi_density", CHI,
    lambda m, x, d, c, z: z * (np.true_divide(d / 2 - 1, x) - 0.5) + c / 2 * np.true_divide(chi_density(x, d + 2, c), x),
    lambda m, x, d, c, z: chi_density_in_freedom(x, d, c), lambda m, x, d, c, z: (chi_density(x, d + 2, c) - z) / 2,
    functions=(chi_density,))
row("chndtr", CHI, lambda m, x, d, c, z: chi_density(x, d, c), lambda m, x, d, c, z: chi_in_freedom(x, d, c),
    lambda m, x, d, c, z: -chi_density(x, d + 2, c))
row("_ncx2_pdf", CHI,
    lambda m, x, d, c, z: z * (np.true_divide(d / 2 - 1, x) - 0.5) + c / 2 * np.true_divide(chi_density(x, d + 2, c), x),
    lambda m, x, d, c, z: chi_density_in_freedom(x, d, c), lambda m, x, d, c, z: (chi_density(x, d + 2, c) - z) / 2)
row("_ncx2_sf", CHI, lambda m, x, d, c, z: -chi_density(x, d, c), lambda m, x, d, c, z: -chi_in_freedom(x, d, c),
    lambda m, x, d, c, z: chi_density(x, d + 2, c))


# F: ncfdtr(dfn, dfd, nc, f) ----------------------------------------------------------------------------------------------


def f_mixture(term: Any, a: Any, b: Any, nc: Any, x: Any) -> Any:
    """The sum over j of weights times term(j, a, b, y, 1 - y, total)."""
    j = places(np.broadcast_arrays(np.multiply(nc, 0.5), a, b, x)[0])
    p, q, c, w = with_axis(a, b, nc, x)
    y, rest, total = fdtr_parts(p, q, w)
    return allowed(nc, (weights(c / 2, j) * term(j, p, q, w, y, rest, total)).sum(-1))


def f_density(a: Any, b: Any, nc: Any, x: Any) -> Any:
    """The density, which is the slope in f."""
    return f_mixture(
        lambda j, a, b, x, y, rest, total: beta_density(a / 2 + j, b / 2, y) * a * b / total**2, a, b, nc, x
    )


def f_in_numerator(a: Any, b: Any, nc: Any, x: Any) -> Any:
    """The slope in dfn."""
    return f_mixture(
        lambda j, a, b, x, y, rest, total: betainc_in_a(a / 2 + j, b / 2, y) / 2
        + beta_density(a / 2 + j, b / 2, y) * b * x / total**2,
        a, b, nc, x,
    )  # fmt: skip


def f_in_denominator(a: Any, b: Any, nc: Any, x: Any) -> Any:
    """The slope in dfd."""
    return f_mixture(
        lambda j, a, b, x, y, rest, total: betainc_in_b(a / 2 + j, b / 2, y) / 2
        - beta_density(a / 2 + j, b / 2, y) * a * x / total**2,
        a, b, nc, x,
    )  # fmt: skip


def f_in_noncentrality(a: Any, b: Any, nc: Any, x: Any) -> Any:
    """The slope in nc: I(a + 1, b) - I(a, b) is minus y (1 - y) / a times the density."""
    return f_mixture(
        lambda j, a, b, x, y, rest, total: -beta_density(a / 2 + j, b / 2, y) * y * rest / (a + 2 * j), a, b, nc, x
    )


def f_density_slope(place: int, a: Any, b: Any, nc: Any, x: Any) -> Any:
    """The slope of the density in dfn (0), dfd (1), nc (2) or x (3)."""

    def term(j: Any, a: Any, b: Any, x: Any, y: Any, rest: Any, total: Any) -> Any:
        p, q = a / 2 + j, b / 2
        value = beta_density(p, q, y) * a * b / total**2
        if place == 2:
            return (beta_density(p + 1, q, y) * a * b / total**2 - value) / 2
        steep = (p - 1) / y - (q - 1) / rest
        if place == 3:
            return value * (steep * a * b / total**2 - 2 * a / total)
        if place == 0:
            return value * ((np.log(y) - psi_gap(p, q)) / 2 + steep * b * x / total**2 + 1 / a - 2 * x / total)
        return value * ((np.log(rest) - psi_gap(q, p)) / 2 - steep * a * x / total**2 + 1 / b - 2 / total)

    return f_mixture(term, a, b, nc, x)


F_SLOPES = (f_in_numerator, f_in_denominator, f_in_noncentrality, f_density)
row("ncfdtr", F_SAMPLES, *[lambda m, a, b, c, x, z, f=f: f(a, b, c, x) for f in F_SLOPES])
row("_ncf_cdf", (F_SAMPLES[3], *F_SAMPLES[:3]), *[lambda m, x, a, b, c, z, f=f: f(a, b, c, x) for f in (F_SLOPES[3], *F_SLOPES[:3])])
row("_ncf_sf", (F_SAMPLES[3], *F_SAMPLES[:3]), *[lambda m, x, a, b, c, z, f=f: -f(a, b, c, x) for f in (F_SLOPES[3], *F_SLOPES[:3])])


row("_ncf_pdf", (F_SAMPLES[3], *F_SAMPLES[:3]), *[lambda m, x, a, b, c, z, k=k: f_density_slope(k, a, b, c, x) for k in (3, 0, 1, 2)])


# t: nctdtr(df, nc, t), the mean of ndtr(t s - nc) over the scale s -----------------------------------------------------


def t_mean(moment: Any, v: Any, nc: Any, t: Any) -> Any:
    """The mean of moment(s, t, nc, w, v)."""
    good = np.greater(v, 0.2) & np.less(v, 1e8) & np.less(np.abs(nc), 40) & np.isfinite(t)
    y, d, u = [np.where(good, x, 1.0) for x in (v, nc, t)]
    w, h = scales(y, np.minimum(np.abs(u), 6 + np.abs(d)))
    c = y[..., None]
    z = (moment(np.exp(w), u[..., None], d[..., None], w, c) * log_scale_density(w, c)).sum(-1) * h
    return np.where(good, z, np.nan)[()]


def t_density(v: Any, nc: Any, t: Any) -> Any:
    """The slope in t."""
    return t_mean(lambda s, t, d, w, v: s * bell(t * s - d), v, nc, t)


def t_in_noncentrality(v: Any, nc: Any, t: Any) -> Any:
    """The slope in nc."""
    return -t_mean(lambda s, t, d, w, v: bell(t * s - d), v, nc, t)


def t_in_freedom(v: Any, nc: Any, t: Any) -> Any:
    """The slope in df: the mean of the score is 0, so that a constant may be taken away."""
    return t_mean(
        # from the smaller tail
        lambda s, t, d, w, v: -(sc.ndtr(d - t * s) - sc.ndtr(d - t)) * score(w, v) * (t > d)
        + (sc.ndtr(t * s - d) - sc.ndtr(t - d)) * score(w, v) * (t <= d),
        v, nc, t,
    )  # fmt: skip


T_MOMENTS = (
    lambda s, t, d, w, v: -s * s * (t * s - d) * bell(t * s - d), lambda s, t, d, w, v: s * bell(t * s - d) * score(w, v),
    lambda s, t, d, w, v: s * (t * s - d) * bell(t * s - d),
)  # fmt: skip
T_SLOPES = (t_in_freedom, t_in_noncentrality, t_density)
row("nctdtr", T_SAMPLES, *[lambda m, v, d, t, z, f=f: f(v, d, t) for f in T_SLOPES])
row("_nct_cdf", (T_SAMPLES[2], *T_SAMPLES[:2]), *[lambda m, t, v, d, z, f=f: f(v, d, t) for f in (T_SLOPES[2], *T_SLOPES[:2])])
row("_nct_sf", (T_SAMPLES[2], *T_SAMPLES[:2]), *[lambda m, t, v, d, z, f=f: -f(v, d, t) for f in (T_SLOPES[2], *T_SLOPES[:2])])
row("_nct_pdf", (T_SAMPLES[2], *T_SAMPLES[:2]), *[lambda m, t, v, d, z, f=f: t_mean(f, v, d, t) for f in T_MOMENTS])
