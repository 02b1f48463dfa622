"""Sets by number against Python's own sets."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plaingrad.engine.sparsity import index_sets
from plaingrad.engine.sparsity.index_sets import IndexSets

N = 9


def contents(sets, ids):
    members, starts = sets.members(np.ravel(ids))
    return [frozenset(members[a:b].tolist()) for a, b in zip(starts, starts[1:])]


@st.composite
def tables(draw):
    """(the sets, an array of ids, the same as frozensets), made by some unions."""
    sets = IndexSets(N)
    shape = draw(st.sampled_from([(4,), (3, 2), (2, 1, 3), (1,), ()]))
    ids = np.array(draw(st.lists(st.integers(0, N), min_size=int(np.prod(shape)), max_size=int(np.prod(shape)))))
    ids = ids.reshape(shape).astype(np.int64)
    for _ in range(draw(st.integers(0, 3))):
        other = np.array(draw(st.lists(st.integers(0, N), min_size=ids.size, max_size=ids.size))).reshape(shape)
        ids = sets.union(ids, other)
    return sets, ids


@given(tables())
def test_the_first_sets_are_empty_and_single(case):
    sets, _ = case
    assert contents(sets, np.arange(N + 1)) == [frozenset(), *[frozenset({k}) for k in range(N)]]


@given(tables(), st.randoms())
def test_unions_are_unions_and_equal_sets_have_equal_numbers(case, random):
    sets, a = case
    b = np.array(random.sample(a.ravel().tolist(), a.size)).reshape(a.shape)
    both = sets.union(a, b)
    expected = [u | v for u, v in zip(contents(sets, a), contents(sets, b))]
    assert contents(sets, both) == expected
    numbers = dict(zip(expected, np.ravel(both).tolist()))
    assert [numbers[content] for content in expected] == np.ravel(both).tolist()
    for u, v, w in zip(a.ravel().tolist(), b.ravel().tolist(), both.ravel().tolist()):
        assert sets.union_of_two(u, v) == sets.union_of_two(v, u) == w


@given(tables())
def test_unions_broadcast(case):
    sets, a = case
    assert np.array_equal(sets.union(a, np.int64(3)), sets.union(a, np.full(a.shape, 3)))
    assert np.array_equal(sets.union(a), a)
    assert sets.union(a[..., None], np.array([1, 2])).shape == (*a.shape, 2)


@given(tables(), st.data())
def test_reductions_are_unions_along_axes(case, data):
    sets, a = case
    axes = tuple(sorted(data.draw(st.sets(st.integers(0, a.ndim - 1), max_size=a.ndim) if a.ndim else st.just(set()))))
    found = sets.reduce(a, axes)
    content = np.empty(a.shape, object)
    content.ravel()[:] = contents(sets, a)
    expected = content
    for axis in reversed(axes):
        expected = np.array(np.bitwise_or.reduce(expected, axis=axis), object)
    assert found.shape == expected.shape
    assert contents(sets, found) == [frozenset(x) for x in np.ravel(expected).tolist()]


@given(tables())
def test_running_unions(case):
    sets, a = case
    a = a.ravel()
    found = contents(sets, sets.running(a, 0))
    seen = frozenset()
    for content, now in zip(contents(sets, a), found):
        seen |= content
        assert now == seen


@given(tables(), st.randoms())
def test_unions_of_groups(case, random):
    sets, a = case
    groups = np.array([random.randrange(4) for _ in range(a.size)], int)
    found = sets.union_of_groups(groups, a.ravel(), 4)
    expected = [frozenset() for _ in range(4)]
    for k, content in zip(groups.tolist(), contents(sets, a)):
        expected[k] |= content
    assert contents(sets, found) == expected


def test_a_loop_that_comes_back_to_the_same_sets_adds_none():
    sets = IndexSets(50)
    state = np.arange(1, 51)
    for step in range(200):
        state = sets.union(state, np.roll(state, 1))
        if step == 60:
            count = sets._count
    assert sets._count == count
    assert set(state.tolist()) == {sets.everything}


def test_beyond_the_budget_large_sets_become_everything(monkeypatch):
    monkeypatch.setattr(index_sets, "BUDGET", 2000)
    monkeypatch.setattr(index_sets, "LARGE", 20)
    sets = IndexSets(300)
    ids = sets.running(np.arange(1, 301), 0)
    found = contents(sets, ids)
    for k, content in enumerate(found):
        assert content >= frozenset(range(k + 1))
    assert found[-1] == frozenset(range(300))
    assert sets._filled < 3000
    small = sets.union(np.arange(1, 300), np.arange(2, 301))
    assert [len(content) for content in contents(sets, small)] == [2] * 299


@pytest.mark.parametrize("step", [1, 7, 100])
def test_large_unions_are_made_in_parts(monkeypatch, step):
    monkeypatch.setattr(index_sets, "STEP", step)
    sets = IndexSets(40)
    pairs = sets.union(np.arange(1, 40), np.arange(2, 41))
    found = contents(sets, sets.union(pairs[:-1], pairs[1:]))
    assert found == [frozenset({k, k + 1, k + 2}) for k in range(38)]
    assert int(sets.reduce(pairs, (0,))) == sets.everything


def test_without_inputs_there_is_the_empty_set():
    sets = IndexSets(0)
    assert contents(sets, sets.union(np.zeros(3, int), np.zeros(3, int))) == [frozenset()] * 3
    assert contents(sets, sets.reduce(np.zeros((2, 0), int), (1,))) == [frozenset()] * 2


@settings(max_examples=5)
@given(st.integers(0, 3))
def test_threads_may_share_sets(seed):
    sets = IndexSets(60)
    random = np.random.default_rng(seed)
    parts = [random.integers(0, 61, 200) for _ in range(4)]
    found = [None] * 4

    def work(k):
        ids = parts[k]
        for shift in range(5):
            ids = sets.union(ids, np.roll(parts[k], shift))
        found[k] = ids

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(4):
        single = [frozenset({i - 1}) if i else frozenset() for i in parts[k].tolist()]
        expected = [frozenset().union(*[single[(j - s) % 200] for s in range(5)]) for j in range(200)]
        assert contents(sets, found[k]) == expected
