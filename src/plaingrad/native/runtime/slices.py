"""Arrays assigned to slices of others, with NumPy's error where their shapes do not fit.

Numba compiles the functions that write the two shapes into its message, a dozen for texts among them, before a program
may run in which a slice is assigned: one to two seconds. Here the shapes go to Python, and the message is made when it
is needed.
"""

from __future__ import annotations

import copy
from typing import Any

from numba.core import ir, types
from numba.core.compiler_machinery import register_pass
from numba.core.imputils import lower_builtin
from numba.core.lowering import Lower
from numba.core.typed_passes import NativeLowering
from numba.core.typing.templates import AbstractTemplate, signature
from numba.np.arrayobj import raise_with_shape_context

THREADS = "plaingrad.native.runtime.threads"


class ShapesDiffer(ValueError):
    """Raised by compiled code as a class with two shapes, it arrives as NumPy's ValueError."""

    def __new__(cls, given: Any, wanted: Any = None) -> Any:
        """The exception for two shapes; one that was made already stays as it is."""
        if isinstance(given, ValueError):
            return given
        return ValueError(
            f"could not broadcast input array from shape {_text(given)} into shape {_text(wanted)}"
        )


def _text(shape: tuple[int, ...]) -> str:
    """A shape as NumPy writes it."""
    return f"({','.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def shapes_differ(given, wanted):  # type: ignore[no-untyped-def]
    """Raise that an array of the shape `given` cannot be assigned to a slice of the shape `wanted`."""
    raise ShapesDiffer(given, wanted)


class _OfTwoShapes(AbstractTemplate):  # type: ignore[misc]
    key = shapes_differ

    def generic(self, args: Any, kws: Any) -> Any:
        return signature(types.none, *args)


@lower_builtin(shapes_differ, types.VarArg(types.Any))  # type: ignore[misc]
def _raise(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    context.call_conv.return_dynamic_user_exc(builder, ShapesDiffer, tuple(args), sig.args)
    return context.get_dummy_value()


class _Types:
    """A typing context that takes `shapes_differ` for Numba's function with the long message."""

    def __init__(self, usual: Any) -> None:
        self._usual = usual

    def __getattr__(self, name: str) -> Any:
        return getattr(self._usual, name)

    def resolve_value_type(self, value: Any) -> Any:
        """The type of a constant."""
        if value is raise_with_shape_context:
            return types.Function(_OfTwoShapes)
        return self._usual.resolve_value_type(value)


class _Lowering(Lower):  # type: ignore[misc]
    def lower_assign(self, ty: Any, inst: Any) -> Any:
        """Code for a value; of a function that is only named to `threads`, no address, which would not go on disk."""
        if isinstance(ty, types.Dispatcher) and self._is_named_only(inst):
            return self.context.get_constant_null(ty)
        return super().lower_assign(ty, inst)

    def _is_named_only(self, inst: Any) -> bool:
        """Whether a global is nothing but an argument of the functions that run parts of loops in threads."""
        if not isinstance(inst.value, ir.Global):
            return False
        calls = [
            x.value
            for block in self.blocks.values()
            for x in block.body
            if isinstance(x, ir.Assign) and any(v.name == inst.target.name for v in x.list_vars()[1:])
        ]
        return bool(calls) and all(
            isinstance(call, ir.Expr)
            and call.op == "call"
            and call.func.name != inst.target.name
            and getattr(getattr(self.typeof(call.func.name), "typing_key", None), "__module__", "") == THREADS
            for call in calls
        )

    def lower_setitem(self, target: Any, index: Any, value: Any, sig: Any) -> Any:
        """Code for target[index] = value."""
        if not isinstance(sig.args[0], types.Array):
            return super().lower_setitem(target, index, value, sig)
        usual = self.context
        self.context = copy.copy(usual)
        self.context.typing_context = _Types(usual.typing_context)
        try:
            return super().lower_setitem(target, index, value, sig)
        finally:
            self.context = usual


@register_pass(mutates_CFG=True, analysis_only=False)
class LoweringOfPrograms(NativeLowering):  # type: ignore[misc]
    """Numba's lowering, but for slices."""

    _name = "plaingrad_lowering"

    @property
    def lowering_class(self) -> Any:
        """The class that does it."""
        return _Lowering
