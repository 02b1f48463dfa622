"""Every rule again, as users meet it: inside `grad`, against central differences.

Second derivatives are tried at the first sample of each function and at one in six of the others, at all of them with
PLAINGRAD_TEST_ALL=1.
"""

import copy

import numpy as np
import pytest
from tests.rules.numpy.checks import inner, leaves, like, mapped, random_like
from tests.rules.numpy.composed_samples import COMPOSED, RANDOM
from tests.rules.numpy.samples import REAL_ONLY, SAMPLES
from tests.sampling import sample_of

import plaingrad

pytestmark = pytest.mark.filterwarnings("ignore")

# Helpers of the rules themselves, which user code cannot call.
PUBLIC = [f for f in SAMPLES if not getattr(f, "__module__", None) or not f.__module__.startswith("plaingrad.")]


def name_of(function):
    return getattr(function, "__qualname__", None) or getattr(function, "__name__", repr(function))


def weighted(results, weights):
    """A real number that depends on every real and complex number in the results."""
    total = 0.0
    for z, weight in zip(results, weights):
        if np.ndim(z):
            z = z[weight != 0]
            weight = weight[weight != 0]
        elif weight == 0:
            continue
        total = total + np.sum(np.real(z) * weight) + np.sum(np.imag(z) * weight) * 0.5
    return total


def moved(x, values):
    """A copy of `x` with the given leaves."""
    remaining = iter(values)
    return mapped(lambda leaf: next(remaining), x)


def check_as_user_code(function, args, kwargs):
    rng = np.random.default_rng(11)
    named = list(kwargs)
    everything = (*args, *kwargs.values())

    def after(values):
        """The results, and the arguments as the function leaves them."""
        inputs = moved(everything, [v.copy() if isinstance(v, np.ndarray) else v for v in values])
        positional, options = inputs[: len(args)], dict(zip(named, inputs[len(args) :]))
        results = function(*positional, **options)
        return [results, inputs]

    xs = [copy.deepcopy(x) for x in leaves(everything)]
    if not xs:
        return
    with np.errstate(all="ignore"):
        plain = leaves(after(xs))
        if any(np.asarray(z).dtype.char in "efF" for z in plain):  # too coarse for differences
            return
        weights = [np.isfinite(z) * rng.uniform(0.5, 1.5, np.shape(z)) for z in plain]

        def f(values):
            return weighted(leaves(after(values)), weights)

        value, gradient = plaingrad.value_and_grad(f)(xs)
        np.testing.assert_array_equal(value, f(xs))
        for _ in range(2):
            dots = [random_like(rng, x) for x in xs]
            expected = inner(gradient, dots)
            found = []
            for h in (1e-4, 1e-5, 1e-6):
                above = f([like(x, x + h * d) for x, d in zip(xs, dots)])
                below = f([like(x, x - h * d) for x, d in zip(xs, dots)])
                found.append((above - below) / (2 * h))
                if abs(found[-1] - expected) <= 1e-5 * max(1.0, abs(expected)):
                    break
            else:
                raise AssertionError(f"{name_of(function)}{args} {kwargs}: grad gives {expected}, differences {found}")


@pytest.mark.parametrize("function", PUBLIC, ids=name_of)
def test_the_gradient_of_a_function_agrees_with_central_differences(function):
    for args, kwargs in SAMPLES[function]:
        check_as_user_code(function, args, kwargs)


@pytest.mark.parametrize("function", [f for f in PUBLIC if f not in REAL_ONLY], ids=name_of)
def test_the_gradient_with_respect_to_complex_numbers(function):
    for args, kwargs in SAMPLES[function]:
        mixed = mapped(lambda x: like(x, x + 0.3j * (1 + 0.1 * np.cos(np.arange(np.size(x)))).reshape(np.shape(x))[()]), args)
        check_as_user_code(function, mixed, kwargs)


@pytest.mark.parametrize("function", COMPOSED, ids=name_of)
def test_the_gradient_of_a_definition_agrees_with_central_differences(function):
    for args, kwargs in COMPOSED[function]:
        check_as_user_code(function, args, kwargs)


@pytest.mark.parametrize("call", RANDOM, ids=name_of)
def test_the_gradient_along_the_path_of_a_random_number(call):
    for args, kwargs in RANDOM[call][1]:
        check_as_user_code(call, args, kwargs)


def check_second_order(function, args, kwargs):
    """The gradient of <grad f, direction> for a curved f made of the function's results."""
    rng = np.random.default_rng(11)
    named = list(kwargs)
    everything = (*args, *kwargs.values())
    xs = [copy.deepcopy(x) for x in leaves(everything)]
    if not any(np.any(np.asarray(x) != 0) for x in xs):  # nothing there, or a kink at 0
        return

    def after(values):
        inputs = moved(everything, [v.copy() if isinstance(v, np.ndarray) else v for v in values])
        return [function(*inputs[: len(args)], **dict(zip(named, inputs[len(args) :]))), inputs]

    with np.errstate(all="ignore"):
        plain = leaves(after(xs))
        if any(np.asarray(z).dtype.char in "efFg" or not np.all(np.isfinite(z)) for z in plain):
            return
        weights = [rng.uniform(0.5, 1.5, np.shape(z)) for z in plain]
        inner_direction, outer_direction = ([random_like(rng, x) for x in xs] for _ in range(2))

        def f(values):
            total = 0.0
            for z, weight in zip(leaves(after(values)), weights):
                total = total + np.sum(np.real(z) ** 2 * weight) + np.sum(np.imag(z) ** 2 * weight)
            return total

        def slope(values):
            total = 0.0
            for x_bar, direction in zip(plaingrad.grad(f)(values), inner_direction):
                total = total + np.sum(np.real(x_bar * direction))
            return total

        expected = inner(plaingrad.grad(slope)(xs), outer_direction)
        found = []
        for h in (1e-4, 1e-5, 1e-6):
            above, below = ([like(x, x + k * d) for x, d in zip(xs, outer_direction)] for k in (h, -h))
            found.append((slope(above) - slope(below)) / (2 * h))
            if abs(found[-1] - expected) <= 1e-4 * max(1.0, abs(expected)):
                return
    raise AssertionError(f"{name_of(function)}{args} {kwargs}: second order gives {expected}, differences {found}")


@pytest.mark.parametrize("function", PUBLIC + [f for f in COMPOSED if f not in SAMPLES], ids=name_of)
def test_the_gradient_of_a_gradient_agrees_with_central_differences(function):
    samples = SAMPLES.get(function, []) + COMPOSED.get(function, [])
    for args, kwargs in sample_of(samples, name_of(function), 6):
        check_second_order(function, args, kwargs)
