"""What all steps of a batch level need: their operands taken apart, computed one level out, and filed as mapped."""

from __future__ import annotations

from collections.abc import Callable
from types import GeneratorType
from typing import Any, NoReturn

import numpy as np

from plaingrad.engine.batches import admitted, forms
from plaingrad.engine.batches.mapped import PYTHON_NUMBERS, Batch, Mapped, any_mapped, raw
from plaingrad.rewrite import PLAIN, Hooks, in_force

WIDE = frozenset(map(np.dtype, ("f8", "i8", "?", "c16")))
HAS_WEAK_NUMBERS = np.lib.NumpyVersion(np.__version__) >= "2.0.0"  # types decide, not values (NEP 50)
SAFE_INTEGER = 2**31  # sums and products of such do not overflow


class Steps(Hooks):
    """The part of a batch level that computes."""

    __slots__ = ("batch", "parent")

    parent: Any
    batch: Batch

    def give_up(self, reason: str) -> NoReturn:
        """Leave the run."""
        self.batch.give_up(reason)

    def give_up_for(self, error: Exception) -> NoReturn:
        """Leave it because of `error`; for what floating-point numbers do, only this time."""
        self.batch.give_up(f"{type(error).__name__}: {error}", isinstance(error, FloatingPointError))

    def check(self) -> None:
        """Give up again, if that was done: the program has caught it."""
        if self.batch.reason is not None:
            self.batch.give_up(self.batch.reason)

    def outside(self, f: Any, *args: Any, **kwargs: Any) -> Any:
        """f(*args) of `forms`, one level out; what goes wrong there is for the loop to say."""
        parent = self.parent
        try:
            if parent is PLAIN:
                return f(*args, **kwargs)
            return in_force(parent, parent.calls.inside(f), *args, **kwargs)
        except Exception as error:
            self.give_up_for(error)

    def plainly(self, f: Any, *args: Any, **kwargs: Any) -> Any:
        """f(*args), of nothing that is mapped."""
        return self.outside(forms.called, f, args, kwargs)

    def step(self, f: Any, step: Any, *args: Any, **kwargs: Any) -> Any:
        """A call of a function of the tables."""
        self.check()
        if f in EXHAUSTING:
            args = tuple([list(x) if self.is_of_this_run(x) else x for x in args])
        if kwargs.get("out") is not None or not all(map(self.is_taken(f), (*args, *kwargs.values()))):
            self.give_up(f"arguments of {f!r}")
        is_mapped = any(map(any_mapped, args)) or any(map(any_mapped, kwargs.values()))
        if not is_mapped and f not in ITERATING:
            if f in admitted.MEANS and (kwargs or any(np.size(x) == 0 for x in args)):
                self.give_up("a mean that may warn")
            return self.plainly(f, *map(read_only, args), **kwargs)
        if step is None:
            self.give_up(f"{f!r} has no form for batches")
        return self.done(step, f, args, kwargs)

    def is_taken(self, f: Any) -> Callable[[Any], bool]:
        """Whether a function of the tables may have an argument."""
        if f not in ITERATING:
            return admitted.is_safe
        return lambda x: self.is_of_this_run(x) or admitted.is_safe(x)

    def is_of_this_run(self, x: Any) -> bool:
        """Whether `x` is a generator expression of code that runs here, or an iterator that was made here."""
        if type(x) is GeneratorType:
            return id(x.gi_code) in self.batch.entered
        return id(x) in self.batch.iterators

    def done(self, step: Any, f: Any, args: Any, kwargs: Any) -> Any:
        """step(self, f, *args, **kwargs); arguments that it does not have are for the loop."""
        try:
            return step(self, f, *args, **kwargs)
        except Exception as error:
            self.give_up_for(error)

    def method_step(self, step: Any, name: str, o: Any, *args: Any, **kwargs: Any) -> Any:
        """A call of a method of an array."""
        self.check()
        if kwargs.get("out") is not None or not all(map(admitted.is_safe, (*args, *kwargs.values()))):
            self.give_up(f"arguments of {name!r}")
        if type(o) is not Mapped and not any(map(any_mapped, args)):
            if name in ("mean", "std", "var") and (kwargs or not o.size):
                self.give_up("a mean that may warn")
            return self.outside(forms.called, getattr(o, name), tuple(map(read_only, args)), kwargs)
        return self.done(step, None, (o, *args), kwargs)

    # -- operands and results --------------------------------------------------------------------------------------

    def value(self, x: Any) -> Any:
        """The array of a mapped operand; anything else as it is."""
        if type(x) is not Mapped:
            return x
        if x.batch is not self.batch:  # of a batch around: the same for all examples of this one
            return self.outside(forms.spread, x, self.batch.size)
        return x.value

    def made(self, value: Any, is_python: bool = False, is_fresh: bool = True) -> Mapped:
        """What stands for a result."""
        shape, dtype = value.shape[1:], value.dtype
        if dtype not in WIDE and not HAS_WEAK_NUMBERS:
            self.give_up("numbers of less than 64 bits")
        if dtype.kind not in "fciub":
            self.give_up("an array of objects")
        cls: type | None = np.ndarray
        if not shape:
            cls = PYTHON_OF[dtype.kind] if is_python and dtype.kind in PYTHON_OF else dtype.type
        return Mapped(self.batch, value, cls, is_fresh)

    def check_types(self, xs: Any) -> None:
        """Numbers of Python adapt to others; an array of them does not, so the others must be as wide."""
        if any(type(x) is Mapped and (x.is_python or x.cls is None) for x in xs):
            for x in xs:
                if isinstance(x, (np.ndarray, np.generic, Mapped)) and x.dtype not in WIDE:
                    self.give_up("numbers of Python and narrow ones")

    def check_integers(self, xs: Any) -> None:
        """Integers of NumPy warn where they overflow, those of Python do not overflow; an array does neither."""
        numbers = [x for x in xs if type(x) is Mapped and not x.shape and x.dtype.kind in "iu"]
        if not numbers:
            return
        if any(x.dtype != np.int64 for x in numbers):
            self.give_up("narrow or unsigned integers")
        for x in xs:
            x = raw(x)
            if isinstance(x, (int, np.integer)) or (isinstance(x, np.ndarray) and x.dtype.kind in "iu"):
                if np.size(x) and np.max(np.abs(x)) >= SAFE_INTEGER:
                    self.give_up("large integers")


def read_only(x: Any) -> Any:
    """An argument that is the same for all examples, for a function that must not write into it (`out`)."""
    if type(x) is np.ndarray:
        x = x.view()
        x.flags.writeable = False
    return x


def ndim_of(x: Any) -> int:
    """The number of axes of one example."""
    return x.ndim if isinstance(x, (Mapped, np.ndarray, np.generic)) else np.ndim(x)


def is_python_number(x: Any) -> bool:
    """Whether one example's value is a number of Python."""
    return x.is_python if type(x) is Mapped else type(x) in PYTHON_NUMBERS


ITERATING = frozenset(
    (zip, enumerate, reversed, any, all)
)  # take what they need of an iterator, and when they need it
EXHAUSTING = frozenset((list, tuple, dict, set, frozenset, sum, max, min, sorted))  # take all of it
PYTHON_OF = {"f": float, "i": int, "b": bool, "c": complex}
