"""Rules pushed forward: rows, linear and bilinear functions, any other by its pushforward or transposed pullback."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad.define import module_for, pair_of
from plaingrad.engine.calls.rule_application import argument_at
from plaingrad.engine.forward import pushing
from plaingrad.engine.forward.tangents import Tangents
from plaingrad.engine.memory.kinds import ARRAY, NOTHING, NUMBER, is_heap, kind_of
from plaingrad.engine.memory.memory import owner_of
from plaingrad.engine.refusals.refuse import missing_rule
from plaingrad.engine.refusals.rule_faults import here, name_rule
from plaingrad.engine.reverse.run import Run
from plaingrad.engine.reverse.transpose import pushforward_of
from plaingrad.rewrite import PLAIN, in_force
from plaingrad.rulebook import Rule
from plaingrad.tangents import ZeroTangent


class ForwardRules(Tangents):
    """What a forward level does with a function that has a rule, where an argument has a tangent."""

    __slots__ = ()

    def by_rule(
        self, rule: Rule, f: Any, args: Any, kwargs: dict[str, Any], inputs: Any, numbers: bool
    ) -> Any:
        """The primal, and the tangent of the result filed under it."""
        if rule.frule is None:
            if rule.kind == "scalar":
                return (
                    self.push_numbers(rule, f, args, inputs)
                    if numbers
                    else self.push_row(rule, f, args, inputs)
                )
            if rule.kind == "linear":
                return self.push_linear(rule, f, args, kwargs, inputs)
            if rule.kind == "bilinear":
                return self.push_bilinear(rule, f, args, kwargs, inputs)
        return self.push_full(rule, f, args, kwargs, inputs)

    def by_exchange(self, xs: list[Any], ys: list[Any], exchange: Any) -> list[Any]:
        """Tangents are exchanged, too, by every rank that took part."""
        if not self.follows_processes and getattr(exchange, "weight", None) is not None:
            missing_rule(type(exchange), "Taylor coefficients pass through reductions of ranks by sums only.")
        dots: list[Any] = []
        for x in xs:
            slot = self.slot_of(x)
            x_dot = ZeroTangent if slot is None else self.dot_at(slot, x)
            dots.append(None if x_dot is ZeroTangent else x_dot)
        y_dots = self.outside(type(exchange).push, exchange, dots)
        return [y if y_dot is None else self.file(y, y_dot) for y, y_dot in zip(ys, y_dots, strict=True)]

    def push_numbers(self, rule: Rule, f: Any, args: tuple[Any, ...], inputs: Any) -> Any:
        """A scalar row on numbers."""
        z = self.native(f, args, {})
        if (kind_of(type(z)) != NUMBER and type(z) is not np.ndarray) or id(z) in self.index:
            return z  # an integer, or the very argument
        positions = [position for position, _ in inputs]
        dots = [slot.index for _, slot in inputs]
        m = module_for(f, args)
        z_dot = self.computed(pushing.row, rule.partials, m, args, z, positions, dots, self.lead)
        return z if z_dot is None else self.file(z, z_dot)

    def push_row(self, rule: Rule, f: Any, args: tuple[Any, ...], inputs: Any) -> Any:
        """A scalar row on arrays, elementwise."""
        z = self.native(f, args, {})
        if self._is_settled(z, args, rule):
            return self._settled(z, args)
        positions, dots = self._varying(inputs, args)
        if not positions:
            return z
        m = module_for(f, args)
        z_dot = self.computed(pushing.row, rule.partials, m, args, z, positions, dots, self.lead)
        return self.file(z, z_dot, rule.own and not any(z_dot is x_dot for x_dot in dots))

    def _varying(self, inputs: Any, args: Any) -> tuple[list[int], list[Any]]:
        found = [(position, self.dot_at(slot, args[position])) for position, slot in inputs]
        found = [(position, x_dot) for position, x_dot in found if x_dot is not ZeroTangent]
        return [position for position, _ in found], [x_dot for _, x_dot in found]

    def push_linear(self, rule: Rule, f: Any, args: Any, kwargs: dict[str, Any], inputs: Any) -> Any:
        """A function linear in its first argument."""
        self._only(rule, inputs, 1)
        y = self.native(f, args, kwargs)
        if len(args) > 1 and y is args[1] and getattr(f, "__name__", "") in ("conj", "conjugate"):
            missing_rule(f, "It was given its output array by position; pass it by keyword, out=...")
        if self._is_settled(y, args, rule) or (type(y) is np.ndarray and self.owns_region(owner_of(y))):
            return self._settled(y, args)
        x_dot = self.dot_at(inputs[0][1], args[0])
        if x_dot is ZeroTangent:
            return y
        if rule.chunked_frule is not None and self.lead:
            return self.push_full(rule, f, args, kwargs, inputs)
        y_dot = self.computed(pushing.linear, f, args[0], x_dot, args[1:], kwargs, self.lead)
        return self.file(y, y_dot, y_dot is not x_dot)

    def push_bilinear(self, rule: Rule, f: Any, args: Any, kwargs: dict[str, Any], inputs: Any) -> Any:
        """A function linear in each of its first two arguments."""
        self._only(rule, inputs, 2)
        if rule.chunked_frule is not None and self.lead:
            return self.push_full(rule, f, args, kwargs, inputs)
        a, b = (argument_at(rule, position, args, kwargs) for position in (0, 1))
        y = self.native(f, args, kwargs)
        positions, dots = self._varying(inputs, (a, b))
        if not positions:
            return y
        found = dict(zip(positions, dots, strict=True))
        named = rule.parameters[:2]
        options = {name: x for name, x in kwargs.items() if name not in named}
        y_dot = self.computed(
            pushing.bilinear, f, a, b, found.get(0), found.get(1), args[2:], options, self.lead
        )
        return self.file(y, y_dot, True)

    def _only(self, rule: Rule, inputs: Any, count: int) -> None:
        for position, _ in inputs:
            if position >= count:
                missing_rule(
                    rule.function,
                    f"Its argument {position} depends on the inputs, and the rule knows no derivative for it.",
                )

    def push_full(self, rule: Rule, f: Any, args: Any, kwargs: dict[str, Any], inputs: Any) -> Any:
        """Any rule, by its pushforward or the transpose of its pullback."""
        positions = [position for position, _ in inputs]
        xs = [argument_at(rule, position, args, kwargs) for position in positions]
        dots = [self.dot_at(slot, x) for (_, slot), x in zip(inputs, xs, strict=True)]
        chunked = bool(self.lead) and rule.chunked_frule is not None
        frule = rule.chunked_frule if chunked else rule.frule
        if frule is not None:
            count = max(len(args), len(rule.parameters), *[position + 1 for position in positions])
            every: list[Any] = [ZeroTangent] * count
            for position, x_dot in zip(positions, dots, strict=True):
                every[position] = x_dot
            if rule.dual is not None and not self.lead:
                try:
                    y, y_dot = self.outside(rule.dual, args, every, kwargs)
                except Exception as error:
                    if rule.users:
                        name_rule(error, rule, "frule", here())
                    raise
                return self._settled(y, args) if self._is_settled(y, args, rule) else self.file(y, y_dot)
            y, push = pair_of(rule, self.outside(frule, *args, **kwargs), "frule", "pushforward")
            if self._is_settled(y, args, rule) or (
                rule.kind == "linear" and type(y) is np.ndarray and self.owns_region(owner_of(y))
            ):
                return self._settled(y, args)
            part, push_dots = "pushforward", self.computed
            if self.parent is PLAIN and is_heap(type(f)):  # its own methods may run rewritten now
                push_dots = functools.partial(in_force, PLAIN, self.computed)
            work: tuple[Any, ...] = (pushing.by_pushforward, push, tuple(every), self.lead, chunked)
        else:
            assert rule.rrule is not None
            y, pullback = pair_of(rule, self.outside(rule.rrule, *args, **kwargs))
            if self._is_settled(y, args, rule):
                return self._settled(y, args)
            part, push_dots = "pullback", self.beside
            work = (self._transposed, pullback, y, positions, xs, dots, rule)
        try:
            y_dot = push_dots(*work)
        except Exception as error:
            if rule.users:
                name_rule(error, rule, part, here())
            raise
        return self.file(y, y_dot, rule.own and not any(y_dot is x_dot for x_dot in dots))

    def _is_settled(self, y: Any, args: Any, rule: Rule) -> bool:
        """Whether a result needs no tangent of its own: no number, an array of objects, one of the arguments.

        What the rule of a user gives for an argument that it returns counts, though (a reversed gradient, say).
        """
        kind = kind_of(type(y))
        if kind == NOTHING or (kind == ARRAY and y.dtype.kind in "mO"):
            return True
        return any(y is x for x in args) and not (rule.users and rule.kind == "full")

    def _settled(self, y: Any, args: Any) -> Any:
        """Such a result, or a view; the objects made of an active array are numbers that carry its tangents."""
        if type(y) is np.ndarray and y.dtype.kind == "O" and type(args[0]) is np.ndarray:
            return self.to_objects(args[0])
        return y

    def _transposed(self, pullback: Any, y: Any, positions: Any, xs: Any, dots: Any, rule: Rule) -> Any:
        push = pushforward_of(Run, pullback, y, positions, xs, rule.name, rule.users)
        if not self.lead:
            return push(dots)
        each = [push([self.outside(pushing.chosen, x_dot, k) for x_dot in dots]) for k in range(self.lead[0])]
        return pushing.stacked(each) if self.parent is PLAIN else self.outside(pushing.stacked, each)

    def beside(self, f: Callable[..., Any], *args: Any) -> Any:
        """f(*args), engine code that is not rewritten, with the next level out in force."""
        return in_force(self.parent, f, *args)
