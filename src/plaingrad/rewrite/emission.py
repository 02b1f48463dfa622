"""What replaces an instruction: calls of hooks, and runs of arithmetic that record themselves in one call.

A hook is called with its operands where they are: a callable directly below its arguments needs no NULL, so `[a, b]`
becomes `[hook, a, b]` by two swaps, in every version.
"""

import dis
import math
from functools import cache

from plaingrad.rewrite.encoding import encoded
from plaingrad.rewrite.expressions import CELL_ITSELF, LOCAL, METHOD_FOUND
from plaingrad.rewrite.flow import producer
from plaingrad.rewrite.fusion import JUMP_IF_FALSE, SUBSCRIPT
from plaingrad.rewrite.hooks import FETCH
from plaingrad.rewrite.listing import Layout, Listing

OPTIMIZED = 0x1  # in co_flags: the locals are those of a function
SUSPENDS = 0x20 | 0x80 | 0x200  # in co_flags: generator, coroutine, async generator
#: Instructions whose argument is a place among locals, cells and free variables.
MOVING = frozenset(dis.opname[op] for op in (*dis.haslocal, *dis.hasfree))


class Emission:
    """The new instructions of one code object, as far as they are emitted.

    They gather in `parts`, bytes at one location, and become a piece of the layout when that changes.
    """

    def __init__(self, code, version):
        self.code, self.version = code, version
        self.listing = Listing(code)
        self.instructions, self.targets = self.listing.instructions, self.listing.targets
        self.names, self.consts = list(code.co_names), list(code.co_consts)
        self.layout, self.parts, self.location = Layout(), [], None
        self.entered = {*self.targets.values(), *(region.target for region in self.listing.regions)}
        self.keeps_level = bool(code.co_flags & OPTIMIZED)
        self.suspends = bool(code.co_flags & SUSPENDS)
        self.n_locals = len(code.co_varnames)
        self.name_index, self.const_index, self.heads, self.found_lookups = {}, {}, {}, {}
        self.runs, self.pieces, self.labels, self.hidden = {}, {}, [], 0

    def emit(self, name, arg=0):
        """Append one instruction at the place of the one being replaced."""
        self.parts.append(encoded(name, arg))

    def jump(self, name, goal):
        """Append a jump to instruction or label `goal`."""
        self.flush()
        self.layout.jumps.append((len(self.layout.pieces), name, goal))
        self.layout.pieces.append(encoded(name))
        self.layout.places.append(self.location)

    def flush(self):
        """What was emitted becomes a piece."""
        if self.parts:
            self.layout.pieces.append(b"".join(self.parts))
            self.layout.places.append(self.location)
            self.parts.clear()

    def place(self, location):
        """What follows is at `location`."""
        self.flush()
        self.location = location

    def begin(self):
        """What follows is what becomes of the next instruction."""
        self.flush()
        self.layout.first.append(len(self.layout.pieces))

    def const(self, value):
        """Push a constant."""
        self.emit("LOAD_CONST", index_in(self.const_index, self.consts, value))

    def call_fetch(self):
        """Push the hooks of the current level."""
        self.push_callable(lambda: self.const(FETCH))
        self.call_pushed(0)

    def fetch(self):
        """Put the hooks of the current level into their local."""
        if self.keeps_level:
            self.call_fetch()
            self.emit("STORE_FAST", self.n_locals)

    def level_attribute(self, name):
        """Push an attribute of the hooks of the current level."""
        if self.keeps_level:
            self.emit(self.version.load_local, self.n_locals)
        else:
            self.call_fetch()
        self.emit("LOAD_ATTR", index_in(self.name_index, self.names, name) << self.version.method_bit)

    def hook(self, name, operands, *constants):
        """Replace the top items by what the hook makes of them, followed by constants."""
        self.put_below(name, operands)
        for value in constants:
            self.const(value)
        self.parts.append(call_above(operands + len(constants), self.version.precall))

    def put_below(self, name, operands):
        """Push a hook, and lift the items that were on top above it."""
        head = self.heads.get(name)
        if head is None:
            before, self.parts = self.parts, []
            self.level_attribute(name)
            head = self.heads[name] = b"".join(self.parts)
            self.parts = before
        self.parts.append(head)
        self.parts.append(lifted(operands))

    def hook_at(self, name, depth):
        """Replace the item at `depth` (1 is the top) by what the hook makes of it."""
        if depth > 1:
            self.emit("SWAP", depth)
        self.hook(name, 1)
        if depth > 1:
            self.emit("SWAP", depth)

    # Functions of modules

    def is_prepared_early(self, i, above):
        """Have the callable, which `above` items are above, prepared where it was looked up, as that of a method is.

        So `np.dot(a, b)` takes one hook instead of two. True if that was so and is done; else nothing was.
        """
        at = producer(self.listing.instructions, self.entered, i, above)
        if at is None or self.instructions[at][0] != "LOAD_ATTR":
            return False
        arg = self.instructions[at][1]
        if self.version.method_bit and arg & 1:
            return False
        as_attribute, as_method = self.lookups(self.code.co_names[arg >> self.version.method_bit])
        piece = self.layout.first[at]
        if self.layout.pieces[piece] != as_attribute:  # it became part of an expression
            return False
        self.layout.pieces[piece] = as_method
        return True

    def lookups(self, name):
        """What becomes of the lookup of an attribute, and of one to be called."""
        if name not in self.found_lookups:
            before, made = self.parts, []
            for hook in ("attr", "method"):
                self.parts = []
                self.hook(hook, 1, name)
                made.append(b"".join(self.parts))
            self.parts, self.found_lookups[name] = before, made
        return self.found_lookups[name]

    # Expressions

    def evaluate(self, piece):
        """The call that a piece becomes; the index to go on at."""
        start, locations = piece.start, self.listing.locations
        if piece.half:
            self.place(locations[start])
            name, arg = self.instructions[start]
            if name == "LOAD_GLOBAL":
                self.emit("PUSH_NULL")
            else:
                self.emit(self.version.pairs[name][0], arg >> 4)
        self.place(locations[piece.stop - 1])
        self.put_below("expression", piece.below)
        self.const(piece.expression)
        for place, number, *_ in piece.operands:
            if place == LOCAL:
                self.emit(self.version.load_local, number)
            else:
                self.emit(CELL_ITSELF, number + self.hidden * (number >= self.n_locals))
        self.parts.append(call_above(piece.below + 1 + len(piece.operands), self.version.precall))
        if piece.after == METHOD_FOUND:
            self.null_for_call()
        elif piece.after:
            self.emit(piece.after)
        self.flush()
        self.layout.first += [len(self.layout.pieces)] * (piece.stop - start - 1)
        return piece.stop

    def null_for_call(self):
        """The NULL that a call expects beside what is called, which is at the top."""
        self.emit("PUSH_NULL")
        if self.version.null_first:
            self.emit("SWAP", 2)

    # Fused runs

    def fuse(self, run):
        """The run as native instructions with one call of its recorder at the end; if a check fails, the hooked form.

        Jumps to the hooked form go to a label: an index behind those of the original lines.
        """
        locations = self.listing.locations
        slow = len(self.instructions) + 1 + len(self.labels)
        self.place(locations[run.start])
        self.level_attribute("fuses")
        self.jump(JUMP_IF_FALSE, slow)
        for local, line in run.checks:
            self.place(locations[line])
            self.push_callable(lambda: self.const(type))
            self.emit("LOAD_FAST", local)
            self.call_pushed(1)
            self.check_is(float, slow)
        for name, attribute, line, function in run.modules:
            self.place(locations[line])
            self.emit("LOAD_GLOBAL", name << 1)
            if attribute is not None:
                self.check_is(math, slow)
                self.emit("LOAD_GLOBAL", name << 1)
                self.emit("LOAD_ATTR", attribute << self.version.method_bit)
            self.check_is(function, slow)
        for local, temporary in run.save_first:
            self.emit("LOAD_FAST", local)
            self.emit("STORE_FAST", self.n_locals - temporary)
        for i in range(run.start, run.stop):
            self.place(locations[i])
            self.keep(i)
            if i in run.keep_after:
                self.emit("COPY", 1)
                self.emit("STORE_FAST", self.n_locals - run.keep_after[i])
        self.push_callable(lambda: self.recorder_of(run.block))
        for home in run.homes:
            self.emit("LOAD_FAST", home if home >= 0 else self.n_locals - home)
        self.call_pushed(len(run.homes))
        self.emit("POP_TOP")
        self.jump("JUMP_FORWARD", run.stop)
        self.place(locations[run.start])
        self.labels.append(len(self.layout.pieces))

    def push_callable(self, push):
        """Push a callable and its NULL, in the order of this version."""
        if self.version.null_first:
            self.emit("PUSH_NULL")
            push()
        else:
            push()
            self.emit("PUSH_NULL")

    def recorder_of(self, block):
        """Push the recorder of `block` at the current level."""
        self.level_attribute("blocks")
        self.const(block)
        self.emit(SUBSCRIPT, 0 if SUBSCRIPT == "BINARY_SUBSCR" else self.version.arithmetic.index("getitem"))

    def call_pushed(self, n):
        """Call what `push_callable` pushed with n arguments."""
        if self.version.precall:
            self.emit("PRECALL", n)
        self.emit("CALL", n)

    def check_is(self, value, otherwise):
        """Go on if the top is `value`, else jump."""
        self.const(value)
        self.emit("IS_OP", 0)
        self.jump(JUMP_IF_FALSE, otherwise)

    def keep(self, i):
        """The instruction itself; locals behind the new one move up."""
        name, arg = self.instructions[i]
        if i in self.targets:
            self.jump(name, self.targets[i])
        elif not self.keeps_level or name not in MOVING:
            self.emit(name, arg)
        elif name in self.version.pairs:
            slots = [s + self.hidden * (s >= self.n_locals) for s in (arg >> 4, arg & 15)]
            if max(slots) < 16:
                self.emit(name, slots[0] << 4 | slots[1])
            else:
                for single, slot in zip(self.version.pairs[name], slots):
                    self.emit(single, slot)
        else:
            self.emit(name, arg + self.hidden * (arg >= self.n_locals))


@cache
def lifted(operands):
    """The top goes below so many items that stand under it."""
    return b"".join(encoded("SWAP", depth) for depth in range(operands + 1, 1, -1))


@cache
def call_above(n, precall):
    """Call the callable below n >= 1 arguments."""
    return (encoded("PRECALL", n - 1) if precall else b"") + encoded("CALL", n - 1)


def index_in(index, items, value):
    """Where `value` is in `items`, appended if this rewriting has not done so."""
    if value not in index:
        index[value] = len(items)
        items.append(value)
    return index[value]
