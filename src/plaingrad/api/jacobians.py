"""Jacobians, Hessians and products with them: whole derivatives, put together from many directions or weights."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from plaingrad.api import recorded
from plaingrad.api.gradients import Tier, check_tier, chosen, in_tier, unit_cotangent, value_and_grad
from plaingrad.api.leaves import (
    Argnums,
    Leaf,
    active_positions,
    check_callable,
    derives,
    described,
    filled,
    fitting_tangents,
    here,
    is_int,
    leaf_values,
    positions_in,
    positions_of,
    structure_of,
    structures_of,
)
from plaingrad.class_keys import is_instance
from plaingrad.critical import imported
from plaingrad.engine.calls.calls import slot_names
from plaingrad.engine.calls.memo import several_runs
from plaingrad.engine.forward.push import push
from plaingrad.engine.memory.kinds import ARRAY, MAPPING, NUMBER, SEQUENCE, kind_of
from plaingrad.engine.reverse.inputs import entries_of, has_fields, put
from plaingrad.engine.reverse.run import Run
from plaingrad.errors import ArgumentError, NativeError, NonScalarOutputError, NotHolomorphicError
from plaingrad.rewrite import CURRENT, PLAIN
from plaingrad.tangents import ZeroTangent

Mode = Literal["auto", "forward", "reverse"]

FEW_INPUTS = 4  # for so many, forward mode is taken without asking how many outputs there are
FEW_OUTPUTS = 16  # for so many, a pullback each is cheaper than pushing a chunk
FEW_DIRECTIONS = 256  # with more inputs, a call in reverse mode is not turned into one in forward mode
CHUNK_BYTES = 1 << 20  # of the largest tangent of a chunk: more does not stay in the cache
CHUNK_LEAST, CHUNK_MOST = 64, 1024


def jacobian(
    f: Callable[..., Any],
    argnums: Argnums = 0,
    mode: Mode = "auto",
    chunk_size: int | None = None,
    has_aux: bool = False,
    tier: Tier = "auto",
) -> Callable[..., Any]:
    """The function that returns all partial derivatives of f's result: dy[i]/dx[j].

    Args:
        f: any Python callable. Its result may be a number, an array, or lists, tuples, dicts and objects of these.
        argnums: which positional argument to differentiate, or a tuple of several; of any structure, as for `grad`.
        mode: "forward" costs about a call of `f` for every few inputs, "reverse" one call and a pullback for every
            output; "auto" chooses by their numbers (and what `prefer_mode` said of `f`). For more than four inputs it
            first records a call to see how many results there are, and if they are many, calls `f` once more.
        chunk_size: how many directions are pushed together in forward mode. `f` is called once for each chunk.
        has_aux: `f` returns `(y, aux)`; `aux` is not differentiated and is returned beside the Jacobian.
        tier: as for `grad`. Natively, up to 16 columns are computed together in one sweep, at once or twice the cost
            of the function alone where that is a loop over numbers.

    Returns:
        A function of the same arguments as `f`. It returns the structure of the result; each leaf of it holds the
        structure of the argument (with several `argnums` a tuple of them); each leaf of that is an array of shape
        `y.shape + x.shape`, or a number where both are numbers. With `has_aux` a pair `(jacobian, aux)`.
        Where y is complex and x real: dy/dx. Where x = u + iv is complex and y real: dy/du + i dy/dv, as `grad` has
        it. Where both are complex: dy/dx, which exists if y is holomorphic in x.

    Raises:
        ArgumentError: an argument has no tangent, or the result holds no real or complex number.
        NotHolomorphicError: x and y are complex and dy/dx does not exist; `wirtinger` gives both derivatives.
        MissingRuleError: the result depends on the argument through C code that has no rule.

    Examples:
        >>> import numpy as np
        >>> jacobian(lambda x: x**2)(np.array([1.0, 2.0]))
        array([[2., 0.],
               [0., 4.]])
        >>> jacobian(lambda p: [p["a"] * p["b"], p["a"]])({"a": 3.0, "b": 4.0})
        [{'a': 4.0, 'b': 3.0}, {'a': 1.0, 'b': 0.0}]
    """
    check_callable(f, "jacobian")
    positions = positions_of(argnums)
    _check_mode(mode)
    _check_chunk(chunk_size)
    check_tier(tier)

    @derives(f)
    def jacobian_of(*args: Any, **kwargs: Any) -> Any:
        at = positions_in(positions, args)
        task = Task(f, args, kwargs, at, has_aux)
        native = natively(tier, f)
        if native is None or not task.solve_natively(native.jacobian, tier, mode, chunk_size, has_aux):
            task.f = in_tier(tier, f, args, "pullback")
            task.solve(mode, chunk_size)
        found = task.assembled(jacobian_entry, isinstance(argnums, tuple))
        return (found, task.aux) if has_aux else found

    return jacobian_of


def natively(tier: Tier, f: Callable[..., Any]) -> Any:
    """`plaingrad.native.border.operators` if whole derivatives of `f` are to be tried natively first; or None."""
    if chosen(tier, f) is None or CURRENT.get() is not PLAIN:
        return None
    return imported("plaingrad.native.border.operators")


def hessian(
    f: Callable[..., Any], argnums: Argnums = 0, chunk_size: int | None = None, tier: Tier = "auto"
) -> Callable[..., Any]:
    """The function that returns all second partial derivatives of f's result, a real number.

    The gradient (reverse mode) is pushed forward along each input, many together.

    Args:
        f: any Python callable that returns one real number.
        argnums: which positional argument to differentiate, or a tuple of several.
        chunk_size: how many directions are pushed together. The gradient is taken once for each chunk.
        tier: as for `grad`.

    Returns:
        A function of the same arguments as `f`. It returns the structure of the argument, each leaf of which holds
        the structure of the argument again, each leaf of which is an array of shape `x.shape + x.shape`. With several
        `argnums` a tuple, and each leaf holds a tuple.

    Raises:
        NotHolomorphicError: an argument is complex; differentiate by its real and imaginary parts instead.

    Examples:
        >>> import numpy as np
        >>> hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 3.0]))
        array([[6., 2.],
               [2., 0.]])
    """
    check_callable(f, "hessian")
    positions = positions_of(argnums)
    _check_chunk(chunk_size)
    check_tier(tier)

    @derives(f)
    def hessian_of(*args: Any, **kwargs: Any) -> Any:
        task = Task(f, args, kwargs, positions_in(positions, args), False)
        native = natively(tier, f)
        if native is None or not task.solve_natively(native.hessian, tier, chunk_size, second=True):
            task.f = leaf_gradient(f, positions, tier)
            task.push_all(chunk_size)
        task.y_structure = task.x_structures
        return task.assembled(jacobian_entry, isinstance(argnums, tuple), second=True)

    return hessian_of


def hvp(
    f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], tier: Tier = "auto"
) -> tuple[Any, ...]:
    """The Hessian of `f` times a direction, without the Hessian: the gradient, pushed along `tangents`.

    For many directions at one point, `linearize` the gradient once: `linearize(grad(f), x)[1](x_dot)` costs less than a
    gradient each.

    Args:
        f: any Python callable that returns one real number.
        primals: its arguments, a tuple.
        tangents: a direction for each, of the same structure and shapes; None for an argument held fixed, which is
            not differentiated. A zero (`ZeroTangent`, or numbers) is a direction like any other.
        tier: as for `grad`.

    Returns:
        A tuple with one entry for each argument, of its structure; None for an argument without tangent, and for
        one that is held fixed.

    Raises:
        TangentError: `tangents` do not fit `primals`.

    Examples:
        >>> import numpy as np
        >>> x, v = np.array([1.0, 3.0]), np.array([1.0, 0.0])
        >>> hvp(lambda x: x[0] ** 2 * x[1], (x,), (v,))
        (array([6., 2.]),)
    """
    check_callable(f, "hvp")
    check_tier(tier)
    dots = fitting_tangents(primals, tangents)
    active, fixed = moving(primals, tangents)
    native = natively(tier, f)
    if native is not None:
        try:
            return native.hvp(f, tuple(primals), dots, fixed)  # type: ignore[no-any-return]
        except NativeError:
            if tier == "native":
                raise
    structures, _ = structures_of([primals[n] for n in active])  # as it is before `f` changes it
    _, y_dot = push(leaf_gradient(f, active, tier), tuple(primals), dots, {})

    def of_leaf(leaf: Leaf) -> Any:
        dot = None if y_dot is None or y_dot is ZeroTangent else y_dot[leaf.position]
        if dot is None or dot is ZeroTangent:
            return np.zeros_like(leaf.x) if leaf.is_array else type(leaf.x)(0)
        return dot

    made: dict[int, Any] = {}
    found = {n: filled(structure, of_leaf, made) for structure, n in zip(structures, active, strict=True)}
    return tuple([found.get(n) for n in range(len(primals))])


def vhp(
    f: Callable[..., Any], primals: Sequence[Any], cotangents: Sequence[Any], tier: Tier = "auto"
) -> tuple[Any, ...]:
    """A weight times the Hessian of `f`, without the Hessian: the gradient, pulled back.

    The same numbers as `hvp`, for the Hessian is symmetric, by reverse mode alone: for functions with rules that
    have no forward half.

    Args:
        f: any Python callable that returns one real number.
        primals: its arguments, a tuple.
        cotangents: a weight for each, of the same structure and shapes; None for an argument held fixed, as for `hvp`.
        tier: as for `grad`; natively it is what `hvp` is.

    Returns:
        A tuple with one entry for each argument, of its structure; None for an argument without tangent, and for
        one that is held fixed.

    Raises:
        TangentError: `cotangents` do not fit `primals`.

    Examples:
        >>> import numpy as np
        >>> x, v = np.array([1.0, 3.0]), np.array([1.0, 0.0])
        >>> vhp(lambda x: x[0] ** 2 * x[1], (x,), (v,))
        (array([6., 2.]),)
    """
    check_callable(f, "vhp")
    check_tier(tier)
    bars = fitting_tangents(primals, cotangents, "cotangents")
    active, fixed = moving(primals, cotangents)
    args = tuple(primals)
    native = natively(tier, f)
    if native is not None:
        try:
            return native.hvp(f, args, bars, fixed)  # type: ignore[no-any-return]
        except NativeError:
            if tier == "native":
                raise
    structures, leaves = structures_of([args[n] for n in active])  # as it is before `f` changes it
    run = Run(leaf_gradient(f, active, tier), args, active, {})
    weights: dict[int, Any] = {}
    for structure, n in zip(structures, active, strict=True):
        weights.update(leaf_values(structure, bars[n]))
    found = run.pull(tuple([weights.get(leaf.position, ZeroTangent) for leaf in leaves]))
    by_position = dict(zip(active, found, strict=True))
    return tuple([by_position.get(n) for n in range(len(args))])


def wirtinger(f: Callable[..., Any], mode: Mode = "auto", tier: Tier = "auto") -> Callable[..., Any]:
    """The function that returns (df/dz, df/dz*): the derivatives by a complex argument and by its conjugate.

    With z = x + iy they are (df/dx - i df/dy) / 2 and (df/dx + i df/dy) / 2. For a holomorphic `f` the second is
    zero; for a real `f` it is half of `grad(f)`, and the first is its conjugate.

    Args:
        f: any Python callable; its first argument is complex: a number, an array, or a structure of these.
        mode: as for `jacobian`.
        tier: as for `grad`.

    Returns:
        A function of the same arguments as `f`. It returns a pair, each of the structure and shapes that `jacobian`
        returns.

    Raises:
        ArgumentError: the first argument is not complex.

    Examples:
        >>> wirtinger(lambda z: z * z.conjugate())(3.0 + 4.0j)
        ((3-4j), (3+4j))
    """
    check_callable(f, "wirtinger")
    _check_mode(mode)
    check_tier(tier)

    @derives(f)
    def wirtinger_pair(*args: Any, **kwargs: Any) -> Any:
        task = Task(f, args, kwargs, positions_in((0,), args), False)
        if not all(leaf.is_complex for leaf in task.x_leaves):
            raise ArgumentError(
                f"wirtinger needs a complex argument, not {described(args[0])}; pass complex(z), or "
                "z.astype(complex).\n  See docs: errors#argument"
            )
        native = natively(tier, f)
        if native is None or not task.solve_natively(native.jacobian, tier, mode, None):
            task.f = in_tier(tier, f, args, "pullback")
            task.solve(mode, None)
        return task.assembled(wirtinger_entry, False), task.assembled(conjugate_entry, False)

    return wirtinger_pair


class Task:
    """A whole derivative to be found: dy/d(each direction of x), for every leaf of y and of x.

    Attributes:
        x_leaves: the leaves of all differentiated arguments.
        directions: in how many real directions they can move.
        y_leaves: the leaves of the result, once `f` was called.
        table: (position of a leaf of y, of x) -> (derivative along 1, along i or None), each of shape y + x.
    """

    def __init__(
        self, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], positions: tuple[int, ...], has_aux: bool
    ) -> None:
        self.f = f
        self.args = args
        self.kwargs = kwargs
        self.positions = positions
        self.has_aux = has_aux
        self.x_structures, self.x_leaves = structures_of([args[n] for n in positions])
        for structure, n in zip(self.x_structures, positions, strict=True):
            if structure is None:
                raise ArgumentError(
                    f"argument {n} is {described(args[n])}, which holds no real or complex number, so it has no "
                    "tangent.\n  See docs: errors#argument"
                )
        self.directions = sum(leaf.directions for leaf in self.x_leaves)
        self.y: Any = None
        self.aux: Any = None
        self.y_structure: Any = None
        self.y_leaves: list[Leaf] = []
        self.table: dict[tuple[int, int], tuple[Any, Any]] = {}

    def solve(self, mode: Mode, chunk_size: int | None) -> None:
        """Fill the table in the mode asked for."""
        if mode == "auto":
            mode = getattr(self.f, "__plaingrad_mode__", "auto")
        if mode == "auto" and self.directions <= FEW_INPUTS:
            mode = "forward"
        if mode == "forward":
            self.push_all(chunk_size)
            return
        before = self._snapshot() if mode == "auto" else None
        run = Run(self.f, self.args, self.positions, self.kwargs, self._result)
        self._note(run.value)
        outputs = sum(leaf.directions for leaf in self.y_leaves)
        if before is None or outputs <= max(FEW_OUTPUTS, self.directions // 4):
            self.pull_all(run)
        else:
            before.restore()
            self.push_all(chunk_size)

    def solve_natively(
        self, whole: Callable[..., Any], tier: Tier, *options: Any, second: bool = False
    ) -> bool:
        """Fill the table by a function of `plaingrad.native.border.operators`; whether that was possible.

        Args:
            whole: the function.
            tier: which was asked for.
            options: its last arguments.
            second: the leaves of the result are those of the arguments.

        Raises:
            NativeError: with `tier="native"`: it was not, and what the function is of cannot be one step either.
        """
        try:
            if any(
                isinstance(self.args[n], np.ndarray) and self.args[n].dtype.kind in "iu"
                for n in self.positions
            ):
                border = imported("plaingrad.native.border.conversion")
                border.taken(self.f, self.args, self.positions, self.kwargs)
            found = whole(self.f, self.real_args(), self.positions, self.kwargs, *options)
        except NativeError:
            if tier == "native":
                raise
            return False
        if not all(a.x is b for a, b in zip(self.x_leaves, found.x, strict=True)):
            raise NativeError(
                "the native tier takes these arguments apart differently.\n  See docs: errors#native"
            )
        if second:
            self.y_leaves = self.x_leaves
        else:
            self._note(found.y)
        blocks = iter(found.blocks)
        for y in self.y_leaves:
            if is_whole_numbers(y.x) and not second or not found.blocks:
                self._no_influence(y)
                continue
            for x, (along_1, along_i) in zip(self.x_leaves, next(blocks), strict=True):
                if not (y.is_array or x.is_array):
                    along_1 = recorded.python_number(along_1[()])
                    along_i = None if along_i is None else recorded.python_number(along_i[()])
                self.table[y.position, x.position] = along_1, along_i
        return True

    def real_args(self) -> tuple[Any, ...]:
        """The arguments, the differentiated ones that are ints, or arrays of them, as real numbers."""
        args = list(self.args)
        for structure, n in zip(self.x_structures, self.positions, strict=True):
            if type(structure) is Leaf:
                args[n] = structure.x
        return tuple(args)

    def _snapshot(self) -> Snapshot:
        """What the differentiated arguments hold, for a function that is called more than once."""
        return Snapshot([self.args[n] for n in self.positions])

    def _result(self, value: Any) -> Any:
        if not self.has_aux:
            return value
        if not (type(value) is tuple and len(value) == 2):
            raise NonScalarOutputError(
                f"with has_aux=True the function must return (y, aux), not {described(value)}"
            )
        return value[0]

    def _note(self, value: Any) -> None:
        """Look at what `f` returned."""
        self.y = y = self._result(value)
        if self.has_aux:
            self.aux = value[1]
        self.y_structure, self.y_leaves = structure_of(y, as_real=True)
        if not self.y_leaves:
            hint = "is a `return` missing?" if y is None else "it has no derivative"
            raise ArgumentError(
                f"{getattr(self.f, '__name__', 'the function')} returned {described(y)}, which holds no real or "
                f"complex number; {hint}.\n  See docs: errors#argument"
            )

    # -- reverse ---------------------------------------------------------------------------------------------------

    def pull_all(self, run: Run) -> None:
        """One pullback for every output."""
        slots = leaf_values(self.y_structure, run.slots)
        for y in self.y_leaves:
            slot = slots.get(y.position)
            if slot is None:
                self._no_influence(y)
                continue
            at_leaf = copy.copy(run)
            at_leaf.slots = slot
            rows: list[list[Any]] = [[] for _ in self.x_leaves]
            for seed in seeds(y):
                found: dict[int, Any] = {}
                for structure, x_bar in zip(self.x_structures, at_leaf.pull(seed), strict=True):
                    found.update(leaf_values(structure, x_bar))
                for x in self.x_leaves:
                    rows[x.position].append(found[x.position])
            for x in self.x_leaves:
                if y.is_array or y.is_complex or x.is_complex:
                    pair = here(recorded.pair_of_rows, rows[x.position], y, x)
                else:
                    pair = rows[x.position][0], None
                self.table[y.position, x.position] = pair

    def _no_influence(self, y: Leaf) -> None:
        for x in self.x_leaves:
            zero: Any = 0j if y.is_complex else 0.0
            if y.is_array or x.is_array:
                zero = np.zeros(y.shape + x.shape, np.result_type(y.x, x.x.real if not y.is_complex else x.x))
            self.table[y.position, x.position] = zero, zero if x.is_complex else None

    # -- forward ---------------------------------------------------------------------------------------------------

    def push_all(self, chunk_size: int | None) -> None:
        """All directions, chunk by chunk."""
        with several_runs():
            self._push_chunks(chunk_size)

    def _push_chunks(self, chunk_size: int | None) -> None:
        if not self.directions:  # there is nothing to push, but the shape of the result is wanted
            run = Run(self.f, self.args, self.positions, self.kwargs, self._result)
            self._note(run.value)
            self.pull_all(run)
            return
        size = 1 if self._is_exact() else min(chunk_size or self._good_chunk(), self.directions)
        before = self._snapshot() if size < self.directions else None
        columns: list[list[Any]] = []
        for start in range(0, self.directions, size):
            if start and before is not None:
                before.restore()
            count = min(size, self.directions - start)
            y, y_dot = self._pushed(start, count)
            if not start:
                self._note(y)
                columns = [[] for _ in self.y_leaves]
            if self.has_aux:
                y_dot = y_dot[0] if type(y_dot) is tuple else None
            found = leaf_values(self.y_structure, y_dot)
            for leaf in self.y_leaves:
                columns[leaf.position].append(self._column(found.get(leaf.position), leaf, count))
        for y in self.y_leaves:
            whole = here(recorded.joined, columns[y.position])
            start = 0
            for x in self.x_leaves:
                if x.is_array or x.is_complex or y.is_array:
                    pair = here(recorded.pair_of_columns, whole, start, y, x)
                else:
                    pair = whole[start], None
                self.table[y.position, x.position] = pair
                start += x.directions

    def _good_chunk(self) -> int:
        """How many directions to push together."""
        largest = max(1, *[leaf.size for leaf in (*self.x_leaves, *self.y_leaves)])
        return min(max(CHUNK_BYTES // (8 * largest), CHUNK_LEAST), CHUNK_MOST)

    def _is_exact(self) -> bool:
        """Whether a number is of a type that no array of floats can hold: its tangents are of that type too."""
        return any(is_instance(leaf.x, (Fraction, Decimal)) for leaf in self.x_leaves)

    def _pushed(self, start: int, count: int) -> tuple[Any, Any]:
        """The value, and the tangents along `count` unit directions; of a single one, without a leading axis."""
        chunk = None if count == 1 else count
        dots = unit_directions(self.x_leaves, start, count)
        if chunk is None:
            leaves = self.x_leaves
            dots = {n: dot[0] if leaves[n].is_array else type(leaves[n].x)(dot[0]) for n, dot in dots.items()}
            if self._is_exact():
                dots = {
                    leaf.position: dots.get(leaf.position, type(leaf.x)(0))
                    for leaf in leaves
                    if not leaf.is_array
                }
        found: list[Any] = [None] * len(self.args)
        for structure, n in zip(self.x_structures, self.positions, strict=True):
            found[n] = filled(structure, lambda leaf: dots.get(leaf.position, ZeroTangent))
        return push(self.f, self.args, tuple(found), self.kwargs, chunk=chunk)

    def _column(self, y_dot: Any, y: Leaf, count: int) -> Any:
        """Tangents of one leaf of y: a list of numbers for a number, shape (count, *y.shape) for an array."""
        if y_dot is None:
            return np.zeros((count, *y.shape), direction_type(y.x)) if y.is_array else [type(y.x)(0)] * count
        if count == 1:
            return y_dot[None] if y.is_array else [y_dot]
        return y_dot if y.is_array else here(recorded.numbers_in, y_dot)

    # -- the result ------------------------------------------------------------------------------------------------

    def assembled(self, entry: Callable[..., Any], several: bool, second: bool = False) -> Any:
        """The structure of y, its leaves the structure of x, its leaves `entry(...)` of the pair in the table."""

        def of_y(y: Leaf) -> Any:
            def of_x(x: Leaf) -> Any:
                along_1, along_i = self.table[y.position, x.position]
                return entry(along_1, along_i, y, x, self.f)

            made: dict[int, Any] = {}
            parts = tuple([filled(structure, of_x, made) for structure in self.x_structures])
            return parts if several else parts[0]

        if second:
            made: dict[int, Any] = {}
            parts = tuple([filled(structure, of_y, made) for structure in self.x_structures])
            return parts if several else parts[0]
        return filled(self.y_structure, of_y)


def pushed_gradient(
    f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], positions: tuple[int, ...], has_aux: bool
) -> tuple[Any, tuple[Any, ...]] | None:
    """(value, gradients) in forward mode, for a function that prefers it; None if it has too many inputs for that."""
    task = Task(f, args, kwargs, positions, has_aux)
    if not 0 < task.directions <= FEW_DIRECTIONS:
        return None
    task.push_all(task.directions)
    unit_cotangent(task.y, f)
    gradients = task.assembled(jacobian_entry, True)
    return (task.y, task.aux) if has_aux else task.y, gradients


class Snapshot:
    """What some arguments hold, so that a function that changes them can be called again."""

    def __init__(self, arguments: Sequence[Any]) -> None:
        self.arrays: list[tuple[np.ndarray, Any]] = []
        self.containers: dict[int, tuple[Any, Any]] = {}
        for x in arguments:
            self._look(x)

    def _look(self, x: Any) -> None:
        kind = kind_of(type(x))
        if kind == ARRAY:
            self.arrays.append((x, here(recorded.copied, x)))
        elif kind in (SEQUENCE, MAPPING) or has_fields(x):
            if id(x) in self.containers:
                return
            entries = entries_of(x)
            if not isinstance(x, tuple):
                self.containers[id(x)] = x, entries
            for _, value in entries:
                self._look(value)

    def is_changed(self) -> bool:
        """Whether something is not as it was."""
        if any(has_changed(x, entries) for x, entries in self.containers.values()):
            return True
        return not all(np.array_equal(x, saved, equal_nan=True) for x, saved in self.arrays)

    def restore(self) -> None:
        """Put everything back."""
        for x, entries in self.containers.values():
            if not has_changed(x, entries):
                continue
            if isinstance(x, (list, deque)):
                x.clear()
                x.extend([value for _, value in entries])
            elif isinstance(x, dict):
                x.clear()
                x.update(entries)
            else:
                fields = getattr(x, "__dict__", None)
                if type(fields) is dict:  # emptied: the order of the attributes is that of the leaves
                    kept = {key: value for key, value in entries if key not in slot_names(type(x))}
                    fields.clear()
                    fields.update(kept)
                for key, value in entries:
                    put(x, key, value)
        for x, saved in self.arrays:
            if x.flags.writeable:
                here(recorded.overwrite, x, saved)


def has_changed(x: Any, entries: list[Any]) -> bool:
    """Whether container `x` holds something else than `entries`.

    Another thread that differentiates by the same container has equal numbers in the place of its numbers; they will
    go again.
    """
    now = entries_of(x)
    if [key for key, _ in now] != [key for key, _ in entries]:
        return True
    plain = CURRENT.get() is PLAIN
    return any(
        a is not b and not (plain and type(a) is type(b) and kind_of(type(a)) == NUMBER and a == b)
        for (_, a), (_, b) in zip(now, entries, strict=True)
    )


def moving(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The positions of the arguments that are differentiated, and of those that are held fixed: they have None.

    Raises:
        ArgumentError: there are none of the former.
    """
    fixed = tuple([n for n in range(len(primals)) if tangents[n] is None])
    active = tuple([n for n in active_positions(primals) if n not in fixed])
    if not active:
        raise ArgumentError(
            "every argument is held fixed; give a direction for one, zeros if it is not to move.\n"
            "  See docs: errors#argument"
        )
    return active, fixed


def is_whole_numbers(x: Any) -> bool:
    """Whether `x` is an int, or an array of ints."""
    return is_int(x) or (isinstance(x, np.ndarray) and x.dtype.kind in "iub")


def unit_directions(leaves: Sequence[Leaf], start: int, count: int) -> dict[int, Any]:
    """Unit directions start ... start + count along a leading axis, by position of the leaf; zeros are left out.

    A leaf of n complex numbers has 2 n directions: first 1 for each of them, then i.
    """
    dots: dict[int, Any] = {}
    begin = 0
    for leaf in leaves:
        low, high = max(start, begin), min(start + count, begin + leaf.directions)
        if low < high:
            dot = np.zeros((count, *leaf.shape), direction_type(leaf.x))
            k = np.arange(low, high)
            ones = np.where(k - begin < leaf.size, 1, 1j) if leaf.is_complex else 1
            dot.reshape(count, leaf.size)[k - start, (k - begin) % leaf.size] = ones
            dots[leaf.position] = dot
        begin += leaf.directions
    return dots


def seeds(y: Leaf) -> Iterator[Any]:
    """Weight 1 on each element of y in turn; then, if y is complex, weight i."""
    for one in (1, 1j) if y.is_complex else (1,):
        for k in range(y.size):
            if y.is_array:
                seed = np.zeros(y.shape, y.x.dtype)
                seed.flat[k] = one
                yield seed
            else:
                yield type(y.x)(one)


def direction_type(x: Any) -> Any:
    """The dtype of derivatives of a number or array."""
    if isinstance(x, (np.ndarray, np.generic)):
        return x.dtype
    return complex if isinstance(x, complex) else float


def entry_type(y: Leaf, x: Leaf) -> Any:
    """The dtype of dy/dx where it is an array: that of the two together; Python's numbers adapt."""
    known = [leaf.x.dtype for leaf in (y, x) if isinstance(leaf.x, (np.ndarray, np.generic))]
    if not known:
        return complex if y.is_complex or x.is_complex else float
    found = np.result_type(*known)
    return np.result_type(found, np.complex64) if y.is_complex or x.is_complex else found


def jacobian_entry(along_1: Any, along_i: Any, y: Leaf, x: Leaf, f: Any) -> Any:
    """dy/dx, from the derivatives along 1 and, for complex x, along i."""
    if along_i is None:
        return finished(along_1, y, x)
    if y.is_complex:
        check_holomorphic(along_1, along_i, f)
        return finished(along_1, y, x)
    return finished(here(recorded.along_both, along_1, along_i), y, x)


def wirtinger_entry(along_1: Any, along_i: Any, y: Leaf, x: Leaf, f: Any) -> Any:
    """dy/dx."""
    return finished(here(recorded.half_difference, along_1, along_i), y, x)


def conjugate_entry(along_1: Any, along_i: Any, y: Leaf, x: Leaf, f: Any) -> Any:
    """dy/dx*."""
    return finished(here(recorded.half_sum, along_1, along_i), y, x)


def finished(d: Any, y: Leaf, x: Leaf) -> Any:
    """An entry in its dtype; a Python number where y or x is one and neither is an array."""
    if y.is_array or x.is_array:
        dtype = entry_type(y, x)
        return d if isinstance(d, np.ndarray) and d.dtype == dtype else here(recorded.as_dtype, d, dtype)
    if isinstance(y.x, np.generic) and isinstance(x.x, np.generic):
        return d if isinstance(d, np.generic) else here(recorded.in_type, d, entry_type(y, x).type)
    return here(recorded.python_number, d) if isinstance(d, np.generic) else d


def check_holomorphic(along_1: Any, along_i: Any, f: Any) -> None:
    """The derivative along i is i times that along 1."""
    one, i = np.asarray(along_1), np.asarray(along_i)
    size = np.maximum(np.abs(one), np.abs(i))
    finite = size[np.isfinite(size)]
    if not finite.size:
        return
    eps = np.finfo(one.dtype if one.dtype.kind == "c" else complex).eps
    bound = np.sqrt(eps) * size + 1e3 * eps * finite.max()
    if np.any(np.abs(i - 1j * one) > bound):
        raise NotHolomorphicError(
            f"{getattr(f, '__name__', 'the function')} has no complex derivative here: along i it is not i times that "
            "along 1 (Cauchy-Riemann).\n  To go on: wirtinger(f) gives the derivatives by z and by its conjugate; "
            "jacobian of the real or imaginary part, or vjp, gives real ones.\n  See docs: errors#not-holomorphic"
        )


def leaf_gradient(f: Any, positions: tuple[int, ...], tier: Tier = "auto") -> Callable[..., tuple[Any, ...]]:
    """The gradient of `f` by several arguments as a flat tuple of its leaves."""
    gradient = value_and_grad(f, positions, tier=tier)

    @derives(f)
    def gradient_leaves(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        structures, leaves = structures_of([args[n] for n in positions_in(positions, args)])
        found: dict[int, Any] = {}
        for structure, x_bar in zip(structures, gradient(*args, **kwargs)[1], strict=True):
            found.update(leaf_values(structure, x_bar))
        return tuple([found[leaf.position] for leaf in leaves])

    return gradient_leaves


def _check_mode(mode: Any) -> None:
    if mode not in ("auto", "forward", "reverse"):
        raise ArgumentError(
            f'mode is "auto", "forward" or "reverse", not {mode!r}.\n  See docs: errors#argument'
        )


def _check_chunk(chunk_size: Any) -> None:
    if chunk_size is not None and (
        not isinstance(chunk_size, int) or isinstance(chunk_size, bool) or chunk_size < 1
    ):
        raise ArgumentError(
            f"chunk_size is a positive int, or None, not {chunk_size!r}.\n  See docs: errors#argument"
        )
