"""Code object in, code object out: every interesting instruction becomes a call of a hook.

The hooks are attributes of an object that is fetched from `CURRENT` after every resume and kept in the local
`.level`. A call is prepared and then made natively.
"""

from types import CodeType

from plaingrad.rewrite.emission import MOVING, Emission
from plaingrad.rewrite.encoding import JUMPS, encoded, places, table
from plaingrad.rewrite.expressions import find_expressions
from plaingrad.rewrite.flow import CALLS, NULL, PREPARED, call_forms
from plaingrad.rewrite.fusion import find_runs
from plaingrad.rewrite.hooks import EXPRESSIONS, FUSED

LEVEL = ".level"  # no identifier has a dot
KEEP = ("keep",)
NOWHERE = (None, None, None, None)
COMPARE = ("lt", "le", "eq", "ne", "gt", "ge")
#: Code constants that their parent calls at once.
INLINE = frozenset(["<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>"])
#: Verbs whose result depends on the instruction alone.
BY_ITSELF = frozenset(
    "keep operator store before around binary_op compare_op contains_op format_value raise_varargs load_attr "
    "load_method store_attr load_super_attr load_special binary_slice store_slice intrinsic call_function_ex".split()
)
IS_MOVING = table(dict.fromkeys(MOVING, 1))
UNSEEN = object()
SPARE = 4  # items that the instructions of one hook may put above what was there


def transform(code: CodeType, version, rewritten, form: str = FUSED) -> CodeType:
    """`code` with every interesting instruction turned into a call of a hook of the current level.

    `rewritten` does so with the code of comprehensions. The form "fused": runs of arithmetic are to record themselves
    in one step, where the hooks of the level say that they can do that; "expressions": these are evaluated in one call.
    """
    return Rewriting(code, version, rewritten, form).run()


class Rewriting(Emission):
    """One code object on its way. The methods named in `Version.actions` take the index of an instruction."""

    _forms = None  # until they are asked for; a class that begins otherwise has it, too

    def __init__(self, code, version, rewritten, form=FUSED):
        super().__init__(code, version)
        self.inline = set()
        for i, const in enumerate(code.co_consts):
            if isinstance(const, CodeType) and const.co_name in INLINE:
                self.inline.add(i)
                self.consts[i] = rewritten(const, form)
        self.fetch_before = {
            goal
            for i, goal in self.targets.items()
            if version.actions.get(self.instructions[i][0]) == ("keep_and_fetch_at_target",)
        }
        self.local_names = code.co_varnames
        if self.keeps_level:
            if form == EXPRESSIONS:
                self.pieces = find_expressions(self.listing, version, code, self.entered)
            elif form == FUSED:
                self.runs = find_runs(self.listing, version, code.co_names, code.co_consts, self.entered)
            self.hidden = 1 + max((run.temporaries for run in self.runs.values()), default=0)
            self.local_names += (LEVEL, *(f"{LEVEL}{k}" for k in range(1, self.hidden)))

    @property
    def forms(self):
        """How each call is prepared; kept without a lock, which a forked child could find taken."""
        if self._forms is None:
            self._forms = call_forms(self.listing, self.version, self.is_inline)
        return self._forms

    def is_inline(self, i):
        """Whether instruction i loads the code of a comprehension or generator expression."""
        name, arg = self.instructions[i]
        return name == "LOAD_CONST" and arg in self.inline

    def run(self):
        """The rewritten code; afterwards `layout.first` says what became of instruction i."""
        layout, locations, count = self.layout, self.listing.locations, len(self.instructions)
        pieces, places, first = layout.pieces, layout.places, layout.first
        ready, stops = self.independent()
        stops |= self.fetch_before | self.runs.keys() | self.pieces.keys()
        i = 0
        for stop in (*sorted(stops), count):
            if stop < i:  # part of a call
                continue
            if stop > i:
                first.extend(range(len(pieces), len(pieces) + stop - i))
                pieces += ready[i:stop]
                places += locations[i:stop]
                self.location = locations[stop - 1]
            first.append(len(pieces))
            if stop == count:
                break
            if stop in self.fetch_before:
                self.fetch()
            if stop in self.runs:
                self.fuse(self.runs[stop])
            if stop in self.pieces:
                i = self.evaluate(self.pieces[stop])
                continue
            self.place(locations[stop])
            i = self.become(stop, ready[stop])
            self.flush()
        first += self.labels
        spare = SPARE + max((len(run.homes) for run in self.runs.values()), default=0)
        spare += max((len(piece.operands) for piece in self.pieces.values()), default=0)
        return layout.code(
            self.code,
            self.listing.regions,
            co_names=tuple(self.names),
            co_consts=tuple(self.consts),
            co_varnames=self.local_names,
            co_nlocals=len(self.local_names),
            co_stacksize=self.code.co_stacksize + spare,
        )

    def independent(self):
        """What becomes of each instruction, as far as that depends on nothing else, and the places where it does."""
        instructions, found, stops = self.instructions, {}, set()
        ready = list(map(self.version.kept.get, instructions))
        if self.code.co_cellvars or self.code.co_freevars:
            for i in places(self.listing.opcodes, IS_MOVING):
                if instructions[i][1] >= self.n_locals:
                    ready[i] = None
        for piece in self.pieces.values():  # whose instructions are gone
            ready[piece.start : piece.stop] = [b""] * (piece.stop - piece.start)
        for i in [i for i, made in enumerate(ready) if made is None]:
            made = found.get(instructions[i], UNSEEN)
            if made is UNSEEN:
                made = found[instructions[i]] = self.made_of(i)
            ready[i] = made
            if made is None:
                stops.add(i)
        return ready, stops

    def made_of(self, i):
        """What becomes of an instruction wherever it stands; None if that depends on where."""
        name, arg = instruction = self.instructions[i]
        action = self.version.actions.get(name)
        if action is None or action[0] not in BY_ITSELF or name in JUMPS:
            return None
        if action == KEEP and (arg < self.n_locals or name not in MOVING):
            made = encoded(name, arg)
            if arg < 256:
                self.version.kept[instruction] = made
            return made
        self.become(i)
        made = b"".join(self.parts)
        self.parts.clear()
        return made

    def become(self, i, ready=None):
        """Emit what becomes of instruction i, or what is `ready` of it; the index to go on at."""
        if ready is None:
            verb, *parameters = self.action(self.instructions[i][0])
            return getattr(self, verb)(i, *parameters) or i + 1
        self.parts.append(ready)
        return i + 1

    def action(self, name):
        """What becomes of an instruction: (verb, *parameters)."""
        action = self.version.actions.get(name)
        if action is None:
            from plaingrad.errors import UnsupportedPythonError

            raise UnsupportedPythonError(
                f"plaingrad does not know the instruction {name} of CPython {self.version.name} "
                f"(in {self.code.co_qualname}, {self.code.co_filename}:{self.code.co_firstlineno})."
            )
        return action

    def follows(self, i, names):
        """Whether the instruction before i is one of `names` and the only way to i."""
        return i > 0 and self.instructions[i - 1][0] in names and i not in self.entered

    # Verbs

    def resume(self, i):
        """Inside `await` and `yield from` (2, 3) the level is fetched where the delegation ends."""
        self.keep(i)
        arg = self.instructions[i][1]
        if arg & 3 < 2:
            if arg == 0:
                self.place(NOWHERE)  # tracers would take it for a line of its own
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

    def delete_item(self, i):
        self.hook_at("meet_all", 1)
        self.hook_at("meet", 2)
        self.keep(i)

    def display(self, i, items):
        """What will be hashed of each entry, which has so many items on the stack."""
        for entry in range(1, self.instructions[i][1] + 1):
            self.hook_at("meet_all", items * entry)
        self.keep(i)

    def around(self, i, hook):
        self.before(i, hook, 1)
        self.hook(hook, 1)

    def binary_op(self, i):
        self.hook(self.version.arithmetic[self.instructions[i][1]], 2)

    def compare_op(self, i):
        arg = self.instructions[i][1]
        self.hook(COMPARE[arg >> self.version.compare_shift], 2)
        if self.version.compare_casts and arg & 16:
            self.emit("TO_BOOL")

    def contains_op(self, i):
        self.hook("contains", 2)
        if self.instructions[i][1]:
            self.emit("UNARY_NOT")

    def format_value(self, i):
        self.before(i, "text", 2 if self.instructions[i][1] & 4 else 1)

    def raise_varargs(self, i):
        self.before(i, "meet", *range(1, self.instructions[i][1] + 1))

    def access(self, as_method, name):
        """Replace the top by its attribute, prepared and with its NULL where a call follows."""
        self.hook("method" if as_method else "attr", 1, name)
        if as_method:
            self.null_for_call()

    def load_attr(self, i):
        arg = self.instructions[i][1]
        if self.version.method_bit:
            self.access(arg & 1, self.code.co_names[arg >> 1])
        else:
            self.access(False, self.code.co_names[arg])

    def load_method(self, i):
        self.access(True, self.code.co_names[self.instructions[i][1]])

    def store_attr(self, i):
        self.hook("set_attr", 2, self.code.co_names[self.instructions[i][1]])
        self.emit("POP_TOP")

    def load_super_attr(self, i):
        """`super(cls, self)`, then its attribute, each through its hook."""
        self.hook_at("prep", 3)
        self.emit("CALL", 1)
        arg = self.instructions[i][1]
        self.access(arg & 1, self.code.co_names[arg >> 2])

    def load_special(self, i):
        """`with` looks up __exit__ first; __enter__ then needs no second look at the object."""
        if self.instructions[i][1] & 1:
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
        if self.instructions[i][1] == self.version.unary_positive:
            self.hook("pos", 1)
        else:
            self.keep(i)

    def end_send(self, i):
        """A NOT_TAKEN behind it stays there, for those who watch branches."""
        self.keep(i)
        if self.instructions[i + 1 : i + 2] == [("NOT_TAKEN", 0)]:
            self.begin()
            self.keep(i + 1)
            i += 1
        self.fetch()
        return i + 1

    def call(self, i):
        """Prepare the callable before KW_NAMES, PRECALL and CALL, which stay together."""
        end = i
        while self.instructions[end][0] not in CALLS:
            end += 1
        name, n = self.instructions[end]
        form = self.forms[end]
        depth = n + CALLS[name] - (form is NULL)
        if form is not PREPARED and not self.is_prepared_early(i, depth - 1):
            self.hook_at("prep", depth)
        self.keep(i)
        for j in range(i + 1, end + 1):
            self.begin()
            self.keep(j)
        return end + 1

    def call_function_ex(self, i):
        above = 1 if self.version.ex_keywords else self.instructions[i][1] & 1
        self.hook_at("iterable", 1 + above)
        self.hook_at("prep", 2 + above + (not self.version.null_first))
        self.keep(i)
