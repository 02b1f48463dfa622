"""Expressions, found in a listing: pieces of one line that a level evaluates in one call instead of one an operation.

An expression is a piece of one basic block that leaves one value: locals, constants and globals, their attributes and
items, operators, a comparison, and functions of `math` of one argument; or a method, to be called. It may begin with
what stands on the stack. The level does its steps in the order of the program, each as its hook would.
"""

import dis
import re

from plaingrad.rewrite.encoding import table
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
METHOD_FOUND = "a method, to be called"  # after a piece: what a call expects there
CELL_ITSELF = "LOAD_CLOSURE" if dis.opmap.get("LOAD_CLOSURE", 256) < 256 else "LOAD_FAST"


class Piece:
    """Instructions `start..stop-1`, which become one call, of `below` values on the stack and of `operands`.

    If `half`, it begins with the second half of the first one (a second local; a global above a NULL). `after` is an
    instruction behind the call, or nothing.
    """

    __slots__ = ("after", "below", "expression", "half", "operands", "start", "stop")

    def __init__(self, start, half, stop, after, expression, below, operands):
        self.start, self.half, self.stop, self.after = start, half, stop, after
        self.expression, self.below, self.operands = expression, below, operands


def find_expressions(listing, version, code, entered) -> dict:
    """The expressions of `listing` that save hooks, by their first instruction."""
    return Search(listing, version, code, entered).run()


class Search:
    """The simulated stack, as far as it is known, of the basic block that is being read.

    Attributes:
        stack: a tree for each value, a plain tuple, as there are many: where its steps begin (they end where those of
            the next tree begin); twice the number of its first instruction, plus its `half`; the instruction after its
            last one; the line of all of them; VALUE or what else it is; how many values it takes that stood on the
            stack before; how many hooks it saves, which is how many of its steps do more than push something.
        steps: of all trees: (verb, what). What LOAD takes is (LOCAL, number), (CELL, number) or (STACK, depth below the
            top).
        acts: whether one of the steps may raise something or run other code.
    """

    def __init__(self, listing, version, code, entered):
        self.listing, self.version, self.code, self.entered = listing, version, code, entered
        self.names, self.consts = code.co_names, code.co_consts
        self.n_locals = len(code.co_varnames)
        self.surely_bound = -1 if CHECKS_LOCALS else always_bound(listing, code)
        self.unsure = None  # found when somebody asks
        self.stack: list[tuple] = []
        self.steps: list[tuple] = []
        self.acts = False
        self.found: dict[int, Piece] = {}
        self.at, self.line = 0, None

    def run(self):
        """Read the instructions that may belong to an expression, one after another."""
        instructions, locations, steps = self.listing.instructions, self.listing.locations, STEPS
        for start, stop in self.candidates():
            for i in range(start, stop):
                name, arg = instructions[i]
                self.at, self.line = i, locations[i][0]
                if not steps[name](self, name, arg):
                    self.finish()
                    steps[name](self, name, arg)  # with what stands on the stack
            self.finish()
        return self.found

    def candidates(self):
        """(start, stop) of instructions of expressions that follow each other in a block, and save enough hooks."""
        kinds = bytearray(self.listing.opcodes.translate(KINDS))
        begins = set(self.entered)
        for region in self.listing.regions:
            begins |= {region.start, region.stop + 1}
        for i in begins:
            if i < len(kinds) and kinds[i]:
                kinds[i] += BEGINS
        for found in FOLLOWING(kinds):
            start, stop = found.span()
            if kinds.count(SAVES, start, stop) + (kinds[start] == SAVES + BEGINS) >= FEWEST_HOOKS:
                yield start, stop

    def finish(self, after=""):
        """What is on the simulated stack is whole; the instruction `after` takes the top."""
        stack, end = self.stack, len(self.steps)
        while stack:
            first, start, stop, _, kind, below, hooks = stack.pop()
            if hooks >= FEWEST_HOOKS and kind == VALUE:
                made = expression_of(self.steps[first:end], below)
                self.found[start >> 1] = Piece(start >> 1, start & 1, stop, after, *made)
            end, after = first, ""
        self.steps.clear()
        self.acts = False

    def push(self, verb, what, half=0):
        """A new value at the top."""
        at, steps = self.at, self.steps
        self.stack.append((len(steps), 2 * at + half, at + 1, self.line, VALUE, 0, 0))
        steps.append((verb, what))
        return True

    def steps_of(self, k):
        """The steps of the tree at -k, counted from the top."""
        return self.steps[self.stack[-k][0] : self.stack[1 - k][0] if k > 1 else None]

    def is_load(self, k):
        """Whether the tree at -k is a local or constant."""
        steps = self.steps_of(k)
        return len(steps) == 1 and steps[0][0] in (LOAD, CONST) and not self.stack[-k][5]

    def combine(self, count, verb, what, kind=VALUE):
        """Push what a step makes of the top `count` trees; False, with nothing changed, if that is no expression.

        Trees that are missing are values on the stack.
        """
        steps, line = self.steps, self.line
        trees = self.stack[-count:]
        first, start, below, hooks = len(steps), 2 * self.at, 0, 1
        for _, tree_start, _, tree_line, tree_kind, tree_below, tree_hooks in trees:
            if tree_line != line or tree_kind != VALUE:
                return False
            if tree_start < start:
                start = tree_start
            below += tree_below  # only the lowest has some
            hooks += tree_hooks
        if trees:
            first = trees[0][0]
        missing = count - len(trees)
        if missing:
            below += missing
            if below > 2:
                return False
            steps[first:first] = [(LOAD, (STACK, below - 1 - k)) for k in range(missing)]
        steps.append((verb, what))
        size = len(steps) - first
        if (size - hooks > MOST_OPERANDS or size > MOST_STEPS) and not fits(steps[first:]):
            steps.pop()
            del steps[first : first + missing]
            return False
        self.stack[-count:] = [(first, start, self.at + 1, line, kind, below, hooks)]
        self.acts = True
        return True

    # What instructions do. Each says whether it could; one that could not comes again with an unknown stack.

    def load(self, name, arg):
        """LOAD_FAST."""
        if arg >= self.n_locals:
            return not self.stack
        if self.acts and not self.surely_bound >> arg & 1 and self.is_unsure():
            return False  # what comes before may raise something else
        steps, at = self.steps, self.at  # as `push`, but quicker
        self.stack.append((len(steps), 2 * at, at + 1, self.line, VALUE, 0, 0))
        steps.append((LOAD, (LOCAL, arg)))
        return True

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
            self.push(LOAD, (LOCAL, arg >> 4))
        return self.push(LOAD, (LOCAL, arg & 15), half=1)

    def cell(self, name, arg):
        """LOAD_DEREF."""
        name = self.code._varname_from_oparg(arg)
        self.acts = True
        return self.push(DEREF, (CELL, arg, name, name in self.code.co_freevars))

    def const(self, name, arg):
        """LOAD_CONST, LOAD_SMALL_INT."""
        value = arg if name == "LOAD_SMALL_INT" else self.consts[arg]
        if type(value) not in ORDINARY:
            return not self.stack
        return self.push(CONST, value)

    def load_global(self, name, arg):
        """LOAD_GLOBAL, with a NULL if a call follows."""
        found, calls = self.names[arg >> 1], arg & 1
        if calls and found not in FUNCTIONS and found != "math":
            return not self.stack
        self.acts = True
        if calls and self.version.null_first:
            self.pad(name, arg)  # which may be that of a call further out
        self.push(GLOBAL, found, half=calls and self.version.null_first)
        return self.pad(name, arg) if calls and not self.version.null_first else True

    def pad(self, name, arg):
        """PUSH_NULL."""
        self.stack.append((len(self.steps), 2 * self.at, self.at + 1, self.line, PAD, 0, 0))
        return True

    def attribute(self, name, arg):
        """LOAD_ATTR, LOAD_METHOD."""
        bit = self.version.method_bit
        wanted = self.names[arg >> 1 if bit else arg]
        if name == "LOAD_METHOD" or (bit and arg & 1):
            return self.method(wanted)
        return self.combine(1, ATTR, wanted)

    def method(self, wanted):
        """A function of `math`, looked up as a method; any other ends an expression."""
        stack = self.stack
        if not stack or (self.steps_of(1) == [(GLOBAL, "math")] and wanted not in FUNCTIONS):
            return not stack
        if self.steps_of(1) != [(GLOBAL, "math")]:
            if not stack[-1][6] or not self.combine(1, METHOD, wanted):
                return False
            self.finish(METHOD_FOUND)
            return True
        if self.version.null_first:
            first, start, _, line, *_ = stack[-1]
            stack.insert(-1, (first, start, self.at, line, PAD, 0, 0))
        done = self.combine(1, METHOD, wanted, FUNCTION)
        if not self.version.null_first:
            self.pad("", 0)
        return done

    def item(self, name, arg):
        """BINARY_SUBSCR."""
        return self.combine(2, GETITEM, None)

    def binary(self, name, arg):
        """BINARY_OP."""
        hook = self.version.arithmetic[arg]
        return self.combine(2, GETITEM, None) if hook == "getitem" else self.combine(2, BINARY, hook)

    def negative(self, name, arg):
        """UNARY_NEGATIVE."""
        return self.combine(1, NEG, None)

    def compare(self, name, arg):
        """The value of a comparison ends an expression: what follows is mostly a jump."""
        casts = self.version.compare_casts and arg & 16
        if not self.combine(2, COMPARE, COMPARISONS[arg >> self.version.compare_shift]):
            return False
        self.finish("TO_BOOL" if casts else "")
        return True

    # Assignments: of what `o.x += v` has on its stack, `o` may be loaded anew, as no other code changes a local.

    def copy(self, name, arg):
        """One of two locals or constants at the top, once more."""
        if arg > 2 or len(self.stack) < arg or not self.is_load(arg):
            return not self.stack
        return self.push(*self.steps_of(arg)[0])

    def swap(self, name, arg):
        """The value to be stored goes below what says where."""
        following = [self.listing.instructions[k][0] for k in range(self.at + 1, self.at + 3)]
        is_store = following[0] in STORES or (arg == 3 and following == ["SWAP", "STORE_SUBSCR"])
        if not is_store or len(self.stack) < arg:
            return not self.stack
        moved = self.stack[-arg:]
        if sum(map(self.is_load, range(1, arg + 1))) < arg - 1 or any(tree[4] != VALUE for tree in moved):
            return not self.stack
        steps = [self.steps_of(k) for k in range(arg, 0, -1)]
        for items in (moved, steps):
            items[0], items[-1] = items[-1], items[0]
        del self.steps[self.stack[-arg][0] :], self.stack[-arg:]
        for tree, own in zip(moved, steps):
            self.stack.append((len(self.steps), *tree[1:]))
            self.steps += own
        return True

    def store_attribute(self, name, arg):
        """STORE_ATTR."""
        return self.store(2, SET_ATTR, self.names[arg])

    def store_item(self, name, arg):
        """STORE_SUBSCR."""
        return self.store(3, SET_ITEM, None)

    def store(self, count, *step):
        """An assignment ends an expression."""
        if not self.combine(count, *step):
            return False
        self.finish("POP_TOP")
        return True

    def precall(self, name, arg):
        """PRECALL."""
        return self.function_called(arg) is not None or not self.stack

    def function_called(self, arg):
        """Where the function of `math` is on the stack, from the top, that is called with one argument; or None."""
        if arg != 1 or len(self.stack) < 3 or self.stack[-1][4] != VALUE:
            return None
        function, pad = (2, 3) if self.version.null_first else (3, 2)
        is_pad, kind = self.stack[-pad][4] == PAD, self.stack[-function][4]
        return function if is_pad and (kind == FUNCTION or is_function(self.steps_of(function))) else None

    def call(self, name, arg):
        """CALL."""
        function = self.function_called(arg)
        if function is None:
            return not self.stack
        stack = self.stack
        first, _, stop, line, kind, below, hooks = stack[-function]
        stack[-3:-1] = [(first, stack[-3][1], stop, line, VALUE, below, hooks)]
        return self.combine(2, CALL if kind == FUNCTION else PREP_CALL, None)


STORES = frozenset(["STORE_ATTR", "STORE_SUBSCR"])


def is_function(steps):
    """Whether a value is a global that has the name of a function of `math`, or one of the module's."""
    if not steps:
        return False
    verb, name = steps[-1]
    if len(steps) == 1:
        return verb == GLOBAL and name in FUNCTIONS
    return steps[:-1] == [(GLOBAL, "math")] and verb == ATTR and name in FUNCTIONS


def fits(steps):
    """Whether the compiled core has room for such steps, their operands and their values."""
    if len(steps) > MOST_STEPS:
        return False
    return (
        len({what for verb, what in steps if verb in PLACES}) <= MOST_OPERANDS and deepest(steps) <= DEEPEST
    )


PLACES = (LOAD, DEREF)
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


def expression_of(steps, below):
    """The expression of such steps, how many operands come from the stack, and the places of the others."""
    number = {(STACK, below - 1 - k): k for k in range(below)}
    numbered = []
    for step in steps:
        verb, what = step
        if verb == LOAD:
            numbered.append(LOADS[number.setdefault(what, len(number))])
        elif verb == DEREF:
            numbered.append((verb, (number.setdefault(what, len(number)), *what[2:])))
        else:
            numbered.append(step)
    return expression(tuple(numbered), len(number)), below, list(number)[below:]


LOADS = [(LOAD, k) for k in range(MOST_OPERANDS)]


def always_bound(listing, code):
    """A bit for each parameter that keeps its value, as it is deleted nowhere."""
    flags = bool(code.co_flags & 4) + bool(code.co_flags & 8)  # *args, **kwargs
    parameters = (1 << (code.co_argcount + code.co_kwonlyargcount + flags)) - 1
    for name, arg in set(listing.instructions):
        if name == "DELETE_FAST":
            parameters &= ~(1 << arg)
    return parameters


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
    parameters = always_bound(listing, code)
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

OTHER, PUSHES, SAVES, BEGINS = 0, 1, 2, 4  # kinds of instructions; BEGINS is added where a block does
PUSHING = """
LOAD_FAST LOAD_FAST_BORROW LOAD_FAST_LOAD_FAST LOAD_FAST_BORROW_LOAD_FAST_BORROW STORE_FAST_LOAD_FAST LOAD_DEREF
LOAD_CONST LOAD_SMALL_INT LOAD_GLOBAL PUSH_NULL COPY SWAP PRECALL
""".split()
KINDS = table({name: PUSHES if name in PUSHING else SAVES for name in STEPS})
FOLLOWING = re.compile(b"[%c%c%c%c][%c%c]*" % (1, 2, 5, 6, 1, 2)).finditer
