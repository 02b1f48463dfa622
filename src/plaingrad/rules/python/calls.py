"""What the interpreter does to call a special method, in Python: shared by composed definitions."""

from __future__ import annotations

from typing import Any

from plaingrad.define import composed


def call_binary(x: Any, y: Any, name: str, reflected: str) -> Any:
    """The result of a binary special method, or of the other operand's reflected one."""
    if type(y) is not type(x) and issubclass(type(y), type(x)) and hasattr(type(y), reflected):
        z = getattr(type(y), reflected)(y, x)
        if z is not NotImplemented:
            return z
    if hasattr(type(x), name):
        z = getattr(type(x), name)(x, y)
        if z is not NotImplemented:
            return z
    if hasattr(type(y), reflected):
        z = getattr(type(y), reflected)(y, x)
        if z is not NotImplemented:
            return z
    raise TypeError(f"unsupported operand type(s) for {name[2:-2]}(): {type(x).__name__!r} and {type(y).__name__!r}")


composed(call_binary)(call_binary)
