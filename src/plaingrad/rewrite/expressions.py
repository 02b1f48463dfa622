"""Expressions, found in a listing: pieces of one line that a level evaluates in one call instead of one an operation.

An expression is a piece of one basic block that leaves one value: locals, constants and globals, their attributes and
items, operators, a comparison, and functions of `math` of one argument. It may begin with what stands on the stack. The
level does its steps in the order of the program, each as its hook would.
"""

import dis
from dataclasses import dataclass

from plaingrad.rewrite.evaluation import (
    ATTR,
    BINARY,
    CALL,
    COMPARE,
    CONST,
    DEREF,
    GETITEM,
    GLOBAL,
    LOAD,
    METHOD,
    NEG,
    PREP_CALL,
    SET_ATTR,
    SET_ITEM,
    expression,
)
from plaingrad.rewrite.fusion import FUNCTIONS
from plaingrad.rewrite.versions.common import FINAL

COMPARISONS = ("lt", "le", "eq", "ne", "gt", "ge")
FEWEST_HOOKS = 2  # an expression with fewer is left to its hook
MOST_OPERANDS, MOST_STEPS, DEEPEST = 8, 40, 12  # the compiled core has room for these
VALUE, FUNCTION, PAD = "value", "function", "pad"  # what the simulated stack holds
ORDINARY = (float, int, str, bool, type(None))  # constants
CHECKS_LOCALS = "LOAD_FAST_CHECK" in dis.opmap  # else LOAD_FAST may find nothing
LOCAL, CELL, STACK = "local", "cell", "stack"  # where operands come from
CELL_ITSELF = "LOAD_CLOSURE" if dis.opmap.get("LOAD_CLOSURE", 256) < 256 else "LOAD_FAST"


@dataclass(slots=True)
class Tree:
    """A value on the simulated stack, and the steps that made it.

    Attributes:
        start: (i, half): its first instruction i, or the second half of it (a second local; a global above a NULL).
        stop: the instruction after its last one.
        steps: (verb, what); what LOAD takes is (LOCAL, number), (CELL, number) or (STACK, depth below the top).
        kind: VALUE, or what stands on the stack until a function is called.
        below: how many values it takes that stood on the stack before.
        hooks: how many hooks it saves.
        line: of all its instructions; None if it only stands for what is on the stack.
        acts: whether one of its steps may raise something or run other code.
        after: the instruction that takes the value, if that ends the expression.
    """

    start: tuple
    stop: int
    steps: tuple = ()
    kind: str = VALUE
    below: int = 0
    hooks: int = 0
    line: int | None = None
    acts: bool = False
    after: str = ""


@dataclass(slots=True)
class Piece:
    """Instructions `start..stop-1`, which become one call, of `below` values on the stack and of `operands`.

    `after` is an instruction behind the call, or nothing.
    """

    start: tuple
    stop: int
    expression: object
    below: int
    operands: list
    after: str


def find_expressions(listing, version, code, entered) -> dict:
    """The expressions of `listing` that save hooks, by their first instruction."""
    return Search(listing, version, code, entered).run()


class Search:
    """The simulated stack, as far as it is known, of the basic block that is being read."""

    def __init__(self, listing, version, code, entered):
        self.listing, self.version, self.code, self.entered = listing, version, code, entered
        self.names, self.consts = code.co_names, code.co_consts
        self.n_locals = len(code.co_varnames)
        self.borders = {region.start for region in listing.regions}
        self.borders |= {region.stop + 1 for region in listing.regions}
        self.unsure = frozenset() if CHECKS_LOCALS else None  # found when somebody asks
        self.stack: list[Tree] = []
        self.found: dict[int, Piece] = {}
        self.at = 0

    def run(self):
        """Read the instructions, one after another."""
        steps, begins_block = STEPS, self.entered | self.borders
        for i, (name, arg) in enumerate(self.listing.instructions):
            step = steps.get(name)
            if i in begins_block or step is None:
                self.finish()
            if step is not None:
                self.at = i
                if not step(self, name, arg):
                    self.finish()
                    step(self, name, arg)  # with what stands on the stack
        self.finish()
        return self.found

    def finish(self):
        """What is on the simulated stack is whole."""
        for tree in self.stack:
            if tree.kind == VALUE and tree.hooks >= FEWEST_HOOKS:
                self.found[tree.start[0]] = piece_of(tree)
        self.stack.clear()

    def push(self, steps, half=0, **more):
        """A new value at the top."""
        self.stack.append(Tree((self.at, half), self.at + 1, steps, line=self.line(), **more))
        return True

    def line(self):
        """The line of the instruction that is being read."""
        return self.listing.locations[self.at][0]

    def taken(self, count):
        """The top `count` trees as operands, those that are not known as values on the stack; None if it cannot be."""
        if any(tree.kind != VALUE for tree in self.stack[-count:]):
            return None
        trees = self.stack[-count:]
        missing = count - len(trees)
        if missing:
            below = trees[0].below if trees else 0
            if below + missing > 2:
                return None
            start = trees[0].start if trees else (self.at, 0)
            unknown = [
                Tree(start, self.at, ((LOAD, (STACK, depth)),), below=depth + 1)
                for depth in range(below + missing - 1, below - 1, -1)
            ]
            trees = unknown + trees
        del self.stack[-count:]
        return trees

    def combine(self, trees, *step, kind=VALUE, after=""):
        """Push what `step` makes of the trees; False, with nothing changed, if that would be no expression."""
        line = self.line()
        steps = (*[s for tree in trees for s in tree.steps], step)
        is_split = any(tree.line != line for tree in trees if tree.line is not None)
        if is_split or len(steps) > MOST_STEPS or not fits(steps):
            self.stack += [tree for tree in trees if tree.hooks or not tree.below]
            return False
        below = max(tree.below for tree in trees)
        hooks = sum(tree.hooks for tree in trees) + 1
        start = min(tree.start for tree in trees)
        self.stack.append(Tree(start, self.at + 1, steps, kind, below, hooks, line, True, after))
        return True

    # What instructions do. Each says whether it could; one that could not comes again with an unknown stack.

    def load(self, name, arg):
        """LOAD_FAST."""
        if arg >= self.n_locals:
            return not self.stack
        if any(tree.acts for tree in self.stack) and self.is_unsure():
            return False  # what comes before may raise something else
        return self.push(((LOAD, (LOCAL, arg)),))

    def is_unsure(self):
        """Whether the local that is loaded may have no value."""
        if self.unsure is None:
            self.unsure = maybe_unbound(self.listing, self.code)
        return self.at in self.unsure

    def pair(self, name, arg):
        """An instruction on two locals."""
        first, second = self.version.pairs[name]
        if second == "STORE_FAST" or max(arg >> 4, arg & 15) >= self.n_locals:
            self.finish()
            return True
        if first == "STORE_FAST":
            self.finish()
        else:
            self.push(((LOAD, (LOCAL, arg >> 4)),))
        return self.push(((LOAD, (LOCAL, arg & 15)),), half=1)

    def cell(self, name, arg):
        """LOAD_DEREF."""
        name = self.code._varname_from_oparg(arg)
        return self.push(((DEREF, (CELL, arg, name, name in self.code.co_freevars)),), acts=True)

    def const(self, name, arg):
        """LOAD_CONST, LOAD_SMALL_INT."""
        value = arg if name == "LOAD_SMALL_INT" else self.consts[arg]
        if type(value) not in ORDINARY:
            return not self.stack
        return self.push(((CONST, value),))

    def load_global(self, name, arg):
        """LOAD_GLOBAL, with a NULL if a call follows."""
        found = self.names[arg >> 1]
        tree = {"steps": ((GLOBAL, found),), "acts": True}
        if not arg & 1:
            return self.push(**tree)
        if found not in FUNCTIONS and found != "math":
            return not self.stack
        if self.version.null_first:
            self.pad(name, arg)  # which may be that of a call further out
            return self.push(**tree, half=1)
        return self.push(**tree) and self.pad(name, arg)

    def pad(self, name, arg):
        """PUSH_NULL."""
        return self.push((), kind=PAD)

    def attribute(self, name, arg):
        """LOAD_ATTR, LOAD_METHOD."""
        bit = self.version.method_bit
        wanted = self.names[arg >> 1 if bit else arg]
        if name == "LOAD_METHOD" or (bit and arg & 1):
            return self.method(wanted)
        trees = self.taken(1)
        return trees is not None and self.combine(trees, ATTR, wanted)

    def method(self, wanted):
        """A function of `math`, looked up as a method."""
        if not self.stack or self.stack[-1].steps != ((GLOBAL, "math"),) or wanted not in FUNCTIONS:
            return not self.stack
        trees = [self.stack.pop()]
        if self.version.null_first:
            self.stack.append(Tree(trees[0].start, self.at, kind=PAD))
        done = self.combine(trees, METHOD, wanted, kind=FUNCTION)
        if not self.version.null_first:
            self.pad("", 0)
        return done

    def item(self, name, arg):
        """BINARY_SUBSCR."""
        trees = self.taken(2)
        return trees is not None and self.combine(trees, GETITEM, None)

    def binary(self, name, arg):
        """BINARY_OP."""
        hook = self.version.arithmetic[arg]
        if hook == "getitem":
            return self.item(name, arg)
        trees = self.taken(2)
        return trees is not None and self.combine(trees, BINARY, hook)

    def negative(self, name, arg):
        """UNARY_NEGATIVE."""
        trees = self.taken(1)
        return trees is not None and self.combine(trees, NEG, None)

    def compare(self, name, arg):
        """The value of a comparison ends an expression: what follows is mostly a jump."""
        trees = self.taken(2)
        hook = COMPARISONS[arg >> self.version.compare_shift]
        casts = self.version.compare_casts and arg & 16
        if trees is None or not self.combine(trees, COMPARE, hook, after="TO_BOOL" if casts else ""):
            return False
        self.finish()
        return True

    # Assignments: of what `o.x += v` has on its stack, `o` may be loaded anew, as no other code changes a local.

    def copy(self, name, arg):
        """One of two locals or constants at the top, once more."""
        if arg > 2 or len(self.stack) < arg or not is_load(self.stack[-arg]):
            return not self.stack
        return self.push(self.stack[-arg].steps)

    def swap(self, name, arg):
        """The value to be stored goes below what says where."""
        following = [self.listing.instructions[k][0] for k in range(self.at + 1, self.at + 3)]
        is_store = following[0] in STORES or (arg == 3 and following == ["SWAP", "STORE_SUBSCR"])
        if not is_store or len(self.stack) < arg:
            return not self.stack
        moved = self.stack[-arg:]
        if sum(is_load(tree) for tree in moved) < arg - 1 or any(tree.kind != VALUE for tree in moved):
            return not self.stack
        self.stack[-arg], self.stack[-1] = self.stack[-1], self.stack[-arg]
        return True

    def store_attribute(self, name, arg):
        """STORE_ATTR."""
        return self.store(2, SET_ATTR, self.names[arg])

    def store_item(self, name, arg):
        """STORE_SUBSCR."""
        return self.store(3, SET_ITEM, None)

    def store(self, count, *step):
        """An assignment ends an expression."""
        trees = self.taken(count)
        if trees is None or not self.combine(trees, *step, after="POP_TOP"):
            return False
        self.finish()
        return True

    def precall(self, name, arg):
        """PRECALL."""
        return self.may_call(arg) or not self.stack

    def may_call(self, arg):
        """Whether a function of `math` is called with one argument."""
        if arg != 1 or len(self.stack) < 3 or self.stack[-1].kind != VALUE:
            return False
        below, above = self.stack[-3:-1]
        pad, function = (below, above) if self.version.null_first else (above, below)
        return pad.kind == PAD and (function.kind == FUNCTION or is_function(function.steps))

    def call(self, name, arg):
        """CALL."""
        if not self.may_call(arg):
            return not self.stack
        below, above, value = self.stack[-3:]
        del self.stack[-3:]
        function = above if self.version.null_first else below
        verb = CALL if function.kind == FUNCTION else PREP_CALL
        start = below.start
        done = self.combine([function, value], verb, None)
        if done:
            self.stack[-1].start = start
        return done


STORES = frozenset(["STORE_ATTR", "STORE_SUBSCR"])


def is_load(tree):
    """Whether a tree is a local or constant."""
    return len(tree.steps) == 1 and tree.steps[0][0] in (LOAD, CONST) and not tree.below


def is_function(steps):
    """Whether a value is a global that has the name of a function of `math`, or one of the module's."""
    verb, name = steps[-1]
    if len(steps) == 1:
        return verb == GLOBAL and name in FUNCTIONS
    return steps[:-1] == ((GLOBAL, "math"),) and verb == ATTR and name in FUNCTIONS


def operands_of(steps):
    """What the steps load, each once, values on the stack first and from the deepest on."""
    found = dict.fromkeys(what for verb, what in steps if verb in (LOAD, DEREF))
    on_stack = sorted([what for what in found if what[0] == STACK], key=lambda what: -what[1])
    return on_stack, [what for what in found if what[0] != STACK]


def fits(steps):
    """Whether the compiled core has room for them."""
    if len(steps) <= min(MOST_OPERANDS, DEEPEST):
        return True
    on_stack, others = operands_of(steps)
    return len(on_stack) + len(others) <= MOST_OPERANDS and deepest(steps) <= DEEPEST


TAKES = {
    LOAD: 0,
    DEREF: 0,
    CONST: 0,
    GLOBAL: 0,
    ATTR: 1,
    METHOD: 1,
    NEG: 1,
    SET_ITEM: 3,
}  # two, if it is not here


def deepest(steps):
    """How many values stand on the stack at most."""
    depth = most = 0
    for verb, _ in steps:
        depth += 1 - TAKES.get(verb, 2)
        most = max(most, depth)
    return most


def piece_of(tree):
    """What becomes of a whole tree."""
    on_stack, others = operands_of(tree.steps)
    number = {what: k for k, what in enumerate([*on_stack, *others])}
    steps = tuple([(verb, placed(what, number)) for verb, what in tree.steps])
    return Piece(tree.start, tree.stop, expression(steps, len(number)), len(on_stack), others, tree.after)


def placed(what, number):
    """What a step is about, with the number of an operand instead of its place."""
    if type(what) is not tuple:
        return what
    return number[what] if what[0] != CELL else (number[what], *what[2:])


def maybe_unbound(listing, code):
    """The places of LOAD_FAST in `listing` where the local may have no value: a pass that follows jumps forward.

    Nothing more is known after a jump back, as all that was assigned before the loop still is. A local that is
    deleted somewhere is never sure.
    """
    instructions, targets = listing.instructions, listing.targets
    everything = (1 << len(code.co_varnames)) - 1
    deleted = 0
    for name, arg in instructions:
        if name == "DELETE_FAST":
            deleted |= 1 << arg
    flags = bool(code.co_flags & 4) + bool(code.co_flags & 8)  # *args, **kwargs
    parameters = ((1 << (code.co_argcount + code.co_kwonlyargcount + flags)) - 1) & ~deleted
    handlers = {}
    for region in listing.regions:
        handlers.setdefault(region.start, []).append(region.target)
    entered = {*targets.values(), *(region.target for region in listing.regions)}
    arriving, bound, found, is_reached = {}, parameters, set(), True
    for i, (name, arg) in enumerate(instructions):
        if i in entered:
            bound &= arriving.get(i, everything if is_reached else parameters)
        is_reached = True
        for target in handlers.get(i, ()):
            arriving[target] = arriving.get(target, everything) & bound
        if name == "LOAD_FAST" and not bound >> arg & 1:
            found.add(i)
        elif name == "STORE_FAST":
            bound |= 1 << arg & ~deleted
        if i in targets:
            arriving[targets[i]] = arriving.get(targets[i], everything) & bound
        if name in FINAL:
            bound, is_reached = everything, False
    return found


STEPS = {
    "LOAD_FAST": Search.load,
    "LOAD_FAST_BORROW": Search.load,
    "LOAD_FAST_LOAD_FAST": Search.pair,
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": Search.pair,
    "STORE_FAST_LOAD_FAST": Search.pair,
    "LOAD_DEREF": Search.cell,
    "LOAD_CONST": Search.const,
    "LOAD_SMALL_INT": Search.const,
    "LOAD_GLOBAL": Search.load_global,
    "PUSH_NULL": Search.pad,
    "LOAD_ATTR": Search.attribute,
    "LOAD_METHOD": Search.attribute,
    "BINARY_SUBSCR": Search.item,
    "BINARY_OP": Search.binary,
    "UNARY_NEGATIVE": Search.negative,
    "COMPARE_OP": Search.compare,
    "COPY": Search.copy,
    "SWAP": Search.swap,
    "STORE_ATTR": Search.store_attribute,
    "STORE_SUBSCR": Search.store_item,
    "PRECALL": Search.precall,
    "CALL": Search.call,
}
