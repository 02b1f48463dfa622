"""Sparse Jacobians and Hessians: which entries may be nonzero, and the entries; SciPy is needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from plaingrad.api.leaves import check_callable
from plaingrad.api.looked_at import debugged
from plaingrad.api.tiers import Tier, check_tier
from plaingrad.critical import imported
from plaingrad.errors import ArgumentError


def sparse_tasks() -> Any:
    """`plaingrad.api.sparse_task`, with the patterns and colourings: what most programs never need."""
    return imported("plaingrad.api.sparse_task")


def sparsity(f: Callable[..., Any], x: Any, of: Literal["jacobian", "hessian"] = "jacobian") -> Any:
    """The pattern of f's Jacobian, or Hessian: which entries may be other than zero.

    `f` is called once, with sets of indices carried along every operation. What counts is the operation, not its value:
    `x * 0.0`, `np.maximum(x, y)` and `np.where(c, x, y)` depend on all their arguments. Functions that are known to
    mix everything (and C code of whose inside nothing is known) depend on everything; the pattern may be larger than
    it need be, never smaller. Control flow is that of the call: the pattern holds at x, and wherever the same branches
    are taken and the same indices computed.

    Args:
        f: any Python callable of one argument.
        x: its argument: a real array, or a list, dict or object of real arrays and numbers. Columns are its numbers in
            order.
        of: "jacobian": rows are the numbers of the result, in order; "hessian": that of a function that returns one
            real number, found by carrying sets through its gradient.

    Returns:
        A boolean `scipy.sparse.csr_array` of shape (numbers in the result, numbers in x).

    Raises:
        ArgumentError: x, or the result, holds something else than real numbers, or none.
        MissingRuleError: the result depends on x through C code that has no rule.

    Examples:
        >>> import numpy as np
        >>> sparsity(lambda x: x[1:] * x[:-1], np.ones(4)).toarray().astype(int)
        array([[1, 1, 0, 0],
               [0, 1, 1, 0],
               [0, 0, 1, 1]])
        >>> sparsity(lambda x: x[0] * x[1] + x[2] ** 2, np.ones(3), of="hessian").toarray().astype(int)
        array([[0, 1, 0],
               [1, 0, 0],
               [0, 0, 1]])
    """
    check_callable(f, "sparsity")
    if of not in ("jacobian", "hessian"):
        raise ArgumentError(f'of must be "jacobian" or "hessian", not {of!r}.\n  See docs: errors#argument')
    tasks = sparse_tasks()
    scipy_sparse = tasks.scipy_sparse_module()
    task = tasks.Task(f, x) if of == "jacobian" else tasks.HessianTask(f, x)
    starts, columns = task.found_pattern()
    shape = (starts.size - 1, task.n)
    return scipy_sparse.csr_array((np.ones(columns.size, bool), columns, starts), shape=shape)


def sparse_jacobian(
    f: Callable[..., Any],
    x: Any,
    pattern: Any = None,
    mode: Literal["auto", "forward", "reverse"] = "auto",
    chunk_size: int | None = None,
    check: bool | None = None,
    tier: Tier = "auto",
    debug: bool = False,
) -> Any:
    """The Jacobian of `f` at `x` as a sparse array.

    Columns without a row in common are found together, by one forward sweep for each such group (or rows without a
    column in common by one reverse sweep): three for a tridiagonal Jacobian of any size.

    Args:
        f: any Python callable of one argument.
        x: a real array, or a list, dict or object of real arrays and numbers. Columns are its numbers in order.
        pattern: which entries may be nonzero: a SciPy sparse array or a dense one; None: found by `sparsity(f, x)`,
            which takes longer than all the rest.
        mode: "forward" groups columns, "reverse" groups rows; "auto" takes the fewer groups, or some of both where a
            few dense rows and a few dense columns call for it (or what `prefer_mode` said of `f`).
        chunk_size: how many forward sweeps are made together. `f` is called once for each chunk.
        check: whether to compare the result with one more product in a random direction. None: if a pattern was given,
            or a rule that is not plaingrad's own took part.
        tier: as for `grad`. Natively every group is a compiled sweep; the pattern is found by running Python.
        debug: as for `grad`.

    Returns:
        A `scipy.sparse.csr_array` of shape (numbers in the result, numbers in x), with sorted indices. Entries that
        are in the pattern are stored, also where they are zero.

    Raises:
        PatternError: an entry of the Jacobian is missing in the given pattern.
        ArgumentError: x, or the result, holds something else than real numbers, or none; the pattern has another
            shape.

    Examples:
        >>> import numpy as np
        >>> sparse_jacobian(lambda x: x[1:] * x[:-1], np.array([1.0, 2.0, 3.0])).toarray()
        array([[2., 1., 0.],
               [0., 3., 2.]])
    """
    check_callable(f, "sparse_jacobian")
    if mode not in ("auto", "forward", "reverse"):
        raise ArgumentError(
            f'mode must be "auto", "forward" or "reverse", not {mode!r}.\n  See docs: errors#argument'
        )
    if mode == "auto":
        mode = getattr(f, "__plaingrad_mode__", "auto")
    kind = {"auto": "cheapest", "forward": "columns", "reverse": "rows"}[mode]
    if debug:
        return debugged(sparse_jacobian, f, x, pattern, mode, chunk_size, check, "plain")
    check_tier(tier)
    return sparse_tasks().Task(f, x, tier).solve(pattern, kind, chunk_size, check)


def sparse_hessian(
    f: Callable[..., Any],
    x: Any,
    pattern: Any = None,
    chunk_size: int | None = None,
    check: bool | None = None,
    tier: Tier = "auto",
    debug: bool = False,
) -> Any:
    """The Hessian of `f` at `x` as a sparse array: products of the Hessian with few directions, chosen by symmetry.

    The directions are the groups of a star colouring: two for an arrow, three for a tridiagonal Hessian of any size.
    Each product is the derivative of the gradient (reverse mode) along one group (forward mode).

    Args:
        f: any Python callable of one argument that returns one real number.
        x: a real array, or a list, dict or object of real arrays and numbers.
        pattern: which entries may be nonzero, a symmetric pattern; None: found by `sparsity(f, x, of="hessian")`.
        chunk_size: how many products are formed together. The gradient is taken once for each chunk.
        check: whether to compare the result with one more product in a random direction. None: if a pattern was given,
            or a rule that is not plaingrad's own took part.
        tier: as for `grad`. Natively every group is a compiled sweep; the pattern is found by running Python.
        debug: as for `grad`.

    Returns:
        A `scipy.sparse.csr_array` of shape (n, n), with sorted indices, symmetric to the last bit.

    Raises:
        PatternError: an entry of the Hessian is missing in the given pattern.
        ArgumentError: x holds something else than real numbers, or none; the pattern has another shape.
        NonScalarOutputError: `f` returned something else than one real number.

    Examples:
        >>> import numpy as np
        >>> sparse_hessian(lambda x: np.sum((x[1:] - x[:-1] ** 2) ** 2), np.ones(3)).toarray()
        array([[ 8., -4.,  0.],
               [-4., 10., -4.],
               [ 0., -4.,  2.]])
    """
    check_callable(f, "sparse_hessian")
    if debug:
        return debugged(sparse_hessian, f, x, pattern, chunk_size, check, "plain")
    check_tier(tier)
    return sparse_tasks().HessianTask(f, x, tier).solve(pattern, "symmetric", chunk_size, check)
