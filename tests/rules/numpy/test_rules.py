"""Every rule about NumPy against central differences, by enumeration."""

import numpy as np
import pytest
from tests.rules.numpy.checks import check_rule, is_number, like, mapped
from tests.rules.numpy.samples import REAL_ONLY, SAMPLES

from plaingrad import rulebook

pytestmark = pytest.mark.filterwarnings("ignore")  # NumPy's own: empty slices, deprecated forms

NATIVE = [f for f in SAMPLES if rulebook.find(f) is not None and rulebook.find(f).rrule is not None]


def name_of(function):
    return getattr(function, "__qualname__", None) or getattr(function, "__name__", repr(function))


def arrays_mapped(f, samples):
    return mapped(lambda x: f(x) if isinstance(x, np.ndarray) and x.ndim else x, samples)


@pytest.mark.parametrize("function", NATIVE, ids=name_of)
def test_a_pullback_agrees_with_central_differences(function):
    for args, kwargs in SAMPLES[function]:
        check_rule(function, args, kwargs)


@pytest.mark.parametrize("function", [f for f in NATIVE if f not in REAL_ONLY], ids=name_of)
def test_a_pullback_of_complex_numbers_agrees_with_central_differences(function):
    rng = np.random.default_rng(3)
    for args, kwargs in SAMPLES[function]:
        mixed = mapped(lambda x: like(x, x + 0.3j * rng.uniform(0.5, 1.5, np.shape(x))), args)
        check_rule(function, mixed, kwargs)


@pytest.mark.parametrize("function", NATIVE, ids=name_of)
def test_a_pullback_does_not_depend_on_the_layout_of_memory(function):
    for args, kwargs in SAMPLES[function]:
        for layout in (np.asfortranarray, reversed_strides):
            check_rule(function, arrays_mapped(layout, args), kwargs, directions=1)


def reversed_strides(x):
    """Equal to `x`, with negative strides."""
    backwards = (slice(None, None, -1),) * x.ndim
    return x[backwards].copy()[backwards]


@pytest.mark.parametrize("function", NATIVE, ids=name_of)
def test_single_precision_is_kept(function):
    for args, kwargs in SAMPLES[function]:
        if "dtype" in kwargs or any(x is np.float64 for x in args):
            continue
        single = arrays_mapped(lambda x: x.astype(np.float32), args)
        if not any(isinstance(x, np.ndarray) for x in args if is_number(x)):
            continue
        check_rule(function, single, kwargs)
