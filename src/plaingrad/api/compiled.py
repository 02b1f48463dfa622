"""Derivatives as compiled functions, to be called from code that Numba compiles."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from plaingrad.api.leaves import Argnums, check_callable, positions_in, positions_of
from plaingrad.api.tiers import chosen
from plaingrad.critical import imported


def compiled_jacobian(f: Callable[..., Any], *args: Any, argnums: Argnums = 0) -> Any:
    """A Numba function that computes f and its Jacobian, for calls from your own compiled loops.

    It has the arguments of `f` and one more, `out`, a matrix: `y = jac(*args, out)` returns `f(*args)` and writes
    dy[i]/dx[j] to `out[i, j]`, a row for each number in the result, a column for each number in the differentiated
    arguments, in their order. Up to 16 columns are computed in one sweep, and no memory is taken where the arguments
    are only read at constant places, as `p[0]`.

    Args:
        f: a function that Numba can compile, or a dispatcher of `numba.njit`.
        args: arguments of the types that it will be called with: floats, arrays, tuples of these. Only their types
            count, and the number of columns, which says how many of them are computed together.
        argnums: which positional argument to differentiate, or a tuple of several.

    Raises:
        NativeError: Numba cannot compile `f`, or something in it has no native rule.
        ArgumentError: an argument has no tangent, or there is no such argument.

    The function made raises ValueError where `out` has not as many rows and columns as there are derivatives, and
    ArgumentError where it is no matrix of float64 that can be written, or shares memory with an argument. Like other
    compiled functions it keeps the globals of the time when it was made.

    Examples:
        >>> import numba, numpy as np
        >>> def polar(p): return np.hypot(p[0], p[1]), np.arctan2(p[1], p[0])
        >>> jac = compiled_jacobian(polar, np.ones(2))
        >>> @numba.njit
        ... def of_all(points, out):
        ...     for i in range(len(points)):
        ...         jac(points[i], out[i])
        >>> out = np.empty((2, 2, 2))
        >>> of_all(np.array([[1.0, 0.0], [0.0, 2.0]]), out)
        >>> out[1]
        array([[ 0. ,  1. ],
               [-0.5,  0. ]])
    """
    check_callable(f, "compiled_jacobian")
    chosen("native", f)
    native = imported("plaingrad.native.border.operators")
    return native.compiled_jacobian(f, args, positions_in(positions_of(argnums), args))


def free_workspace() -> int:
    """Free the memory that native gradients keep for the ones to come; return how many bytes that was.

    A native gradient keeps values for the way back on tapes. Their memory is used again by later calls, since memory
    that is fresh from the system is several times slower; pullbacks that are still held keep theirs. At most
    `PLAINGRAD_WORKSPACE_LIMIT` bytes (an environment variable; usually 1 GiB) are kept in all.

    Examples:
        >>> _ = free_workspace()
        >>> free_workspace()
        0
    """
    workspace = sys.modules.get("plaingrad.native.runtime.workspace")
    return 0 if workspace is None else int(workspace.clear())
