"""The hooks of a run for a whole batch: each does one step for all examples, or gives up."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from plaingrad import rulebook
from plaingrad.class_keys import is_among, is_subclass
from plaingrad.engine.batches import admitted, elementwise_steps, numpy_steps, python_steps
from plaingrad.engine.batches.mapped import MAKING, OF_LEAVES, Batch, Mapped, any_mapped
from plaingrad.engine.batches.steps import Steps
from plaingrad.engine.memory.kinds import is_heap
from plaingrad.engine.users_code.class_attributes import lookup
from plaingrad.rewrite import rewrite_function
from plaingrad.rewrite.hooks import BINARY, COMPARE, HOOKED, IN_PLACE, UNARY

REITERABLE = (
    list,
    tuple,
    dict,
    set,
    frozenset,
    range,
    str,
    type({}.items()),
    type({}.keys()),
    type({}.values()),
)
IMMUTABLE = (int, float, complex, str, tuple, np.generic)
NUMBERS = frozenset((int, float, complex, bool, str, type(None)))
#: What is called instead of a callable of a class with mapped values: class -> f(level, callable, args, kwargs).
OF_CLASSES: dict[type, Callable[..., Any]] = {}
HOOKS = {getattr(operator, name): name for name in (*BINARY, *UNARY, *COMPARE, "getitem")} | {getattr: "attr"}
OF_ENGINE = ("plaingrad.engine.batches.forms", "plaingrad.api.recorded")


class Bound(partial):  # type: ignore[type-arg]
    """A method of an array that is a step."""


class BatchLevel(Steps):
    """The hooks; `parent` is the level that computes their steps."""

    __slots__ = ("known",)

    def __init__(self, parent: Any, batch: Batch) -> None:
        self.parent, self.batch = parent, batch
        self.known: dict[int, tuple[Any, Any]] = {}  # id of a function -> (it, what is called instead)
        hooks: dict[str, Any] = {name: partial(self.binary, getattr(operator, name)) for name in BINARY}
        hooks |= {
            name: partial(self.in_place, getattr(operator, without_assignment(name))) for name in IN_PLACE
        }
        hooks |= {name: partial(self.unary, getattr(operator, name)) for name in UNARY}
        hooks |= {name: partial(self.binary, getattr(operator, name)) for name in COMPARE}
        super().__init__(
            **hooks,
            contains=self._contains,
            getitem=self._getitem,
            setitem=self._set,
            attr=self._attr,
            method=self._method,
            set_attr=self._set,
            prep=self._prep,
            iterable=self._iterable,
            meet=self._meet,
            meet_all=self._meet,
            met_items=self._meet,
            text=self._text,
        )

    @property
    def calls(self) -> BatchLevel:
        """Whom engine code asks for `inside`."""
        return self

    def inside(self, f: Any) -> Any:
        """What to call for a piece of engine code that is to run at this level."""
        return rewrite_function(f, HOOKED) if type(f) is FunctionType else self._prep(f)

    # -- operators -----------------------------------------------------------------------------------------------

    def binary(self, f: Any, a: Any, b: Any) -> Any:
        """a op b, also for comparisons."""
        if not (type(a) in NUMBERS and type(b) in NUMBERS) and not (
            admitted.is_safe(a) and admitted.is_safe(b)
        ):
            self.give_up(f"an operator of {type(a).__name__} and {type(b).__name__}")
        if type(a) is Mapped or type(b) is Mapped:
            return numpy_steps.operation(self, f, a, b)
        return self.plainly(f, a, b)

    def in_place(self, f: Any, a: Any, b: Any) -> Any:
        """a op= b."""
        if type(a) is Mapped:
            if not admitted.is_safe(b):
                self.give_up(f"an operator of {type(b).__name__}")
            return numpy_steps.in_place(self, f, a, b)
        if not isinstance(a, IMMUTABLE) or is_heap(type(a)):
            self.give_up("something is changed in place")
        return self.binary(f, a, b)

    def unary(self, f: Any, a: Any) -> Any:
        """-a, +a, ~a."""
        if type(a) is Mapped:
            return numpy_steps.operation(self, f, a)
        if not admitted.is_safe(a):
            self.give_up(f"an operator of {type(a).__name__}")
        return self.plainly(f, a)

    # -- access --------------------------------------------------------------------------------------------------

    def _contains(self, x: Any, container: Any) -> bool:
        if (
            any_mapped(x)
            or not admitted.is_safe(x)
            or not admitted.is_safe(container)
            or any_mapped(container)
        ):
            self.give_up("a test for membership")
        return x in container

    def _getitem(self, o: Any, k: Any) -> Any:
        if type(o) is Mapped or any_mapped(k):
            return numpy_steps.getitem(self, o, k)
        if not admitted.is_safe(k):
            self.give_up("an index with code of its own")
        if type(o) is np.ndarray:
            return self.plainly(operator.getitem, o, k)
        if type(o) in (list, tuple, dict, str, range) or (
            isinstance(o, tuple) and admitted.is_plain(type(o))
        ):
            return o[k]
        method = lookup(type(o), "__getitem__")
        if type(method) is FunctionType:
            return self._prep(method)(o, k)
        self.give_up(f"an item of {type(o).__name__}")

    def _set(self, *given: Any) -> None:
        self.give_up("an item or attribute is set")

    def _attr(self, o: Any, name: str) -> Any:
        t = type(o)
        is_of_numpy = t is np.ndarray or (isinstance(o, np.generic) and not is_heap(t))
        if t is Mapped or is_of_numpy:
            if (step := numpy_steps.METHODS.get(name)) is not None:
                return Bound(self.method_step, step, name, o)
        if t is Mapped:
            return numpy_steps.attribute(self, o, name)
        if is_of_numpy:
            return self.plainly(getattr, o, name)
        if t is ModuleType or t is type:
            if t is ModuleType and name not in vars(o):
                self.give_up(f"an attribute that {o.__name__!r} makes when it is asked for")
            if t is type and type(lookup(type(lookup(o, name)), "__get__")) is FunctionType:
                self.give_up(f"the attribute {name!r} of {o.__name__}")
            return getattr(o, name)
        if not is_heap(t):
            if isinstance(o, (FunctionType, MethodType)):
                self.give_up("an attribute of a function")
            return getattr(o, name)
        return self._attribute_of_object(o, t, name)

    def _attribute_of_object(self, o: Any, t: type, name: str) -> Any:
        if type(lookup(t, "__getattribute__")) is FunctionType or issubclass(t, type):
            self.give_up(f"an attribute of {t.__name__}")
        found = lookup(t, name)
        kind = type(found)
        if kind is property and type(found.fget) is FunctionType:
            return self._prep(found.fget)(o)
        if kind.__name__ in ("member_descriptor", "_tuplegetter"):
            return found.__get__(o, t)
        if hasattr(kind, "__set__"):
            self.give_up(f"the attribute {name!r} of {t.__name__}")
        held = vars(o) if t.__dictoffset__ else {}
        if name in held:
            return held[name]
        if kind in (FunctionType, classmethod, staticmethod):
            return found.__get__(o, t)
        if found is None or hasattr(kind, "__get__"):
            self.give_up(f"the attribute {name!r} of {t.__name__}")
        return found

    def _method(self, o: Any, name: str) -> Any:
        self.check()
        t = type(o)
        allowed = admitted.METHODS.get(t)
        if allowed is not None:
            if name not in allowed:
                self.give_up(f"the method {name!r} of a {t.__name__}")
            return partial(self.method_of_builtin, getattr(o, name), o)
        return self._prep(self._attr(o, name))

    def method_of_builtin(self, method: Any, o: Any, *args: Any, **kwargs: Any) -> Any:
        """A method of a builtin class that changes nothing."""
        if not all(map(admitted.is_safe, args)) or kwargs:
            self.give_up("a method of a container")
        return method(*args)

    def _iterable(self, it: Any) -> Any:
        t = type(it)
        if t is Mapped:
            if not it.shape:
                self.give_up("iteration over a number")
            return [self._getitem(it, k) for k in range(it.shape[0])]
        if t in REITERABLE or (isinstance(it, tuple) and admitted.is_plain(t)):
            return it
        if t is np.ndarray and it.ndim:
            return [self._getitem(it, k) for k in range(len(it))]
        if self.is_of_this_run(it):
            return it
        self.give_up(f"iteration over {t.__name__}")

    def _meet(self, x: Any) -> Any:
        if not admitted.is_plain(type(x)):
            self.give_up(f"{type(x).__name__} has special methods of its own")
        return x

    def _text(self, x: Any) -> Any:
        if any_mapped(x) or not admitted.is_safe(x):
            self.give_up("text is made of a value")
        return x

    # -- calls ---------------------------------------------------------------------------------------------------

    def _prep(self, f: Any) -> Any:
        self.check()
        t = type(f)
        if t is Bound:
            return f
        if t is partial:
            return partial(self._prep(f.func), *f.args, **f.keywords)
        if t is MethodType:
            if type(f.__func__) is not FunctionType:
                self.give_up("a method that is no Python function")
            return MethodType(self._prep(f.__func__), f.__self__)
        known = self.known.get(id(f))
        if known is None:
            known = self.known[id(f)] = f, self._decided(f, t)
        return known[1]

    def _decided(self, f: Any, t: type) -> Any:
        if f is partial:
            return f
        if is_hashable(f) and f in HOOKS:
            return getattr(self, HOOKS[f])
        step = python_steps.STEPS.get(f) if is_hashable(f) else None
        if step is None and is_hashable(f):
            step = numpy_steps.STEPS.get(f) or (
                elementwise_steps.ufunc if admitted.is_elementwise(f) else None
            )
        if step is not None or (is_hashable(f) and f in admitted.PURE):
            rule = rulebook.find(f) if not isinstance(f, type) else None
            if rule is not None and rule.users:
                self.give_up(f"{f!r} has a rule of the program's own")
            return partial(self.step, f, step)
        of_class = next((OF_CLASSES[c] for c in t.__mro__ if c in OF_CLASSES), None)
        if of_class is not None:
            return partial(of_class, self, f)
        if t is not FunctionType:
            if python_steps.is_named_tuple(f):
                return f
            if is_heap(t) and not isinstance(f, type) and type(call := lookup(t, "__call__")) is FunctionType:
                if not is_among(
                    t, rulebook.classes_with_rules(rulebook.changes())
                ):  # its own hash is not called
                    return MethodType(self._prep(call), f)
            self.give_up(f"a call of {getattr(f, '__name__', t.__name__)!r}")
        return self._decided_function(f)

    def _decided_function(self, f: FunctionType) -> Any:
        if f in MAKING or "__plaingrad_batched__" in f.__dict__:
            return f
        if f in OF_LEAVES:
            return partial(self.step, f, python_steps.of_leaf)
        module = f.__module__ if type(f.__module__) is str else ""
        if module in OF_ENGINE:
            return rewrite_function(f, HOOKED)
        if module.startswith("plaingrad.") or rulebook.find(f) is not None:
            self.give_up(f"a call of {f.__qualname__!r}, which has a rule, or is of plaingrad")
        why = admitted.refusal_of(f.__code__)
        if why is not None:
            self.give_up(f"{why}, in {f.__qualname__}")
        new = rewrite_function(f, HOOKED)
        self.batch.enter(new.__code__)
        return new


def without_assignment(name: str) -> str:
    """The operator behind an in-place one."""
    return name[1:] + "_" if name in ("iand", "ior") else name[1:]


def is_hashable(f: Any) -> bool:
    """Whether tables can be asked for `f`, without code of the program."""
    return not is_heap(type(f)) or is_subclass(type(f), type)
