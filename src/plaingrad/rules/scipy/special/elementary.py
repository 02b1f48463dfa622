"""Elementary functions: logistic ones, powers and logarithms in one step, losses, entropies, degrees."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special as sc

from plaingrad.define import POSITIVE, POSITIVE_PAIR, REAL
from plaingrad.rules.scipy.forms import none, row
from plaingrad.rules.scipy.special.gamma import cospi, sinpi

LN2, LN10, DEGREE = math.log(2), math.log(10), math.pi / 180
SHARES = ((0.1, 0.3, 0.6, 0.95),)
POWERS = ((0.3, 1.1, 2.4), (0.7, -1.6, 0.2))
RESIDUALS = ((0.9, 1.1, 2.4), (0.7, -1.6, 0.2))


def first_moment(u: Any) -> Any:
    """The integral of t exp(u t) from 0 to 1: the derivative of exprel, ((u - 1) exp(u) + 1) / u^2."""
    u = u * 1.0
    near = np.abs(u) < 1
    v = np.where(near, u, 0.0)
    total: Any = 1.0
    for k in range(18, 0, -1):  # the sum of u^k / (k! (k + 2))
        total = 1 + v * ((k + 1) / (k * (k + 2))) * total
    w = np.where(near, 1.0, u)
    return np.where(near, total / 2, ((w - 1) * np.exp(w) + 1) / (w * w))[()]


def quotient(x: Any, y: Any) -> Any:
    """x / y, and 0 where both are 0."""
    return np.true_divide(x, np.where(np.equal(x, 0) & np.equal(y, 0), 1, y))[()]


def boxcox_slope(log_x: Any, power: Any, z: Any) -> Any:
    """The derivative of (x^p - 1) / p in p, for log x."""
    zero = np.isneginf(log_x) & np.greater(power, 0)
    logarithm = np.where(zero, 0.0, log_x)
    inside = logarithm * logarithm * first_moment(power * logarithm)
    p = np.where(zero, power, 1.0)
    return np.where(zero, 1 / (p * p), inside)[()]


def inverse_boxcox_log(z: Any, power: Any) -> Any:
    """log1p(p z) / p, and z where p is 0."""
    u = np.multiply(power, z)
    zero = np.equal(power, 0)
    return np.where(zero, z, np.log1p(np.where(zero, 0.0, u)) / np.where(zero, 1.0, power))[()]


def inverse_boxcox_slopes(y: Any, power: Any) -> tuple[Any, Any]:
    """The derivatives of (p y + 1)^(1/p) in y and in p, by those of its inverse."""
    logarithm = inverse_boxcox_log(y, power)
    in_y = np.exp((1 - power) * logarithm)
    return in_y, -in_y * logarithm * logarithm * first_moment(power * logarithm)


def on_domain(slope: Any, z: Any) -> Any:
    """`slope`, nan where the function says by an infinite value that it is not defined."""
    return np.where(np.isfinite(z), slope, np.nan)[()]


def huber_slopes(delta: Any, r: Any) -> tuple[Any, Any]:
    """Quadratic within delta, linear outside."""
    size = np.abs(r)
    inside = np.less_equal(size, delta)
    good = np.greater_equal(delta, 0)
    in_delta = np.where(inside, 0.0, size - delta)
    in_r = np.where(inside, r, delta * np.sign(r))
    return np.where(good, in_delta, np.nan)[()], np.where(good, in_r, np.nan)[()]


def pseudo_huber_slopes(delta: Any, r: Any) -> tuple[Any, Any]:
    """delta^2 (s - 1) with s = sqrt(1 + (r / delta)^2), without the difference."""
    zero = np.equal(delta, 0) | np.equal(r, 0)
    d = np.where(np.equal(delta, 0), 1.0, delta)
    u = np.where(np.equal(delta, 0), 0.0, r) / d
    s = np.sqrt(1 + u * u)
    good = np.greater_equal(delta, 0)
    in_delta = np.where(zero & np.equal(delta, 0), 0.0, d * u**4 / (s * (s + 1) ** 2))
    return np.where(good, in_delta, np.nan)[()], np.where(good, u * d / s, np.nan)[()]


def tukey_slopes(x: Any, shape: Any, z: Any) -> tuple[Any, Any]:
    """Of Tukey's lambda distribution, by its quantile (F^s - (1 - F)^s) / s; 0 outside its support."""
    inside = np.greater(z, 0) & np.less(z, 1)
    f = np.where(inside, z, 0.5)
    slope = 1 / (np.power(f, shape - 1) + np.power(1 - f, shape - 1))
    in_shape = boxcox_slope(np.log(f), shape, z) - boxcox_slope(np.log1p(-f), shape, z)
    ends = np.isnan(z) | np.isnan(x)
    nothing = np.where(ends, np.nan, 0.0)
    return np.where(inside, slope, nothing)[()], np.where(inside, -slope * in_shape, nothing)[()]


none("round")
row("expit", REAL, lambda m, x, z: sc.expit(x) * sc.expit(-x))
row("logit", SHARES, lambda m, x, z: np.true_divide(1, x * (1 - x)))
row("log_expit", REAL, lambda m, x, z: sc.expit(-x))
row("exprel", REAL, lambda m, x, z: first_moment(x))
row("exp2", REAL, lambda m, x, z: z * LN2)
row("exp10", REAL, lambda m, x, z: z * LN10)
row("expm1", REAL, lambda m, x, z: np.exp(x))
row("log1p", POSITIVE, lambda m, x, z: np.true_divide(1, 1 + x))
row("_log1pmx", POSITIVE, lambda m, x, z: np.true_divide(-x, 1 + x))
row("_log1mexp", ((-0.2, -1.1, -7.0),), lambda m, x, z: np.true_divide(-1, np.expm1(-x)))
row("cosm1", REAL, lambda m, x, z: -np.sin(x))
row("cbrt", REAL, lambda m, x, z: np.true_divide(1, 3 * z * z))
row("_sinpi", REAL, lambda m, x, z: np.pi * cospi(x))
row("_cospi", REAL, lambda m, x, z: -np.pi * sinpi(x))
row("sindg", REAL, lambda m, x, z: DEGREE * sc.cosdg(x))
row("cosdg", REAL, lambda m, x, z: -DEGREE * sc.sindg(x))
row("tandg", REAL, lambda m, x, z: DEGREE * (1 + z * z))
row("cotdg", REAL, lambda m, x, z: -DEGREE * (1 + z * z))
row("radian", ((12.0, 30.0), (3.0, 8.0), (0.4, 7.0)), DEGREE, DEGREE / 60, DEGREE / 3600)
row("xlogy", POSITIVE_PAIR, lambda m, x, y, z: np.log(y), lambda m, x, y, z: quotient(x, y))
row("xlog1py", POSITIVE_PAIR, lambda m, x, y, z: np.log1p(y), lambda m, x, y, z: quotient(x, 1 + y))
row("powm1", POWERS, lambda m, x, y, z: y * np.power(x, y - 1), lambda m, x, y, z: sc.xlogy(np.power(x, y), x))
row("boxcox", POWERS, lambda m, x, p, z: np.power(x, p - 1), lambda m, x, p, z: boxcox_slope(np.log(x), p, z))
row("boxcox1p", POWERS, lambda m, x, p, z: np.exp((p - 1) * np.log1p(x)),
    lambda m, x, p, z: boxcox_slope(np.log1p(x), p, z))
row("inv_boxcox", ((0.3, 0.1, 2.4), (0.7, -1.6, 0.2)), lambda m, y, p, z: inverse_boxcox_slopes(y, p)[0],
    lambda m, y, p, z: inverse_boxcox_slopes(y, p)[1])
row("inv_boxcox1p", ((0.3, 0.1, 2.4), (0.7, -1.6, 0.2)), lambda m, y, p, z: inverse_boxcox_slopes(y, p)[0],
    lambda m, y, p, z: inverse_boxcox_slopes(y, p)[1])
row("entr", POSITIVE, lambda m, x, z: on_domain(-np.log(x) - 1, z))
row("rel_entr", POSITIVE_PAIR, lambda m, x, y, z: on_domain(np.log(np.true_divide(x, y)) + 1, z),
    lambda m, x, y, z: on_domain(-quotient(x, y), z))
row("kl_div", POSITIVE_PAIR, lambda m, x, y, z: on_domain(np.log(np.true_divide(x, y)), z),
    lambda m, x, y, z: on_domain(1 - quotient(x, y), z))
row("huber", RESIDUALS, lambda m, d, r, z: huber_slopes(d, r)[0], lambda m, d, r, z: huber_slopes(d, r)[1])
row("pseudo_huber", RESIDUALS, lambda m, d, r, z: pseudo_huber_slopes(d, r)[0],
    lambda m, d, r, z: pseudo_huber_slopes(d, r)[1])
row("tklmbda", ((-0.4, 0.3, 0.9), (0.7, -0.6, 0.2)), lambda m, x, s, z: tukey_slopes(x, s, z)[0],
    lambda m, x, s, z: tukey_slopes(x, s, z)[1])
row("wrightomega", REAL, lambda m, x, z: np.true_divide(z, 1 + z))
row("_lambertw", ((0.3, 1.9, 7.0), (0, 0, 0), (1e-8, 1e-8, 1e-8)), lambda m, x, k, tol, z: np.true_divide(np.exp(-z), 1 + z), None, None)
row("_cosine_cdf", REAL, lambda m, x, z: np.where(np.abs(x) < np.pi, (1 + np.cos(x)) / (2 * np.pi), 0 * x)[()])
row("_cosine_invcdf", SHARES, lambda m, x, z: 2 * np.pi / (1 + np.cos(z)))
