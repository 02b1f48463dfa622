"""The values that stand for tangents which are not plain numbers or arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from reprlib import recursive_repr
from typing import Any, final


@final
class NoTangentType:
    """The type of `NoTangent`: its primal (a string, an int, a bool) has no tangent space."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NoTangent"

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> str:
        return "NoTangent"


@final
class ZeroTangentType:
    """The type of `ZeroTangent`: a tangent space exists and the tangent in it is known to be zero."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ZeroTangent"

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> str:
        return "ZeroTangent"


NoTangent = NoTangentType()
ZeroTangent = ZeroTangentType()


def is_zero(tangent: object) -> bool:
    """Whether `tangent` is a structural zero (`NoTangent` or `ZeroTangent`)."""
    return tangent is NoTangent or tangent is ZeroTangent


class Thunk:
    """A cotangent that is computed when asked for, at most once."""

    __slots__ = ("_compute", "_value")

    def __init__(self, compute: Callable[[], Any]) -> None:
        self._compute: Callable[[], Any] | None = compute
        self._value: Any = None

    def evaluate(self) -> Any:
        """The cotangent itself."""
        if self._compute is not None:
            self._value = self._compute()
            self._compute = None
        return self._value

    def __repr__(self) -> str:
        return "Thunk(...)" if self._compute is not None else f"Thunk({self._value!r})"


def unthunk(tangent: Any) -> Any:
    """`tangent`, computed now if it was postponed."""
    while type(tangent) is Thunk:
        tangent = tangent.evaluate()
    return tangent


class Tangent(Mapping[str, Any]):
    """The tangent of an object: one tangent per field of the primal.

    Fields are read as attributes (`t.rate`) or by name (`t["rate"]`). A field without tangent is `None`.
    """

    __slots__ = ("_fields", "_primal_type")

    def __init__(self, primal_type: type, fields: dict[str, Any]) -> None:
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
