"""Random programs of every kind of statement, against derivatives carried forward by a number class of our own.

The class `Pair` below is the oracle: it computes value and derivative side by side, in plain Python, and shares no
code with plaingrad. A program is made from a seed, so that a failure can be made again.
`make test` tries 64 programs of floats, with PLAINGRAD_TEST_ALL=1 it is 320.
"""

import math
import random
import types

import numpy as np
import pytest
from tests.sampling import count

import plaingrad


class Pair:
    """A number and its derivative."""

    __slots__ = ("d", "v")
    largest = 0.0  # of any number or derivative on the way: differences of large numbers are not compared

    def __init__(self, v, d=0.0):
        self.v = v
        self.d = d
        Pair.largest = max(Pair.largest, abs(v), abs(d)) if abs(v) < 1e300 and abs(d) < 1e300 else math.inf

    def __add__(self, o):
        o = pair(o)
        return Pair(self.v + o.v, self.d + o.d)

    def __radd__(self, o):
        return pair(o) + self

    def __sub__(self, o):
        o = pair(o)
        return Pair(self.v - o.v, self.d - o.d)

    def __rsub__(self, o):
        return pair(o) - self

    def __mul__(self, o):
        o = pair(o)
        return Pair(self.v * o.v, self.d * o.v + self.v * o.d)

    def __rmul__(self, o):
        return pair(o) * self

    def __truediv__(self, o):
        o = pair(o)
        z = self.v / o.v
        return Pair(z, (self.d - z * o.d) / o.v)

    def __rtruediv__(self, o):
        return pair(o) / self

    def __pow__(self, n):
        return Pair(self.v**n, n * self.v ** (n - 1) * self.d)

    def __mod__(self, o):
        o = pair(o)
        return Pair(self.v % o.v, self.d - self.v // o.v * o.d)

    def __neg__(self):
        return Pair(-self.v, -self.d)

    def __pos__(self):
        return self

    def __abs__(self):
        return Pair(abs(self.v), self.d if self.v > 0 else -self.d)

    def __lt__(self, o):
        return self.v < pair(o).v

    def __gt__(self, o):
        return self.v > pair(o).v

    def __le__(self, o):
        return self.v <= pair(o).v

    def __ge__(self, o):
        return self.v >= pair(o).v

    def __int__(self):
        return int(self.v)


def pair(x):
    return x if isinstance(x, Pair) else Pair(x)


def lifted(f, slope):
    def g(x):
        x = pair(x)
        z = f(x.v)
        return Pair(z, slope(x.v, z) * x.d)

    return g


PAIR_MATH = types.SimpleNamespace(
    sin=lifted(math.sin, lambda x, z: math.cos(x)),
    cos=lifted(math.cos, lambda x, z: -math.sin(x)),
    exp=lifted(math.exp, lambda x, z: z),
    tanh=lifted(math.tanh, lambda x, z: 1 - z * z),
    atan=lifted(math.atan, lambda x, z: 1 / (1 + x * x)),
    sqrt=lifted(math.sqrt, lambda x, z: 0.5 / z if z else math.inf),
    log=lifted(math.log, lambda x, z: 1 / x),
    log1p=lifted(math.log1p, lambda x, z: 1 / (1 + x)),
)

PRELUDE = """
class Keep:
    def __init__(self, v):
        self.v = v
        self.log = []

    def __enter__(self):
        self.log.append(self.v)
        return self.v * 0.5

    def __exit__(self, kind, error, trace):
        self.v = self.v + 0.25
        return kind is KeyError

    def add(self, w):
        self.v = self.v * 0.5 + w
        return self.v

    @property
    def half(self):
        return self.v * 0.5

    def __add__(self, other):
        return Keep(self.v - (other.v if isinstance(other, Keep) else other))


def count(n, v):
    try:
        for k in range(n):
            got = yield v * k
            if got is not None:
                v = v + got
    finally:
        v = None
"""


class Program:
    """A random program: statements over the names in `names`, all of them numbers."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.names = ["x", "y", "z"]
        self.fresh = 0
        self.lines = []
        self.in_loop = 0

    def name(self):
        return self.random.choice(self.names)

    def new(self):
        self.fresh += 1
        return f"v{self.fresh}"

    def number(self):
        return self.random.choice(["0.5", "-1.25", "2.0", "3", "0.1", "-2", "1", "True", "0.75", "1.5"])

    def expression(self, depth=2):
        pick = self.random.random()
        e = lambda: self.expression(depth - 1)
        if depth == 0 or pick < 0.15:
            return self.name() if self.random.random() < 0.75 else self.number()
        if pick < 0.55:
            return f"({e()} {self.random.choice(['+', '-', '*', '+', '*'])} {e()})"
        if pick < 0.62:
            return f"({e()} / ({e()} * {self.name()} + {self.random.choice(['2.0', '3', self.name()])}))"
        if pick < 0.74:
            return f"math.{self.random.choice(['sin', 'cos', 'tanh', 'atan'])}({e()})"
        if pick < 0.78:
            return f"math.{self.random.choice(['exp', 'log1p', 'sqrt'])}(abs(math.sin({e()})) + 0.5)"
        if pick < 0.82:
            return f"(math.tanh({e()}) ** {self.random.choice(['2', '3', '2.0'])})"
        if pick < 0.86:
            return f"(-{e()})"
        if pick < 0.89:
            return f"{self.random.choice(['max', 'min'])}({e()}, {e()})"
        if pick < 0.92:
            return f"({e()} if {self.condition()} else {e()})"
        if pick < 0.94:
            return f"sum([{e()} for _k in range({self.random.randint(1, 3)})])"
        if pick < 0.96:
            return f"(lambda a, b=0.5: a * b + {self.name()})({e()})"
        if pick < 0.98:
            return f"[{e()}, {e()}][{self.random.randint(-1, 1)}]"
        return f"((w := {e()}) * w)"

    def condition(self):
        c = f"{self.name()} {self.random.choice(['<', '>', '<=', '>='])} {self.random.choice([self.name(), self.number()])}"
        pick = self.random.random()
        if pick < 0.1:
            return f"not ({c})"
        if pick < 0.3:
            return f"{c} {self.random.choice(['and', 'or'])} {self.name()} > {self.number()}"
        return c

    def put(self, indent, line):
        self.lines.append("    " * indent + line)

    def block(self, indent, depth, size=None):
        for _ in range(size or self.random.randint(1, 4)):
            self.statement(indent, depth)

    def statement(self, indent, depth):
        r = self.random
        kinds = ["assign"] * 6 + ["augment"] * 3 + ["swap", "tame"]
        if depth:
            kinds += ["if"] * 3 + ["for"] * 2 + ["while", "try", "try", "finally", "with", "list", "closure", "generator"]
            kinds += ["object", "dict", "raise", "send", "unpack", "early"]
        if self.in_loop:
            kinds += ["break", "continue"]
        getattr(self, "do_" + r.choice(kinds))(indent, depth)

    def do_assign(self, indent, depth):
        target = self.name() if self.random.random() < 0.6 else None
        e = self.expression(3)
        if target is None and indent == 1:
            target = self.new()
            self.put(indent, f"{target} = {e}")
            self.names.append(target)
        else:
            self.put(indent, f"{target or self.name()} = {e}")

    def do_augment(self, indent, depth):
        self.put(indent, f"{self.name()} {self.random.choice(['+=', '-=', '*='])} {self.expression(2)}")

    def do_tame(self, indent, depth):
        v = self.name()
        self.put(indent, f"{v} = math.tanh({v}) + 0.1 * {v}" if self.random.random() < 0.3 else f"{v} = math.tanh({v})")

    def do_swap(self, indent, depth):
        a, b, c = self.name(), self.name(), self.name()
        self.put(indent, f"{a}, {b}, {c} = {c}, {a} * 0.5, {self.expression(1)}")

    def do_unpack(self, indent, depth):
        a, b = self.name(), self.name()
        self.put(indent, f"{a}, *_rest, {b} = [{self.expression(1)} for _k in range(3)] + [{self.expression(1)}]")

    def do_if(self, indent, depth):
        self.put(indent, f"if {self.condition()}:")
        self.block(indent + 1, depth - 1)
        if self.random.random() < 0.4:
            self.put(indent, f"elif {self.condition()}:")
            self.block(indent + 1, depth - 1)
        if self.random.random() < 0.6:
            self.put(indent, "else:")
            self.block(indent + 1, depth - 1)

    def do_for(self, indent, depth):
        self.put(indent, f"for _i{indent} in range({self.random.randint(0, 4)}):")
        self.in_loop += 1
        self.block(indent + 1, depth - 1)
        self.in_loop -= 1
        if self.random.random() < 0.3:
            self.put(indent, "else:")
            self.block(indent + 1, depth - 1)

    def do_while(self, indent, depth):
        k = self.new()
        self.put(indent, f"{k}n = 0")
        self.put(indent, f"while {k}n < {self.random.randint(1, 5)} and {self.name()} < 10.0:")
        self.put(indent + 1, f"{k}n += 1")
        self.in_loop += 1
        self.block(indent + 1, depth - 1)
        self.in_loop -= 1

    def do_try(self, indent, depth):
        r = self.random
        self.put(indent, "try:")
        self.block(indent + 1, depth - 1)
        trap = r.choice(
            [
                f"{self.name()} = {self.expression(2)} / ({self.number()} - {self.number()})",
                f"{self.name()} = math.sqrt({self.expression(1)} - 1.0)",
                f"{self.name()} = math.log(math.sin({self.expression(1)}))",
                f"{self.name()} = [{self.name()}][{r.randint(0, 1)}]",
                f"{self.name()} = {{0: {self.name()}}}[{r.randint(0, 1)}]",
            ]
        )
        self.put(indent + 1, trap)
        self.put(indent, "except (ZeroDivisionError, ValueError):")
        self.block(indent + 1, depth - 1)
        self.put(indent, "except LookupError as _error:")
        self.block(indent + 1, depth - 1)
        if r.random() < 0.4:
            self.put(indent, "else:")
            self.block(indent + 1, depth - 1)
        if r.random() < 0.4:
            self.put(indent, "finally:")
            self.plain_block(indent + 1, depth - 1)

    def plain_block(self, indent, depth):
        """A block that does not leave the loop: Python 3.14 warns of that in `finally`."""
        in_loop, self.in_loop = self.in_loop, 0
        for _ in range(self.random.randint(1, 3)):
            getattr(self, "do_" + self.random.choice(["assign", "augment", "tame", "swap"]))(indent, 0)
        self.in_loop = in_loop

    def do_finally(self, indent, depth):
        self.put(indent, "try:")
        self.block(indent + 1, depth - 1)
        self.put(indent, "finally:")
        self.plain_block(indent + 1, depth - 1)

    def do_raise(self, indent, depth):
        v = self.name()
        self.put(indent, "try:")
        self.put(indent + 1, f"if {self.condition()}:")
        self.put(indent + 2, f"raise ArithmeticError({self.expression(2)}, {self.name()})")
        self.block(indent + 1, depth - 1)
        self.put(indent, "except ArithmeticError as _error:")
        self.put(indent + 1, f"{v} = _error.args[0] * 0.5 + _error.args[1] if len(_error.args) == 2 else {self.name()}")

    def do_with(self, indent, depth):
        self.put(indent, f"with Keep({self.expression(2)}) as _held{indent}:")
        self.put(indent + 1, f"{self.name()} = _held{indent} * {self.name()}")
        self.block(indent + 1, depth - 1)
        if self.random.random() < 0.4:
            self.put(indent + 1, f"if {self.condition()}:")
            self.put(indent + 2, "raise KeyError")
            self.block(indent + 1, depth - 1)

    def do_list(self, indent, depth):
        a, b = self.name(), self.name()
        self.put(indent, f"_l = [{self.expression(1)}, {self.expression(1)}]")
        self.put(indent, f"_l.append({self.expression(2)})")
        self.put(indent, f"_l[{self.random.randint(0, 2)}] {self.random.choice(['=', '+=', '*='])} {a}")
        self.put(indent, f"{b} = {self.random.choice(['sum(_l)', '_l[-1] * _l[0]', 'max(_l)', 'sorted(_l)[1]', '_l.pop()'])}")

    def do_dict(self, indent, depth):
        a, b = self.name(), self.name()
        self.put(indent, f"_d = {{'a': {self.expression(1)}, 'b': {self.expression(1)}}}")
        self.put(indent, f"_d['a'] {self.random.choice(['=', '+=', '-='])} {a}")
        self.put(indent, f"{b} = {self.random.choice(['sum(_d.values())', '_d.pop(chr(97))', 'sum(v * 0.5 for v in _d.values())'])}")

    def do_closure(self, indent, depth):
        g, v, w = self.new(), self.name(), self.name()
        self.put(indent, f"def {g}(p, q=0.5, *r, s=1):")
        self.put(indent + 1, f"p = p * q + {self.number()}")
        self.put(indent + 1, "return (p, p * s, *r)[r and -1 or 0]")
        call = self.random.choice(["({0})", "({0}, s={1})", "({0}, {1}, {0})", "(*[{0}, {1}])", "(**{{'p': {0}, 'q': {1}}})"])
        self.put(indent, f"{v} = {g}{call.format(self.expression(1), w)}")

    def do_generator(self, indent, depth):
        v = self.name()
        how = self.random.choice(
            [
                "sum(count({n}, {e}))",
                "[*count({n}, {e})][-1]",
                "max(count({n}, {e}))",
                "sum(a * b for a, b in zip(count({n}, {e}), count(3, {v})))",
            ]
        )
        e = self.expression(2).replace("w :=", "w * ")  # no walrus is allowed where a comprehension begins
        self.put(indent, f"{v} = {how.format(n=self.random.randint(1, 4), e=e, v=self.name())}")

    def do_send(self, indent, depth):
        v, g = self.name(), self.new()
        self.put(indent, f"{g} = count(4, {self.expression(2)})")
        self.put(indent, f"next({g})")
        self.put(indent, f"{v} = {g}.send({self.expression(1)}) + next({g})")
        self.put(indent, f"{g}.close()")

    def do_object(self, indent, depth):
        v, k = self.name(), self.new()
        self.put(indent, f"{k} = Keep({self.expression(2)})")
        for _ in range(self.random.randint(1, 3)):
            line = self.random.choice(
                ["{k}.v += {e}", "{v} = {k}.add({e})", "{v} = {k}.half * {e}", "{v} = ({k} + {e}).v", "{k}.v = {k}.half"]
            )
            self.put(indent, line.format(k=k, v=v, e=self.expression(1)))
        self.put(indent, f"{v} = {k}.v")

    def do_early(self, indent, depth):
        self.put(indent, f"if {self.name()} > {self.random.choice(['3.0', '5', '1.5'])}:")
        self.put(indent + 1, f"return {self.expression(2)}")

    def do_break(self, indent, depth):
        self.put(indent, f"if {self.condition()}:")
        self.put(indent + 1, "break")

    def do_continue(self, indent, depth):
        self.put(indent, f"if {self.condition()}:")
        self.put(indent + 1, "continue")

    def source(self):
        self.put(0, "def f(x, y, z):")
        self.put(1, "w = 0.5")
        self.block(1, 3, size=self.random.randint(4, 9))
        self.put(1, f"return ({' + '.join(self.names)}) * 1.0")
        return PRELUDE + "\n".join(self.lines) + "\n"


def compiled(source, math_module):
    space = {"math": math_module}
    exec(compile(source, "<random program>", "exec"), space)
    return space["f"]


def compare(seed, kinds=(float, float, float)):
    """Whether the program of `seed` was worth comparing; asserts that it came out right."""
    source = Program(seed).source()
    point = [random.Random(seed + k).uniform(-1.5, 1.5) for k in range(3)]
    arguments = [kind(v) for kind, v in zip(kinds, point, strict=True)]
    f, oracle = compiled(source, math), compiled(source, PAIR_MATH)
    try:
        plain = f(*arguments)
    except Exception as error:
        with pytest.raises(type(error)) as ours:
            plaingrad.grad(f, (0, 1, 2))(*arguments)
        assert str(ours.value) == str(error), source
        return False
    value, slopes = plaingrad.value_and_grad(f, (0, 1, 2))(*arguments)
    assert type(value) is type(plain), source
    assert value == plain or (value != value and plain != plain), f"{value} is not {plain}\n{source}"
    compared = False
    for k in range(3):
        Pair.largest = 0.0
        expected = pair(oracle(*[Pair(float(v), float(i == k)) for i, v in enumerate(arguments)]))
        if not Pair.largest < 1e6:
            continue
        compared = True
        assert math.isclose(expected.v, plain, rel_tol=1e-9, abs_tol=1e-9), source  # the branches were the same
        close = abs(slopes[k] - expected.d) <= 1e-9 * max(1.0, abs(expected.d)) + 1e-13 * Pair.largest
        assert close, f"d/d{'xyz'[k]}: {slopes[k]}, not {expected.d}\n{source}"
    return compared


@pytest.mark.parametrize("block", range(8))
def test_random_programs_of_floats(block):
    seeds = range(block * 40, block * 40 + count(8, 40))
    assert sum(map(compare, seeds)) >= len(seeds) // 2


@pytest.mark.parametrize("block", range(2))
def test_random_programs_with_numpy_scalars_among_the_arguments(block):
    kinds = (float, np.float64, float) if block else (np.float64, np.float64, np.float64)
    with np.errstate(all="ignore"):
        for seed in range(10_000 + block * 40, 10_040 + block * 40):
            source = Program(seed).source()
            if "/ (" in source or "math.log(" in source:  # NumPy divides by zero where Python raises
                continue
            compare(seed, kinds)
