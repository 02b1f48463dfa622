"""Colourings are judged by what they are for: the matrix comes back from its products with the seeds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plaingrad.engine.sparsity.colouring import cheapest, colour_both, colour_columns, colour_rows, colour_symmetric


def compressed(dense):
    rows, columns = np.nonzero(dense)
    return np.searchsorted(rows, np.arange(dense.shape[0] + 1)), columns


def recovered(dense, *colourings, chunk=3):
    """The matrix rebuilt from products with the seeds only; a value of its own at every entry tells mistakes apart."""
    starts, columns = compressed(dense)
    rows = np.repeat(np.arange(dense.shape[0]), np.diff(starts))
    found = np.full(columns.size, np.nan)
    for colouring in colourings:
        sweeps = 0
        for seeds, entries, where in colouring.chunks(chunk):
            assert len(seeds) <= chunk
            sweeps += len(seeds)
            products = seeds @ dense if colouring.kind == "rows" else seeds @ dense.T
            assert np.all(np.isnan(found[entries]))
            found[entries] = products[where]
        assert sweeps == colouring.count
    result = np.zeros(dense.shape)
    result[rows, columns] = found
    return result


def filled(mask, symmetric=False):
    """Values of which no sum of two is a third."""
    rng = np.random.default_rng(7)
    values = np.where(mask, 1.0 + rng.random(mask.shape), 0.0)
    return np.triu(values) + np.triu(values, 1).T if symmetric else values


@st.composite
def masks(draw, square=False):
    m = draw(st.integers(1, 14))
    n = m if square else draw(st.integers(1, 14))
    share = draw(st.sampled_from([0.05, 0.15, 0.3, 0.6, 1.0]))
    return np.random.default_rng(draw(st.integers(0, 2**32 - 1))).random((m, n)) < share


@given(masks())
@settings(max_examples=200, deadline=None)
def test_every_entry_comes_back_from_the_columns_of_one_colour(mask):
    dense = filled(mask)
    colouring = colour_columns(*compressed(dense), dense.shape[1])
    assert np.array_equal(recovered(dense, colouring), dense)
    assert colouring.count >= np.count_nonzero(dense, axis=1).max(initial=0)


@given(masks())
@settings(max_examples=200, deadline=None)
def test_every_entry_comes_back_from_the_rows_of_one_colour(mask):
    dense = filled(mask)
    colouring = colour_rows(*compressed(dense), dense.shape[1])
    assert np.array_equal(recovered(dense, colouring), dense)


@given(masks(square=True))
@settings(max_examples=300, deadline=None)
def test_every_entry_of_a_symmetric_matrix_comes_back_from_a_star_colouring(mask):
    dense = filled(np.triu(mask) | np.triu(mask).T, symmetric=True)
    assert np.array_equal(recovered(dense, colour_symmetric(*compressed(dense))), dense)


@given(masks(square=True))
@settings(max_examples=200, deadline=None)
def test_no_path_of_four_vertices_has_two_colours_only(mask):
    graph = np.triu(mask, 1) | np.triu(mask, 1).T
    colours = colour_symmetric(*compressed(graph | np.eye(len(graph), dtype=bool))).colours
    beside = [np.flatnonzero(row) for row in graph]
    for b, near in enumerate(beside):
        for c in near:
            assert colours[b] != colours[c]
            for a in near:
                for d in beside[c]:
                    if a != c and d != b and a != d:
                        assert len({colours[a], colours[b], colours[c], colours[d]}) > 2


@given(masks())
@settings(max_examples=100, deadline=None)
def test_the_cheapest_is_no_worse_than_either(mask):
    dense = filled(mask)
    pattern = (*compressed(dense), dense.shape[1])
    best = cheapest(*pattern)
    assert sum(part.count for part in best) <= min(colour_columns(*pattern).count, colour_rows(*pattern).count)
    assert np.array_equal(recovered(dense, *best), dense)


@given(masks())
@settings(max_examples=200, deadline=None)
def test_every_entry_comes_back_from_columns_and_rows_together(mask):
    dense = filled(mask)
    assert np.array_equal(recovered(dense, *colour_both(*compressed(dense), dense.shape[1])), dense)


@pytest.mark.parametrize("width", [0, 1, 2, 5])
@pytest.mark.parametrize("n", [12, 50])
def test_a_band_takes_as_many_sweeps_as_it_has_diagonals(n, width):
    i = np.arange(n)
    band = filled(abs(i[:, None] - i) <= width, symmetric=True)
    for make in (colour_columns, colour_rows):
        colouring = make(*compressed(band), n)
        assert colouring.count == 2 * width + 1
        assert np.array_equal(recovered(band, colouring), band)
    assert colour_symmetric(*compressed(band)).count <= 2 * width + 1


def test_a_tridiagonal_matrix_takes_three_sweeps_at_any_size():
    for n in (3, 4, 5, 10, 100_000):
        starts = np.concatenate([[0, 2], 2 + 3 * np.arange(1, n - 1), [3 * n - 2]])
        columns = np.concatenate([[0, 1], (np.arange(n - 2)[:, None] + np.arange(3)).ravel(), [n - 2, n - 1]])
        assert colour_columns(starts, columns, n).count == 3
        assert colour_rows(starts, columns, n).count == 3
        assert colour_symmetric(starts, columns).count == (2 if n == 3 else 3)  # 0 - 1 - 2 is a star


def arrow(n, rows=True, columns=True):
    mask = np.eye(n, dtype=bool)
    mask[0, :] |= rows
    mask[:, 0] |= columns
    return filled(mask, symmetric=rows and columns)


def test_a_dense_row_calls_for_rows_and_a_dense_column_for_columns():
    for dense, kind in ((arrow(9, columns=False), "rows"), (arrow(9, rows=False), "columns")):
        (colouring,) = cheapest(*compressed(dense), 9)
        assert (colouring.kind, colouring.count) == (kind, 2)
        assert np.array_equal(recovered(dense, colouring), dense)


@pytest.mark.parametrize("hub", [0, 4, 8])
def test_an_arrow_takes_two_sweeps_by_symmetry(hub):
    order = np.roll(np.arange(9), hub)
    dense = arrow(9)[np.ix_(order, order)]
    colouring = colour_symmetric(*compressed(dense))
    assert colouring.count == 2
    assert np.array_equal(recovered(dense, colouring), dense)
    assert colour_columns(*compressed(dense), 9).count == 9


def test_blocks_on_the_diagonal_take_as_many_sweeps_as_the_largest():
    dense = np.zeros((9, 9))
    for first, last in ((0, 2), (2, 6), (6, 9)):
        dense[first:last, first:last] = filled(np.ones((last - first,) * 2, bool), symmetric=True)
    assert colour_columns(*compressed(dense), 9).count == 4
    assert colour_rows(*compressed(dense), 9).count == 4
    assert colour_symmetric(*compressed(dense)).count == 4
    assert np.array_equal(recovered(dense, colour_symmetric(*compressed(dense))), dense)


def test_a_dense_matrix_takes_one_sweep_for_each_column_or_row():
    dense = filled(np.ones((4, 7), bool))
    assert colour_columns(*compressed(dense), 7).count == 7
    (colouring,) = cheapest(*compressed(dense), 7)
    assert (colouring.kind, colouring.count) == ("rows", 4)
    assert np.array_equal(recovered(dense, colouring), dense)


@pytest.mark.parametrize("hub", [0, 25, 49])
def test_an_arrow_takes_three_sweeps_by_columns_and_rows(hub):
    order = np.roll(np.arange(50), hub)
    dense = filled(arrow(50)[np.ix_(order, order)] != 0)
    both = cheapest(*compressed(dense), 50)
    assert sorted(part.kind for part in both) == ["columns", "rows"]
    assert sum(part.count for part in both) == 3
    assert np.array_equal(recovered(dense, *both), dense)


@pytest.mark.parametrize("shape", [(3, 4), (0, 4), (3, 0), (0, 0)])
def test_an_empty_pattern_takes_no_sweep(shape):
    dense = np.zeros(shape)
    assert not any(part.count for part in cheapest(*compressed(dense), shape[1]))
    for make in (colour_columns, colour_rows):
        colouring = make(*compressed(dense), shape[1])
        assert colouring.count == 0
        assert not list(colouring.chunks(5))
    if shape[0] == shape[1]:
        assert colour_symmetric(*compressed(dense)).count == 0


def test_columns_without_entries_are_in_no_seed():
    dense = filled(np.array([[True, False, True], [False, False, True]]))
    colouring = colour_columns(*compressed(dense), 3)
    assert colouring.colours[1] == -1
    assert colouring.seeds(0, colouring.count)[:, 1].tolist() == [0.0, 0.0]


def test_a_sweep_that_would_show_nothing_new_is_not_made():
    star = np.zeros((5, 5), bool)
    star[0, 1:] = star[1:, 0] = True
    colouring = colour_symmetric(*compressed(filled(star, symmetric=True)))
    assert colouring.count == 1
    assert np.array_equal(recovered(filled(star, symmetric=True), colouring), filled(star, symmetric=True))


def test_a_large_grid_is_near_the_lower_bound():
    n = 60
    i, j = np.divmod(np.arange(n * n), n)
    rows, columns = [np.arange(n * n)], [np.arange(n * n)]
    for di, dj in ((0, 1), (1, 0), (0, -1), (-1, 0)):
        inside = (0 <= i + di) & (i + di < n) & (0 <= j + dj) & (j + dj < n)
        rows.append(np.flatnonzero(inside))
        columns.append(np.flatnonzero(inside) + di * n + dj)
    rows, columns = np.concatenate(rows), np.concatenate(columns)
    order = np.lexsort((columns, rows))
    starts = np.searchsorted(rows[order], np.arange(n * n + 1))
    assert 5 <= colour_columns(starts, columns[order], n * n).count <= 6
    assert 5 <= colour_symmetric(starts, columns[order]).count <= 6


def test_the_recovered_hessian_is_symmetric_to_the_last_bit():
    dense = filled(np.triu(np.random.default_rng(3).random((12, 12)) < 0.3) | np.eye(12, dtype=bool))
    dense = np.triu(dense) + np.triu(dense, 1).T
    noisy = dense * (1.0 + 1e-13 * np.random.default_rng(4).standard_normal((12, 12)))
    colouring = colour_symmetric(*compressed(dense))
    found = recovered(noisy, colouring)
    assert np.array_equal(found, found.T)
    assert np.allclose(found, dense, rtol=1e-12)
