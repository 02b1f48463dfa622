"""Rules by hand: entering them, applying them, taking them out."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType
from typing import Any, TypeVar, overload

import numpy as np

from plaingrad import define, rulebook
from plaingrad.engine.batches.mapped import OF_LEAVES
from plaingrad.engine.calls.stop import stopped
from plaingrad.engine.users_code import adopt
from plaingrad.errors import RuleError
from plaingrad.extend.annotations import types_of
from plaingrad.extend.derived import WRITTEN, DerivedRule, apply_frule, apply_rrule
from plaingrad.extend.opened import Opened
from plaingrad.rule_data import Rule, name_of
from plaingrad.tangents import Dual
from plaingrad.updating import Updating

F = TypeVar("F", bound=Callable[..., Any])
Mutated = int | str | Sequence[int | str]
MANY = 32  # arguments


@overload
def rrule(f: Callable[..., Any], /, *, mutates: Mutated = (), always: bool = ...) -> Callable[[F], F]: ...
@overload
def rrule(
    f: Callable[..., Any], /, *args: Any, **kwargs: Any
) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]: ...
def rrule(f: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Decorate the reverse rule of `f`; or, with arguments, apply the rule of `f`: `rrule(f, *args) -> (y, pullback)`.

    The decorated rule is `rule(*args, **kwargs) -> (y, pullback)`. `pullback(y_bar)` returns a tuple with one cotangent
    per positional parameter of the rule; `NoTangent` for one without tangent, `ZeroTangent` for a zero,
    `Thunk(compute)` for one that is to be computed only if asked for, a `Tangent` or dict of its fields for an object.
    It takes effect at once. If the parameters are annotated with classes, the rule is for arguments of these; where it
    returns `NotImplemented`, it declines, and the next one is asked. See
    :doc:`/how-to/write-a-rule`.

    Applied, `pullback(y_bar)` returns the cotangent of `f` itself first: `NoTangent` for a plain function, a `Tangent`
    of its fields for a callable object, of `__self__` for a bound method, of the captured variables for a closure. Then
    one for each argument. Where `f` has no rule, one is derived from its bytecode. Keyword arguments are constants.

    Args:
        f: the callable that the rule is for; for a method, `Class.method`; for a property, the property.
        args: the arguments to apply it to.
        kwargs: keyword arguments of `f`; or, for the decorator, `mutates`: the parameters, by position or name, that
            `f` writes into. The rule then writes into them too (it gets copies, whose contents are taken over), and
            its pullback gets a cotangent of the new contents of each after `y_bar`, and returns those of the old.
            `always=True`: while a derivative is taken the rule is asked for every call, not only where an argument
            depends on what is differentiated.

    Raises:
        RuleError: `f` is not callable, an annotation cannot be resolved, or what a rule returns is no rule's result.

    Examples:
        >>> import plaingrad
        >>> from plaingrad import rrule
        >>> def clipped(x): return x
        >>> @rrule(clipped)
        ... def clipped_rrule(x):
        ...     return x, lambda y_bar: (max(-1.0, min(1.0, y_bar)),)
        >>> plaingrad.grad(lambda x: 10.0 * clipped(x))(3.0)
        1.0
        >>> y, pullback = rrule(clipped, 3.0)
        >>> pullback(10.0)
        (NoTangent, 1.0)
    """
    if args:
        return apply_rrule(_checked(f), args, kwargs)
    mutates, always = _options("rrule", kwargs)

    def enter(rule: F) -> F:
        function = filed_under(f)
        if isinstance(rule, DerivedRule):
            _enter_derived(function, rule, "rrule")
            return rule  # type: ignore[return-value]
        types = types_of(rule)
        common = _common(rule, types, always)
        if mutates:
            _enter_updating_rrule(_updating(function, mutates, _positional(rule), types), rule, common)
        else:
            enter_rule(Rule(function, "full", rule, **_forward_half(function, types), **common))
        return rule

    _checked(f)
    return enter


@overload
def frule(f: Callable[..., Any], /, *, mutates: Mutated = (), always: bool = ...) -> Callable[[F], F]: ...
@overload
def frule(f: Dual[Any], /, *duals: Dual[Any], **kwargs: Any) -> Dual[Any]: ...
def frule(f: Any, /, *duals: Any, **kwargs: Any) -> Any:
    """Decorate the forward rule of `f`; or apply one: `frule(Dual(f, df), Dual(x, dx), ...) -> Dual(y, dy)`.

    The decorated rule is `rule(Dual(f, df), Dual(x, x_dot), ..., **options) -> Dual(y, y_dot)`: every positional
    parameter gets a pair, a keyword-only one the value alone. The tangents in the pairs are written out: zeros for
    what does not vary, `NoTangent` for what has no tangent. y_dot must be linear in them. Where `f` writes into an
    argument (`mutates`), the rule writes into its primal and its tangent; it gets copies, and their contents are taken
    over.

    Applied, the tangent of `f` comes first: `NoTangent` for a plain function, else a `Tangent` of its fields, captured
    variables or `__self__`. Where `f` has no rule, the tangents are pushed through its bytecode. Tangents of arrays,
    lists, dictionaries, objects and closures that `f` writes into are updated in place.

    A rule that is given in one mode serves the other: its linear map is transposed by differentiating it.

    Args:
        f: the callable that the rule is for, or its pair.
        duals: the arguments, as pairs.
        kwargs: keyword arguments of `f`, constants; or, for the decorator, `mutates` as in `rrule`.

    Raises:
        RuleError: `f` is not callable, an annotation cannot be resolved, or what a rule returns is no pair.
        TangentError: a tangent does not fit its primal.

    Examples:
        >>> import plaingrad
        >>> from plaingrad import Dual, NoTangent, frule
        >>> def square(x): return x * x
        >>> @frule(square)
        ... def square_frule(f, x):
        ...     return Dual(x.primal**2, 2 * x.primal * x.tangent)
        >>> frule(Dual(square, NoTangent), Dual(3.0, 1.0))
        Dual(primal=9.0, tangent=6.0)
        >>> plaingrad.grad(square)(3.0)
        6.0
    """
    if duals or type(f) is Dual:
        return apply_frule((f, *duals), kwargs)
    mutates, always = _options("frule", kwargs)

    def enter(rule: F) -> F:
        function = filed_under(f)
        if isinstance(rule, DerivedRule):
            _enter_derived(function, rule, "frule")
            return rule  # type: ignore[return-value]
        types = types_of(rule, duals=True)
        names = _positional(rule)[1:]
        step = define.dual_step(function, rule, names)
        common = _common(rule, types, always)
        if mutates:
            _enter_updating_step(_updating(function, mutates, names, types), step, common)
        else:
            _enter_half(function, common, frule=define.frule_of_steps(step), dual=step, names=names)
        return rule

    _checked(f)
    return enter


def _common(rule: Any, types: Any, always: bool) -> dict[str, Any]:
    """What the entries of a rule and of its half have in common."""
    return {"users": True, "types": types, "source": define._source_of(rule), "always": always}


def _enter_updating_rrule(updating: Updating, rule: Callable[..., Any], common: dict[str, Any]) -> None:
    """Enter a reverse rule of a function that writes into its arguments."""
    half = {**common, "types": None}
    _enter_half(updating.updated, half, rrule=updating.rrule(rule), names=updating.names)
    enter_rule(Rule(updating.function, "composed", definition=updating.definition, mutates=True, **common))


def _forward_half(function: Any, types: Any) -> dict[str, Any]:
    """The forward half that a program has given for these types: it stays when the reverse one is entered."""
    known = rulebook.same_types(function, types)
    if known is None or not known.users or known.kind != "full" or known.frule is None:
        return {}
    return {"frule": known.frule, "dual": known.dual}


def _enter_updating_step(updating: Updating, step: Callable[..., Any], common: dict[str, Any]) -> None:
    """Enter a forward rule in one step of a function that writes into its arguments."""
    step = updating.step(step)
    half = {**common, "types": None}
    _enter_half(updating.updated, half, frule=define.frule_of_steps(step), dual=step, names=updating.names)
    enter_rule(Rule(updating.function, "composed", definition=updating.definition, mutates=True, **common))


def defined_as(f: Callable[..., Any], *, pure: bool = False) -> Callable[[F], F]:
    """Decorate a Python definition of `f`: where a derivative is taken it runs in place of `f`, as ordinary code.

    The simplest rule for a function in C that has an equal in Python, and for one that writes into its arguments: the
    definition says in plain assignments what is written, so derivatives of every mode and order follow.

    Args:
        f: the callable that is defined.
        pure: `f` writes into none of its arguments, so that it may be called itself where these do not matter.

    Examples:
        >>> import plaingrad, numpy as np
        >>> def multiply_into(z, x, y): np.multiply(x, y, out=z)
        >>> @plaingrad.defined_as(multiply_into)
        ... def definition(z, x, y):
        ...     z[...] = x * y
        >>> def energy(x):
        ...     z = np.empty(2)
        ...     multiply_into(z, x, x)
        ...     return z.sum()
        >>> plaingrad.grad(energy)(np.array([1.0, 2.0]))
        array([2., 4.])
    """
    _checked(f)

    def enter(definition: F) -> F:
        enter_rule(
            Rule(
                filed_under(f),
                "composed",
                definition=definition,
                mutates=not pure,
                source=define._source_of(definition),
                users=True,
                types=types_of(definition),
            )
        )
        return definition

    return enter


def remove_rule(f: Callable[..., Any]) -> None:
    """Take out what the program has entered for `f`, for all types of arguments; plaingrad's own rule is back, if any.

    Raises:
        RuleError: the program has entered none.

    Examples:
        >>> import math, plaingrad
        >>> plaingrad.scalar_rule(math.sin, lambda x, z: 100.0)
        >>> plaingrad.grad(math.sin)(0.0)
        100.0
        >>> plaingrad.remove_rule(math.sin)
        >>> plaingrad.grad(math.sin)(0.0)
        1.0
    """
    function = filed_under(f)
    rule = rulebook.uncover(function)
    if rule is None:
        raise RuleError(f"no rule of this program is for {name_of(f)}.\n  See docs: errors#rule")
    for one in rule.variants or (rule,):
        updating = getattr(one.definition, "updating", None)
        if updating is not None:
            rulebook.remove(updating.updated)
    adopt.rules_changed(function)


def scalar_rule(f: Callable[..., Any], *partials: Any, domain: Any = None) -> None:
    """Enter a function of numbers by its partial derivatives.

    Args:
        f: a function of one or more numbers, elementwise on arrays if it takes them.
        partials: one per argument: a number, or `partial(*args, z)` with `z = f(*args)`; `None` (or nothing, at the
            end) for an argument without tangent: one that depends on the inputs is then refused.
        domain: for each argument a tuple of sample points where `f` is smooth; `testing.check_rule` uses them.

    Raises:
        RuleError: `f` is not callable, or something that is no partial derivative is among `partials`.

    Examples:
        >>> import math, plaingrad
        >>> def softplus(x): return math.log1p(math.exp(x))
        >>> plaingrad.scalar_rule(softplus, lambda x, z: 1 / (1 + math.exp(-x)))
        >>> plaingrad.grad(softplus)(0.0)
        0.5
    """
    name = getattr(f, "__name__", repr(f))
    if not partials:
        raise RuleError(
            f"scalar_rule({name}, ...) needs one partial derivative for each argument.\n  See docs: errors#rule"
        )
    for n, partial in enumerate(partials):
        if not (
            partial is None or callable(partial) or isinstance(partial, (int, float, complex, np.number))
        ):
            raise RuleError(
                f"partial derivative {n} given to scalar_rule({name}, ...) is a {type(partial).__name__}; it must be "
                "a number, or a function of the arguments and the result.\n  See docs: errors#rule"
            )
    full = (*partials, *[None] * (_most_arguments(f) - len(partials)))
    row = [
        define.missing_partial(name, n) if p is None else define.without_module(p) for n, p in enumerate(full)
    ]
    _enter_row(f, lambda function: define.scalar("", domain, *row, functions=(function,)))


def _most_arguments(f: Any) -> int:
    """How many positional arguments `f` takes; where that is not known, more than anybody gives."""
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return len(f.argtypes) if isinstance(getattr(f, "argtypes", None), (list, tuple)) else MANY
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return MANY
    return sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)


def linear_rule(f: Callable[..., Any], adjoint: Callable[..., Any]) -> None:
    """Enter a function that is linear in its first argument: x_bar = adjoint(y_bar, x, *others).

    Examples:
        >>> import plaingrad
        >>> def double(x): return 2 * x
        >>> plaingrad.linear_rule(double, lambda y_bar, x: 2 * y_bar)
        >>> plaingrad.grad(double)(5.0)
        2.0
    """
    if not callable(adjoint):
        raise RuleError(
            f"the adjoint given to linear_rule({getattr(f, '__name__', repr(f))}, adjoint) is a "
            f"{type(adjoint).__name__}; it must be a function adjoint(y_bar, x, *others).\n  See docs: errors#rule"
        )
    _enter_row(f, lambda function: define.linear(function, adjoint))


def nondifferentiable(f: F) -> F:
    """Declare that results of `f` do not depend differentiably on its arguments; returns `f`, so it decorates too.

    Examples:
        >>> import plaingrad
        >>> @plaingrad.nondifferentiable
        ... def bucket(x): return float(int(x))
        >>> plaingrad.grad(lambda x: x * bucket(x))(2.5)
        2.0
    """
    _checked(f)
    target = getattr(f, "__func__", f)  # of a static or class method

    @functools.wraps(target)
    def constant(*args: Any, **kwargs: Any) -> Any:
        return stopped(target(*args, **kwargs))

    def constant_rrule(*args: Any, **kwargs: Any) -> Any:
        return constant(*args, **kwargs), lambda y_bar: ()

    function = filed_under(f)
    source = define._source_of(function)
    enter_rule(Rule(function, "no_tangent", constant_rrule, definition=constant, source=source, users=True))
    return f


def stop_gradient(x: Any) -> Any:
    """`x`, with no derivative: numbers and arrays are copied, containers rebuilt; at every level.

    Examples:
        >>> import plaingrad
        >>> plaingrad.grad(lambda x: x * plaingrad.stop_gradient(x))(3.0)
        3.0
    """
    return stopped(x)


OF_LEAVES.add(stop_gradient)

# -- entering ----------------------------------------------------------------------------------------------------------


def _checked(f: Any) -> Any:
    if not callable(f) and not isinstance(f, (property, staticmethod, classmethod)):
        raise RuleError(f"a rule is about a callable, not {f!r}.\n  See docs: errors#rule")
    return f


def filed_under(f: Any) -> Any:
    """What a rule for `f` is filed under: the function of a class method, static method or property.

    Raises:
        RuleError: `f` is a method bound to one object.
    """
    if isinstance(f, property):
        if f.fget is None:
            raise RuleError("a rule for a property is about reading it, and this one cannot be read")
        return f.fget
    if isinstance(f, (staticmethod, classmethod)):
        return f.__func__
    if type(f) is MethodType:
        if isinstance(f.__self__, type):
            return f.__func__
        cls = type(f.__self__).__qualname__
        raise RuleError(
            f"{name_of(f)} is bound to one object; give the rule for {cls}.{f.__func__.__name__}, with the object as "
            "its first parameter.\n  See docs: errors#rule"
        )
    return f


def _options(name: str, kwargs: dict[str, Any]) -> tuple[tuple[int | str, ...], bool]:
    """The options of a decorator: what is written, and whether the rule is asked in any case."""
    mutates, always = kwargs.pop("mutates", ()), bool(kwargs.pop("always", False))
    if kwargs:
        raise RuleError(
            f"{name}(f) is a decorator; to apply a rule, pass arguments of the function by position "
            f"(got only {', '.join(kwargs)} by name).\n  See docs: errors#rule"
        )
    return (mutates,) if isinstance(mutates, (int, str)) else tuple(mutates), always


def _positional(rule: Callable[..., Any]) -> tuple[str, ...]:
    try:
        parameters = inspect.signature(rule).parameters.values()
    except (TypeError, ValueError):
        return ()
    kinds = inspect.Parameter
    return tuple(p.name for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD))


def _updating(function: Any, mutates: tuple[int | str, ...], names: tuple[str, ...], types: Any) -> Updating:
    """`function` taken apart, the same for both halves of its rule."""
    positions = []
    for which in mutates:
        if isinstance(which, str):
            if which not in names:
                raise RuleError(f"mutates names {which!r}; the parameters of the rule are {', '.join(names)}")
            which = names.index(which)
        positions.append(which)
    known = rulebook.same_types(function, types)
    updating = getattr(known and known.definition, "updating", None)
    if updating is not None and updating.positions == tuple(sorted(positions)):
        return updating
    return Updating(function, tuple(sorted(positions)), names)


def _enter_half(function: Any, common: dict[str, Any], **half: Any) -> None:
    """Enter one half of a rule. A forward half leaves the reverse half as it was, also plaingrad's own."""
    known = rulebook.same_types(function, common["types"])
    kept = {}
    if known is not None and known.kind in WRITTEN:
        if "frule" in half:
            kept = {"rrule": known.rrule}
            if known.rrule is not None:
                half.pop("names")
        elif known.users:
            kept = {"frule": known.frule, "dual": known.dual}
    enter_rule(Rule(function, "full", **kept, **half, **common))


def _enter_derived(function: Any, rule: DerivedRule, half: str) -> None:
    """Enter a derived rule: the tangent of the function that it was derived from is left out, and must not exist."""
    if rule.mode != half:
        raise RuleError(f"{rule!r} cannot be entered by {half}.\n  See docs: errors#rule")
    if Opened(rule.f).has_state:
        raise RuleError(
            f"{rule!r} is of a callable that holds numbers, whose derivatives a rule of {name_of(function)} would "
            "lose.\n  To go on: pass them as arguments.\n  See docs: errors#rule"
        )
    common: dict[str, Any] = {"users": True, "types": None, "source": rule.source}
    names = _positional(rule)
    if half == "rrule":
        _enter_half(function, common, rrule=define.rrule_of_derived(rule), names=names)
    else:
        step = define.step_of_derived(rule, rule.f)
        _enter_half(function, common, frule=define.frule_of_steps(step), dual=step, names=names)


def _enter_row(f: Any, enter: Callable[[Any], None]) -> None:
    """Enter a row of mathematics as the program's own."""
    function = filed_under(_checked(f))
    with rulebook.entering_for_user(define._source(3)):
        enter(function)
    adopt.rules_changed(function)


def enter_rule(rule: Rule) -> None:
    """Enter a rule of the program."""
    rulebook.add(rule)
    if type(rule.function) is FunctionType:
        adopt.rules_changed(rule.function)
