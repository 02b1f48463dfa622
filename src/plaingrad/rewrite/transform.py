"""Code object in, code object out: every interesting instruction becomes a call of a hook.

The hooks are attributes of an object that is fetched from `CURRENT` after every resume and kept in the local
`.level`. A hook is called with its operands where they are: a callable directly below its arguments needs no NULL, so
`[a, b]` becomes `[hook, a, b]` by two swaps, in every version. A call is prepared and then made natively.
"""

import dis
import math
from types import CodeType

from bytecode import UNSET

from plaingrad.rewrite.flow import CALLS, NULL, PREPARED, call_forms
from plaingrad.rewrite.fusion import JUMP_IF_FALSE, SUBSCRIPT, find_runs
from plaingrad.rewrite.hooks import CURRENT
from plaingrad.rewrite.listing import Line, Listing, assemble

LEVEL = ".level"  # no identifier has a dot
FETCH = CURRENT.get
NOWHERE = (None, None, None, None)
OPTIMIZED = 0x1  # in co_flags: the locals are those of a function
SUSPENDS = 0x20 | 0x80 | 0x200  # in co_flags: generator, coroutine, async generator
COMPARE = ("lt", "le", "eq", "ne", "gt", "ge")
#: Code constants that their parent calls at once.
INLINE = frozenset(["<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>"])
#: Instructions whose argument is a place among locals, cells and free variables.
MOVING = frozenset(dis.opname[op] for op in (*dis.haslocal, *dis.hasfree))
SPARE = 4  # items that the instructions of one hook may put above what was there


def transform(code: CodeType, version, rewritten) -> CodeType:
    """`code` with every interesting instruction turned into a call of a hook of the current level."""
    return Rewriting(code, version, rewritten).run()


class Rewriting:
    """One code object on its way. The methods named in `Version.actions` take the index of an instruction."""

    def __init__(self, code, version, rewritten):
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
        self.inline = set()
        for i, const in enumerate(code.co_consts):
            if isinstance(const, CodeType) and const.co_name in INLINE:
                self.inline.add(i)
                self.shell.consts[i] = rewritten(const)
        self.forms = call_forms(self.listing, version, self.is_inline)
        self.runs, self.labels, self.hidden = {}, [], 0
        if self.keeps_level:
            self.runs = find_runs(self.listing, version, code.co_names, code.co_consts, self.targets)
            self.hidden = 1 + max((run.temporaries for run in self.runs.values()), default=0)

    def is_inline(self, i):
        """Whether line i loads the code of a comprehension or generator expression."""
        line = self.lines[i]
        return line.name == "LOAD_CONST" and line.arg in self.inline

    def run(self):
        """The rewritten code; afterwards `out[first[i]:first[i + 1]]` is what became of line i."""
        actions, lines, i = self.version.actions, self.lines, 0
        if self.keeps_level:
            self.shell.varnames.append(LEVEL)
            self.shell.varnames.extend(f"{LEVEL}{k}" for k in range(1, self.hidden))
        while i < len(lines):
            line = lines[i]
            self.first.append(len(self.out))
            if i in self.fetch_before:
                self.fetch()
            if i in self.runs:
                self.fuse(self.runs[i])
            self.location = line.location
            action = actions.get(line.name)
            if action is None:
                from plaingrad.errors import UnsupportedPythonError

                raise UnsupportedPythonError(
                    f"plaingrad does not know the instruction {line.name} of CPython {self.version.name} "
                    f"(in {self.code.co_qualname}, {self.code.co_filename}:{self.code.co_firstlineno})."
                )
            verb, *parameters = action
            i = getattr(self, verb)(i, *parameters) or i + 1
        self.first.append(len(self.out))
        self.first += self.labels
        depth = self.code.co_stacksize + SPARE + max((len(r.homes) for r in self.runs.values()), default=0)
        return assemble(self.shell, self.out, self.first, self.listing.regions, depth)

    # What is emitted

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

    def follows(self, i, names):
        """Whether the instruction before i is one of `names` and the only way to i."""
        return i > 0 and self.lines[i - 1].name in names and i not in self.targets

    # Verbs

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

    def resume(self, i):
        """Inside `await` and `yield from` (2, 3) the level is fetched where the delegation ends."""
        self.keep(i)
        if self.lines[i].arg & 3 < 2:
            if self.lines[i].arg == 0:
                self.location = NOWHERE  # tracers would take it for a line of its own
            self.fetch()

    def keep_and_fetch(self, i):
        self.keep(i)
        self.fetch()

    def handler(self, i):
        self.keep(i)
        if self.suspends:  # throw() comes here without a RESUME
            self.fetch()

    def keep_and_fetch_at_target(self, i):
        self.keep(i)
        self.fetch_before.add(self.lines[i].target)

    def operator(self, i, hook, operands):
        self.hook(hook, operands)

    def store(self, i, hook, operands):
        self.hook(hook, operands)
        self.emit("POP_TOP")

    def before(self, i, hook, *depths):
        for depth in depths:
            self.hook_at(hook, depth)
        self.keep(i)

    def before_unless(self, i, made_by, hook, *depths):
        """Nothing needs to be done to what was made by the instruction right before."""
        if self.follows(i, made_by):
            self.keep(i)
        else:
            self.before(i, hook, *depths)

    def around(self, i, hook):
        self.before(i, hook, 1)
        self.hook(hook, 1)

    def binary_op(self, i):
        self.hook(self.version.arithmetic[self.lines[i].arg], 2)

    def compare_op(self, i):
        arg = self.lines[i].arg
        self.hook(COMPARE[arg >> self.version.compare_shift], 2)
        if self.version.compare_casts and arg & 16:
            self.emit("TO_BOOL")

    def contains_op(self, i):
        self.hook("contains", 2)
        if self.lines[i].arg:
            self.emit("UNARY_NOT")

    def format_value(self, i):
        self.before(i, "text", 2 if self.lines[i].arg & 4 else 1)

    def raise_varargs(self, i):
        self.before(i, "meet", *range(1, self.lines[i].arg + 1))

    def access(self, as_method, name):
        """Replace the top by its attribute, prepared and with its NULL where a call follows."""
        self.hook("method" if as_method else "attr", 1, name)
        if as_method:
            self.emit("PUSH_NULL")
            if self.version.null_first:
                self.emit("SWAP", 2)

    def load_attr(self, i):
        arg = self.lines[i].arg
        if self.version.method_bit:
            self.access(arg & 1, self.code.co_names[arg >> 1])
        else:
            self.access(False, self.code.co_names[arg])

    def load_method(self, i):
        self.access(True, self.code.co_names[self.lines[i].arg])

    def store_attr(self, i):
        self.hook("set_attr", 2, self.code.co_names[self.lines[i].arg])
        self.emit("POP_TOP")

    def load_super_attr(self, i):
        """`super(cls, self)`, then its attribute, each through its hook."""
        self.hook_at("prep", 3)
        self.emit("CALL", 1)
        arg = self.lines[i].arg
        self.access(arg & 1, self.code.co_names[arg >> 2])

    def load_special(self, i):
        """`with` looks up __exit__ first; __enter__ then needs no second look at the object."""
        if self.lines[i].arg & 1:
            self.before(i, "meet", 1)
        else:
            self.keep(i)

    def binary_slice(self, i):
        self.emit("BUILD_SLICE", 2)
        self.hook("getitem", 2)

    def store_slice(self, i):
        self.emit("BUILD_SLICE", 2)
        self.store(i, "setitem", 3)

    def intrinsic(self, i):
        if self.lines[i].arg == self.version.unary_positive:
            self.hook("pos", 1)
        else:
            self.keep(i)

    def end_send(self, i):
        """A NOT_TAKEN behind it stays there, for those who watch branches."""
        self.keep(i)
        if i + 1 < len(self.lines) and self.lines[i + 1].name == "NOT_TAKEN":
            self.first.append(len(self.out))
            self.keep(i + 1)
            i += 1
        self.fetch()
        return i + 1

    def call(self, i):
        """Prepare the callable before KW_NAMES, PRECALL and CALL, which stay together."""
        end = i
        while self.lines[end].name not in CALLS:
            end += 1
        name, n = self.lines[end].name, self.lines[end].arg
        form = self.forms[end]
        if form is not PREPARED:
            self.hook_at("prep", n + CALLS[name] - (form is NULL))
        self.keep(i)
        for j in range(i + 1, end + 1):
            self.first.append(len(self.out))
            self.keep(j)
        return end + 1

    def call_function_ex(self, i):
        above = 1 if self.version.ex_keywords else self.lines[i].arg & 1
        self.hook_at("iterable", 1 + above)
        self.hook_at("prep", 2 + above + (not self.version.null_first))
        self.keep(i)


def index_in(index, items, value):
    """Where `value` is in `items`, appended if this rewriting has not done so."""
    if value not in index:
        index[value] = len(items)
        items.append(value)
    return index[value]
