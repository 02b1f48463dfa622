"""Memory for what a forward sweep keeps: arenas that belong to one gradient at a time and are used again by the next.

An arena is a list of blocks from the heap, taken from their beginning to their end; what is taken is never given back
singly. A header, an array of int64 that compiled programs get as their first argument, says where the blocks are. When
a gradient is done, or has failed, its arena goes back to the pool, so that a later gradient finds memory that the
system has already mapped: fresh memory costs a page fault every 4 KiB, several times the arithmetic of a gradient.

In programs that CPython runs, and where the arena is None, the same functions return ordinary arrays.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, config, types
from numba.core.errors import TypingError
from numba.core.imputils import impl_ret_borrowed
from numba.core.runtime._nrt_python import c_helpers
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array
from numba.np.ufunc import parallel

from plaingrad.native.runtime.declare import njit, overload, register_jitable

# what the first words of a header say; addresses and bytes. SEEN is for loads whose result nobody wants, THREADS how
# many threads a parallel loop may take
BLOCK, USED, CAPACITY, BLOCKS, OWNED, WANTED, SEEN, THREADS = range(8)
TABLE = 8  # from here on: address and size of every block
MOST_BLOCKS = 400  # each is at least twice the one before, in an arena or the part of it that is a thread's
FIRST_BLOCK = 1 << 16  # bytes
LINE = 64  # bytes, a power of two: everything taken starts at a cache line
DEFAULT_LIMIT = 1 << 30  # bytes that the pool keeps


# -- the heap ----------------------------------------------------------------------------------------------------------


@intrinsic
def _allocate(typingctx, size):  # type: ignore[no-untyped-def]
    """The address of `size` bytes; raises MemoryError."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.ptrtoint(context.nrt.allocate(builder, args[0]), context.get_value_type(types.intp))

    return types.intp(types.intp), codegen


@intrinsic
def array_at(typingctx, address, shape, dtype):  # type: ignore[no-untyped-def]
    """The C array of this shape (a number or a tuple) at an address; it owns nothing."""
    ndim = len(shape) if isinstance(shape, types.BaseTuple) else 1
    array_type = types.Array(dtype.dtype, ndim, "C")

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        intp = context.get_value_type(types.intp)
        word = context.get_constant(types.intp, 1)
        lengths = [args[1]] if not isinstance(signature.args[1], types.BaseTuple) else None
        lengths = lengths or cgutils.unpack_tuple(builder, args[1], ndim)
        lengths = [builder.sext(n, intp) if n.type != intp else n for n in lengths]
        itemsize = context.get_abi_sizeof(context.get_data_type(array_type.dtype))
        strides = [context.get_constant(types.intp, itemsize)]
        for n in reversed(lengths[1:]):
            strides.insert(0, builder.mul(strides[0], n))
        array = context.make_array(array_type)(context, builder)
        populate_array(
            array,
            data=builder.inttoptr(args[0], array.data.type),
            shape=lengths,
            strides=strides,
            itemsize=builder.mul(word, context.get_constant(types.intp, itemsize)),
            meminfo=None,
        )
        return array._getvalue()

    return array_type(types.intp, shape, dtype), codegen


@intrinsic
def address_of(typingctx, array):  # type: ignore[no-untyped-def]
    """The address of the first element of an array."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.ptrtoint(data, context.get_value_type(types.intp))

    return types.intp(array), codegen


@intrinsic
def put_reference(typingctx, address, x):  # type: ignore[no-untyped-def]
    """Write the description of an array to an address; the owner of its memory, now held once more, or 0."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        kind, value = signature.args[1], args[1]
        place = builder.inttoptr(args[0], context.get_data_type(kind).as_pointer())
        builder.store(context.data_model_manager[kind].as_data(builder, value), place)
        context.nrt.incref(builder, kind, value)
        ((_, owner),) = context.nrt.get_meminfos(builder, kind, value)
        return builder.ptrtoint(owner, context.get_value_type(types.intp))

    return types.intp(types.intp, x), codegen


@intrinsic
def got_reference(typingctx, address, like):  # type: ignore[no-untyped-def]
    """The array, of the type of `like`, whose description is at an address."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        kind = signature.return_type
        place = builder.inttoptr(args[0], context.get_data_type(kind).as_pointer())
        value = context.data_model_manager[kind].from_data(builder, builder.load(place))
        return impl_ret_borrowed(context, builder, kind, value)

    return like(types.intp, like), codegen


@intrinsic
def words_of(typingctx, x):  # type: ignore[no-untyped-def]
    """The number of words that the description of an array takes."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        size = context.get_abi_sizeof(context.get_data_type(signature.args[0]))
        return context.get_constant(types.intp, (size + 7) // 8)

    return types.intp(x), codegen


@intrinsic
def _disown(typingctx, owner):  # type: ignore[no-untyped-def]
    """Let go of an owner of memory."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t])
        f = cgutils.get_or_insert_function(builder.module, kind, "NRT_decref")
        builder.call(f, [builder.inttoptr(args[0], cgutils.voidptr_t)])
        return context.get_dummy_value()

    return types.void(types.intp), codegen


# -- arenas, inside compiled programs ----------------------------------------------------------------------------------


@register_jitable(moves=True)
def _next_block(arena, size):  # type: ignore[no-untyped-def]
    """Make room for `size` bytes in a block of its own."""
    size += LINE
    if size < 2 * arena[CAPACITY]:
        size = 2 * arena[CAPACITY]
    if size < arena[WANTED]:
        size = arena[WANTED]
    if size < FIRST_BLOCK:
        size = FIRST_BLOCK
    count = arena[BLOCKS]
    if count >= MOST_BLOCKS:
        raise MemoryError("the tapes of a derived program have too many blocks")
    address = _allocate(size)
    arena[TABLE + 2 * count] = address
    arena[TABLE + 2 * count + 1] = size
    arena[BLOCKS] = count + 1
    arena[BLOCK] = (address + LINE - 1) & -LINE
    arena[CAPACITY] = address + size - arena[BLOCK]
    arena[USED] = 0


@register_jitable(moves=True)
def bytes_taken(arena, size):  # type: ignore[no-untyped-def]
    """The address of `size` bytes of an arena."""
    size = (size + LINE - 1) & -LINE
    if size > arena[CAPACITY] - arena[USED]:
        _next_block(arena, size)
    address = arena[BLOCK] + arena[USED]
    arena[USED] += size
    return address


@register_jitable(moves=True)
def own_memory(arena, owner):  # type: ignore[no-untyped-def]
    """Let go of `owner`, if it is one, when the arena is done: a list of (owner, the one before)."""
    if owner != 0:
        node = array_at(bytes_taken(arena, 16), 2, np.int64)
        node[0] = owner
        node[1] = arena[OWNED]
        arena[OWNED] = address_of(node)


@njit
def _disown_all(at):  # type: ignore[no-untyped-def]
    """Let go of all arrays kept by reference: `at` is the address of the last node of the list, 0 for none."""
    while at != 0:
        node = array_at(at, 2, np.int64)
        _disown(node[0])
        at = node[1]


@register_jitable(moves=True)
def _moved(arena, address, used, size):  # type: ignore[no-untyped-def]
    """The address of `size` bytes of an arena that begin with the `used` bytes from an address on."""
    new = bytes_taken(arena, size)
    source, target = array_at(address, used, np.uint8), array_at(new, used, np.uint8)
    for k in range(used):
        target[k] = source[k]
    return new


@register_jitable(moves=True)
def _with_zeros(arena, tape, wanted):  # type: ignore[no-untyped-def]
    """A tape of words that begins with those of `tape`, `wanted` at least, zeros behind."""
    used = tape.size
    size = 2 * used if 2 * used > wanted else wanted
    longer = array_at(_moved(arena, address_of(tape), 8 * used, 8 * size), size, np.int64)
    for k in range(used, size):
        longer[k] = 0
    return longer


def room(arena, shape, dtype):  # type: ignore[no-untyped-def]
    """A new array of a shape (a length or a tuple), its elements not set, that lives as long as the arena."""
    return np.empty(shape, dtype)


@overload(room, moves=True)
def _room(arena, shape, dtype):  # type: ignore[no-untyped-def]
    if isinstance(arena, types.NoneType):
        return lambda arena, shape, dtype: np.empty(shape, dtype)
    itemsize = _itemsize(dtype)
    if isinstance(shape, types.BaseTuple):
        ndim = len(shape)

        def room_for_array(arena, shape, dtype):  # type: ignore[no-untyped-def]
            size = itemsize
            for k in range(ndim):
                size *= shape[k]
            return array_at(bytes_taken(arena, size), shape, dtype)

        return room_for_array
    return lambda arena, shape, dtype: array_at(bytes_taken(arena, shape * itemsize), shape, dtype)


def room_from(arena, shape, dtype, lead):  # type: ignore[no-untyped-def]
    """`room` for an array whose element `lead` along the last axis begins a line of memory.

    A loop that stores from there on stores whole lines, if rows are whole lines: in one half to two thirds of the time.
    """
    return np.empty(shape, dtype)


@overload(room_from, moves=True)
def _room_from(arena, shape, dtype, lead):  # type: ignore[no-untyped-def]
    itemsize = _itemsize(dtype)
    if isinstance(shape, types.Integer):
        return lambda arena, shape, dtype, lead: room_from(arena, (shape,), dtype, lead)
    ndim = len(shape)

    def room_from_of_tuple(arena, shape, dtype, lead):  # type: ignore[no-untyped-def]
        size = itemsize
        for k in range(ndim):
            size *= shape[k]
        return array_at(bytes_taken(arena, size + LINE) + (-lead * itemsize & LINE - 1), shape, dtype)

    return room_from_of_tuple


@register_jitable(moves=True)
def mark(arena):  # type: ignore[no-untyped-def]
    """How far an arena is taken now: (number of blocks, bytes of the last one)."""
    return arena[BLOCKS], arena[USED]


@register_jitable(moves=True)
def release(arena, marked):  # type: ignore[no-untyped-def]
    """Take what was taken since `mark` as free, unless there is a new block: then it will be from the next time on."""
    if arena[BLOCKS] == marked[0]:
        arena[USED] = marked[1]


def _itemsize(dtype: Any) -> int:
    from numba.np.numpy_support import as_dtype

    if not hasattr(dtype, "dtype"):
        raise TypingError("a type of numbers is wanted")
    return as_dtype(dtype.dtype).itemsize


@register_jitable(moves=True)
def copied(arena, x):  # type: ignore[no-untyped-def]
    """A copy of a C array that lives as long as the arena."""
    new = room(arena, x.shape, x.dtype)
    to, of = new.reshape(x.size), x.reshape(x.size)
    for k in range(x.size):
        to[k] = of[k]
    return new


def more(arena, tape, size):  # type: ignore[no-untyped-def]
    """`tape`, or a longer one that begins with it, with room for `size` entries at least."""
    if size <= tape.size:
        return tape
    new = room(arena, max(2 * tape.size, size), tape.dtype)
    new[: tape.size] = tape
    return new


@overload(more, moves=True)
def _more(arena, tape, size):  # type: ignore[no-untyped-def]
    if isinstance(arena, types.NoneType):

        def longer(arena, tape, size):  # type: ignore[no-untyped-def]
            if size <= tape.size:
                return tape
            new = np.empty(2 * tape.size if 2 * tape.size > size else size, tape.dtype)
            for k in range(tape.size):
                new[k] = tape[k]
            return new

        return longer
    itemsize = _itemsize(types.NumberClass(tape.dtype))

    def more(arena, tape, size):  # type: ignore[no-untyped-def]
        if size <= tape.size:
            return tape
        size = 2 * tape.size if 2 * tape.size > size else size
        return array_at(
            _moved(arena, address_of(tape), tape.size * itemsize, size * itemsize), size, tape.dtype
        )

    return more


# Tapes of arrays. Compiled, with an arena: words that describe arrays; an entry of zeros is an empty array. Compiled,
# without: a list, whose first entry stands for what was not kept. Uncompiled: a dictionary.


def references(arena, like):  # type: ignore[no-untyped-def]
    """A tape of arrays of the type of `like`."""
    return {-1: like}


@overload(references, moves=True)
def _references(arena, like):  # type: ignore[no-untyped-def]
    if isinstance(arena, types.NoneType):
        return lambda arena, like: [like]
    return lambda arena, like: room(arena, 0, np.int64)


def keep(arena, tape, at, x):  # type: ignore[no-untyped-def]
    """`tape` with tape[at] = x, or a longer one."""
    tape[at] = x
    return tape


@overload(keep, moves=True)
def _keep(arena, tape, at, x):  # type: ignore[no-untyped-def]
    if isinstance(arena, types.NoneType):

        def keep_in_list(arena, tape, at, x):  # type: ignore[no-untyped-def]
            while len(tape) < at + 2:
                tape.append(x)
            tape[at + 1] = x
            return tape

        return keep_in_list

    def keep(arena, tape, at, x):  # type: ignore[no-untyped-def]
        words = words_of(x)
        if (at + 1) * words > tape.size:
            tape = _with_zeros(arena, tape, (at + 1) * words)
        own_memory(arena, put_reference(address_of(tape) + 8 * words * at, x))
        return tape

    return keep


def kept(tape, at, like):  # type: ignore[no-untyped-def]
    """What `keep` put at `at`; any array of the type of `like` for an iteration that had nothing to keep."""
    return tape.get(at, like)


@overload(kept, moves=True)
def _kept(tape, at, like):  # type: ignore[no-untyped-def]
    if isinstance(tape, types.List):
        return lambda tape, at, like: tape[at + 1 if at + 1 < len(tape) else -1]

    def kept(tape, at, like):  # type: ignore[no-untyped-def]
        words = words_of(like)
        if (at + 1) * words > tape.size:
            return like
        return got_reference(address_of(tape) + 8 * words * at, like)

    return kept


# Frames of functions that call themselves. Compiled: words that are addresses of what describes arrays. Uncompiled: a
# list.


# -- the pool ----------------------------------------------------------------------------------------------------------

_free_memory = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(c_helpers["Free"])


def _free_blocks(arena: np.ndarray) -> None:
    """Give all blocks back to the heap."""
    for k in range(arena[BLOCKS]):
        _free_memory(int(arena[TABLE + 2 * k]))
    arena[:WANTED] = 0


class Arena:
    """An arena lent by the pool: it goes back when nothing holds this object any more."""

    __slots__ = ("header",)

    def __init__(self) -> None:
        self.header = _pool.take()

    def __del__(self) -> None:
        header = getattr(self, "header", None)
        ends = sys is None or sys.is_finalizing()  # the globals of modules are None at the very end
        if header is not None and not ends:
            _pool.give(header)


def _threads() -> int:
    """How many threads a parallel loop may take: what Numba was told, without starting its own."""
    return int(parallel.get_num_threads() if parallel._is_initialized else config.NUMBA_NUM_THREADS)


class _Pool:
    """Arenas that no gradient is using; threads share the pool, never an arena."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.idle: list[Any] = []  # taken from and added to by single calls of C code: no lock is needed

    @property
    def bytes(self) -> int:
        """How many bytes the idle arenas have."""
        return sum([int(header[CAPACITY]) for header in self.idle[:]])

    def take(self) -> Any:
        """The header of an arena for one gradient: the one last given back, else a new one."""
        try:
            header = self.idle.pop()
        except IndexError:
            header = np.zeros(TABLE + 2 * MOST_BLOCKS, np.int64)
        header[THREADS] = _threads()
        return header

    def give(self, header: Any) -> None:
        """Take an arena back: to be used again, or freed where that would be more than the limit."""
        if header[OWNED]:
            _disown_all(int(header[OWNED]))
            header[OWNED] = 0
        used = sum(int(header[TABLE + 2 * k + 1]) for k in range(int(header[BLOCKS])))
        if header[BLOCKS] > 1:  # one block next time
            _free_blocks(header)
            header[WANTED] = used
        header[USED] = 0
        if self.bytes + used <= self.limit:
            self.idle.append(header)
        elif header[BLOCKS]:
            _free_blocks(header)

    def clear(self) -> int:
        """Free the arenas that are not in use; the number of bytes."""
        freed = 0
        while self.idle:
            header = self.take()
            freed += int(header[CAPACITY])
            if header[BLOCKS]:
                _free_blocks(header)
        return freed


_pool = _Pool(int(os.environ.get("PLAINGRAD_WORKSPACE_LIMIT", DEFAULT_LIMIT)))


def clear() -> int:
    """Free the memory that native gradients keep for the next ones; the number of bytes that it was."""
    return _pool.clear()
