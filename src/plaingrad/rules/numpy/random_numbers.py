"""Random numbers: sources without tangent; locations and scales are differentiated along the path.

The definitions draw the same numbers from the same stream as the functions that they define.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plaingrad.define import composed, no_tangent, rrule
from plaingrad.rules.numpy.names import methods, refuse, written
from plaingrad.rules.pushforwards import both_forms, dot_of, joined, lined_up, total, varies
from plaingrad.tangents import NoTangent, Thunk

GENERATORS = (np.random.Generator, np.random.RandomState)


def shape_for(size: Any, *parameters: Any) -> Any:
    """The size to draw: as given, else that of the parameters together."""
    if size is not None:
        return size
    return np.broadcast_shapes(*[np.shape(x) for x in parameters]) or None


def drawn(draw: Any, *args: Any) -> Any:
    """Numbers from the stream, with constant parameters."""
    return draw(*args)


def drawn_along(draw: Any, self: Any, x: Any, axis: int) -> Any:
    """As `drawn`, along an axis."""
    return draw(self, x, axis=axis)


no_tangent(drawn, drawn_along)


def enter_location_scale(name: str, generator: type) -> None:
    """loc + scale * standard."""
    draw = vars(generator)[name]

    @composed(draw)
    def location_scale(self, loc=0.0, scale=1.0, size=None):
        return loc + scale * drawn(draw, self, 0.0, 1.0, shape_for(size, loc, scale))


def enter_scale(name: str, generator: type) -> None:
    """scale * standard."""
    draw = vars(generator)[name]

    @composed(draw)
    def scaled(self, scale=1.0, size=None):
        return scale * drawn(draw, self, 1.0, shape_for(size, scale))


for g in GENERATORS:
    for name in ("normal", "laplace", "logistic", "gumbel"):
        enter_location_scale(name, g)
    for name in ("exponential", "rayleigh"):
        enter_scale(name, g)


def enter_others(generator: type) -> None:
    """Distributions that are simple functions of a standard one."""
    draw_uniform, draw_gamma = vars(generator)["uniform"], vars(generator)["gamma"]

    @composed(vars(generator)["uniform"])
    def uniform(self, low=0.0, high=1.0, size=None):
        return low + (high - low) * drawn(draw_uniform, self, 0.0, 1.0, shape_for(size, low, high))

    draw_lognormal = vars(generator)["lognormal"]

    @rrule(draw_lognormal)  # not exp(normal): NumPy's exp of arrays rounds differently
    def lognormal_rrule(self, mean=0.0, sigma=1.0, size=None):
        z = draw_lognormal(self, mean, sigma, size)

        def lognormal_pullback(z_bar):
            mean_bar = z_bar * z
            return NoTangent, mean_bar, Thunk(lambda: mean_bar * (np.log(z) - mean) / sigma)

        return z, lognormal_pullback

    @both_forms(draw_lognormal)
    def lognormal_frule(self, mean=0.0, sigma=1.0, size=None):
        z = draw_lognormal(self, mean, sigma, size)

        def lognormal_pushforward(dots):
            mean_dot, sigma_dot = dot_of(dots, 1), dot_of(dots, 2)
            z_dot = lined_up(joined(mean_dot, mean), mean, np.ndim(z)) * z if varies(mean_dot) else mean_dot
            if varies(sigma_dot):
                sigma_dot = lined_up(joined(sigma_dot, sigma), sigma, np.ndim(z))
                z_dot = total(z_dot, sigma_dot * (z * (np.log(z) - mean) / sigma))
            return z_dot

        return z, lognormal_pushforward

    @composed(vars(generator)["gamma"])
    def gamma(self, shape, scale=1.0, size=None):
        return scale * drawn_gamma(draw_gamma, self, shape, shape_for(size, shape, scale))

    draw_choice = vars(generator)["choice"]

    @composed(draw_choice)
    def choice(self, a, size=None, replace=True, p=None, axis=0, shuffle=True):
        more = (0, shuffle) if generator is np.random.Generator else ()
        if np.ndim(a) == 0:
            return drawn_choice(draw_choice, self, a, size, replace, p, more)
        index = drawn_choice(draw_choice, self, np.shape(a)[axis], size, replace, p, more)
        return np.take(a, index, axis)

    draw_permutation = vars(generator)["permutation"]

    @composed(draw_permutation)
    def permutation(self, x, axis=0):
        if np.ndim(x) == 0:
            return drawn(draw_permutation, self, x)
        if generator is np.random.Generator:
            return np.take(x, drawn(draw_permutation, self, np.shape(x)[axis]), axis)
        return np.asarray(x)[drawn(draw_permutation, self, len(x))]


def drawn_choice(draw: Any, self: Any, n: int, size: Any, replace: bool, p: Any, more: Any) -> Any:
    """Indices: no function of their probabilities that has a derivative."""
    return draw(self, n, size, replace, p, *more)


@rrule(drawn_choice)
def drawn_choice_rrule(*args):
    raise refuse("The probabilities of a random choice", "have no derivative along the path", "plaingrad.stop_gradient(p)")


def drawn_gamma(draw: Any, self: Any, shape: Any, size: Any) -> Any:
    """Numbers of scale 1: no simple function of their shape."""
    return draw(self, shape, 1.0, size)


@rrule(drawn_gamma)
def drawn_gamma_rrule(draw, self, shape, size):
    raise refuse("The shape parameter of a gamma distribution", "has no rule", "plaingrad.stop_gradient(shape)")


for g in GENERATORS:
    enter_others(g)


# ---------------------------------------------------------------------------------------------------------
# Sources, and rearrangement in place

no_tangent(*methods(
    "integers", "bytes", "spawn", "rand", "randn", "randint", "random_sample", "random_integers", "tomaxint", "seed",
    "get_state", "set_state", types=GENERATORS,
))  # fmt: skip


def enter_source(draw: Any) -> None:
    """Standard numbers, possibly written into `out`."""

    @composed(draw, mutates=True)
    def source(self, size=None, dtype=np.float64, *options, out=None, **more):
        if isinstance(self, np.random.RandomState):
            return drawn(draw, self, size)
        if options:
            raise refuse("A random number generator", "was given its output array by position", "out=... by keyword")
        return written(numbers(draw, self, out.shape if size is None and out is not None else size, dtype, more), out)


def numbers(draw: Any, self: Any, size: Any, dtype: Any, options: dict[str, Any]) -> Any:
    """Numbers from the stream."""
    return draw(self, size, dtype, **options)


no_tangent(numbers)

for f in methods("random", "standard_normal", "standard_exponential", types=GENERATORS):
    enter_source(f)
for f in methods("standard_cauchy", types=GENERATORS):
    no_tangent(f)


def enter_shuffle(draw: Any) -> None:
    """x[...] = x[in another order]."""

    @composed(draw, mutates=True)
    def shuffle(self, x, axis=0):
        if not isinstance(x, np.ndarray):  # a list's entries only change places
            drawn(draw, self, x)
        elif x.dtype.kind in "fc":
            order = np.arange(x.shape[axis])
            drawn(draw, self, order)
            x[...] = np.take(x, order, axis)
        else:
            drawn(draw, self, x, *((axis,) if axis else ()))


for f in methods("shuffle", types=GENERATORS):
    enter_shuffle(f)


def enter_permuted(draw: Any) -> None:
    """The elements along an axis in another order, each row in its own."""

    @composed(draw, mutates=True)
    def permuted(self, x, axis=None, out=None):
        x = np.asarray(x)
        if axis is None:
            order = drawn(draw, self, np.arange(x.size).reshape(x.shape))
            return written(np.take(x, order), out)
        places = np.indices(x.shape)[axis]
        return written(np.take_along_axis(x, drawn_along(draw, self, places, axis), axis), out)


for f in methods("permuted", types=GENERATORS):
    enter_permuted(f)


def enter_multivariate_normal(draw: Any) -> None:
    """mean + numbers around 0."""

    @composed(draw)
    def multivariate_normal(self, mean, cov, size=None, *options, **more):
        return mean + around_zero(draw, self, np.zeros(np.shape(mean)), cov, size, options, more)


def around_zero(draw: Any, self: Any, mean: Any, cov: Any, size: Any, options: Any, more: Any) -> Any:
    """Numbers of mean 0: how they follow from the covariance is left to C code."""
    return draw(self, mean, cov, size, *options, **more)


@rrule(around_zero)
def around_zero_rrule(*args):
    raise refuse("The covariance of multivariate_normal", "has no rule", "mean + np.linalg.cholesky(cov) @ standard normal numbers")


for f in methods("multivariate_normal", types=GENERATORS):
    enter_multivariate_normal(f)
