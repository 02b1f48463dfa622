"""A function is applied to its arguments by its rule: which of them are active, and what stands in the way.

Mode by mode, the derivative is what `by_rule` does with them. Arguments of other kinds than numbers and arrays come
first: objects convert themselves, subclasses of arrays are asked, arrays of objects are gone through one by one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from types import FunctionType
from typing import Any

import numpy as np

from plaingrad import number_classes, origin, rulebook
from plaingrad.class_keys import is_instance
from plaingrad.engine.calls import other_systems
from plaingrad.engine.calls.identities import Identities
from plaingrad.engine.calls.meeting import runs_code
from plaingrad.engine.memory.kinds import ARRAY, MAPPING, NOTHING, NUMBER, OBJECT, SEQUENCE, is_heap, kind_of
from plaingrad.engine.memory.tape import ArraySlot, NumberSlot, Tree, attach
from plaingrad.engine.refusals.refuse import missing_rule
from plaingrad.engine.users_code.class_attributes import is_own_method, lookup
from plaingrad.engine.values import array_classes, records, subclasses, texts, truncated
from plaingrad.engine.values.own_numbers import holds_own, is_foreign, rule_for
from plaingrad.engine.values.unfiled import hides_active, hides_numbers
from plaingrad.engine.values.users_numbers import by_value, is_users
from plaingrad.errors import RuleError
from plaingrad.rewrite import PLAIN, in_force
from plaingrad.rulebook import Rule
from plaingrad.rules import other_systems as systems_rules
from plaingrad.rules.numpy import objects

UFUNCS = {  # what an operator on arrays is
    getattr(operator, name): getattr(np, ufunc)
    for name, ufunc in [
        *[(name, name) for name in ("add", "matmul", "pow", "neg", "pos", "abs", "invert")],
        *[("sub", "subtract"), ("mul", "multiply"), ("truediv", "true_divide"), ("pow", "power")],
        *[("floordiv", "floor_divide"), ("mod", "remainder"), ("neg", "negative"), ("pos", "positive")],
    ]
    if hasattr(np, ufunc)
}
# Of a Python object NumPy calls, in C, the method with the name of the ufunc.
CALLING_METHODS = frozenset(getattr(np, name) for name in (
    "arccos arccosh arcsin arcsinh arctan arctan2 arctanh cbrt conjugate cos cosh degrees exp exp2 expm1 fabs fmod "
    "hypot log log10 log1p log2 radians rint sin sinh sqrt tan tanh"
).split())  # fmt: skip
OF_SYSTEMS = (
    systems_rules.run,
    systems_rules.taken_in,
    systems_rules.taken_out,
    number_classes.copied,
    number_classes.made,
)
LOOKED_AT = object()  # says that an argument is among the inputs now, or not active


def has_operator(t: type, f: Any) -> bool:
    """Whether a subclass of a container has a special method of its own for `f`, `abs` for example."""
    return is_heap(t) and is_own_method(lookup(t, f"__{getattr(f, '__name__', '')}__"))


class RuleApplication(Identities):
    """What a level does with a function that has a rule."""

    __slots__ = ()

    def apply(self, rule: Rule, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """f(*args, **kwargs) by its rule, with what the rule computes one level out."""
        index = self.index
        inputs = []
        numbers_only = not kwargs
        enters_code = bool(kwargs)
        has_objects = False
        for position, x in enumerate(args):
            t = type(x)
            if t is np.ndarray and x.dtype.kind in "fcbiu":
                numbers_only = False
                i = self.region(x)
                if i is not None:
                    inputs.append((position, ArraySlot(i, x)))
                continue
            kind = kind_of(t)
            if kind == NUMBER:
                i = index.get(id(x))
                if t is not float and t is not int and rule.own and is_users(x):
                    args = by_value(self, f, args)
                    x = args[position]
                if i is not None:
                    if number_classes.known and number_classes.is_own(x):
                        if f not in OF_SYSTEMS and number_classes.system_of(x) is not None and rule.own:
                            return other_systems.given_to_others(self, f, args, kwargs)
                        rule = rule_for(rule, f)
                    inputs.append((position, NumberSlot(i, x)))
                elif number_classes.known and other_systems.is_lent_to(self, rule, f, x):
                    return other_systems.given_to_others(self, f, args, kwargs)
            elif kind != NOTHING or is_heap(t):
                numbers_only = False
                enters_code = True
                self.calls.meet_all(x)
                has_objects = has_objects or (kind in (ARRAY, SEQUENCE) and holds_object_array(x))
                z = self._other_input(rule, f, args, kwargs, position, kind, inputs)
                if z is not LOOKED_AT:
                    return z
        if kwargs:
            if rule.own and type(kwargs.get("like")) is np.ndarray:  # of a plain array only the class counts
                kwargs = {key: x for key, x in kwargs.items() if key != "like"}
            if array_classes.among(kwargs.values()):
                z = subclasses.apply(self, rule, f, args, kwargs)
                if z is not subclasses.PLAIN_CALL:
                    return z
            self._keyword_inputs(rule, kwargs, inputs)
        if not inputs:
            own_code = enters_code and (rule.own or type(f) is not FunctionType)
            y = self.native_with_code(f, args, kwargs) if own_code else self.native(f, args, kwargs)
            if self.texts and any(map(texts.holds_text, args)):
                texts.check_conversion(self, args, y)
            if self.texts.truncated and (rule.kind != "scalar" or f in truncated.SUMS):
                truncated.check_times(self, y, args)
            return y
        if (has_objects or (kwargs and any(map(holds_object_array, kwargs.values())))) and rule.own:
            return self._apply_to_objects(rule, f, args, kwargs)
        y = self.by_rule(rule, f, args, kwargs, inputs, numbers_only)
        return self._checked(rule, f, y)

    def _checked(self, rule: Rule, f: Any, y: Any) -> Any:
        """`y`, what a rule gave for differentiated arguments, if nothing was lost."""
        if type(y) is np.ndarray and y.dtype.kind == "O" and rule.own and y.size:
            self.calls.meet_all(y)
            if not self.is_active(y):
                missing_rule(f, "It puts copies of differentiated numbers into an array of Python objects.")
        if y is None and rule.users:
            raise RuleError(
                f"the rule for {rule.name} was applied to differentiated values and returned None, which has no "
                "derivative.\n  If the function writes into its arguments, say so (mutates=..., plaingrad.defined_as); "
                "for an `__init__`, give the rule for the class; if nothing matters, plaingrad.nondifferentiable.\n"
                "  See docs: errors#rule"
            )
        if rule.users and hides_numbers(y):
            missing_rule(
                rule.function, f"Its rule returned a {type(y).__qualname__}, whose derivative would be lost."
            )
        if type(y) is np.timedelta64 or (type(y) is np.ndarray and y.dtype.kind == "m"):
            missing_rule(f, "It makes time spans, which have no tangent.")
        return y

    def _other_input(
        self,
        rule: Rule,
        f: Any,
        args: Any,
        kwargs: dict[str, Any],
        position: int,
        kind: int,
        inputs: list[Any],
    ) -> Any:
        """An argument that is neither a number nor a plain array: `LOOKED_AT`, or the result, if it has the say."""
        x = other_systems.checked_entries(self, rule, f, args[position])
        if (
            (kind == ARRAY and type(x) is not np.ndarray)
            or (kind == SEQUENCE and array_classes.among_entries(x))
            or (kind == OBJECT and is_heap(type(x)) and array_classes.has_protocol(type(x)))
        ):
            z = subclasses.apply(self, rule, f, args, kwargs)
            if z is not subclasses.PLAIN_CALL:
                return z
        if (
            kind == OBJECT
            and rule.own
            and (
                rule.kind == "scalar" or type(x) is np.flatiter or (is_heap(type(x)) and self._is_operand(x))
            )
        ):
            return self._apply_to_object(rule, f, args, kwargs, position)
        if (kind == MAPPING or kind == SEQUENCE) and rule.own and has_operator(type(x), f):
            return f(*args, **kwargs)  # C code enters it
        if kind == SEQUENCE and rule.kind == "scalar" and any(type(a) is np.ndarray for a in args):
            make = self.prep(np.array)
            args = tuple([make(a) if kind_of(type(a)) == SEQUENCE else a for a in args])
            return self.apply(rule, f, args, kwargs)
        if (
            kind == SEQUENCE
            and number_classes.known
            and is_foreign(rule, f)
            and f is not np.array
            and holds_own(x)
        ):
            make = self.prep(np.array)
            arrays = [make(a) if kind_of(type(a)) == SEQUENCE and holds_own(a) else a for a in args]
            return self.apply(rule, f, tuple(arrays), kwargs)
        slot = self.slot_of(x)
        if slot is None and kind == OBJECT and rule.users and hides_active(self, x):
            missing_rule(
                rule.function,
                f"Its argument {position} is a {type(x).__qualname__}, in which the rule would find "
                "differentiated numbers unseen; pass a list.",
            )
        if slot is not None:
            if rule.users and type(slot) is Tree:
                attach(slot, x)
            if kind == ARRAY and x.dtype.kind in "OV":
                if x.dtype.kind == "O":
                    return self._apply_to_objects(rule, f, args, kwargs)
                records.check_call(f, x)
            inputs.append((position, slot))
        return LOOKED_AT

    def _is_operand(self, x: Any) -> bool:
        """Whether a user's object stands for numbers: it converts itself to an array, or holds active ones."""
        t = type(x)
        return hasattr(t, "__array__") or hasattr(t, "__array_function__") or self.is_active(x)

    def _apply_to_object(self, rule: Rule, f: Any, args: Any, kwargs: Any, position: int) -> Any:
        """A rule of numbers and arrays met with a user's object: its own conversions come first."""
        x = args[position]
        self.calls.meet(x)
        t = type(x)
        module = getattr(f, "__module__", None)
        if module == "math" and hasattr(t, "__float__") and not hasattr(t, f"__{f.__name__}__"):
            x = t.__float__(x)
        elif module == "cmath" and hasattr(t, "__complex__"):
            x = t.__complex__(x)
        elif hasattr(t, "__array__") and not array_classes.speaks(UFUNCS.get(f, f), t):
            x = self.calls.method(x, "__array__")()
        elif f in CALLING_METHODS and position == 0 and not kwargs and hasattr(t, f.__name__):
            return self.calls.method(x, f.__name__)(*args[1:])
        elif rule.kind == "full":
            if self.is_active(x):
                missing_rule(
                    f, f"Its argument {position} is a `{t.__qualname__}` that holds differentiated numbers."
                )
            return self.native(f, args, kwargs)
        else:
            array_code = isinstance(f, np.ufunc) or origin.package_of(module) == "numpy"
            for at, operand in enumerate(args):
                self.calls.meet(operand)
                if (
                    array_code
                    and at != position
                    and not hasattr(t, "__array_ufunc__")
                    and self.is_active(operand)
                ):
                    missing_rule(
                        f, f"It combines differentiated numbers with an object of type `{t.__qualname__}`."
                    )
            return f(*args, **kwargs)  # C code enters the object's own methods
        return self.apply(rule, f, (*args[:position], x, *args[position + 1 :]), kwargs)

    def _keyword_inputs(self, rule: Rule, kwargs: dict[str, Any], inputs: list[Any]) -> None:
        for name, x in kwargs.items():
            self.calls.meet_all(x)
            slot = self.slot_of(x)
            if slot is not None:
                names = rule.parameters
                if name not in names:
                    missing_rule(
                        rule.function,
                        f"Its argument {name!r} depends on the inputs, and the rule knows no derivative for it.",
                    )
                inputs.append((names.index(name), slot))

    def _apply_to_objects(self, rule: Rule, f: Any, args: Any, kwargs: Any) -> Any:
        """A function of an array of Python objects: references are moved natively, the rest is done one by one."""
        args = tuple([self.of_objects(x) for x in args])
        if any(map(holds_object_array, kwargs.values())):
            missing_rule(f, "One of its arguments by name is an array of Python objects.")
        definition = objects.DEFINITIONS.get(f)
        if definition is not None:
            return self.calls.inside(definition)(*args, **kwargs)
        if f in objects.OPERATORS and not kwargs:
            return self._elementwise(objects.OPERATORS[f], *args)
        if f in objects.MOVES or rule.source.partition(":")[0].endswith(objects.MOVING_MODULES):
            for x in args:
                if type(x) is np.ndarray and x.dtype.kind == "O":
                    self.calls.meet_elements(list(x.ravel()))
            y = f(*[objects.as_objects(x) if self._is_active_number(x) else x for x in args], **kwargs)
            if isinstance(y, np.ndarray) and y.dtype.kind in "fc":  # numbers out of objects
                return self.prep(np.array)(list(args[0].ravel()), dtype=y.dtype).reshape(y.shape)
            return y
        missing_rule(f, "One of its arguments is an array of Python objects with differentiated numbers.")

    def of_objects(self, x: Any) -> Any:
        """`x`, with arrays of objects for active arrays: there numbers are known by their identity."""
        if type(x) is np.ndarray:
            return self.to_objects(x) if x.dtype.kind in "fc" and self.is_active(x) else x
        if type(x) in (list, tuple) and any(type(part) is np.ndarray for part in x):
            return type(x)([self.of_objects(part) for part in x])
        return x

    def _is_active_number(self, x: Any) -> bool:
        return kind_of(type(x)) == NUMBER and id(x) in self.index

    def _elementwise(self, op: Any, *operands: Any) -> Any:
        return self.calls.inside(objects.elementwise)(op, *operands)

    def to_objects(self, a: np.ndarray) -> np.ndarray:
        """The elements of an active array as Python numbers in an array of objects."""
        result = np.empty(a.shape, object)
        number = self.prep(complex if a.dtype.kind == "c" else float)
        for place in np.ndindex(a.shape):
            result[place] = number(self.read_array(a, place))
        return result

    def by_rule(
        self, rule: Rule, f: Any, args: Any, kwargs: dict[str, Any], inputs: Any, numbers: bool
    ) -> Any:
        """f(*args, **kwargs) by its rule, where `inputs`, (position, slot) pairs, are active.

        Args:
            rule: the rule of `f`.
            f: the function.
            args: its arguments.
            kwargs: its keyword arguments.
            inputs: the active ones.
            numbers: all arguments are numbers.
        """
        raise NotImplementedError

    def by_exchange(self, xs: list[Any], ys: list[Any], exchange: Any) -> list[Any]:
        """The numbers and arrays ys that this rank has got, with derivatives, in an exchange to which it gave xs.

        Args:
            xs: numbers and arrays, active or not.
            ys: fresh ones.
            exchange: how derivatives are sent; see `rules.mpi.exchanges`.
        """
        missing_rule(
            type(exchange), "Messages between ranks are differentiated in forward and reverse mode only."
        )

    def elementwise(self, rule: Rule, f: np.ufunc, x: np.ndarray) -> Any:
        """f(x) of a float64 array by a scalar row; None if it is something else."""
        raise NotImplementedError

    def native(self, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The primal f(*args, **kwargs) of a function with a rule, which further out is followed too."""
        parent = self.parent
        if parent is PLAIN and not any_exact(args):
            return f(*args, **kwargs) if kwargs else f(*args)  # C code may tell an empty dictionary from none
        if parent is PLAIN or type(f) is not FunctionType or rulebook.find(f) is None:
            return self.outside(f, *args, **kwargs)
        return in_force(parent, parent.prep(f), *args, **kwargs)

    def native_with_code(self, f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The same where C code may enter special methods of arguments: these run at this level, not further out."""
        values = (*args, *kwargs.values())
        if self.parent is PLAIN or not any(map(runs_code, values)):
            return self.native(f, args, kwargs)
        if any(map(self.parent.calls.finds_active, values)):
            missing_rule(
                f,
                "An object with special methods of its own stands beside numbers differentiated further out.",
            )
        return f(*args, **kwargs) if kwargs else f(*args)

    def inside_rule(self, f: Any, *args: Any) -> Any:
        """f(*args) by its rule."""
        rule = rulebook.find(f)
        return f(*args) if rule is None else self.calls.applier(rule, f)(*args)


def any_exact(args: tuple[Any, ...]) -> bool:
    """Whether a fraction or a decimal number is among the arguments of a function."""
    for x in args:
        t = type(x)
        if (
            t is not np.ndarray
            and t is not float
            and t is not int
            and (is_instance(x, (Fraction, Decimal)) or number_classes.is_own(x))
        ):
            return True
    return False


def argument_at(rule: Rule, position: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The argument that a rule knows by `position`."""
    return args[position] if position < len(args) else kwargs[rule.parameters[position]]


def holds_object_array(x: Any) -> bool:
    """Whether `x` is an array of Python objects, or a list or tuple with one in it."""
    if type(x) is np.ndarray:
        return x.dtype.kind == "O"
    return type(x) in (list, tuple) and any(type(part) is np.ndarray and part.dtype.kind == "O" for part in x)
