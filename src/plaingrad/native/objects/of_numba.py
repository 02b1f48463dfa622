"""What functions that the user compiled have besides Python: Numba's own lists, loops and number types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba.core import types
from numba.np.numpy_support import as_dtype
from numba.typed import Dict, List

from plaingrad.native.objects import knowns, outside
from plaingrad.native.objects.engine import Frame
from plaingrad.native.objects.values import Items, Keys, Static, is_number


def empty(thing: Callable[[], Any], at: int) -> Callable[..., Any]:
    """The rule for an empty list or dictionary of floats; `at` is where its type stands among the arguments."""

    def made(f: Frame, args: list[Any], named: dict[str, Any]) -> Any:
        kinds = [x.value for x in (*args[1:], *named.values()) if isinstance(x, Static)]
        floats = (types.float64, types.complex128)
        if len(kinds) > at and isinstance(kinds[at], types.Type) and kinds[at] not in floats:
            if not isinstance(kinds[at], (types.Array, types.BaseTuple)):
                raise f.refuse(f"a list or dictionary of Numba's that holds {kinds[at]}")
        return f.object(thing())

    return made


def dict_(f: Frame, args: list[Any], named: dict[str, Any]) -> Any:
    if args or named:
        raise f.refuse("`Dict` of what is there already")
    return f.object(Keys({}))


def as_type(f: Frame, t: Any, args: list[Any]) -> Any:
    """float64(x): a number of that type."""
    kind = as_dtype(t).type
    if len(args) == 1 and is_number(args[0]) and t in (types.float64, types.complex128):
        return Static((float if t is types.float64 else complex)(args[0].value))
    return outside.outside_call(f, Static(kind), args, {})


knowns.KNOWN.update(
    {
        numba.prange: knowns.range_,
        numba.literal_unroll: lambda f, args, named: args[0],
        List: knowns.list_,
        Dict: dict_,
        List.empty_list.__func__: empty(lambda: Items([]), 0),  # type: ignore[attr-defined]
        Dict.empty.__func__: empty(lambda: Keys({}), 1),  # type: ignore[attr-defined]
    }
)
__all__ = ["as_type"]
