"""more-itertools: peekable, seekable, windowed, convolved and grouped iterators."""

import more_itertools as mi
import pytest

X = [1.0, 2.0, 4.0]


@pytest.mark.parametrize(
    "f",
    [
        lambda v: sum(mi.convolve(v, [0.5, 0.25])), lambda v: mi.dotproduct(v, v), lambda v: mi.sum_of_squares(v),
        lambda v: mi.polynomial_eval(v, 3.0), lambda v: list(mi.polynomial_from_roots(v))[1],
        lambda v: list(mi.polynomial_derivative(v))[0], lambda v: mi.peekable(v).peek() ** 2,
        lambda v: mi.minmax(v)[1] * mi.minmax(v)[0], lambda v: sum(a * b for a, b in mi.windowed(v, 2)),
        lambda v: sum(sum(c) ** 2 for c in mi.chunked(v, 2)), lambda v: sum(z * z for z in mi.difference(v)),
        lambda v: sum(mi.bucket(v, lambda z: z > 1.5)[True]),
        lambda v: mi.map_reduce(v, lambda z: z > 1.5, lambda z: z * z, sum)[True],
        lambda v: mi.first_true(v, pred=lambda z: z > 1.5) ** 2, lambda v: sum(mi.collapse([v, [v]])),
        lambda v: mi.nth_or_last(mi.accumulate(v) if hasattr(mi, "accumulate") else iter(v), 9) * 2.0,
    ],
)
def test_recipes(agrees, f):
    agrees(f, X)


def test_going_back_in_an_iterator(agrees):
    def twice(v):
        items = mi.seekable(iter(v))
        first = next(items)
        items.seek(0)
        return first * next(items) * next(items)

    agrees(twice, X)
