"""One sparse Jacobian or Hessian: its pattern, the sweeps that show its entries, the check of a given pattern.

SciPy is imported only here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from plaingrad.api import recorded
from plaingrad.api.forward import with_dots
from plaingrad.api.gradients import native_vjp
from plaingrad.api.jacobians import leaf_gradient
from plaingrad.api.kept_colourings import coloured
from plaingrad.api.leaves import Leaf, described, filled, here, leaf_values, structure_of, structures_of
from plaingrad.api.seeds import direction_type
from plaingrad.api.snapshots import Snapshot
from plaingrad.api.tiers import Tier, in_tier, natively
from plaingrad.engine.calls.memo import several_runs
from plaingrad.engine.forward.push import push
from plaingrad.engine.reverse.run import Run
from plaingrad.engine.sparsity import dependence
from plaingrad.engine.sparsity.colouring import Colouring
from plaingrad.engine.sparsity.index_sets import distinct
from plaingrad.engine.sparsity.patterns import find_pattern
from plaingrad.errors import ArgumentError, NativeError, PatternError
from plaingrad.progress import told

MOST = 64  # sweeps made together, unless their seeds need more room than a task gives them
TOLERANCE = 1e-6  # relative: how far the check of a pattern that was given may be off


dependence.HANDLERS[recorded.copies] = lambda call: call.ids[0]  # what a hook is put on passes as it is


def scipy_sparse_module() -> ModuleType:
    """`scipy.sparse`; an error that names it where SciPy is not installed."""
    try:
        import scipy.sparse
    except ImportError:
        raise ImportError(
            "sparsity, sparse_jacobian and sparse_hessian need SciPy, which is not installed: "
            "pip install plaingrad[scipy]"
        ) from None
    return scipy.sparse


class Task:
    """A sparse Jacobian to be found.

    Attributes:
        f: the function.
        x: its argument.
        leaves: the arrays and numbers in x.
        n: how many numbers they are.
        tier: which was asked for.
        natively: `plaingrad.native.border.operators`, if products are to be formed natively first.
        linear: the result, and the compiled linear map of tangents of x, once it was made.
        users_rules: names of the functions with rules of the program's own that took part where the pattern was found.
    """

    room: ClassVar[int] = 1 << 26  # bytes that the seeds of one chunk of sweeps may take

    def __init__(self, f: Callable[..., Any], x: Any, tier: Tier = "auto") -> None:
        self.f = in_tier("plain", f, (), "") if tier == "plain" else f
        self.x = x
        self.tier: Tier = tier
        self.natively = natively(tier, f)
        self.linear: tuple[Any, Callable[..., Any]] | None = None
        (self.structure,), self.leaves = structures_of([x])
        self.n = sum(leaf.size for leaf in self.leaves)
        self.users_rules: set[str] = set()  # that took part where the pattern was found
        self.before: Snapshot | None = None  # what x holds, once the function was called
        if not self.leaves or any(leaf.is_complex for leaf in self.leaves):
            what = "holds no real number" if not self.leaves else "holds complex numbers"
            raise ArgumentError(
                f"x is {described(x)}, which {what}; pass an array of floats, or a list, dict or object of them.\n"
                "  See docs: errors#argument"
            )

    def as_before(self) -> None:
        """The function is about to be called: what an earlier call wrote into x is undone."""
        if self.before is None:
            self.before = Snapshot([self.x])
        else:
            self.before.restore()

    # -- the pattern -----------------------------------------------------------------------------------------------

    def found_pattern(self) -> tuple[np.ndarray, np.ndarray]:
        """The pattern in compressed rows, found by running the function."""
        self.as_before()
        return find_pattern(self.f, (self.x,), (0,), {}, self.results, self.users_rules)

    def results(self, y: Any) -> list[Any]:
        """The arrays and numbers in a result."""
        return [leaf.x for leaf in self.result_leaves(y)[1]]

    def result_leaves(self, y: Any) -> tuple[Any, list[Leaf]]:
        """The structure of a result, and its leaves."""
        structure, leaves = structure_of(y, as_real=True)
        if not leaves or any(leaf.is_complex for leaf in leaves):
            what = "holds no real number" if not leaves else "holds complex numbers"
            raise ArgumentError(
                f"{getattr(self.f, '__name__', 'the function')} returned {described(y)}, which {what}; return arrays "
                "of floats (real and imaginary parts separately).\n  See docs: errors#argument"
            )
        return structure, leaves

    # -- the entries -----------------------------------------------------------------------------------------------

    def solve(self, pattern: Any, kind: str, chunk_size: int | None, check: bool | None) -> Any:
        """The sparse array."""
        with several_runs():
            return self._solve(pattern, kind, chunk_size, check)

    def _solve(self, pattern: Any, kind: str, chunk_size: int | None, check: bool | None) -> Any:
        scipy_sparse = scipy_sparse_module()
        if chunk_size is not None and (not isinstance(chunk_size, int) or chunk_size < 1):
            raise ArgumentError(
                f"chunk_size must be a positive int or None, not {chunk_size!r}.\n  See docs: errors#argument"
            )
        is_given = pattern is not None
        starts, columns, rows = self.given_pattern(pattern) if is_given else (*self.found_pattern(), None)
        rows = starts.size - 1 if rows is None else rows
        colourings = coloured(kind, starts, columns, self.n)
        parts: list[Any] = []
        order = [np.zeros(0, np.int64)]
        for colouring in colourings:
            done = 0
            by_rows = colouring.kind == "rows"
            sweeps = self.pulled(colouring, rows) if by_rows else self.pushed(colouring, chunk_size, rows)
            for products, entries, where in sweeps:
                parts.append(here(chosen, products, where))
                order.append(entries)
                done += entries.size
                told(f"sparse, by {colouring.kind}", done, None)
        where_to = np.empty(columns.size, np.int64)
        where_to[np.concatenate(order)] = np.arange(columns.size)
        data = here(in_order, parts, where_to)
        if is_given or bool(self.users_rules) if check is None else check:
            self.check(data, starts, columns, rows, all(colouring.kind == "rows" for colouring in colourings))
        # SciPy moves the data through C code if it has to make an array of it; it is one.
        whole = scipy_sparse.csr_array((np.zeros(columns.size), columns, starts), shape=(rows, self.n))
        whole.data = data
        return whole

    def given_pattern(self, pattern: Any) -> tuple[np.ndarray, np.ndarray, int]:
        """A pattern from outside, in compressed rows with sorted indices."""
        scipy_sparse = scipy_sparse_module()
        try:
            found = scipy_sparse.csr_array(pattern, copy=True)
        except (TypeError, ValueError) as error:
            raise ArgumentError(
                f"pattern is {described(pattern)}, which is no sparse or dense matrix.\n  See docs: errors#argument"
            ) from error
        found.sum_duplicates()  # and sorts
        if found.ndim != 2 or found.shape[1] != self.n:
            raise ArgumentError(
                f"the pattern has shape {found.shape}, but x holds {self.n} numbers, one for each column.\n"
                "  See docs: errors#argument"
            )
        return found.indptr.astype(np.int64), found.indices.astype(np.int64), found.shape[0]

    def pushed(
        self, colouring: Colouring, chunk_size: int | None, rows: int
    ) -> Iterator[tuple[Any, Any, Any]]:
        """(products, entries that they show, where) for each chunk of forward sweeps."""
        size = chunk_size or max(1, min(MOST, self.room // (8 * max(self.n, rows, 1))))
        for seeds, entries, where in colouring.chunks(size):
            yield self.products(seeds, rows), entries, where

    @contextlib.contextmanager
    def or_plainly(self) -> Iterator[None]:
        """What cannot be derived natively is left, and not tried again; it raises if the native tier was asked for."""
        try:
            yield
        except NativeError:
            if self.tier == "native":
                raise
            self.natively = None

    def products(self, seeds: np.ndarray, rows: int) -> Any:
        """J v for every row v of `seeds`, as rows."""
        if self.natively is not None:
            with self.or_plainly():
                return self.native_products(seeds, rows)
        self.as_before()
        y, y_dot = push(self.f, (self.x,), (self.tangent(seeds),), {}, chunk=len(seeds))
        structure, leaves = self.result_leaves(y)
        self.check_rows(sum(leaf.size for leaf in leaves), rows)
        found = leaf_values(structure, y_dot)
        dots = [found.get(leaf.position) for leaf in leaves]
        return here(side_by_side, dots, leaves, len(seeds))

    def native_products(self, seeds: np.ndarray, rows: int) -> Any:
        """`products` by compiled forward mode, row by row.

        Raises:
            NativeError: it cannot be derived.
        """
        linear = self.linear or self.natively.linear_map(self.f, (self.x,))
        self.linear = linear
        y, push_leaves = linear
        structure, leaves = self.result_leaves(y)
        self.check_rows(sum(leaf.size for leaf in leaves), rows)
        pushed = [push_leaves((self.direction(seed),)) for seed in seeds]
        found = [leaf_values(structure, with_dots((structure, leaves), dots)) for dots in pushed]
        dots = [np.array([dots[leaf.position] for dots in found]) for leaf in leaves]
        return here(side_by_side, dots, leaves, len(seeds))

    def direction(self, seed: np.ndarray) -> Any:
        """A row of numbers as a tangent of x."""
        parts = {
            leaf.position: part[0] if leaf.is_array else float(part[0])
            for leaf, part in zip(self.leaves, self.split(seed[None]), strict=True)
        }
        return filled(self.structure, lambda leaf: parts[leaf.position])

    def tangent(self, seeds: np.ndarray) -> Any:
        """Rows of numbers as a chunk of tangents of x."""
        dots = dict(zip([leaf.position for leaf in self.leaves], self.split(seeds)))
        return filled(self.structure, lambda leaf: dots[leaf.position])

    def split(self, seeds: np.ndarray) -> list[np.ndarray]:
        """For each leaf of x, its part of every row of `seeds`, in its shape."""
        parts = []
        first = 0
        for leaf in self.leaves:
            part = seeds[:, first : first + leaf.size].reshape(len(seeds), *leaf.shape)
            parts.append(np.array(part, direction_type(leaf.x)))
            first += leaf.size
        return parts

    def check_rows(self, found: int, rows: int) -> None:
        """The result has a number for each row of the pattern."""
        if found != rows:
            raise ArgumentError(
                f"the pattern has {rows} rows, but {getattr(self.f, '__name__', 'the function')} returned {found} "
                "numbers.\n  See docs: errors#argument"
            )

    def pulled(self, colouring: Colouring, rows: int) -> Iterator[tuple[Any, Any, Any]]:
        """(products, entries that they show, where) for each reverse sweep."""
        if not colouring.count:
            return
        pull = self.pullback(rows)
        for seeds, entries, where in colouring.chunks(1):
            yield here(in_a_row, pull(seeds[0])), entries, where

    def pullback(self, rows: int) -> Callable[[np.ndarray], list[Any]]:
        """The map from weights of the result's numbers to those of x, leaf by leaf."""
        self.as_before()
        value, pulled = self.recorded()
        structure, leaves = self.result_leaves(value)
        self.check_rows(sum(leaf.size for leaf in leaves), rows)

        def pull(seed: np.ndarray) -> list[Any]:
            bars = {}
            first = 0
            for leaf in leaves:
                part = seed[first : first + leaf.size].astype(direction_type(leaf.x))
                bars[leaf.position] = part.reshape(leaf.shape) if leaf.is_array else float(part[0])
                first += leaf.size
            (x_bar,) = pulled(filled(structure, lambda leaf: bars[leaf.position]))
            found = leaf_values(self.structure, x_bar)
            return [found.get(leaf.position, np.zeros(leaf.shape)) for leaf in self.leaves]

        return pull

    def recorded(self) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
        """(the result, the map from its cotangents to those of x)."""
        if self.natively is not None:
            with self.or_plainly():
                return native_vjp(self.natively, self.f, (self.x,))
        run = Run(self.f, (self.x,), (0,), {})
        return run.value, run.pull

    # -- a pattern that was given ----------------------------------------------------------------------------------

    def check(self, data: Any, starts: np.ndarray, columns: np.ndarray, rows: int, pulled: bool) -> None:
        """Compare with one product in a random direction, which sees every entry that the pattern leaves out."""
        random = np.random.default_rng(0)
        of_entry = np.repeat(np.arange(rows), np.diff(starts))
        seed = random.uniform(0.5, 1.5, rows if pulled else self.n)
        if pulled:
            product = here(in_a_row, self.pullback(rows)(seed))[0]
            terms, where = data * seed[of_entry], columns
        else:
            product = self.products(seed[None], rows)[0]
            terms, where = data * seed[columns], of_entry
        size = product.shape[0]
        expected = np.bincount(where, terms, size)
        scale = np.bincount(where, np.abs(terms), size) + np.abs(product)
        precision = max(float(np.finfo(leaf.x.dtype).eps) if leaf.is_array else 0.0 for leaf in self.leaves)
        wrong = np.abs(product - expected) > max(TOLERANCE, 100 * precision) * scale
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            what = "column" if pulled else "row"
            by = "along a random direction"
            found = f"{float(product[at]):.6g} there, but {float(expected[at]):.6g} by the pattern"
            if self.users_rules:
                raise PatternError(
                    f"the pattern that was found leaves out nonzero entries, in {what} {at} for one: the derivative "
                    f"{by} is {found}.\n  The rules of {', '.join(sorted(self.users_rules))} took part: one that is "
                    "not linear in its cotangent or tangent, or not the same in both modes, is seen like this.\n"
                    "  To go on: test them with plaingrad.testing.check_rule; check=False leaves this comparison out."
                    "\n  See docs: errors#pattern"
                )
            raise PatternError(
                f"the pattern that was given leaves out nonzero entries, in {what} {at} for one: the derivative "
                f"{by} is {found}.\n  Entries that share a sweep would be wrong too. Leave the pattern out, or find "
                "it anew with plaingrad.sparsity at this x.\n  See docs: errors#pattern"
            )


class HessianTask(Task):
    """A sparse Hessian to be found: the Jacobian of the gradient, which is symmetric."""

    room: ClassVar[int] = 1 << 24  # all intermediate values of a gradient have tangents at once

    def __init__(self, f: Callable[..., Any], x: Any, tier: Tier = "auto") -> None:
        super().__init__(leaf_gradient(f, (0,), tier), x)
        self.tier = tier
        self.natively = natively(tier, f)
        self.primal = f

    def native_products(self, seeds: np.ndarray, rows: int) -> Any:
        """`products` of the Hessian, by the compiled gradient pushed forward."""
        self.check_rows(self.n, rows)
        found = []
        for seed in seeds:
            (x_dot,) = self.natively.hvp(self.primal, (self.x,), (self.direction(seed),))
            found.append(leaf_values(self.structure, x_dot))
        dots = [np.array([dots[leaf.position] for dots in found]) for leaf in self.leaves]
        return here(side_by_side, dots, self.leaves, len(seeds))

    def found_pattern(self) -> tuple[np.ndarray, np.ndarray]:
        """The pattern of the gradient's Jacobian, and of its transpose, which differ where one is over-estimated."""
        return symmetrised(*super().found_pattern())

    def given_pattern(self, pattern: Any) -> tuple[np.ndarray, np.ndarray, int]:
        """A symmetric pattern."""
        starts, columns, rows = super().given_pattern(pattern)
        if rows != self.n:
            raise ArgumentError(
                f"the pattern of a Hessian is square; this one has shape ({rows}, {self.n}).\n"
                "  See docs: errors#argument"
            )
        return *symmetrised(starts, columns), rows


def symmetrised(starts: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A square pattern and its transpose together."""
    n = starts.size - 1
    rows = np.repeat(np.arange(n), np.diff(starts))
    both = distinct(np.concatenate([rows * n + columns, columns * n + rows]))
    rows, columns = np.divmod(both, max(n, 1))
    return np.searchsorted(rows, np.arange(n + 1)), columns


# -- arithmetic, recorded where a derivative is being taken further out ------------------------------------------------


def side_by_side(dots: list[Any], leaves: list[Leaf], count: int) -> Any:
    """Tangents of the leaves of a result (None: zero) as one array of shape (count, all their numbers)."""
    flat = []
    for dot, leaf in zip(dots, leaves, strict=True):
        if dot is None:
            flat.append(np.zeros((count, leaf.size), direction_type(leaf.x)))
        else:
            flat.append(np.reshape(dot, (count, leaf.size)))
    return flat[0] if len(flat) == 1 else np.concatenate(flat, 1)


def in_a_row(bars: list[Any]) -> Any:
    """Cotangents of the leaves of x as one array of shape (1, all their numbers)."""
    return np.concatenate([np.reshape(bar, -1) for bar in bars])[None]


def chosen(products: Any, where: Any) -> Any:
    """The entries that a chunk of sweeps shows."""
    return products[where]


def in_order(parts: list[Any], order: np.ndarray) -> Any:
    """The entries of the matrix from all chunks, put in order."""
    data = np.concatenate(parts)[order] if parts else np.zeros(0)
    return (
        data.astype(np.float32) if data.dtype == np.float16 else data
    )  # SciPy has no sparse arrays of halves
