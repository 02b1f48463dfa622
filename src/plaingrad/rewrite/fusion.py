"""Runs of arithmetic on locals, found in a listing: they are recorded in one step instead of one an operation.

A run is a piece of one basic block, outside any `try`, that touches nothing but locals, number constants, + - * /
negation, small whole powers, and functions of `math` of one argument. While it is planned its stack is simulated: every
value is an input (a local that was read before it was written), a constant, or the result of an operation.
"""

import dis
import math
from dataclasses import dataclass

FUSED_OPERATIONS = 2  # a run of fewer is left to the hooks

ARITHMETIC = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "truediv"}
ARITHMETIC |= {
    "iadd": "add",
    "isub": "sub",
    "imul": "mul",
    "itruediv": "truediv",
    "pow": "pow",
    "ipow": "pow",
}

#: Functions of one real number whose rules are rows; the engine looks at the rulebook before it lets them be fused.
MATH = """
sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp exp2 expm1 log log2 log10 log1p sqrt cbrt erf erfc
""".split()
FUNCTIONS = {name: getattr(math, name) for name in MATH if hasattr(math, name)}

VALUE, MODULE, FUNCTION, PAD = "value", "module", "function", "pad"  # what the simulated stack holds


@dataclass(frozen=True, eq=False)
class Block:
    """One run as data: values are numbered, the inputs first, then the results of the operations in order.

    Attributes:
        inputs: how many values are inputs.
        operations: (kind, operands); an operand is a value's number, or a 1-tuple of a constant. `kind` is an
            arithmetic operation or the name of a function of `math`.
        outputs: the numbers of the results that live on behind the run.
        passed: the numbers of the values that the recorder is called with, in order.
        functions: the functions of `math` in it.
    """

    inputs: int
    operations: tuple
    outputs: tuple
    passed: tuple
    functions: tuple


@dataclass
class Run:
    """Where a run stands, and how its values are kept for the recorder.

    Attributes:
        start, stop: the lines start..stop-1.
        block: what it computes.
        checks: (local, line of its first read) of the locals whose type is checked.
        modules: (index of the name `math`, index of the attribute or None, line, function) for each function.
        save_first: (local, temporary) for inputs that the run overwrites.
        keep_after: line -> temporary to put a copy of its result into.
        homes: for each value passed, the local it is in at the end; temporaries count from -1 downwards.
        temporaries: how many are used.
    """

    start: int
    stop: int
    block: Block
    checks: list
    modules: list
    save_first: list
    keep_after: dict
    homes: list
    temporaries: int


def find_runs(listing, version, names, consts, targets) -> dict:
    """The runs of `listing` worth fusing, by their first line."""
    instructions = listing.instructions
    guarded = set()
    for region in listing.regions:
        guarded.update(range(region.start, region.stop + 1))
    runs, i = {}, 0
    while i < len(instructions):
        simulation = Simulation(version, names, consts)
        j = i
        while (
            j < len(instructions)
            and j not in guarded
            and (j == i or j not in targets)
            and simulation.step(*instructions[j], j)
        ):
            j += 1
        run = simulation.run(i) if simulation.operations_when_whole >= FUSED_OPERATIONS else None
        if run is not None and run.block.outputs:
            runs[i] = run
        i = max(i + 1, simulation.whole or 0)
    return runs


class Simulation:
    """The stack and the locals of a run while it is planned."""

    def __init__(self, version, names, consts):
        self.version, self.names, self.consts = version, names, consts
        self.stack = []  # (what, payload)
        self.locals = {}  # local -> operand
        self.inputs = {}  # local -> line of its first read
        self.operations = []  # (kind, operands, line)
        self.may_raise, self.found = (
            False,
            set(),
        )  # an operation that may fail was met; globals looked up before it
        self.functions = {}  # (name, index of `math` or of the name, index of the attribute or None) -> line
        self.whole, self.operations_when_whole, self.snapshot = None, 0, None

    def step(self, name, arg, at) -> bool:
        """Take one instruction into the run; False if it does not belong there."""
        pair = self.version.pairs.get(name)
        if pair is not None:
            done = all(
                self._single(single, slot, at)
                for single, slot in zip(pair, (arg >> 4, arg & 15), strict=True)
            )
        else:
            done = self._single(name, arg, at)
        if done and all(what == VALUE for what, _ in self.stack):
            self.whole, self.operations_when_whole = at + 1, len(self.operations)
            self.snapshot = (list(self.stack), dict(self.locals), dict(self.functions), dict(self.inputs))
        return done

    def _single(self, name, arg, at) -> bool:
        stack = self.stack
        if name in ("LOAD_FAST", "LOAD_FAST_BORROW"):
            stack.append((VALUE, self._read(arg, at)))
        elif name == "STORE_FAST":
            if not stack or stack[-1][0] != VALUE:
                return False
            self.locals[arg] = stack.pop()[1]
        elif name == "LOAD_CONST":
            if type(self.consts[arg]) not in (float, int):
                return False
            stack.append((VALUE, (self.consts[arg],)))
        elif name == "LOAD_SMALL_INT":
            stack.append((VALUE, (arg,)))
        elif name == "BINARY_OP":
            return self._binary(ARITHMETIC.get(self.version.arithmetic[arg]), at)
        elif name == "UNARY_NEGATIVE":
            return self._unary("neg", at)
        elif name == "LOAD_GLOBAL":
            return self._load_global(arg, at)
        elif name == "PUSH_NULL":
            stack.append((PAD, None))
        elif name in ("LOAD_ATTR", "LOAD_METHOD"):
            return self._load_function(name, arg, at)
        elif name == "PRECALL":
            return self._calls_function(arg)
        elif name == "CALL":
            return self._call(arg, at)
        else:
            return name == "NOP"
        return True

    def _read(self, local, at):
        if local not in self.locals:
            self.locals[local] = ("input", local)
            self.inputs[local] = at
        return self.locals[local]

    def _binary(self, kind, at) -> bool:
        stack = self.stack
        if kind is None or len(stack) < 2 or stack[-1][0] != VALUE or stack[-2][0] != VALUE:
            return False
        (_, a), (_, b) = stack[-2:]
        if len(a) == 1 and len(b) == 1:
            return False
        if kind == "pow" and not (len(b) == 1 and type(b[0]) is int and 2 <= b[0] <= 8):
            return False
        del stack[-2:]
        self._result(kind, (a, b), at)
        return True

    def _unary(self, kind, at) -> bool:
        if not self.stack or self.stack[-1][0] != VALUE or len(self.stack[-1][1]) == 1:
            return False
        a = self.stack.pop()[1]
        self._result(kind, (a,), at)
        return True

    def _result(self, kind, operands, at):
        self.stack.append((VALUE, ("result", len(self.operations))))
        self.may_raise |= kind in FUNCTIONS or kind in ("truediv", "pow")
        self.operations.append((kind, operands, at))

    def _load_global(self, arg, at) -> bool:
        name = self.names[arg >> 1]
        if self.may_raise and name not in self.found:
            return False  # the checks come first: a NameError must not come before another error
        self.found.add(name)
        if name == "math":
            item = (MODULE, arg >> 1)
        elif name in FUNCTIONS:
            item = (FUNCTION, name)
            self.functions.setdefault((name, arg >> 1, None), at)
        else:
            return False
        pad = [(PAD, None)] if arg & 1 else []
        self.stack += [*pad, item] if self.version.null_first else [item, *pad]
        return True

    def _load_function(self, opcode, arg, at) -> bool:
        bit = self.version.method_bit
        name = self.names[arg >> 1 if bit else arg]
        # below the module a PAD may stand (null first) but not above
        if not self.stack or self.stack[-1][0] != MODULE or name not in FUNCTIONS:
            return False
        where = self.stack.pop()[1]
        self.functions.setdefault((name, where, arg >> 1 if bit else arg), at)
        as_method = opcode == "LOAD_METHOD" or (bit and arg & 1)
        pad = [(PAD, None)] if as_method else []
        self.stack += [*pad, (FUNCTION, name)] if self.version.null_first else [(FUNCTION, name), *pad]
        return True

    def _calls_function(self, arg) -> bool:
        stack = self.stack
        if arg != 1 or len(stack) < 3 or stack[-1][0] != VALUE or len(stack[-1][1]) == 1:
            return False
        return {stack[-2][0], stack[-3][0]} == {PAD, FUNCTION}

    def _call(self, arg, at) -> bool:
        if not self._calls_function(arg):
            return False
        stack = self.stack
        name = next(payload for what, payload in stack[-3:-1] if what == FUNCTION)
        value = stack[-1][1]
        del stack[-3:]
        self._result(name, (value,), at)
        return True

    def run(self, start) -> Run:
        """The run up to where the stack last held nothing but values."""
        assert self.snapshot is not None
        stack, locals_, functions, inputs = self.snapshot
        operations = self.operations[: self.operations_when_whole]
        order = list(inputs)
        number = {("input", local): k for k, local in enumerate(order)}
        number |= {("result", k): len(order) + k for k in range(len(operations))}

        def numbered(operand):
            return operand if len(operand) == 1 else number[operand]

        rows = tuple((kind, tuple(map(numbered, operands))) for kind, operands, _ in operations)
        homes = {}  # value -> local that holds it at the end
        for local, operand in locals_.items():
            if len(operand) == 2:
                homes.setdefault(number[operand], local)
        outputs = {number[operand] for operand in locals_.values() if operand[0] == "result"}
        outputs |= {number[operand] for _, operand in stack if operand[0] == "result"}
        passed = sorted({*range(len(order)), *outputs, *values_read(rows, len(order))})
        run = Run(start, self.whole, None, list(inputs.items()), [], [], {}, [], 0)
        made_at = {len(order) + k: at for k, (_, _, at) in enumerate(operations)}
        for value in passed:
            if value not in homes:
                run.temporaries += 1
                homes[value] = -run.temporaries
                if value < len(order):
                    run.save_first.append((order[value], -run.temporaries))
                else:
                    run.keep_after[made_at[value]] = -run.temporaries
        run.homes = [homes[value] for value in passed]
        called = sorted({kind for kind, _ in rows if kind in FUNCTIONS})
        run.modules = [
            (where, attribute, at, FUNCTIONS[name]) for (name, where, attribute), at in functions.items()
        ]
        run.block = Block(len(order), rows, tuple(sorted(outputs)), tuple(passed), tuple(called))
        return run


def values_read(rows, inputs) -> set:
    """The numbers of the values that the reverse of `rows` reads."""
    read = set()
    for k, (kind, operands) in enumerate(rows):
        if kind == "mul":
            read.update(b for a, b in (operands, operands[::-1]) if not isinstance(a, tuple))
        elif kind == "truediv":
            read.add(operands[1])
            if not isinstance(operands[1], tuple):
                read.add(inputs + k)
        elif kind == "pow":
            read.add(operands[0])
        elif kind in FUNCTIONS:
            read.update((operands[0], inputs + k))
    return {value for value in read if not isinstance(value, tuple)}


SUBSCRIPT = "BINARY_SUBSCR" if "BINARY_SUBSCR" in dis.opmap else "BINARY_OP"
JUMP_IF_FALSE = (
    "POP_JUMP_FORWARD_IF_FALSE" if "POP_JUMP_FORWARD_IF_FALSE" in dis.opmap else "POP_JUMP_IF_FALSE"
)
