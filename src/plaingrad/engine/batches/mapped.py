"""A value of every example of a batch: what stands for it while a function of one example runs at a batch level."""

from __future__ import annotations

from types import CodeType
from typing import Any, NoReturn

import numpy as np

PYTHON_NUMBERS = frozenset((bool, int, float, complex))
# Entered when plaingrad is imported, long before there is a batch level.
MAKING: set[Any] = set()  # functions that only make a function of others, called as they are
OF_LEAVES: set[Any] = set()  # functions of one value, that give one like it


class NotBatched(BaseException):
    """A run for a whole batch is given up. No program catches it: what it would do then, the loop does.

    Attributes:
        batch: which run.
    """

    def __init__(self, batch: Any, reason: str) -> None:
        super().__init__(reason)
        self.batch = batch


class Batch:
    """One run for a whole batch: how many examples, and why it was given up, if it was.

    Attributes:
        once: it is for these numbers that it was given up.
    """

    __slots__ = ("entered", "iterators", "once", "reason", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.reason: str | None = None
        self.once = False
        self.entered: set[int] = set()  # id of rewritten code that has run: its generators are of this run
        self.iterators: dict[
            int, Any
        ] = {}  # id -> an iterator that was made here, which nobody else goes on with

    def enter(self, code: CodeType) -> None:
        """Rewritten `code` is to run, with the generator expressions in it."""
        self.entered.add(id(code))
        for const in code.co_consts:
            if isinstance(const, CodeType):
                self.enter(const)

    def give_up(self, reason: str, once: bool = False) -> NoReturn:
        """Leave the run; whatever the program does on the way is nothing but giving up again."""
        if self.reason is None:
            self.reason, self.once = reason, once
        raise NotBatched(self, self.reason)


class Mapped:
    """The value of every example: an array with the examples along its first axis.

    Programs never see one: what is not a step that the level knows gives up, also C code that comes by one in a list.

    Attributes:
        batch: the run.
        value: the array; inside a batch of batches what stands for it there.
        shape: of one example.
        dtype: of the array.
        cls: the type of one example's value; None for a number of an unknown type.
        is_fresh: the array is of this run, and there is no view of it.
    """

    __slots__ = ("batch", "cls", "dtype", "is_fresh", "shape", "value")

    def __init__(self, batch: Batch, value: Any, cls: type | None, is_fresh: bool = False) -> None:
        self.batch, self.value, self.cls, self.is_fresh = batch, value, cls, is_fresh
        self.shape: tuple[int, ...] = value.shape[1:]
        self.dtype: np.dtype = value.dtype

    @property
    def ndim(self) -> int:
        """Of one example."""
        return len(self.shape)

    @property
    def is_python(self) -> bool:
        """Whether one example's value is a number of Python."""
        return self.cls in PYTHON_NUMBERS

    def __bool__(self) -> bool:
        """The truth of all examples, where they agree."""
        value = raw(self)
        if self.shape and value[0].size != 1:
            self.batch.give_up("the truth of an array")
        truths = value.astype(bool).reshape(-1)
        if not (truths == truths[0]).all():
            self.batch.give_up("the examples take different branches", True)
        return bool(truths[0])

    def __hash__(self) -> int:
        self.batch.give_up("a mapped value is hashed")

    def __getattr__(self, name: str) -> Any:
        self.batch.give_up(f"the attribute {name!r} of a mapped value")


def _giving_up(name: str) -> Any:
    def given_up(self: Mapped, *args: Any, **kwargs: Any) -> NoReturn:
        self.batch.give_up(f"{name} of a mapped value, called by code that is not rewritten")

    return given_up


for _name in (
    "lt le eq ne gt ge repr str format float int complex index len iter getitem setitem contains reduce_ex copy "
    "deepcopy array array_ufunc array_function round abs neg pos invert trunc floor ceil "
    "add sub mul truediv floordiv mod pow matmul lshift rshift and or xor divmod "
    "radd rsub rmul rtruediv rfloordiv rmod rpow rmatmul rlshift rrshift rand ror rxor rdivmod call"
).split():
    setattr(Mapped, f"__{_name}__", _giving_up(f"__{_name}__"))


def raw(x: Any) -> np.ndarray:
    """The numbers of a mapped value, of all batches around."""
    while type(x) is Mapped:
        x = x.value
    return x  # type: ignore[no-any-return]


def any_mapped(x: Any) -> bool:
    """Whether a mapped value is `x`, or in the lists, tuples and dictionaries that `x` is made of."""
    t = type(x)
    if t is Mapped:
        return True
    if t is list or t is tuple:
        return any(map(any_mapped, x))
    if t is dict:
        return any(map(any_mapped, x.values()))
    return isinstance(x, (list, tuple, dict)) and any(
        map(any_mapped, list(x.values() if isinstance(x, dict) else x))
    )


__all__ = ["PYTHON_NUMBERS", "Batch", "Mapped", "NotBatched", "any_mapped", "raw"]
