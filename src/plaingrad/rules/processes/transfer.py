"""What goes to another process, taken apart: the pickled structure, and beside it the numbers and arrays in it.

A number keeps its identity that way, and with it its derivative: it is not in the bytes. What code of a class makes of
numbers while it is pickled, or restored, would be numbers that nobody has seen being made, so such classes are refused.
"""

from __future__ import annotations

import datetime
import functools
import importlib
import io
import numbers
import pickle
import re
import types
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

#: Kinds of arrays that are leaves; those of objects are followed, records hide their numbers.
LEAF_KINDS = "fciubmMSU"
TIMES = (datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo)
#: Methods by which a class has a say in how its instances are pickled or restored.
OWN_WAYS = ("__reduce_ex__", "__reduce__", "__getstate__", "__setstate__", "__getnewargs_ex__", "__getnewargs__", "__new__")
DECIMALS = re.compile(rb"\d\.\d|\d[eE][-+]?\d")
_BYTES = (bytes, bytearray, memoryview, pickle.PickleBuffer)


class _WithoutLeaves:
    """Pickles an object without its leaves: a part of a class whose other part is a pickler."""

    def __init__(self, file: io.BytesIO, is_result: bool) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)  # type: ignore[call-arg]
        self.is_result = is_result
        self.leaves: list[Any] = []
        self.strange = ""
        self._places: dict[int, int] = {}

    def persistent_id(self, x: Any) -> int | None:
        """The place of a leaf; None for what is pickled as ever."""
        t = type(x)
        if t is float or t is complex or self._is_leaf(x, t):
            n = None if t is float else self._places.get(id(x))  # pickle makes two of a float that is there twice
            if n is None:
                n = self._places[id(x)] = len(self.leaves)
                self.leaves.append(x)
            return n
        if not self.strange:
            self.strange = strangeness(x, t) or (text_of_numbers(x) if self.is_result else "")
        return None

    @staticmethod
    def _is_leaf(x: Any, t: type) -> bool:
        if t is np.ndarray:
            return x.dtype.kind in LEAF_KINDS
        return isinstance(x, np.generic) and x.dtype.kind != "V" or isinstance(x, TIMES)


class _Taking(_WithoutLeaves, ForkingPickler):
    """As pools of processes pickle."""


@functools.cache
def _taking_by_value(package: str) -> Any:
    """A class that pickles functions by value where they have no name: by cloudpickle or dill."""
    return type("_TakingByValue", (_WithoutLeaves, importlib.import_module(package).Pickler), {})


class Parts:
    """An object as it is pickled; of a result, whose numbers nobody here has seen being made, more is asked.

    Attributes:
        pickled: its structure, in which leaves are numbered.
        leaves: the numbers, arrays and times in it, one for each object.
        strange: why it may hold numbers that are not among the leaves; empty: it does not.
    """

    __slots__ = ("leaves", "pickled", "strange")

    def __init__(self, x: Any, is_result: bool = False, by_value: str = "") -> None:
        file = io.BytesIO()
        taken = (_taking_by_value(by_value) if by_value else _Taking)(file, is_result)
        taken.dump(x)
        self.pickled = file.getvalue()
        self.leaves = taken.leaves
        self.strange = taken.strange

    def numbers(self) -> list[int]:
        """Which leaves may have a tangent."""
        return [n for n, x in enumerate(self.leaves) if has_tangent(x)]


def has_tangent(x: Any) -> bool:
    """Whether a leaf is a real or complex number, or an array of such."""
    t = type(x)
    return t is float or t is complex or (isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "fc")


def strangeness(x: Any, t: type) -> str:
    """Why an object other than a leaf may hide numbers; empty: it does not."""
    if t is bool or t is int or x is None or isinstance(x, (type, types.FunctionType, types.BuiltinFunctionType)):
        return ""
    if isinstance(x, numbers.Number) and not isinstance(x, numbers.Integral):
        return f"a number of the class {t.__qualname__}"
    if isinstance(x, np.ndarray):
        return "" if t is np.ndarray and x.dtype.kind == "O" else f"an array of the class {t.__qualname__}"
    for name in OWN_WAYS:
        own = next((vars(cls)[name] for cls in t.__mro__ if name in vars(cls)), None)
        if isinstance(own, staticmethod):
            own = own.__func__
        if isinstance(own, types.FunctionType) and not is_harmless(t, own):
            return f"an object of the class {t.__qualname__}, whose `{name}` is Python code"
    return ""


def text_of_numbers(x: Any) -> str:
    """What kind of text with numbers in it an object is; empty: none."""
    if isinstance(x, _BYTES):
        return "bytes" if len(memoryview(x).cast("B")) else ""
    if isinstance(x, str):
        return "text with a number in it" if DECIMALS.search(x.encode(errors="replace")) else ""
    return ""


def is_harmless(t: type, method: types.FunctionType) -> bool:
    """Whether a method of pickling, in Python, is known to make no numbers: of enumerations, say."""
    if method.__module__ in ("dask._task_spec", "dask.utils"):  # nodes of graphs, which hold what is in them
        return True
    home = method.__module__.partition(".")[0]
    return home in ("enum", "copyreg", "joblib", "loky", "dill", "cloudpickle", "toolz", "plaingrad") or (hasattr(t, "_fields") and issubclass(t, tuple))


class _Putting(pickle.Unpickler):
    def __init__(self, pickled: bytes, leaves: list[Any]) -> None:
        super().__init__(io.BytesIO(pickled))
        self._leaves = leaves

    def persistent_load(self, n: int) -> Any:
        """The leaf at place n."""
        return self._leaves[n]


def put_together(pickled: bytes, leaves: list[Any]) -> Any:
    """The object of which `leaves` and `pickled` are the parts."""
    return _Putting(pickled, leaves).load()
