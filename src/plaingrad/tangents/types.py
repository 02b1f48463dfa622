"""The values that stand for tangents which are not plain numbers or arrays, and the pair of a value and its tangent."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from reprlib import recursive_repr
from typing import Any, Generic, NamedTuple, TypeVar, final

import numpy as np

from plaingrad.class_keys import is_instance

X = TypeVar("X")
OPERATIONS: dict[
    str, Callable[..., Any]
] = {}  # what the public door does with objects and their tangents: `updated`


@final
class NoTangentType:
    """The type of `NoTangent`: its primal (a string, an int, a bool) has no tangent space.

    Added to a zero, or scaled, it stays `NoTangent`; added to a number it is a mistake, and raises `TypeError`.
    """

    __slots__ = ()
    __array_ufunc__ = None  # NumPy leaves the operators to this class

    def __repr__(self) -> str:
        return "NoTangent"

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> str:
        return "NoTangent"

    def __add__(self, other: Any) -> Any:
        return self if is_zero(other) else NotImplemented

    __radd__ = __sub__ = __rsub__ = __add__

    def __mul__(self, other: Any) -> Any:
        return self

    __rmul__ = __truediv__ = __mul__

    def __neg__(self) -> Any:
        return self


@final
class ZeroTangentType:
    """The type of `ZeroTangent`: a tangent space exists and the tangent in it is known to be zero.

    `ZeroTangent + x` is `x`, the very object; a multiple of it is `ZeroTangent`.
    """

    __slots__ = ()
    __array_ufunc__ = None

    def __repr__(self) -> str:
        return "ZeroTangent"

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> str:
        return "ZeroTangent"

    def __add__(self, other: Any) -> Any:
        return other

    __radd__ = __rsub__ = __add__

    def __sub__(self, other: Any) -> Any:
        return -other

    def __mul__(self, other: Any) -> Any:
        return NoTangent if other is NoTangent else self

    __rmul__ = __truediv__ = __matmul__ = __rmatmul__ = __mul__

    def __neg__(self) -> Any:
        return self

    def __pos__(self) -> Any:
        return self

    def conjugate(self) -> Any:
        """The conjugate of zero."""
        return self

    conj = conjugate

    @property
    def real(self) -> Any:
        """The real part of zero."""
        return self

    @property
    def imag(self) -> Any:
        """The imaginary part of zero."""
        return self


NoTangent = NoTangentType()
ZeroTangent = ZeroTangentType()


def is_zero(tangent: object) -> bool:
    """Whether `tangent` is a structural zero (`NoTangent` or `ZeroTangent`)."""
    return tangent is NoTangent or tangent is ZeroTangent


class Thunk:
    """A cotangent that is computed when asked for, at most once, whichever thread asks.

    Arithmetic asks for it; so does `unthunk`.

    Examples:
        >>> from plaingrad import Thunk, unthunk
        >>> x_bar = Thunk(lambda: print("computed") or 3.0)
        >>> unthunk(x_bar)
        computed
        3.0
        >>> 2.0 * x_bar
        6.0
    """

    __slots__ = ("_pending", "_value")
    __array_ufunc__ = None

    def __init__(self, compute: Callable[[], Any]) -> None:
        self._pending: list[Callable[[], Any]] | None = [compute]
        self._value: Any = None

    def evaluate(self) -> Any:
        """The cotangent itself."""
        pending = self._pending
        if pending is None:
            return self._value
        try:
            compute = pending.pop()  # atomic: one thread gets it
        except IndexError:
            return self._wait()
        try:
            value = compute()
        except BaseException:
            pending.append(compute)  # whoever asks next gets the error too
            raise
        self._value = value
        self._pending = None
        return value

    def _wait(self) -> Any:
        """The cotangent, when the thread that computes it is done."""
        frame = sys._getframe(2)
        while frame is not None:
            if frame.f_code.co_name == "evaluate" and frame.f_locals.get("self") is self:
                raise RuntimeError("a thunk asks for its own value")
            frame = frame.f_back
        while self._pending == []:
            time.sleep(1e-4)
        return self.evaluate()

    def __repr__(self) -> str:
        return "Thunk(...)" if self._pending is not None else f"Thunk({self._value!r})"

    def __add__(self, other: Any) -> Any:
        return unthunk(self) + unthunk(other)

    def __radd__(self, other: Any) -> Any:
        return other + unthunk(self)

    def __sub__(self, other: Any) -> Any:
        return unthunk(self) - unthunk(other)

    def __rsub__(self, other: Any) -> Any:
        return other - unthunk(self)

    def __mul__(self, other: Any) -> Any:
        return unthunk(self) * unthunk(other)

    def __rmul__(self, other: Any) -> Any:
        return other * unthunk(self)

    def __truediv__(self, other: Any) -> Any:
        return unthunk(self) / unthunk(other)

    def __neg__(self) -> Any:
        return -unthunk(self)


def unthunk(tangent: Any) -> Any:
    """`tangent`, computed now if it was postponed.

    Examples:
        >>> from plaingrad import Thunk, unthunk
        >>> unthunk(Thunk(lambda: 2.0)), unthunk(2.0)
        (2.0, 2.0)
    """
    while type(tangent) is Thunk:
        tangent = tangent.evaluate()
    return tangent


class Dual(NamedTuple, Generic[X]):
    """A value and its tangent, at the border of a forward rule: `Dual(x, x_dot)`.

    Attributes:
        primal: the value.
        tangent: its tangent, `NoTangent` for a value (a plain function, say) that has none.

    Examples:
        >>> from plaingrad import Dual
        >>> y, y_dot = Dual(3.0, 1.0)
        >>> y_dot
        1.0
    """

    primal: X
    tangent: Any = NoTangent


class Tangent(Mapping[str, Any]):
    """The tangent of an object: one tangent per field of the primal.

    Fields are read as attributes (`t.rate`) or by name (`t["rate"]`). A field without tangent is `None` in what
    `grad`, `vjp` and `jvp` return, `NoTangent` in rules; a field that is left out is a zero. Tangents of one class can
    be added, subtracted, scaled and compared. Added to an object of the class they give a new one, see `updated`: a
    gradient step is `model - 0.1 * model_bar`.

    Examples:
        >>> from plaingrad import Tangent
        >>> class Model: pass
        >>> t = Tangent(Model, {"rate": 2.0, "name": None})
        >>> t + 0.5 * t
        Tangent[Model](rate=3.0, name=None)
        >>> t.rate, t == Tangent(Model, {"rate": 2.0})
        (2.0, True)
    """

    __slots__ = ("_fields", "_primal_type")
    __array_ufunc__ = None  # 0.1 * t with a NumPy number is this class's business

    def __init__(self, primal_type: type, fields: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        if more or type(fields) is not dict:
            fields = {**(fields or {}), **more}
        object.__setattr__(self, "_primal_type", primal_type)
        object.__setattr__(self, "_fields", fields)

    def __getattribute__(self, name: str) -> Any:
        fields = object.__getattribute__(self, "_fields")
        return fields[name] if name in fields else object.__getattribute__(self, name)

    def __getattr__(self, name: str) -> Any:
        fields = object.__getattribute__(self, "_fields")
        known = ", ".join(fields) or "none"
        of = object.__getattribute__(self, "_primal_type").__qualname__
        raise AttributeError(f"this Tangent of {of} has no field {name!r}; its fields: {known}")

    @property
    def primal_type(self) -> type:
        """The class whose tangent this is."""
        return self._primal_type

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a Tangent is immutable")

    def __getitem__(self, name: str) -> Any:
        return object.__getattribute__(self, "_fields")[name]

    def __iter__(self) -> Iterator[str]:
        return iter(object.__getattribute__(self, "_fields"))

    def __len__(self) -> int:
        return len(object.__getattribute__(self, "_fields"))

    def __reduce__(self) -> tuple[Any, ...]:
        return Tangent, (
            object.__getattribute__(self, "_primal_type"),
            object.__getattribute__(self, "_fields"),
        )

    @recursive_repr("Tangent[...]")
    def __repr__(self) -> str:
        body = ", ".join(f"{name}={self[name]!r}" for name in self)
        return f"Tangent[{object.__getattribute__(self, '_primal_type').__qualname__}]({body})"

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *(name for name in self if isinstance(name, str))})

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def _repr_html_(self) -> str:
        return html_table(self)

    def __eq__(self, other: object) -> Any:
        if other is ZeroTangent:
            other = {}
        if not is_instance(other, Mapping):
            return NotImplemented
        if type(other) is Tangent and primal_type_of(other) is not primal_type_of(self):
            return False
        return equal_entries(entries(self), entries(other))

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Any) -> Any:
        if other is ZeroTangent or other is NoTangent:
            return self
        cls = primal_type_of(self)
        if type(other) is cls and cls is not Tangent:
            return OPERATIONS["updated"](other, self)
        if type(other) is not Tangent:
            return NotImplemented
        if primal_type_of(other) is not cls:
            raise TypeError(
                f"a Tangent of {cls.__qualname__} and one of {primal_type_of(other).__qualname__} cannot be added: "
                "they belong to objects of different classes"
            )
        return Tangent(cls, added(entries(self), entries(other)))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + -other if type(other) is Tangent or is_zero(other) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        if type(other) is primal_type_of(self) and type(other) is not Tangent:
            return OPERATIONS["updated"](other, self, -1.0)
        return -self if is_zero(other) else NotImplemented

    def __mul__(self, factor: Any) -> Any:
        return mapped(self, lambda part: part * factor) if is_number(factor) else NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, factor: Any) -> Any:
        return mapped(self, lambda part: part / factor) if is_number(factor) else NotImplemented

    def __neg__(self) -> Any:
        return mapped(self, lambda part: -part)


def escaped(text: str) -> str:
    """`text` for HTML, as `html.escape` has it, whose module takes time to import."""
    for mark, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&#x27;")):
        text = text.replace(mark, entity)
    return text


def html_table(tangent: Tangent) -> str:
    """The fields of a tangent and their values, as a table for notebooks."""
    cls = escaped(primal_type_of(tangent).__qualname__)
    rows = "".join(
        f'<tr><th style="text-align:left">{escaped(str(name))}</th>'
        f'<td style="text-align:left">{html_value(value)}</td></tr>'
        for name, value in entries(tangent).items()
    )
    return f"<table><caption>Tangent of {cls}</caption>{rows}</table>"


def html_value(value: Any) -> str:
    """A field of a tangent: a table for one with fields, text for all else."""
    if type(value) is Tangent and not any(type(part) is Tangent for part in entries(value).values()):
        return html_table(value)  # of deeper ones, which may be cycles, the text is enough
    text = f"array of shape {value.shape}\n{value!r}" if isinstance(value, np.ndarray) else repr(value)
    return f"<pre>{escaped(text)}</pre>"


def primal_type_of(tangent: Tangent) -> type:
    """The class whose tangent this is, also where a field is called `primal_type`."""
    return object.__getattribute__(tangent, "_primal_type")


def entries(mapping: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """The entries of a mapping; of a `Tangent` also where a field is called `get` or `items`."""
    return object.__getattribute__(mapping, "_fields") if type(mapping) is Tangent else mapping


def is_number(x: Any) -> bool:
    """Whether `x` can scale a tangent."""
    return not is_instance(x, (str, bytes, list, tuple, dict, np.ndarray, Tangent, type(None))) and hasattr(
        type(x), "__mul__"
    )


def mapped(tangent: Any, f: Callable[[Any], Any]) -> Any:
    """`tangent` with `f` applied to each number and array in it, postponed ones included."""
    tangent = unthunk(tangent)
    if tangent is None or tangent is NoTangent or tangent is ZeroTangent:
        return tangent
    if type(tangent) is Tangent:
        return Tangent(primal_type_of(tangent), mapped(entries(tangent), f))
    if isinstance(tangent, tuple):
        parts = [mapped(part, f) for part in tangent]
        return type(tangent)(*parts) if hasattr(tangent, "_fields") else tuple(parts)
    if isinstance(tangent, list):
        return [mapped(part, f) for part in tangent]
    if isinstance(tangent, dict):
        return {key: mapped(tangent[key], f) for key in tangent}
    return f(tangent)


def added(a: Any, b: Any) -> Any:
    """The sum of two tangents of one primal, as a new object; entry by entry for containers."""
    a, b = unthunk(a), unthunk(b)
    if a is None or a is NoTangent or a is ZeroTangent:
        return a if b is None or (b is ZeroTangent and a is NoTangent) else b
    if b is None or b is NoTangent or b is ZeroTangent:
        return a
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        if len(a) != len(b):
            raise ValueError(f"tangents of {len(a)} and {len(b)} entries cannot be added")
        parts = [added(x, y) for x, y in zip(a, b, strict=True)]
        if isinstance(a, tuple):
            return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
        return parts
    if isinstance(a, dict) and isinstance(b, dict):
        return {key: added(a.get(key), b.get(key)) for key in {**a, **b}}
    return a + b


def equal(a: Any, b: Any) -> bool:
    """Whether two tangents are the same: every kind of zero equals a zero, nan equals nan."""
    a, b = unthunk(a), unthunk(b)
    if a is None or is_zero(a) or b is None or is_zero(b):
        return vanishes(a) and vanishes(b)
    if isinstance(a, (list, tuple)):
        return isinstance(b, (list, tuple)) and len(a) == len(b) and all(map(equal, a, b))
    if type(a) is Tangent or type(b) is Tangent:
        return bool(a == b)
    if isinstance(a, Mapping):
        return isinstance(b, Mapping) and equal_entries(a, b)
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.shape(a) == np.shape(b) and bool(np.all((a == b) | ((a != a) & (b != b))))
    return bool(a == b) or bool(a != a and b != b)


def equal_entries(a: Mapping[Any, Any], b: Mapping[Any, Any]) -> bool:
    """Whether two mappings hold the same tangents."""
    return all(equal(a.get(key), b.get(key)) for key in {**a, **b})


def vanishes(tangent: Any) -> bool:
    """Whether `tangent` is zero or absent, in all its entries."""
    tangent = unthunk(tangent)
    if tangent is None or is_zero(tangent):
        return True
    if isinstance(tangent, Mapping):
        return all(map(vanishes, entries(tangent).values()))
    if isinstance(tangent, (list, tuple)):
        return all(map(vanishes, tangent))
    return not np.any(tangent)
