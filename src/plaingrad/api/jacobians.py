"""Jacobians, Hessians and products with them: whole derivatives, put together from many directions or weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, ParamSpec, TypeVar, overload

import numpy as np

from plaingrad.api.choice import Known
from plaingrad.api.gradients import at_point, grad, in_fastest, recorded_gradients, value_and_grad
from plaingrad.api.jacobian_entries import conjugate_entry, jacobian_entry, wirtinger_entry
from plaingrad.api.leaves import (
    Argnums,
    Branch,
    Leaf,
    active_positions,
    check_callable,
    described,
    filled,
    fitting_tangents,
    leaf_values,
    positions_in,
    positions_of,
    structures_of,
)
from plaingrad.api.looked_at import debugged, looked_at
from plaingrad.api.operator_objects import derives
from plaingrad.api.tiers import Tier, check_tier, chosen, in_tier, natively
from plaingrad.api.whole import Mode, Task
from plaingrad.engine.forward.push import in_core, push
from plaingrad.engine.memory.entries import is_of_floats
from plaingrad.engine.refusals import watch
from plaingrad.engine.reverse.run import Run
from plaingrad.engine.users_code.coroutines import awaitable, awaited, is_coroutine_function
from plaingrad.errors import ArgumentError, NativeError
from plaingrad.tangents import ZeroTangent

P = ParamSpec("P")
A = TypeVar("A")


@overload
def jacobian(
    f: Callable[P, tuple[Any, A]],
    argnums: Argnums = 0,
    mode: Mode = "auto",
    chunk_size: int | None = None,
    *,
    has_aux: Literal[True],
    tier: Tier = "auto",
    debug: bool = False,
    max_memory: float | None = None,
) -> Callable[P, tuple[Any, A]]: ...
@overload
def jacobian(
    f: Callable[P, Any],
    argnums: Argnums = 0,
    mode: Mode = "auto",
    chunk_size: int | None = None,
    has_aux: bool = False,
    tier: Tier = "auto",
    debug: bool = False,
    max_memory: float | None = None,
) -> Callable[P, Any]: ...
def jacobian(
    f: Callable[..., Any],
    argnums: Argnums = 0,
    mode: Mode = "auto",
    chunk_size: int | None = None,
    has_aux: bool = False,
    tier: Tier = "auto",
    debug: bool = False,
    max_memory: float | None = None,
) -> Callable[..., Any]:
    """The function that returns all partial derivatives of f's result: dy[i]/dx[j].

    Args:
        f: any Python callable. Its result may be a number, an array, or lists, tuples, dicts and objects of these.
        argnums: which positional argument to differentiate, or a tuple of several; of any structure, as for `grad`.
        mode: "forward" costs about a call of `f` for every few inputs, "reverse" one call and a pullback for every
            output; "auto" records a call to see what is cheaper (and obeys `prefer_mode`), and remembers that.
        chunk_size: how many directions are pushed together in forward mode. `f` is called once for each chunk.
        has_aux: `f` returns `(y, aux)`; `aux` is not differentiated and is returned beside the Jacobian.
        tier: as for `grad`. Natively, up to 16 columns are one sweep, at once or twice the cost of a loop over numbers.
        debug, max_memory: as for `grad`.

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
        >>> jacobian(lambda p: [p["a"] * p["b"], p["a"]])({"a": 3.0, "b": 4.0})
        [{'a': 4.0, 'b': 3.0}, {'a': 1.0, 'b': 0.0}]
    """
    check_callable(f, "jacobian")
    if is_coroutine_function(f):
        return awaitable(jacobian, f, argnums, mode, chunk_size, has_aux, tier, debug, max_memory)
    if debug or max_memory is not None:
        return looked_at(jacobian, f, (argnums, mode, chunk_size, has_aux), debug, False, max_memory)
    positions = positions_of(argnums)
    _check_options(mode, chunk_size, tier)
    if tier == "fastest":
        return in_fastest(jacobian, f, positions, argnums, mode, chunk_size, has_aux)
    known = Known()

    @derives(jacobian, f, argnums, mode, chunk_size, has_aux, tier)
    def jacobian_of(*args: Any, **kwargs: Any) -> Any:
        task = Task(f, args, kwargs, positions_in(positions, args), has_aux, known)
        native = natively(tier, f)
        if native is None or not task.solve_natively(native.jacobian, tier, mode, chunk_size, has_aux):
            task.f = in_tier(tier, f, args, "pullback")
            task.solve(mode, chunk_size)
        whole = task.assembled(jacobian_entry, isinstance(argnums, tuple))
        return (whole, task.aux) if has_aux else whole

    return jacobian_of


def jacfwd(
    f: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, tier: Tier = "auto"
) -> Callable[P, Any]:
    """`jacobian(f, argnums, mode="forward")`, under the name that JAX has for it.

    Examples:
        >>> jacfwd(lambda x: [x, x * x])(3.0)
        [1.0, 6.0]
    """
    return jacobian(f, argnums, "forward", None, has_aux, tier)


def jacrev(
    f: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, tier: Tier = "auto"
) -> Callable[P, Any]:
    """`jacobian(f, argnums, mode="reverse")`, under the name that JAX has for it.

    Examples:
        >>> jacrev(lambda x: x[0] * x[1])([3.0, 4.0])
        [4.0, 3.0]
    """
    return jacobian(f, argnums, "reverse", None, has_aux, tier)


def hessian(
    f: Callable[P, Any],
    argnums: Argnums = 0,
    chunk_size: int | None = None,
    tier: Tier = "auto",
    debug: bool = False,
) -> Callable[P, Any]:
    """The function that returns all second partial derivatives of f's result, a real number.

    The gradient (reverse mode) is pushed forward along each input, many together.

    Args:
        f: any Python callable that returns one real number.
        argnums: which positional argument to differentiate, or a tuple of several.
        chunk_size: how many directions are pushed together. The gradient is taken once for each chunk. None: with the
            compiled core one is pushed first, and the others one by one or together, by what the first one has met.
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
    if is_coroutine_function(f):
        return awaitable(hessian, f, argnums, chunk_size, tier, debug)
    if debug:
        return looked_at(hessian, f, (argnums, chunk_size), debug)
    positions = positions_of(argnums)
    _check_chunk(chunk_size)
    check_tier(tier)
    if tier == "fastest":
        return in_fastest(hessian, f, positions, argnums, chunk_size)

    @derives(hessian, f, argnums, chunk_size, tier)
    def hessian_of(*args: Any, **kwargs: Any) -> Any:
        task = Task(f, args, kwargs, positions_in(positions, args), False)
        native = natively(tier, f)
        if native is None or not task.solve_natively(native.hessian, tier, chunk_size, second=True):
            task.f = leaf_gradient(f, positions, tier, are_flat(task.x_structures))
            task.tries_one = task.directions > 1
            task.push_all(chunk_size)
        task.y_structure = task.x_structures
        return task.assembled(jacobian_entry, isinstance(argnums, tuple), second=True)

    return hessian_of


def hvp(
    f: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    tier: Tier = "auto",
    debug: bool = False,
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
    if is_coroutine_function(f):
        return awaited(hvp, f, primals, tangents, tier, debug)
    if debug:
        return debugged(hvp, f, primals, tangents, "plain")
    check_tier(tier)
    if tier == "fastest":
        words = f"hvp(fixed={moving(primals, tangents)[1]})"
        return at_point(words, f, primals, lambda t, args: hvp(f, args, tangents, t))  # type: ignore[no-any-return]
    dots = fitting_tangents(primals, tangents)
    active, fixed = moving(primals, tangents)
    native = natively(tier, f)
    if native is not None:
        try:
            return native.hvp(f, tuple(primals), dots, fixed)  # type: ignore[no-any-return]
        except NativeError:
            if tier == "native":
                raise
    pushed = None if fixed else hvp_in_core(f, tuple(primals), dots, tier)
    if pushed is not None:
        return pushed[1]  # type: ignore[no-any-return]
    return pushed_gradient_of(f, tuple(primals), dots, active, tier)


def pushed_gradient_of(
    f: Any, primals: tuple[Any, ...], dots: Any, active: tuple[int, ...], tier: Tier
) -> Any:
    """The gradient by the arguments `active`, pushed along `dots`: an entry for each argument."""
    structures, _ = structures_of([primals[n] for n in active])  # as it is before `f` changes it
    is_flat = are_flat(structures)
    _, y_dot = push(leaf_gradient(f, active, tier, is_flat), primals, dots, {})
    found_dots = dots_of_leaves(structures, y_dot, is_flat)

    def of_leaf(leaf: Leaf) -> Any:
        dot = found_dots.get(leaf.position)
        if dot is None or dot is ZeroTangent:
            return np.zeros_like(leaf.x) if leaf.is_array else type(leaf.x)(0)
        return dot

    made: dict[int, Any] = {}
    found = {n: filled(structure, of_leaf, made) for structure, n in zip(structures, active, strict=True)}
    return tuple([found.get(n) for n in range(len(primals))])


def hvp_in_core(f: Any, primals: tuple[Any, ...], dots: Any, tier: Tier) -> Any:
    """(gradients, their tangents) of arguments that are floats, lists and tuples of them, or arrays; None: not done."""
    if not all(type(x) is float or type(x) is np.ndarray or is_of_floats(x) for x in primals):
        return None
    if chosen(tier, f) is not None or getattr(f, "__plaingrad_mode__", None) == "forward":
        return None
    at = tuple(range(len(primals)))
    containers = {id(x) for x in primals if type(x) is list}
    if any(dot is ZeroTangent for dot in dots) or len(containers) != sum(type(x) is list for x in primals):
        return None
    return in_core(lambda *args: recorded_gradients(f, args, at, {})[1], primals, at, dots, {}, as_it_is=True)


def vhp(
    f: Callable[..., Any],
    primals: Sequence[Any],
    cotangents: Sequence[Any],
    tier: Tier = "auto",
    debug: bool = False,
) -> tuple[Any, ...]:
    """A weight times the Hessian of `f`, without the Hessian: the gradient, pulled back.

    The same numbers as `hvp`, for the Hessian is symmetric, by reverse mode alone: for functions with rules that
    have no forward half.

    Args:
        f: any Python callable that returns one real number.
        primals: its arguments, a tuple.
        cotangents: a weight for each, of the same structure and shapes; None for an argument held fixed, as for `hvp`.
        tier: as for `grad`; natively it is what `hvp` is.
        debug: as for `grad`.

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
    if debug:
        return debugged(vhp, f, primals, cotangents, "plain")  # type: ignore[no-any-return]
    check_tier(tier)
    if tier == "fastest":
        words = f"vhp(fixed={moving(primals, cotangents)[1]})"
        return at_point(words, f, primals, lambda t, args: vhp(f, args, cotangents, t))  # type: ignore[no-any-return]
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


def wirtinger(
    f: Callable[P, Any],
    argnums: int | tuple[int, ...] = 0,
    mode: Mode = "auto",
    tier: Tier = "auto",
    debug: bool = False,
) -> Callable[P, tuple[Any, Any]]:
    """The function that returns (df/dz, df/dz*): the derivatives by a complex argument and by its conjugate.

    With z = x + iy they are (df/dx - i df/dy) / 2 and (df/dx + i df/dy) / 2. For a holomorphic `f` the second is
    zero; for a real `f` it is half of `grad(f)`, and the first is its conjugate.

    Args:
        f: any Python callable.
        argnums: as for `jacobian`: the arguments meant, each complex: a number, an array, or a structure of these.
        mode: as for `jacobian`.
        tier: as for `grad`.
        debug: as for `grad`.

    Returns:
        A function of the same arguments as `f`. It returns a pair, each of the structure and shapes that `jacobian`
        returns.

    Raises:
        ArgumentError: an argument meant is not complex.

    Examples:
        >>> wirtinger(lambda z: z * z.conjugate())(3.0 + 4.0j)
        ((3-4j), (3+4j))
    """
    check_callable(f, "wirtinger")
    if debug:
        return looked_at(wirtinger, f, (argnums, mode), debug)
    positions = positions_of(argnums)
    _check_mode(mode)
    check_tier(tier)
    if tier == "fastest":
        return in_fastest(wirtinger, f, positions, argnums, mode)

    @derives(wirtinger, f, argnums, mode, tier)
    def wirtinger_pair(*args: Any, **kwargs: Any) -> Any:
        task = Task(f, args, kwargs, positions_in(positions, args), False)
        if not all(leaf.is_complex for leaf in task.x_leaves):
            real = next(leaf.x for leaf in task.x_leaves if not leaf.is_complex)
            raise ArgumentError(
                f"wirtinger needs a complex argument, not {described(real)}; pass complex(z), or "
                "z.astype(complex).\n  See docs: errors#argument"
            )
        native = natively(tier, f)
        if native is None or not task.solve_natively(native.jacobian, tier, mode, None):
            task.f = in_tier(tier, f, args, "pullback")
            task.solve(mode, None)
        several = isinstance(argnums, tuple)
        return task.assembled(wirtinger_entry, several), task.assembled(conjugate_entry, several)

    return wirtinger_pair


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


def are_flat(structures: list[Any]) -> bool:
    """Whether each argument is one number or array, or a list or tuple of floats, each of its own."""
    branches = [structure for structure in structures if type(structure) is not Leaf]
    return len({id(branch) for branch in branches}) == len(branches) and all(
        type(branch) is Branch and is_of_floats(branch.x) for branch in branches
    )


def dots_of_leaves(structures: list[Any], y_dot: Any, flat: bool) -> dict[int, Any]:
    """The entries of the tangent of what `leaf_gradient` gave, by the positions of their leaves."""
    if y_dot is None or y_dot is ZeroTangent:
        return {}
    if not flat:
        return dict(enumerate(y_dot))
    found: dict[int, Any] = {}
    for structure, part in zip(structures, y_dot, strict=True):
        found.update(leaf_values(structure, part))
    return found


def leaf_gradient(
    f: Any, positions: tuple[int, ...], tier: Tier = "auto", flat: bool = False
) -> Callable[..., tuple[Any, ...]]:
    """The gradient of `f` by several arguments as a tuple of its leaves, in order; `flat`: they are so as it is.

    It has no attribute of `f`, and so is plaingrad's own, which only moves references: it does not run rewritten. Where
    somebody looks on, who compares it with a plain call, it is a function like any other.
    """
    gradient = value_and_grad(f, positions, tier=tier)
    if flat:
        pushed: Callable[..., Any] = lambda *args, **kwargs: gradient(*args, **kwargs)[1]
        return pushed if watch.observer is None else derives(grad, f)(pushed)

    def gradient_leaves(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        structures, leaves = structures_of([args[n] for n in positions_in(positions, args)])
        found: dict[int, Any] = {}
        for structure, x_bar in zip(structures, gradient(*args, **kwargs)[1], strict=True):
            found.update(leaf_values(structure, x_bar))
        return tuple([found[leaf.position] for leaf in leaves])

    return gradient_leaves if watch.observer is None else derives(grad, f)(gradient_leaves)


def _check_mode(mode: Any) -> None:
    if mode not in ("auto", "forward", "reverse"):
        raise ArgumentError(
            f'mode is "auto", "forward" or "reverse", not {mode!r}.\n  See docs: errors#argument'
        )


def _check_options(mode: Any, chunk_size: Any, tier: Any) -> None:
    _check_mode(mode)
    _check_chunk(chunk_size)
    check_tier(tier)


def _check_chunk(chunk_size: Any) -> None:
    if chunk_size is not None and (
        not isinstance(chunk_size, int) or isinstance(chunk_size, bool) or chunk_size < 1
    ):
        raise ArgumentError(
            f"chunk_size is a positive int, or None, not {chunk_size!r}.\n  See docs: errors#argument"
        )
