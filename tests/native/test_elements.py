"""What the special forms see of a loop: its domain, which elements it reads and writes, what an iteration hands on."""

import functools
from dataclasses import replace

import numpy as np
import pytest

numba = pytest.importorskip("numba")

from plaingrad.native.compile import build  # noqa: E402
from plaingrad.native.loops import elements, forms  # noqa: E402
from plaingrad.native.loops.array_loops import ArrayLoops  # noqa: E402
from plaingrad.native.loops.row_groups import RowGroups  # noqa: E402
from plaingrad.native.program.ir import Const, For  # noqa: E402
from plaingrad.native.reverse.reverse import pullback_sweeps  # noqa: E402


def seen(monkeypatch, f, args, look):
    """What `look(transform, loop)` finds for each counted loop of a function that reverse mode meets."""
    found = []

    def form(rt, s):
        if isinstance(s, For):
            found.append(look(rt, s))

    watched = replace(forms.FORMS, loops=(replace(forms.FORMS.loops[0], parts=form),), runs=())
    monkeypatch.setitem(build.TRANSFORMS, "pullback", functools.partial(pullback_sweeps, forms=watched))
    copy = type(f)(f.__code__, f.__globals__, f.__name__)  # which has not been derived before
    build.derived("pullback", copy, tuple(map(numba.typeof, args)), (0,))
    return found


def offsets(accesses):
    """(array, distances) of each access."""
    return sorted((access.array.name.partition(".")[0], access.offset) for access in accesses)


def diffused(u, c):
    v = np.zeros_like(u)
    for i in range(1, u.shape[0] - 1):
        for j in range(2, u.shape[1] - 2):
            k = j - 2
            v[i, j] = c[i, j] * (u[i - 1, j] + u[i + 1, k]) + u[2 + i, j]
    return np.sum(v)


def test_a_nest_has_two_axes_and_reads_at_constant_distances(monkeypatch):
    u = np.ones((6, 7))
    nest = seen(monkeypatch, diffused, (u, u), elements.nest_of)[0]
    assert [axis.start for axis in nest.axes] == [Const(1), Const(2)]
    assert offsets(nest.reads) == [("c", (0, 0)), ("u", (-1, 0)), ("u", (1, -2)), ("u", (2, 0))]
    assert offsets(nest.writes) == [("v", (0, 0))] and {x.partition(".")[0] for x in nest.written} == {"v"}
    assert not nest.exposed & nest.inside  # nothing goes from one iteration to the next


def transposed(u):
    v = np.zeros_like(u)
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            v[i, j] = u[j, i] * u[i, 2 * j % 5] * u[0, j] + u[i, j]
    return np.sum(v)


def test_an_index_that_is_no_counter_plus_a_constant_has_no_distance(monkeypatch):
    nest = seen(monkeypatch, transposed, (np.ones((5, 5)),), elements.nest_of)[0]
    assert [x.offset for x in nest.reads if x.offset is not None] == [(0, 0)]
    assert [[place.axis for place in x.places] for x in nest.reads if x.places is not None] == [[1, 0], [0, 1]]
    assert len(nest.reads) == 4


def added_up(u):
    total = 0.0
    for i in range(u.shape[0]):
        square = u[i, 0] * u[i, 0]
        for j in range(u.shape[1]):
            total += u[i, j] * square
    return total


def test_what_an_iteration_hands_on_is_read_before_it_is_assigned(monkeypatch):
    loop = seen(monkeypatch, added_up, (np.ones((5, 5)),), elements.loop_of)[0]
    handed_on = {name.partition("_")[0] for name in loop.exposed & loop.inside}  # total_1: the phi of total
    assert handed_on == {"total"} and len(loop.axes) == 1


def with_a_store_between(u, c):
    v, a = np.zeros_like(u), np.zeros(u.shape[0])
    for i in range(1, 5):
        a[i] = c
        for j in range(1, 5):
            v[i, j] = u[i - 1, j] + u[i, j - 1]
    return np.sum(v) + np.sum(a)


def test_a_loop_with_a_store_in_front_of_the_inner_one_is_no_nest(monkeypatch):
    def is_nest(rt, s):
        try:
            return len(elements.nest_of(rt, s).axes)
        except elements.Declined:
            return 0

    assert seen(monkeypatch, with_a_store_between, (np.ones((6, 6)), 0.5), is_nest) == [0, 1]


def expression(u, m, b):
    return np.exp(u - m.reshape(4, 1)) * b


def test_an_expression_on_arrays_is_a_nest_that_reads_operands_along_the_last_axes(monkeypatch):
    found = []

    class Watched(ArrayLoops):
        def find(self, body, taken):
            trees = super().find(body, taken)
            found.extend(tree.loop for tree in trees[0].values())
            return trees

    runs = tuple(replace(form, finder=Watched) if form.finder is ArrayLoops else form for form in forms.FORMS.runs)
    monkeypatch.setitem(
        build.TRANSFORMS, "pullback", functools.partial(pullback_sweeps, forms=replace(forms.FORMS, runs=runs))
    )
    kinds = (np.ones((4, 3)), np.ones(4), np.ones(3))
    build.derived("pullback", expression, tuple(map(numba.typeof, kinds)), (0, 1, 2))
    read = {tuple(tuple(place.axis for place in x.places) for x in loop.reads) for loop in found}
    assert ((0, 1), (1,)) in read  # the array exp(u - m), and b
    assert {(write.offset, len(loop.axes)) for loop in found for write in loop.writes} == {((0, 0), 2)}


def rows(x, g):
    out = np.zeros_like(x)
    for i in range(x.shape[0]):
        d = x[i] * g
        e = np.exp(d - np.max(d))
        out[i] = e / np.sum(e)
    return np.sum(out)


def test_statements_on_rows_are_one_loop_for_vectors_that_meet(monkeypatch):
    found = []

    class Watched(RowGroups):
        def find(self, body, taken):
            groups = super().find(body, taken)
            found.extend(group.loops for group in groups[0].values())
            return groups

    runs = tuple(replace(form, finder=Watched) if form.finder is RowGroups else form for form in forms.FORMS.runs)
    monkeypatch.setitem(
        build.TRANSFORMS, "pullback", functools.partial(pullback_sweeps, forms=replace(forms.FORMS, runs=runs))
    )
    build.derived("pullback", rows, (numba.typeof(np.ones((4, 3))), numba.typeof(np.ones(3))), (0, 1))
    [[loop]] = found
    assert [read.array.name for read in loop.reads] == ["x", "g"] and len(loop.axes) == 1
    assert [place.axis for place in loop.reads[0].places] == [None, 0]
    assert [write.array.name for write in loop.writes] == ["out"]
