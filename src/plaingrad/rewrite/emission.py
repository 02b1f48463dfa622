"""What replaces an instruction: calls of hooks, and runs of arithmetic that record themselves in one call.

A hook is called with its operands where they are: a callable directly below its arguments needs no NULL, so `[a, b]`
becomes `[hook, a, b]` by two swaps, in every version.
"""

import dis
import math

from bytecode import UNSET

from plaingrad.rewrite.fusion import JUMP_IF_FALSE, SUBSCRIPT
from plaingrad.rewrite.hooks import FETCH
from plaingrad.rewrite.listing import Line, Listing

OPTIMIZED = 0x1  # in co_flags: the locals are those of a function
SUSPENDS = 0x20 | 0x80 | 0x200  # in co_flags: generator, coroutine, async generator
#: Instructions whose argument is a place among locals, cells and free variables.
MOVING = frozenset(dis.opname[op] for op in (*dis.haslocal, *dis.hasfree))


class Emission:
    """The new instructions of one code object, as far as they are emitted."""

    def __init__(self, code, version):
        self.code, self.version = code, version
        self.listing = Listing.of(code)
        self.lines, self.shell = self.listing.lines, self.listing.shell
        self.out, self.first, self.location = [], [], None
        self.fetch_before = set()
        self.targets = {line.target for line in self.lines} | {r.target for r in self.listing.regions}
        self.keeps_level = bool(code.co_flags & OPTIMIZED)
        self.suspends = bool(code.co_flags & SUSPENDS)
        self.n_locals = len(code.co_varnames)
        self.name_index, self.const_index = {}, {}
        self.runs, self.labels, self.hidden = {}, [], 0

    def emit(self, name, arg=UNSET, target=None):
        """Append one instruction at the place of the one being replaced."""
        self.out.append(Line(name, arg, self.location, target))

    def const(self, value):
        """Push a constant."""
        self.emit("LOAD_CONST", index_in(self.const_index, self.shell.consts, value))

    def call_above(self, n):
        """Call the callable below n >= 1 arguments."""
        if self.version.precall:
            self.emit("PRECALL", n - 1)
        self.emit("CALL", n - 1)

    def call_fetch(self):
        """Push the hooks of the current level."""
        if self.version.null_first:
            self.emit("PUSH_NULL")
            self.const(FETCH)
        else:
            self.const(FETCH)
            self.emit("PUSH_NULL")
        if self.version.precall:
            self.emit("PRECALL", 0)
        self.emit("CALL", 0)

    def fetch(self):
        """Put the hooks of the current level into their local."""
        if self.keeps_level:
            self.call_fetch()
            self.emit("STORE_FAST", self.n_locals)

    def hook(self, name, operands, *constants):
        """Replace the top items by what the hook makes of them, followed by constants."""
        if self.keeps_level:
            self.emit(self.version.load_local, self.n_locals)
        else:
            self.call_fetch()
        self.emit("LOAD_ATTR", index_in(self.name_index, self.shell.names, name) << self.version.method_bit)
        for depth in range(operands + 1, 1, -1):
            self.emit("SWAP", depth)
        for value in constants:
            self.const(value)
        self.call_above(operands + len(constants))

    def hook_at(self, name, depth):
        """Replace the item at `depth` (1 is the top) by what the hook makes of it."""
        if depth > 1:
            self.emit("SWAP", depth)
        self.hook(name, 1)
        if depth > 1:
            self.emit("SWAP", depth)

    # Fused runs

    def fuse(self, run):
        """The run as native instructions with one call of its recorder at the end; if a check fails, the hooked form.

        Jumps to the hooked form go to a label: an index behind those of the original lines.
        """
        slow = len(self.lines) + 1 + len(self.labels)
        self.location = self.lines[run.start].location
        self.emit(self.version.load_local, self.n_locals)
        self.emit(
            "LOAD_ATTR", index_in(self.name_index, self.shell.names, "fuses") << self.version.method_bit
        )
        self.emit(JUMP_IF_FALSE, 0, slow)
        for local, line in run.checks:
            self.location = self.lines[line].location
            self.push_callable(lambda: self.const(type))
            self.emit("LOAD_FAST", local)
            self.call_pushed(1)
            self.check_is(float, slow)
        for name, attribute, line, function in run.modules:
            self.location = self.lines[line].location
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
            self.location = self.lines[i].location
            self.keep(i)
            if i in run.keep_after:
                self.emit("COPY", 1)
                self.emit("STORE_FAST", self.n_locals - run.keep_after[i])
        self.push_callable(lambda: self.recorder_of(run.block))
        for home in run.homes:
            self.emit("LOAD_FAST", home if home >= 0 else self.n_locals - home)
        self.call_pushed(len(run.homes))
        self.emit("POP_TOP")
        self.emit("JUMP_FORWARD", 0, run.stop)
        self.labels.append(len(self.out))
        self.location = self.lines[run.start].location

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
        self.emit(self.version.load_local, self.n_locals)
        self.emit(
            "LOAD_ATTR", index_in(self.name_index, self.shell.names, "blocks") << self.version.method_bit
        )
        self.const(block)
        self.emit(
            SUBSCRIPT, UNSET if SUBSCRIPT == "BINARY_SUBSCR" else self.version.arithmetic.index("getitem")
        )

    def call_pushed(self, n):
        """Call what `push_callable` pushed with n arguments."""
        if self.version.precall:
            self.emit("PRECALL", n)
        self.emit("CALL", n)

    def check_is(self, value, otherwise):
        """Go on if the top is `value`, else jump."""
        self.const(value)
        self.emit("IS_OP", 0)
        self.emit(JUMP_IF_FALSE, 0, otherwise)

    def keep(self, i):
        """The instruction itself; locals behind the new one move up."""
        name, arg, _, target = self.lines[i]
        if not self.keeps_level or name not in MOVING:
            self.emit(name, arg, target)
        elif name in self.version.pairs:
            slots = [s + self.hidden * (s >= self.n_locals) for s in (arg >> 4, arg & 15)]
            if max(slots) < 16:
                self.emit(name, slots[0] << 4 | slots[1])
            else:
                for single, slot in zip(self.version.pairs[name], slots):
                    self.emit(single, slot)
        else:
            self.emit(name, arg + self.hidden * (arg >= self.n_locals))


def index_in(index, items, value):
    """Where `value` is in `items`, appended if this rewriting has not done so."""
    if value not in index:
        index[value] = len(items)
        items.append(value)
    return index[value]
