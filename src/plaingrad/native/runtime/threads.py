"""The iterations of a `numba.prange`, in reverse: a part of them in each of several threads, with an arena of its own.

The threads are the system's, started for one sweep of one loop and waited for. Numba's own would not do: its pool may
end the process where two threads enter it, or after a fork. What a thread computes is a derived function of a part of
the loop, which knows nothing of threads: its forward sweep returns sums and a frame, its reverse sweep cotangents.

A part's arena begins with a piece of the arena of the whole; what it takes beyond that is handed to the whole when the
threads are done, so that one owner gives it all back.
"""

from __future__ import annotations

import hashlib
import sys
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from plaingrad.native.runtime.declare import overload, register_jitable
from plaingrad.native.runtime.helpers import trips
from plaingrad.native.runtime.workspace import (
    BLOCK,
    BLOCKS,
    CAPACITY,
    LINE,
    MOST_BLOCKS,
    OWNED,
    TABLE,
    THREADS,
    USED,
    address_of,
    array_at,
    bytes_taken,
    room,
)

MOST = 64  # threads
HEADER = TABLE + 2 * MOST_BLOCKS
HAS_THREADS = sys.platform != "win32"
PADDED = LINE // 8  # numbers of different threads lie in different lines


# -- threads of the system ---------------------------------------------------------------------------------------------


def _thread_function(context: Any, module: Any, one: Any, sig: Any, slot: Any) -> Any:
    """The function that a thread runs: `one` for the number and the arguments in a slot, where it notes a failure."""
    fndesc = one.fndesc
    pointer = cgutils.voidptr_t
    f = ir.Function(module, ir.FunctionType(pointer, [pointer]), f"{fndesc.mangled_name}.thread")
    f.linkage = "internal"
    builder = ir.IRBuilder(f.append_basic_block())
    mine = builder.bitcast(f.args[0], slot.as_pointer())
    number = builder.load(cgutils.gep_inbounds(builder, mine, 0, 0))
    model = context.data_model_manager[sig.args[1]]
    where = builder.load(cgutils.gep_inbounds(builder, mine, 0, 3))
    given = model.from_data(builder, builder.load(where))
    status, _ = context.call_internal_no_propagate(builder, fndesc, sig, [number, given])
    failed = builder.zext(status.is_error, ir.IntType(64))
    builder.store(failed, cgutils.gep_inbounds(builder, mine, 0, 1))
    builder.ret(ir.Constant(pointer, None))
    return f


def _started(context: Any, builder: Any, compiled: Any, sig: Any, count: Any, given: Any) -> Any:
    """Code that runs a compiled function, of the type `sig`, in `count` threads; how many have failed."""
    word, pointer = ir.IntType(64), cgutils.voidptr_t
    kind = context.get_data_type(sig.args[1])
    slot = ir.LiteralStructType([word, word, word, kind.as_pointer()])  # number, failed, thread, arguments
    run = _thread_function(context, builder.module, compiled, sig, slot)
    started_by = [word.as_pointer(), pointer, run.function_type.as_pointer(), pointer]
    start = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(ir.IntType(32), started_by), "pthread_create"
    )
    wait = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(ir.IntType(32), [word, pointer.as_pointer()]), "pthread_join"
    )
    shared = cgutils.alloca_once(builder, kind)
    model = context.data_model_manager[sig.args[1]]
    builder.store(model.as_data(builder, given), shared)
    slots = cgutils.alloca_once(builder, slot, size=MOST)
    begun = cgutils.alloca_once(builder, word, size=MOST)
    failures = cgutils.alloca_once_value(builder, ir.Constant(word, 0))
    last = builder.sub(count, ir.Constant(word, 1))
    with cgutils.for_range(builder, count) as loop:
        mine = builder.gep(slots, [loop.index])
        builder.store(loop.index, cgutils.gep_inbounds(builder, mine, 0, 0))
        builder.store(ir.Constant(word, 0), cgutils.gep_inbounds(builder, mine, 0, 1))
        builder.store(shared, cgutils.gep_inbounds(builder, mine, 0, 3))
        mark = builder.gep(begun, [loop.index])
        builder.store(ir.Constant(word, 0), mark)
        own = builder.bitcast(mine, pointer)
        with builder.if_then(builder.icmp_signed("<", loop.index, last)):
            thread = cgutils.gep_inbounds(builder, mine, 0, 2)
            code = builder.call(start, [thread, ir.Constant(pointer, None), run, own])
            builder.store(
                builder.zext(builder.icmp_signed("==", code, ir.Constant(code.type, 0)), word), mark
            )
        with builder.if_then(builder.icmp_signed("==", builder.load(mark), ir.Constant(word, 0))):
            builder.call(run, [own])  # the last part is this thread's, and what no thread could be had for
    with cgutils.for_range(builder, count) as loop:
        mine = builder.gep(slots, [loop.index])
        with builder.if_then(
            builder.icmp_signed("!=", builder.load(builder.gep(begun, [loop.index])), ir.Constant(word, 0))
        ):
            thread = builder.load(cgutils.gep_inbounds(builder, mine, 0, 2))
            builder.call(wait, [thread, ir.Constant(pointer.as_pointer(), None)])
        failed = builder.load(cgutils.gep_inbounds(builder, mine, 0, 1))
        builder.store(builder.add(builder.load(failures), failed), failures)
    return builder.load(failures)


def side_by_side_of(one: Any) -> Any:
    """An intrinsic f(count, given): one(k, given) for every k < count, at most MOST, each in a thread; how many failed.

    Args:
        one: a dispatcher.
    """

    @intrinsic
    def side_by_side(typingctx, count, given):  # type: ignore[no-untyped-def]
        called = types.Dispatcher(one).get_call_type(typingctx, (types.int64, given), {})

        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            compiled = one.get_compile_result(called)
            context.add_linking_libs([compiled.library])
            return _started(context, builder, compiled, called, *args)

        return types.int64(types.int64, given), codegen

    return side_by_side


# -- arenas of threads -------------------------------------------------------------------------------------------------


@register_jitable(moves=True)
def _parts_of(arena, n):  # type: ignore[no-untyped-def]
    """In how many parts a loop of n iterations is done."""
    return max(1, min(arena[THREADS], n, MOST))


@register_jitable(moves=True)
def _headers(arena, parts):  # type: ignore[no-untyped-def]
    """The headers of the arenas of as many parts: each begins with a piece of what `arena` has left."""
    headers = room(arena, (parts, HEADER), np.int64)
    for k in range(parts):
        for j in range(HEADER):
            headers[k, j] = 0
    size = ((arena[CAPACITY] - arena[USED]) // (parts + 1)) & -LINE
    for k in range(parts):
        if size > 0:
            headers[k, BLOCK] = bytes_taken(arena, size)
            headers[k, CAPACITY] = size
    return headers


@register_jitable(moves=True)
def _hand_over(arena, headers):  # type: ignore[no-untyped-def]
    """Let `arena` own what the arenas of its parts have taken from the heap."""
    for k in range(headers.shape[0]):
        for j in range(headers[k, BLOCKS]):
            count = arena[BLOCKS]
            if count >= MOST_BLOCKS:
                raise MemoryError("the tapes of a derived program have too many blocks")
            arena[TABLE + 2 * count] = headers[k, TABLE + 2 * j]
            arena[TABLE + 2 * count + 1] = headers[k, TABLE + 2 * j + 1]
            arena[BLOCKS] = count + 1
        headers[k, BLOCKS] = 0
        if headers[k, OWNED] != 0:
            node = array_at(headers[k, OWNED], 2, np.int64)
            while node[1] != 0:
                node = array_at(node[1], 2, np.int64)
            node[1] = arena[OWNED]
            arena[OWNED] = headers[k, OWNED]
            headers[k, OWNED] = 0


# -- the sweeps of a loop ----------------------------------------------------------------------------------------------


def forward_in_parts(arena, f, start, stop, step, *args):  # type: ignore[no-untyped-def]
    """The forward sweep `f` of parts of range(start, stop, step), side by side: (sums of results, the frame)."""
    *results, frame = f(arena, start, stop, step, *args)
    return (*results, [frame])


def backward_in_parts(arena, f, private, frame, *given):  # type: ignore[no-untyped-def]
    """The reverse sweep `f` of the same parts: the sums of its cotangents.

    The last `private` arrays of `given` are shadows into which several parts may add: each has one of its own.
    """
    return f(arena, frame[0], *given)


def _made(text: str, f: Any, **space: Any) -> Any:
    """A function of the last name in `text`, its functions compiled under names that no others have."""
    told = hashlib.sha256(f"{text} {f.__module__} {f.__qualname__}".encode()).hexdigest()[:16]
    text = text.replace("TOLD", told)
    space.update(f=f, np=np, room=room, trips=trips, address_of=address_of, array_at=array_at, HEADER=HEADER)
    space.update(parts_of=_parts_of, headers_of=_headers, hand_over=_hand_over)
    space["__name__"] = __name__
    exec(text, space)
    one = f"one_{told}"
    space[one] = numba.njit(space[one])
    space["side_by_side"] = side_by_side_of(space[one])
    return space["run"]


FORWARD = """
def one_TOLD(k, given):
    headers, frames, FLOATS, WHOLES, start, step, n, parts, args = given
    low, high = n * k // parts, n * (k + 1) // parts
    out = f(headers[k], start + step * low, start + step * high, step, *args)
    RESULTS
    frame = out[COUNT]
    frames[k, 0] = address_of(frame)
    frames[k, 1] = frame.size


def run(arena, f, start, stop, step, *args):
    n = trips(start, stop, step)
    parts = parts_of(arena, n)
    headers = headers_of(arena, parts)
    frames = room(arena, (parts, 2), np.int64)
    floats = room(arena, (parts, PADDED), np.float64)
    wholes = room(arena, (parts, PADDED), np.int64)
    given = (headers, frames, floats, wholes, start, step, n, parts, args)
    failed = side_by_side(parts, given)
    hand_over(arena, headers)
    if failed:
        for k in range(parts):
            one_TOLD(k, given)  # raises, in the order of the iterations
        raise RuntimeError("a part of a parallel loop has failed")
    SUMS
    frame = room(arena, 3, np.int64)
    frame[0], frame[1], frame[2] = parts, address_of(headers), address_of(frames)
    return (TOTALS frame)
"""

BACKWARD = """
def one_TOLD(k, given):
    headers, frames, bars, others = given
    frame = array_at(frames[k, 0], frames[k, 1], np.int64)
    out = f(headers[k], frame, GIVEN)
    RESULTS


def run(arena, f, private, frame, *args):
    parts = frame[0]
    headers = array_at(frame[1], (parts, HEADER), np.int64)
    frames = array_at(frame[2], (parts, 2), np.int64)
    bars = room(arena, (parts, PADDED), np.float64)
    COPIES
    given = (headers, frames, bars, (OTHERS))
    failed = side_by_side(parts, given)
    hand_over(arena, headers)
    if failed:
        raise RuntimeError("a part of a parallel loop has failed on the way back")
    SUMS
    return (TOTALS)
"""


def _filled(template: str, **parts: str) -> str:
    """A template with what it is to have in the place of words in capitals; lines keep their indentation."""
    lines = []
    for line in template.splitlines():
        for word, text in parts.items():
            if line.strip() == word:
                depth = line[: len(line) - len(line.lstrip())]
                line = "\n".join(depth + part for part in text.splitlines()) if text else ""
            else:
                line = line.replace(word, text)
        lines.append(line)
    return "\n".join(lines) + "\n"


def _padded(count: int) -> str:
    return str(-(-max(count, 1) // PADDED) * PADDED)


@overload(forward_in_parts)
def _forward_in_parts(arena, f, start, stop, step, *args):  # type: ignore[no-untyped-def]
    if isinstance(arena, types.NoneType) or not isinstance(f, types.Dispatcher):
        return None
    word = types.int64
    kinds = list(_result_of(f, (arena, word, word, word, *args)))[:-1]
    places = [("floats" if isinstance(t, types.Float) else "wholes", k) for k, t in enumerate(kinds)]
    results = "\n".join(f"{array}[k, {k}] = out[{k}]" for array, k in places)
    sums = "\n".join(
        f"total{k} = {array}[0, {k}]\nfor k in range(1, parts):\n    total{k} += {array}[k, {k}]"
        for array, k in places
    )
    text = _filled(
        FORWARD,
        RESULTS=results,
        SUMS=sums,
        TOTALS="".join(f"total{k}, " for _, k in places),
        COUNT=str(len(kinds)),
        FLOATS="floats",
        WHOLES="wholes",
        PADDED=_padded(len(kinds)),
    )
    return _made(text, f.dispatcher)


@overload(backward_in_parts, prefer_literal=True)
def _backward_in_parts(arena, f, private, frame, *args):  # type: ignore[no-untyped-def]
    if not isinstance(f, types.Dispatcher) or not isinstance(private, types.IntegerLiteral):
        return None
    first = len(args) - private.literal_value
    inner = [types.unliteral(t) if k < first else t.copy(layout="C") for k, t in enumerate(args)]
    bars = list(_result_of(f, (arena, frame, *inner)))
    copies = "\n".join(
        f"own{k} = np.zeros((parts,) + args[{k}].shape, args[{k}].dtype)" for k in range(first, len(args))
    )
    sums = [f"total{k} = 0.0\nfor k in range(parts):\n    total{k} += bars[k, {k}]" for k in range(len(bars))]
    for k in range(first, len(args)):
        sums += [
            f"size = args[{k}].size",
            f"to{k}, of{k} = args[{k}].reshape(size), own{k}.reshape((parts, size))",
            f"for k in range(parts):\n    for j in range(size):\n        to{k}[j] += of{k}[k, j]",
        ]
    text = _filled(
        BACKWARD,
        RESULTS="\n".join(f"bars[k, {k}] = out[{k}]" for k in range(len(bars))),
        COPIES=copies,
        SUMS="\n".join(sums),
        GIVEN="".join(f"others[{k}], " if k < first else f"others[{k}][k], " for k in range(len(args))),
        OTHERS="".join(f"args[{k}], " if k < first else f"own{k}, " for k in range(len(args))),
        TOTALS="".join(f"total{k}, " for k in range(len(bars))),
        PADDED=_padded(len(bars)),
    )
    return _made(text, f.dispatcher)


def _result_of(f: Any, kinds: tuple[Any, ...]) -> Any:
    """The type of what a dispatcher returns for arguments of these types."""
    return f.dispatcher.get_compile_result(numba.core.typing.signature(None, *kinds)).signature.return_type
