"""Taylor arithmetic: a forward level whose tangents are Taylor coefficients 1..n, on the leading axis of a chunk.

What is linear, and all that concerns memory, treats the coefficients as so many tangents. The functions of
`taylor.jet_rows` have recurrences of their own. Every other rule is a differential equation for its result,
y' = pushforward(x(t)) x'(t): its right-hand side, evaluated with series of order k - 1, gives coefficient k.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from plaingrad import rulebook
from plaingrad.class_keys import is_own_key
from plaingrad.copying import shallow_copy
from plaingrad.define import module_for, pair_of
from plaingrad.engine.calls.rule_application import OF_SYSTEMS, argument_at
from plaingrad.engine.compiled import core
from plaingrad.engine.forward import pushing
from plaingrad.engine.forward.forward import ForwardLevel
from plaingrad.engine.forward.tangents import QUIET
from plaingrad.engine.fusion.own_operators import own_operators
from plaingrad.engine.memory.kinds import ARRAY, MAPPING, NOTHING, NUMBER, OBJECT, SEQUENCE, kind_of
from plaingrad.engine.refusals.refuse import missing_rule
from plaingrad.engine.reverse.run import Run
from plaingrad.engine.reverse.transpose import pushforward_of
from plaingrad.engine.taylor import jet_rows
from plaingrad.engine.taylor.hot_jets import hot_jets
from plaingrad.engine.taylor.jet_rows import DIRECT, JETS, MULTILINEAR
from plaingrad.engine.values.fresh import has_attributes, put_field, rebuilt
from plaingrad.rewrite import PLAIN
from plaingrad.rulebook import Rule
from plaingrad.tangents import NoTangent, Tangent, ZeroTangent, unthunk
from plaingrad.tangents.fields import fields_of
from plaingrad.tangents.project import for_numpy


class JetLevel(ForwardLevel):
    """Taylor coefficients of everything that depends on t; its chunk is the order.

    Attributes:
        known: while the right-hand side of a rule's equation is evaluated: (rule, arguments, keyword arguments,
            result, coefficients of it), with nan for the coefficients that are still unknown.
        shared: coefficients that one row's partial derivatives, and theirs in turn, have asked for; see `_key`.
        tokens: what the arguments of that row are called in keys, by identity.
    """

    __slots__ = ("known", "shared", "tokens")

    has_hot_hooks = False  # those of tangents
    takes_native_rules = False  # their tangents are no derivatives
    follows_processes = False  # a coefficient depends on all before it

    def __init__(self, parent: Any, chunk: int | None = None) -> None:
        self.known: Any = None
        self.shared: dict[Any, Any] | None = None
        self.tokens: dict[int, Any] = {}
        super().__init__(parent, chunk)

    def empty(self) -> None:
        """As of any level, with what one derivative has asked for."""
        super().empty()
        self.known = self.shared = None
        self.tokens = {}

    @property
    def order(self) -> int:
        """How many coefficients are carried."""
        return self.lead[0]

    def hot_hooks(self) -> dict[str, Any]:
        """Arithmetic and functions of Python floats, where no derivative is taken further out."""
        if self.parent is not PLAIN:
            return {"unary": None}
        if core is not None:
            self.recorder = core.JetPusher(self)
            self.index = self.recorder.index
            return self.recorder.hooks()
        return hot_jets(self)

    def choose_arithmetic(self) -> None:
        """As for tangents, with hooks of our own."""
        super().choose_arithmetic()
        own = own_operators(rulebook.changes())[0] if self.parent is PLAIN else ()
        for name in own:
            if name in self.hot:
                setattr(self, name, self.hot[name])

    def by_rule(
        self, rule: Rule, f: Any, args: Any, kwargs: dict[str, Any], inputs: Any, numbers: bool
    ) -> Any:
        """The primal, and the coefficients of the result filed under it."""
        if f in OF_SYSTEMS:
            missing_rule(f, "PyTorch and JAX have no Taylor coefficients: nest grad, jvp or hvp instead.")
        if self.known is not None and self.is_known(rule, args, kwargs):
            return filed(self, *self.known[3:], rule)
        if rule.kind == "scalar" and rule.partials and not kwargs:
            return (self.push_numbers if numbers else self.push_row)(rule, f, args, inputs)
        if rule.kind == "linear" and rule.frule is None:
            return self.push_linear(rule, f, args, kwargs, inputs)
        if rule.kind == "bilinear":
            return self.push_bilinear(rule, f, args, kwargs, inputs)
        return self.push_full(rule, f, args, kwargs, inputs)

    def is_known(self, rule: Rule, args: Any, kwargs: dict[str, Any]) -> bool:
        """Whether the coefficients of this call are those that are being found: a rule that calls its function."""
        known, known_args, known_kwargs = self.known[:3]
        return (
            known is rule
            and len(args) == len(known_args)
            and all(a is b for a, b in zip(args, known_args, strict=True))
            and kwargs.keys() == known_kwargs.keys()
            and all(x is known_kwargs[name] for name, x in kwargs.items())
        )

    # -- scalar rows -----------------------------------------------------------------------------------------------

    def push_numbers(self, rule: Rule, f: Any, args: tuple[Any, ...], inputs: Any) -> Any:
        """A scalar row on numbers."""
        z = self.native(f, args, {})
        if (kind_of(type(z)) != NUMBER and type(z) is not np.ndarray) or id(z) in self.index:
            return z  # an integer, or the very argument
        positions = tuple([position for position, _ in inputs])
        z_dot = self._row(rule, f, args, z, positions, [slot.index for _, slot in inputs])
        return z if z_dot is None else self.file(z, z_dot)

    def push_row(self, rule: Rule, f: Any, args: tuple[Any, ...], inputs: Any) -> Any:
        """A scalar row on arrays, elementwise."""
        z = self.native(f, args, {})
        if type(z) is np.ndarray and z.dtype.kind == "O" and type(args[0]) is np.ndarray:
            return self.to_objects(args[0])
        if any(z is x for x in args):
            return z
        positions, dots = self._varying(inputs, args)
        if not positions:
            return z
        z_dot = self._row(rule, f, args, z, tuple(positions), dots)
        return z if z_dot is None else self.file(z, z_dot)

    def _row(self, rule: Rule, f: Any, args: Any, z: Any, positions: tuple[int, ...], dots: list[Any]) -> Any:
        """The coefficients of z = f(*args)."""
        if not all(is_own_key(type(x)) for x in (*args, z)):
            args, z = tuple([self.outside(for_numpy, x) for x in args]), self.outside(for_numpy, z)
        partials = tuple([rule.partials[n] if n < len(rule.partials) else None for n in positions])
        m = module_for(f, args)
        if not any(map(callable, partials)):
            return self.computed(pushing.row, rule.partials, m, args, z, positions, dots, self.lead)
        jet = JETS.get(rule.function, {}).get(positions) if rule.own else None
        if jet is not None:
            return self.computed(jet_rows.by_row, jet, args, z, positions, dots)
        values = self.computed(jet_rows.evaluated, partials, m, args, z)
        constant = [(p, None) for p in values]
        if all(map(is_step, values)) or self.lead == (1,):
            return self.computed(jet_rows.along_slopes, constant, args, z, positions, dots)
        shared = {} if self.shared is None else self.shared
        key = self._key(rule, args, positions)
        if key in shared and len(shared[key]) >= self.lead[0]:
            return self.outside(jet_rows.beginning, shared[key], self.lead[0])

        def slopes(level: JetLevel, operands: list[Any]) -> Any:
            every = list(args)
            for n, x in zip(positions, operands[1:], strict=True):
                every[n] = x
            inside = level.calls.inside
            level.shared = shared
            if key is not None:
                level.tokens = {id(x): key[n + 1] for n, x in zip(positions, operands[1:], strict=True)}
            return tuple(
                [inside(p)(m, *every, operands[0]) if callable(p) else v for p, v in zip(partials, values)]
            )

        def improved(order: int, z_dot: Any) -> Any:
            xs = [z, *[args[n] for n in positions]]
            cut = [z_dot, *[self.outside(jet_rows.beginning, x_dot, order) for x_dot in dots]]
            found = list(zip(*self._at_order(order, xs, cut, slopes, rule), strict=True))
            return self.computed(jet_rows.along_slopes, found, args, z, positions, dots)

        firsts = [self.outside(jet_rows.beginning, x_dot, 1) for x_dot in dots]
        first = self.computed(jet_rows.along_slopes, constant, args, z, positions, firsts)
        if first is None:
            return None
        z_dot = self._solved(first, improved)
        if key is not None:
            shared[key] = z_dot
        return z_dot

    def _key(self, rule: Rule, args: Any, positions: tuple[int, ...]) -> Any:
        """What coefficients of a row are filed under while those of an outermost one are found; None: nowhere.

        The derivatives of Bessel functions are others at the same place: without it they would cost 2**order.
        """
        key: list[Any] = [id(rule)]
        for n, x in enumerate(args):
            if n in positions:
                key.append(("argument", n) if self.shared is None else self.tokens.get(id(x)))
            else:
                key.append((type(x), repr(x)) if isinstance(x, (int, float, complex, str)) else None)
        return None if None in key else tuple(key)

    # -- products --------------------------------------------------------------------------------------------------

    def push_bilinear(self, rule: Rule, f: Any, args: Any, kwargs: dict[str, Any], inputs: Any) -> Any:
        """A function linear in each of its first two arguments: a convolution where both vary."""
        self._only(rule, inputs, 2)
        a, b = (argument_at(rule, position, args, kwargs) for position in (0, 1))
        y = self.native(f, args, kwargs)
        positions, dots = self._varying(inputs, (a, b))
        if not positions:
            return y
        named = rule.parameters[:2]
        options = {name: x for name, x in kwargs.items() if name not in named}
        if len(positions) == 2:
            y_dot = self.computed(jet_rows.bilinear, f, a, b, *dots, args[2:], options, self.lead)
        else:
            found = dict(zip(positions, dots, strict=True))
            y_dot = self.computed(
                pushing.bilinear, f, a, b, found.get(0), found.get(1), args[2:], options, self.lead
            )
        return self.file(y, y_dot, True)

    # -- any other rule --------------------------------------------------------------------------------------------

    def push_full(self, rule: Rule, f: Any, args: Any, kwargs: dict[str, Any], inputs: Any) -> Any:
        """Any rule, by the differential equation that its pushforward, or transposed pullback, is."""
        if rule.kind == "linear" or rule.affine or self.lead == (1,):
            return super().push_full(rule, f, args, kwargs, inputs)
        positions = [position for position, _ in inputs]
        xs = [argument_at(rule, position, args, kwargs) for position in positions]
        dots = [self.dot_at(slot, x) for (_, slot), x in zip(inputs, xs, strict=True)]
        varying = [k for k, x_dot in enumerate(dots) if x_dot is not ZeroTangent]
        positions, xs, dots = ([part[k] for k in varying] for part in (positions, xs, dots))
        if not positions:
            return self.native(f, args, kwargs)
        direct = DIRECT.get(rule.function) if rule.own and not kwargs else None
        if direct is not None and all(isinstance(x_dot, np.ndarray) for x_dot in dots):
            y = self.native(f, args, kwargs)
            operands: list[Any] = [None] * len(args)
            for n, x_dot in zip(positions, dots, strict=True):
                operands[n] = x_dot
            return self.file(y, self.computed(direct, *args, *operands, y), True)
        if rule.function in MULTILINEAR and rule.own and all(n < len(args) for n in positions):
            y = self.native(f, args, kwargs)
            y_dot = self.computed(jet_rows.multilinear, f, args, kwargs, positions, dots, self.lead)
            return self.file(y, y_dot, True)
        seed = [each_series(lambda c: self.outside(pushing.chosen, c, 0), x_dot, True) for x_dot in dots]
        y, y_rate = self.beside(self._equation, self.parent, rule, args, kwargs, positions, xs, seed)
        if self._is_settled(y, args, rule):
            return y

        def right_hand_side(level: JetLevel, operands: Any, y_dot: Any) -> Any:
            own_args, own_kwargs = list(args), dict(kwargs)
            for n, x in zip(positions, operands[0], strict=True):
                if n < len(own_args):
                    own_args[n] = x
                else:
                    own_kwargs[rule.parameters[n]] = x
            level.known = (rule, own_args, own_kwargs, y, y_dot)
            return self._equation(level, rule, own_args, own_kwargs, positions, *operands)[1]

        def improved(order: int, y_dot: Any) -> Any:
            rates = [
                each_series(lambda c: self.outside(jet_rows.rate, c, order), x_dot, True) for x_dot in dots
            ]
            values = [each_series(lambda c: self.outside(pushing.chosen, c, 0), rate, True) for rate in rates]
            further = [each_series(lambda c: self.outside(jet_rows.but_first, c), rate) for rate in rates]
            cut = [each_series(lambda c: self.outside(jet_rows.beginning, c, order), x_dot) for x_dot in dots]
            found = self._at_order(
                order,
                (xs, values),
                (cut, further),
                lambda level, operands: right_hand_side(level, operands, y_dot),
                rule,
            )
            return each(lambda of, *rate: self._integrated(of, *rate, order), y, *found)

        first = each(lambda of, rate: self._integrated(of, rate, None, 0), y, y_rate)
        return self.file(y, self._solved(first, improved))

    def _equation(
        self, level: Any, rule: Rule, args: Any, kwargs: Any, positions: Any, xs: Any, dots: Any
    ) -> tuple[Any, Any]:
        """(y, y_dot) by a rule, evaluated at `level`, which is the one in force."""
        inside = (lambda g: g) if level is PLAIN else level.calls.inside
        if rule.frule is None:
            y, pullback = pair_of(rule, inside(rule.rrule)(*args, **kwargs))
            if self._is_settled(y, args, rule):
                return y, None
            with np.errstate(**QUIET):
                return y, pushforward_of(Run, pullback, y, positions, xs, rule.name, rule.users)(dots)
        y, push = pair_of(rule, inside(rule.frule)(*args, **kwargs), "frule", "pushforward")
        if self._is_settled(y, args, rule):
            return y, None
        count = max(len(args), len(rule.parameters), *[n + 1 for n in positions])
        every: list[Any] = [ZeroTangent] * count
        for n, x_dot in zip(positions, dots, strict=True):
            every[n] = x_dot
        with np.errstate(**QUIET):
            return y, inside(unthunk)(inside(push)(tuple(every)))

    def _at_order(self, order: int, xs: Any, dots: Any, body: Callable[..., Any], rule: Rule) -> Any:
        """(y, coefficients) of body(level, xs) in jets of an order of their own, beside this level."""
        level = JetLevel(self.parent, order)

        def run() -> Any:
            with np.errstate(**QUIET):
                return body(level, filed(level, xs, dots, rule))

        y = level.run(run, (), {})
        return y, level.tangent_of(y)

    def _integrated(self, y: Any, rate: Any, rate_dot: Any, order: int) -> Any:
        """Coefficients 1..order + 1 of `y` from its derivative: the value, and coefficients 1..order."""
        rate = self.outside(unthunk, rate)
        if (
            kind_of(type(y)) not in (NUMBER, ARRAY)
            or rate is None
            or rate is ZeroTangent
            or rate is NoTangent
        ):
            return None
        y_dot = self.computed(jet_rows.integrated, rate, rate_dot, order)
        fit = pushing.number_tangent if kind_of(type(y)) == NUMBER else pushing.array_tangent
        return self.computed(fit, y_dot, y, (order + 1,))

    def _solved(self, first: Any, improved: Callable[[int, Any], Any]) -> Any:
        """All coefficients, where improved(k, coefficients 1..k) gives 1..k + 1.

        Most right-hand sides need no coefficient of the result itself. They are found out by giving them nan.
        """
        n = self.lead[0]
        y_dot = improved(n - 1, each(lambda c: self.outside(jet_rows.beginning, c, n - 1), first))
        if not has_nan(y_dot):
            return y_dot
        y_dot = first
        for order in range(1, n):
            y_dot = improved(order, y_dot)
        return y_dot


def is_step(slope: Any) -> bool:
    """Whether a partial derivative is a whole number or a truth value, which can only be constant between jumps."""
    if slope is None or isinstance(slope, (int, np.integer, np.bool_)):
        return True
    return isinstance(slope, np.ndarray) and slope.dtype.kind in "biu"


def each(f: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """f of corresponding leaves of structures like `tree`; None for what has no coefficients."""
    if tree is None or (others and is_nothing(others[0])):
        return None
    parts = parts_by_key(tree)
    if parts is None:
        return f(tree, *others)
    found = {key: each(f, part, *[entry(other, key) for other in others]) for key, part in parts.items()}
    if type(tree) is Tangent:
        return Tangent(tree.primal_type, found)
    kind = kind_of(type(tree))
    if kind == SEQUENCE:
        return list(found.values())
    return found if kind == MAPPING else Tangent(type(tree), found)


def each_series(f: Callable[[Any], Any], tree: Any, otherwise: Any = None) -> Any:
    """As `each`, of coefficients; what stands for a leaf without any is left alone, or becomes `otherwise`."""
    return each(lambda c: f(c) if is_series(c) else otherwise and c, tree)


def is_series(c: Any) -> bool:
    """Whether `c` is an array of coefficients."""
    return isinstance(c, np.ndarray) and c.dtype.kind in "fcO"


def is_nothing(y_dot: Any) -> bool:
    """Whether `y_dot` stands for a zero."""
    return y_dot is None or y_dot is ZeroTangent or y_dot is NoTangent


def parts_by_key(x: Any) -> dict[Any, Any] | None:
    """The entries of a container, tangent or object; None for a leaf."""
    if type(x) is Tangent:
        return {name: x[name] for name in x}
    kind = kind_of(type(x))
    if kind == SEQUENCE:
        return dict(enumerate(x))
    if kind == MAPPING:
        return dict(x)
    return fields_of(x) if kind == OBJECT and has_attributes(x) else None


def entry(tree: Any, key: Any) -> Any:
    """One entry of a structure; where the whole of it is zero or without tangent, that."""
    if isinstance(tree, dict) or type(tree) is Tangent:
        return tree[key] if key in list(tree) else None
    return tree[key] if kind_of(type(tree)) == SEQUENCE else tree


def has_nan(tree: Any) -> bool:
    """Whether some coefficient is nan."""
    parts = parts_by_key(tree)
    if parts is not None:
        return any(map(has_nan, parts.values()))
    return isinstance(tree, np.ndarray) and bool(np.any(tree != tree))


def filed(level: JetLevel, x: Any, x_dot: Any, rule: Rule) -> Any:
    """A copy of `x`, or of a structure with such leaves, filed at `level` with coefficients `x_dot`."""
    kind = kind_of(type(x))
    if x_dot is None or (kind == NOTHING and type(x) is not Tangent):
        return x
    if kind == NUMBER:
        return level.file_number(x, x_dot)
    if kind == ARRAY and x.dtype.kind in "fc":
        return level.file_array(level.outside(np.array, x), x_dot, False)
    parts = parts_by_key(x)
    if parts is None:
        missing_rule(
            rule.function, f"Taylor coefficients do not pass through its rule in a {type(x).__qualname__}."
        )
    found = {key: filed(level, part, entry(x_dot, key), rule) for key, part in parts.items()}
    if type(x) is Tangent:
        return Tangent(x.primal_type, found)
    if kind == SEQUENCE:
        return rebuilt(x, list(found.values()))
    if kind == MAPPING:
        return found
    new = shallow_copy(x)
    for name, part in found.items():
        if part is not parts[name]:
            put_field(new, name, part, kind)
    return new
