"""New arrays, filled ones, and arithmetic in place, without a function of Numba's around the code that does it.

Numba compiles np.empty, np.zeros and their likes as functions of their own, for every combination of types and of the
flags of a caller anew: some 40 ms each. What derived programs and their helpers call instead is the same code in place.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np
from numba.core import cgutils, ir, types
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import AnalysisPass, FunctionPass, register_pass
from numba.core.imputils import impl_ret_borrowed, impl_ret_new_ref, lower_builtin
from numba.core.ir_utils import find_callname, get_definition, guard
from numba.core.typed_passes import IRLegalization, NativeLowering
from numba.core.typing.npydecl import parse_dtype, parse_shape
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.core.untyped_passes import IRProcessing
from numba.np import arrayobj

from plaingrad.native.runtime.slices import LoweringOfPrograms


def empty(shape, dtype=float):  # type: ignore[no-untyped-def]
    """np.empty."""
    return np.empty(shape, dtype)


def zeros(shape, dtype=float):  # type: ignore[no-untyped-def]
    """np.zeros."""
    return np.zeros(shape, dtype)


def empty_like(a):  # type: ignore[no-untyped-def]
    """np.empty_like."""
    return np.empty_like(a)


def zeros_like(a):  # type: ignore[no-untyped-def]
    """np.zeros_like."""
    return np.zeros_like(a)


def fill(a, value):  # type: ignore[no-untyped-def]
    """a.fill(value) for a number."""
    a.fill(value)


def added(a, b):  # type: ignore[no-untyped-def]
    """a += b."""
    a += b
    return a


def subtracted(a, b):  # type: ignore[no-untyped-def]
    """a -= b."""
    a -= b
    return a


def multiplied(a, b):  # type: ignore[no-untyped-def]
    """a *= b."""
    a *= b
    return a


def divided(a, b):  # type: ignore[no-untyped-def]
    """a /= b."""
    a /= b
    return a


OF_WRAPPERS = ("release_gil", "no_cpython_wrapper", "no_cfunc_wrapper")
IN_PLACE_OF_NUMBAS = {NativeLowering: LoweringOfPrograms}  # passes
MAKERS = {f.__name__: f for f in (empty, zeros, empty_like, zeros_like)}


def _of_shape(shape: Any, dtype: Any = None) -> Any:
    """The type of np.empty(shape, dtype); None if Numba has none."""
    is_float = dtype is None or isinstance(dtype, types.Function) and dtype.typing_key is float
    kind, ndim = types.float64 if is_float else parse_dtype(dtype), parse_shape(shape)
    return None if kind is None or ndim is None else types.Array(kind, ndim, "C")


def _alike(a: Any) -> Any:
    """The type of np.empty_like(a)."""
    if not isinstance(a, types.Array):
        return types.Array(a, 0, "C") if isinstance(a, (types.Number, types.Boolean)) else None
    return a.copy(layout="C" if a.layout == "A" else a.layout, readonly=False)


def _declare(function: Any, typed: Any, lengths: Any, is_zero: bool) -> None:
    """Let compiled code call a function of MAKERS with one argument or two."""

    class Template(AbstractTemplate):  # type: ignore[misc]
        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            made = None if kws else typed(*args)
            return None if made is None else signature(made, *args)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind, shape = lengths(context, builder, sig, args)
        array = arrayobj._empty_nd_impl(context, builder, kind, shape)
        if is_zero:
            cgutils.memset(builder, array.data, builder.mul(array.itemsize, array.nitems), 0)
        return impl_ret_new_ref(context, builder, kind, array._getvalue())

    infer_global(function, types.Function(Template))
    lower_builtin(function, types.VarArg(types.Any))(generate)


_declare(empty, _of_shape, arrayobj._parse_empty_args, False)
_declare(zeros, _of_shape, arrayobj._parse_empty_args, True)
_declare(empty_like, _alike, arrayobj._parse_empty_like_args, False)
_declare(zeros_like, _alike, arrayobj._parse_empty_like_args, True)


class _Filling(AbstractTemplate):  # type: ignore[misc]
    key = fill

    def generic(self, args: Any, kws: Any) -> Any:
        a, value = args
        is_right = (
            isinstance(a, types.Array) and a.mutable and self.context.can_convert(value, a.dtype) is not None
        )
        return signature(types.none, a, value) if is_right else None


def _fill(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    kind, scalar = sig.args
    a = arrayobj.make_array(kind)(context, builder, args[0])
    value = context.cast(builder, args[1], scalar, kind.dtype)
    if kind.layout in "CF":
        with cgutils.for_range(builder, a.nitems) as loop:
            arrayobj.store_item(context, builder, kind, value, builder.gep(a.data, [loop.index]))
    else:
        shape = cgutils.unpack_tuple(builder, a.shape, kind.ndim)
        with cgutils.loop_nest(builder, shape, context.get_value_type(types.intp)) as place:
            item = cgutils.get_item_pointer(context, builder, kind, a, place)
            arrayobj.store_item(context, builder, kind, value, item)
    return context.get_dummy_value()


infer_global(fill, types.Function(_Filling))
lower_builtin(fill, types.VarArg(types.Any))(_fill)


def _are_arrays(a: Any, b: Any) -> bool:
    """Whether two types are of arrays, the first of which can be written into."""
    return isinstance(a, types.Array) and isinstance(b, types.Array) and a.mutable


def _are_alike(a: Any, b: Any) -> bool:
    """Whether two types are of arrays of floats, of one rank and kind."""
    both = _are_arrays(a, b) and a.ndim == b.ndim > 0 and a.dtype == b.dtype
    return both and isinstance(a.dtype, (types.Float, types.Complex))


def _repeats(context: Any, builder: Any, lengths: Any, given: Any) -> list[Any]:
    """For every axis, whether an array of lengths `given` is repeated along it to fill one of `lengths`.

    The code raises ValueError where that is not so and the two lengths differ.
    """
    repeats = []
    for n, m in zip(lengths, given, strict=True):
        same = builder.icmp_signed("==", n, m)
        repeats.append(builder.and_(builder.not_(same), builder.icmp_signed("==", m, m.type(1))))
        with builder.if_then(builder.not_(builder.or_(same, repeats[-1])), likely=False):
            message = "operands could not be broadcast together"
            context.call_conv.return_user_exc(builder, ValueError, (message,))
    return repeats


def _change(function: Any, in_place: Any, usual: Any) -> None:
    """Let compiled code call `added` or the like: `usual` on every element of what is alike, or Numba's own `in_place`.

    Unlike Numba's, which reads what lies behind `b`, it raises ValueError where `b` cannot be broadcast to `a`.
    """

    class Template(AbstractTemplate):  # type: ignore[misc]
        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            if usual is not None and _are_alike(*args):
                return signature(args[0], *args)
            if _are_arrays(*args) and args[0].ndim < args[1].ndim:
                return None  # NumPy raises, Numba goes through some elements
            return self.context.resolve_function_type(in_place, args, kws)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if not _are_arrays(*sig.args):
            return context.get_function(in_place, sig)(builder, args)
        kind, other = sig.args
        a, b = (arrayobj.make_array(t)(context, builder, x) for t, x in zip(sig.args, args, strict=True))
        lengths = cgutils.unpack_tuple(builder, a.shape, kind.ndim)
        given = cgutils.unpack_tuple(builder, b.shape, other.ndim)
        repeats = _repeats(context, builder, lengths[kind.ndim - other.ndim :], given)
        if usual is None or not _are_alike(*sig.args):
            return context.get_function(in_place, sig)(builder, args)
        of_elements = context.get_function(usual, signature(kind.dtype, kind.dtype, kind.dtype))
        zero = context.get_constant(types.intp, 0)

        def change(to: Any, of: Any) -> None:
            x = arrayobj.load_item(context, builder, kind, to)
            y = arrayobj.load_item(context, builder, other, of)
            arrayobj.store_item(context, builder, kind, of_elements(builder, (x, y)), to)

        def change_all() -> None:
            with cgutils.loop_nest(builder, lengths, context.get_value_type(types.intp)) as place:
                there = [builder.select(r, zero, k) for r, k in zip(repeats, place, strict=True)]
                to = cgutils.get_item_pointer(context, builder, kind, a, place)
                change(to, cgutils.get_item_pointer(context, builder, other, b, there))

        if kind.layout == other.layout == "C":
            repeated = functools.reduce(builder.or_, repeats)
            with builder.if_else(repeated, likely=False) as (otherwise, then):
                with then, cgutils.for_range(builder, a.nitems) as loop:
                    change(builder.gep(a.data, [loop.index]), builder.gep(b.data, [loop.index]))
                with otherwise:
                    change_all()
        else:
            change_all()
        return impl_ret_borrowed(context, builder, kind, args[0])

    infer_global(function, types.Function(Template))
    lower_builtin(function, types.VarArg(types.Any))(generate)


IN_PLACE = {
    operator.iadd: added,
    operator.isub: subtracted,
    operator.imul: multiplied,
    operator.itruediv: divided,
}
_change(added, operator.iadd, operator.add)
_change(subtracted, operator.isub, operator.sub)
_change(multiplied, operator.imul, operator.mul)
_change(divided, operator.itruediv, None)  # of elements that are 0 Numba's usual one raises


@register_pass(mutates_CFG=False, analysis_only=False)
class InPlaceOfNumPy(FunctionPass):  # type: ignore[misc]
    """Calls of NumPy's makers of arrays without keywords, and a.fill(constant), become calls of those above."""

    _name = "plaingrad_makers"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Whether a call was changed."""
        changed = False
        for block in state.func_ir.blocks.values():
            body = []
            for s in block.body:
                found = _replaced(state.func_ir, s.value) if isinstance(s, ir.Assign) else None
                if found is not None:
                    function, args = found
                    name = block.scope.redefine("$maker", s.loc)
                    chosen = ir.Global(function.__name__, function, s.loc)
                    body.append(ir.Assign(chosen, name, s.loc))
                    call = ir.Expr.call(name, args, (), s.loc)
                    made = state.func_ir._definitions
                    made[name.name].append(chosen)
                    made[s.target.name] = [call if x is s.value else x for x in made[s.target.name]]
                    s.value = call
                    changed = True
                body.append(s)
            block.body = body
        return changed


def _replaced(func_ir: Any, value: Any) -> Any:
    """(one of the functions above, its arguments) for an expression that it can do; None for others."""
    if not isinstance(value, ir.Expr):
        return None
    if value.op == "inplace_binop" and value.fn in IN_PLACE:
        return IN_PLACE[value.fn], [value.lhs, value.rhs]
    if value.op != "call" or value.kws or value.vararg is not None:
        return None
    callee = guard(get_definition, func_ir, value.func)
    if (
        isinstance(callee, ir.Expr)
        and callee.op == "getattr"
        and callee.attr == "fill"
        and len(value.args) == 1
    ):
        number = guard(get_definition, func_ir, value.args[0])
        is_number = isinstance(number, ir.Const) and isinstance(number.value, (int, float, complex))
        return (fill, [callee.value, *value.args]) if is_number else None
    name, module = guard(find_callname, func_ir, value) or ("", "")
    if module == "numpy" and name in MAKERS and len(value.args) <= (1 if name.endswith("_like") else 2):
        return MAKERS[name], value.args
    return None


@register_pass(mutates_CFG=False, analysis_only=True)
class AsAsked(AnalysisPass):  # type: ignore[misc]
    """From here on, wrappers are made as they were asked for."""

    _name = "plaingrad_wrappers"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """False: the program stays as it is."""
        state.flags = state.pipeline.asked
        return False


class ProgramCompiler(Compiler):  # type: ignore[misc]
    """Numba's compiler with the makers above, for functions that share with all others what they call.

    Numba compiles what a function calls once for every set of flags, also of flags that concern the function's own
    wrappers only. What is called does not see those here.
    """

    def __init__(
        self, typingctx: Any, targetctx: Any, library: Any, args: Any, result: Any, flags: Any, types_of: Any
    ) -> None:
        self.asked = flags
        shown = flags.copy()
        for name in OF_WRAPPERS:
            shown.discard(name)
        super().__init__(typingctx, targetctx, library, args, result, shown, types_of)

    def define_pipelines(self) -> Any:
        """The passes, in their order."""
        (passes,) = super().define_pipelines()
        passes.add_pass_after(InPlaceOfNumPy, IRProcessing)
        passes.add_pass_after(AsAsked, IRLegalization)
        passes.passes = [(IN_PLACE_OF_NUMBAS.get(each, each), why) for each, why in passes.passes]
        passes.finalize()
        return [passes]
