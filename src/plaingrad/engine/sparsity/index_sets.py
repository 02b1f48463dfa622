"""Sets of small integers by number: 0 is the empty set, 1 + i is {i}; equal sets have equal numbers.

Which inputs a value depends on is one such number, so the dependences of an array are an array of int64. Unions are
taken of whole arrays at once: only the pairs (or groups) that occur are looked at, their members are sorted together,
and what comes out is filed by its content, so that loops which reach the same sets again add nothing.

Sets may be too large for memory where every entry depends on most inputs (a cumulative sum of a million). Beyond
a budget, large new sets are replaced by the set of everything: the dependence is then over-estimated, never missed.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from plaingrad.critical import exclusively

BUDGET = 30_000_000  # members of all sets together; beyond it new sets of more than LARGE members become "everything"
LARGE = 256
STEP = 4_000_000  # members that are sorted together at a time

Ids = np.ndarray


class IndexSets:
    """The subsets of {0, ..., n - 1} met so far."""

    def __init__(self, n: int) -> None:
        self.n = n
        random = np.random.default_rng(20260101)  # any numbers will do, but the same ones every time
        self._weights = random.integers(0, 1 << 63, (2, max(n, 1)), np.uint64)
        self._count = n + 1  # of sets
        self._filled = n  # of members
        self._starts = np.concatenate(
            [[0], np.arange(n + 1)]
        )  # set k: members from starts[k] to starts[k + 1]
        self._members = np.arange(n, dtype=np.int32 if n < 1 << 31 else np.int64)
        # The sum of the weights of the members tells sets apart; a second sum and the size confirm it.
        self._checks = np.concatenate([[np.uint64(0)], self._weights[1, :n]])
        self._known = dict(zip(self._weights[0, :n].tolist(), range(1, n + 1)))
        self._known[0] = 0
        self._pairs: dict[tuple[int, int], int] = {}
        self._everything: int | None = None
        self._lock = threading.RLock()

    # -- looking ---------------------------------------------------------------------------------------------------

    def sizes(self, ids: Ids) -> np.ndarray:
        """How many members each set has."""
        return self._starts[ids + 1] - self._starts[ids]

    def members(self, ids: Ids) -> tuple[np.ndarray, np.ndarray]:
        """The members of sets `ids` (1-D), one set after another in ascending order; and where each begins."""
        sizes = self.sizes(ids)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        return self._members[
            np.arange(starts[-1]) + np.repeat(self._starts[ids] - starts[:-1], sizes)
        ], starts

    @property
    def everything(self) -> int:
        """The set of all indices."""
        if self._everything is None:
            whole = np.arange(self.n)
            self._everything = int(self._file(whole, np.array([0, self.n]))[0])
        return self._everything

    # -- unions ----------------------------------------------------------------------------------------------------

    def union_of_two(self, a: int, b: int) -> int:
        """The union of two sets."""
        if a == b or b == 0:
            return a
        if a == 0:
            return b
        pair = (a, b) if a < b else (b, a)
        found = self._pairs.get(pair)
        if found is None:
            found = exclusively(self._lock, self._unions, np.zeros(2, int), np.array(pair), 1)
            found = self._pairs[pair] = int(found[0])
        return found

    def union(self, *parts: Any) -> Any:
        """The union element by element, with broadcasting."""
        result = np.asarray(parts[0])
        for part in parts[1:]:
            part = np.asarray(part)
            if part is result:
                continue
            if part.ndim == 0 and result.ndim == 0:
                result = np.asarray(self.union_of_two(int(result), int(part)))
                continue
            result = self._union(*np.broadcast_arrays(result, part))
        return result

    def _union(self, a: Ids, b: Ids) -> Ids:
        low, high = np.minimum(a, b), np.maximum(a, b)
        proper = (low != high) & (low > 0)
        if not proper.any():
            return high
        return exclusively(self._lock, self._union_where, proper, low, high)  # type: ignore[no-any-return]

    def _union_where(self, proper: np.ndarray, low: Ids, high: Ids) -> Ids:
        base = self._count
        codes, where = np.unique(low[proper] * base + high[proper], return_inverse=True)
        pairs = np.stack([codes // base, codes % base], 1)
        high[proper] = self._unions(np.repeat(np.arange(len(codes)), 2), pairs.ravel(), len(codes))[
            where.reshape(-1)
        ]
        return high

    def reduce(self, ids: Ids, axes: tuple[int, ...]) -> Ids:
        """The union along `axes`, which disappear."""
        kept = tuple(axis for axis in range(ids.ndim) if axis not in axes)
        shape = tuple(ids.shape[axis] for axis in kept)
        count = int(np.prod(shape))
        table = np.transpose(ids, kept + axes).reshape(count, -1 if ids.size else 0)
        if table.shape[1] <= 1:
            return table.reshape(shape) if table.shape[1] else np.zeros(shape, np.int64)
        return self.union_of_groups(
            np.repeat(np.arange(count), table.shape[1]), table.ravel(), count
        ).reshape(shape)

    def running(self, ids: Ids, axis: int) -> Ids:
        """The union of each element with all before it along `axis`."""
        result = np.array(np.moveaxis(ids, axis, 0))
        for k in range(1, len(result)):
            result[k] = self.union(result[k - 1], result[k])
        return np.moveaxis(result, 0, axis)

    def union_of_groups(self, groups: np.ndarray, ids: Ids, count: int) -> Ids:
        """For each of `count` groups, the union of the `ids` that belong to it (`groups` says which)."""
        return exclusively(self._lock, self._unions_of_groups, groups, ids, count)  # type: ignore[no-any-return]

    def _unions_of_groups(self, groups: np.ndarray, ids: Ids, count: int) -> Ids:
        result = np.zeros(count, np.int64)
        base = self._count
        proper = ids > 0
        codes = distinct(groups[proper] * base + ids[proper])
        groups, ids = codes // base, codes % base
        result[groups] = ids  # right for groups of one
        many = np.bincount(groups, minlength=count) > 1
        if many.any():
            chosen = many[groups]
            numbers = np.cumsum(many) - 1
            result[many] = self._unions(numbers[groups[chosen]], ids[chosen], int(many.sum()))
        return result

    def _unions(self, groups: np.ndarray, ids: Ids, count: int) -> Ids:
        """The unions of groups that are given in ascending order, each of two sets or more."""
        result = np.zeros(count, np.int64)
        bounds = np.searchsorted(groups, np.arange(count + 1))
        totals = np.concatenate([[0], np.cumsum(self.sizes(ids))])[bounds]  # members before each group
        first = 0
        while first < count:
            last = int(np.searchsorted(totals, totals[first] + STEP, side="right")) - 1
            last = min(max(last, first + 1), count)
            part = slice(bounds[first], bounds[last])
            result[first:last] = self._unions_at_once(groups[part] - first, ids[part], last - first)
            first = last
        return result

    def _unions_at_once(self, groups: np.ndarray, ids: Ids, count: int) -> Ids:
        result = np.zeros(count, np.int64)
        over = self._filled > BUDGET
        wide = np.zeros(count, bool)
        if self._everything is not None:
            wide[groups[ids == self._everything]] = True
        if over:
            wide |= np.bincount(groups, self.sizes(ids), count) > LARGE
        if wide.any():
            result[wide] = self.everything
            rest = ~wide[groups]
            if not rest.any():
                return result
            numbers = np.cumsum(~wide) - 1
            result[~wide] = self._unions_of_members(numbers[groups[rest]], ids[rest])
            return result
        return self._unions_of_members(groups, ids)

    def _unions_of_members(self, groups: np.ndarray, ids: Ids) -> Ids:
        members, starts = self.members(ids)
        codes = np.repeat(groups, np.diff(starts)) * self.n + members
        codes = distinct(codes)
        of, members = np.divmod(codes, self.n)
        return self._file(members, np.searchsorted(of, np.arange(groups[-1] + 2)))

    def _file(self, members: np.ndarray, starts: np.ndarray) -> Ids:
        """The numbers of sets given by their members in ascending order; new ones where there were none. Not empty."""
        with np.errstate(over="ignore"):
            keys, checks = (np.add.reduceat(row[members], starts[:-1]) for row in self._weights)
        sizes = np.diff(starts)
        names = keys.tolist()
        known = self._known
        ids = np.array([known.get(name, -1) for name in names], np.int64)
        found = ids >= 0
        same = found.copy()
        same[found] = (self._checks[ids[found]] == checks[found]) & (self.sizes(ids[found]) == sizes[found])
        fresh = np.flatnonzero(~same)
        if fresh.size:
            _, firsts, copies = np.unique(keys[fresh], return_index=True, return_inverse=True)
            copies = copies.reshape(-1)
            if not np.array_equal(checks[fresh], checks[fresh[firsts]][copies]):  # two sets with one key
                firsts = copies = np.arange(fresh.size)
            made = fresh[firsts]  # two new sets of one content in a batch are one
            ids[fresh] = self._append(members, starts, made, checks)[copies]
            known.update(zip(keys[made].tolist(), ids[made].tolist()))
        return ids

    def _append(self, members: np.ndarray, starts: np.ndarray, made: np.ndarray, checks: np.ndarray) -> Ids:
        sizes = starts[made + 1] - starts[made]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        new = members[np.arange(offsets[-1]) + np.repeat(starts[made] - offsets[:-1], sizes)]
        count, filled = self._count, self._filled
        self._members = grown(self._members, filled + new.size)
        self._members[filled : filled + new.size] = new
        self._starts = grown(self._starts, count + 1 + made.size)
        self._starts[count + 1 : count + 1 + made.size] = filled + offsets[1:]
        self._checks = grown(self._checks, count + made.size)
        self._checks[count : count + made.size] = checks[made]
        self._count, self._filled = count + made.size, filled + new.size
        return np.arange(count, count + made.size)


def grown(a: np.ndarray, size: int) -> np.ndarray:
    """`a`, or a longer copy of it with room for `size` elements."""
    if size <= a.size:
        return a
    longer = np.zeros(max(size, 2 * a.size), a.dtype)
    longer[: a.size] = a
    return longer


def distinct(codes: np.ndarray) -> np.ndarray:
    """The elements of a 1-D array in order, each once. (NumPy's own uses a hash table, several times slower.)"""
    codes = np.sort(codes)
    if codes.size < 2:
        return codes
    return codes[np.concatenate([[True], codes[1:] != codes[:-1]])]
