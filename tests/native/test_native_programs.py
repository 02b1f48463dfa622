"""Native programs by topic, each in both modes against the plain tier and differences; some of each kind compiled."""

import numpy as np
import pytest

import plaingrad

pytest.importorskip("numba")

from tests.native import comparison  # noqa: E402
from tests.native.comparison import assert_close, bits, copied  # noqa: E402
from tests.native.programs import arrays, calls, flow, scalars, tuples, views  # noqa: E402, F401
from tests.native.programs.entries import PROGRAMS  # noqa: E402
from tests.sampling import some  # noqa: E402

MAY_BE_COMPILED = [name for name, (_, _, compiled) in PROGRAMS.items() if compiled]
FEW = ("diffusion_on_a_grid", "views_of_views_with_negative_strides", "break_and_else_of_a_for")
COMPILED = some(FEW, [name for name in MAY_BE_COMPILED if name not in FEW])


def is_single(args):
    """Whether an argument is in single precision."""
    return any(np.asarray(x).dtype in (np.float32, np.complex64) for x in args if not isinstance(x, tuple))


def plain(f, args, at):
    """(value, gradient, arguments as left) by the plain tier; random draws are those of Numba's generator."""
    left = copied(args)
    value, gradient = plaingrad.value_and_grad(f, at, tier="plain")(*left)
    return value, gradient, left


@pytest.mark.parametrize("name", PROGRAMS)
def test_both_modes_agree_with_the_plain_tier_and_with_differences(name):
    f, args, _ = PROGRAMS[name]
    at = comparison.differentiable(args)
    tolerance = 1e-5 if is_single(args) else 1e-12
    y, expected, left = plain(f, args, at)
    mine = copied(args)
    value, gradient = comparison.gradient(f, mine, at)
    assert_close(value, y, tolerance, "value")
    assert_close(gradient, expected, tolerance, "gradient")
    assert_close(mine, left, tolerance, "arguments as left")
    random = np.random.default_rng(1)
    dots = [comparison.random_like(x, random) for x in args]
    along = sum(comparison.inner(g, dots[k]) for g, k in zip(expected, at, strict=True))
    value, y_dot = comparison.pushed_forward(f, copied(args), at, copied(tuple(dots)))
    assert_close(value, y, tolerance, "value of the pushforward")
    assert abs(y_dot - along) <= 10 * tolerance * max(1.0, abs(along), *(np.abs(np.asarray(g)).max(initial=0.0) for g in comparison.leaves(expected)))
    if not is_single(args):
        slope, error = comparison.slope_by_differences(f, args, dots, at, float)
        assert abs(slope - along) <= 1e-6 * max(1.0, abs(along)) + 10 * error


@pytest.mark.optimised
@pytest.mark.parametrize("name", COMPILED)
def test_compiled_they_give_the_same_and_the_value_of_the_compiled_primal_to_the_last_bit(name):
    import numba

    from plaingrad.native.frontend.current import with_compiled_callees

    f, args, _ = PROGRAMS[name]
    at = comparison.differentiable(args)
    y = numba.njit(with_compiled_callees(f))(*copied(args))
    value, gradient = comparison.gradient(f, copied(args), at, compiled=True)
    assert bits(value) == bits(y)
    assert_close(gradient, plain(f, args, at)[1], 1e-11, "gradient")


def test_there_are_eighty_programs_at_least():
    assert len(PROGRAMS) >= 80
