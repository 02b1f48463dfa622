"""Code object in, code object out: every interesting instruction becomes a call of a hook.

The hooks are attributes of an object that is fetched from `CURRENT` after every resume and kept in the local
`.level`. A call is prepared and then made natively.
"""

from types import CodeType

from plaingrad.rewrite.emission import Emission
from plaingrad.rewrite.flow import CALLS, NULL, PREPARED, call_forms
from plaingrad.rewrite.fusion import find_runs
from plaingrad.rewrite.listing import assemble

LEVEL = ".level"  # no identifier has a dot
NOWHERE = (None, None, None, None)
COMPARE = ("lt", "le", "eq", "ne", "gt", "ge")
#: Code constants that their parent calls at once.
INLINE = frozenset(["<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>"])
SPARE = 4  # items that the instructions of one hook may put above what was there


def transform(code: CodeType, version, rewritten) -> CodeType:
    """`code` with every interesting instruction turned into a call of a hook of the current level."""
    return Rewriting(code, version, rewritten).run()


class Rewriting(Emission):
    """One code object on its way. The methods named in `Version.actions` take the index of an instruction."""

    def __init__(self, code, version, rewritten):
        super().__init__(code, version)
        self.inline = set()
        for i, const in enumerate(code.co_consts):
            if isinstance(const, CodeType) and const.co_name in INLINE:
                self.inline.add(i)
                self.shell.consts[i] = rewritten(const)
        self.forms = call_forms(self.listing, version, self.is_inline)
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

    def follows(self, i, names):
        """Whether the instruction before i is one of `names` and the only way to i."""
        return i > 0 and self.lines[i - 1].name in names and i not in self.targets

    # Verbs

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
