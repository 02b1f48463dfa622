"""Programs written by a machine: control flow, containers, closures, generators and array writes in any order.

The only tests here that compare with differences; a program with a kink near its argument is left out. A seed that
fails is a program of its own: print `write_program(seed)`.
`make test` tries 110 programs; with PLAINGRAD_TEST_ALL=1 it is 170.
"""

import contextlib
import math
import random

import numpy as np
import pytest
from tests.sampling import count

import plaingrad

X = 0.83


class Pair:
    """An object with a method, a property and an operator, for the programs to use."""

    def __init__(self, p, q):
        self.p = p
        self.q = q

    def area(self):
        return self.p * self.q

    @property
    def twice(self):
        return self.p * 2.0

    def __mul__(self, k):
        return Pair(self.p * k, self.q)


@contextlib.contextmanager
def halved(v):
    yield v * 0.5


class Writer:
    """Writes one random program; `numbers`, `lists` and `functions` are the names in scope."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.count = 0
        self.numbers, self.lists, self.functions = ["x", "y"], [], []

    def name(self, prefix):
        self.count += 1
        return f"{prefix}{self.count}"

    def pick(self, *choices):
        return self.random.choice(choices)

    @contextlib.contextmanager
    def scope(self, *names):
        saved = self.numbers, self.lists, self.functions
        self.numbers, self.lists, self.functions = [*self.numbers, *names], [*self.lists], [*self.functions]
        yield
        self.numbers, self.lists, self.functions = saved

    def expression(self, depth=0):
        if depth > 3 or self.random.random() < 0.25:
            return self.pick(*self.numbers, *self.numbers, "0.5", "-0.7", "1.0", "3", "0.25")

        def e():
            return self.expression(depth + 1)

        def bound(prefix, form):
            name = self.name(prefix)
            with self.scope(name):
                return form.replace("NAME", name).replace("BODY", e()).replace("ONE", e()).replace("TWO", e())

        forms = [
            lambda: f"({e()} {self.pick('+', '-', '*')} {e()})",
            lambda: f"({e()} {self.pick('+', '-', '*')} {e()})",
            lambda: f"({e()} {self.pick('+', '-', '*')} {e()})",
            lambda: f"({e()} / (2.0 + {e()} ** 2))",
            lambda: f"math.{self.pick('sin', 'cos', 'tanh', 'atan')}({e()})",
            lambda: f"({e()} if {self.condition(depth + 1)} else {e()})",
            lambda: f"sum([{e()}, {e()}, {e()}])",
            lambda: bound("c", "sum([BODY for NAME in (y, x) if NAME > -5.0])"),
            lambda: bound("c", "sum(BODY for NAME in (x, x * y))"),
            lambda: bound("l", f"(lambda NAME, z={e()}: BODY + z)(y)"),
            lambda: f"max({e()}, {e()})",
            lambda: f"min([{e()}, {e()}], key=lambda q: q * q)",
            lambda: f"{{'a': {e()}, 'b': {e()}}}['{self.pick('a', 'b')}']",
            lambda: f"[{e()}, {e()}, {e()}]{self.pick('[0]', '[-1]', '[::2][1]', '[1:][0]')}",
            lambda: f"(({e()}) {self.pick('and', 'or')} ({e()}))",
            lambda: f"{self.pick(*self.functions, 'abs')}({e()})",
            lambda: f"{self.pick(*self.lists)}[{self.pick('0', '-1', '1')}]" if self.lists else e(),
            lambda: f"(-{e()})",
            lambda: f"(lambda *a, **k: a[0] * k['k'] + a[-1])(*[{e()}, {e()}], **{{'k': {e()}}})",
        ]
        return self.random.choice(forms)()

    def condition(self, depth=0):
        a, b, c = (self.expression(depth + 2) for _ in range(3))
        return self.pick(f"{a} < {b}", f"-4.0 < {a} <= {b} < 9.0", f"not ({a} > {b})", f"({a} < {b} and {b} > {c})")

    def block(self, depth, loop=False):
        """The lines of one block, indented below its head."""
        with self.scope():
            lines = [line for _ in range(self.random.randint(1, 4)) for line in self.statement(depth, loop)]
        return ["    " + line for line in lines]

    def statement(self, depth, loop):
        kinds = [self.assignment, self.assignment, self.augmented, self.new_list, self.unpacking, self.object, self.walrus]
        kinds += [self.match, *([self.change_list] * 2 if self.lists else [])]
        if depth < 2:
            kinds += [self.branch, self.for_loop, self.while_loop, self.handler, self.function, self.generator, self.context]
        if loop and self.random.random() < 0.2:
            return [f"if {self.condition()}: {self.pick('break', 'continue')}"]
        return self.random.choice(kinds)(depth)

    def assignment(self, depth):
        value = self.expression()
        name = self.pick(self.name("v"), *self.numbers)
        if name not in self.numbers:
            self.numbers.append(name)
        return [f"{name} = {value}"]

    def augmented(self, depth):
        return [f"{self.pick(*self.numbers)} {self.pick('+=', '-=', '*=')} {self.expression()}"]

    def new_list(self, depth):
        value = f"[{self.expression()}, {self.expression()}]"
        self.lists.append(self.name("L"))
        return [f"{self.lists[-1]} = {value}"]

    def change_list(self, depth):
        v, e = self.pick(*self.lists), self.expression
        return [
            self.pick(
                f"{v}.append({e()})",
                f"{v}[0] = {e()}",
                f"{v}[-1] *= {e()}",
                f"{v} += [{e()}]",
                f"{v}[1:] = [{e()}, {e()}]",
                f"{v}.sort()",
                f"{v}.insert(1, {e()})",
                f"{v}[0], {v}[1] = {v}[1], {v}[0]",
            )
        ]

    def unpacking(self, depth):
        e = [self.expression() for _ in range(3)]
        a, b = self.name("v"), self.name("v")
        self.numbers += [a, b]
        return [f"{a}, *rest = {', '.join(e)}", f"{b} = rest[-1] + {a}"]

    def object(self, depth):
        e = [self.expression() for _ in range(4)]
        v = self.name("v")
        self.numbers.append(v)
        return [f"o = Pair({e[0]}, {e[1]})", f"o.p += {e[2]}", f"{v} = (o * {e[3]}).area() + o.twice"]

    def walrus(self, depth):
        a, b = self.expression(), self.expression()
        v = self.name("v")
        self.numbers.append(v)
        return [f"if ({v} := {a}) > {b}: {v} = {v} * 2.0"]

    def match(self, depth):
        a, b = self.expression(), self.expression()
        v = self.name("v")
        self.numbers.append(v)
        return [
            f"match [{a}, {b}]:",
            f"    case [p, q] if p < q: {v} = p * 2.0 + q",
            f"    case [p, *q]: {v} = p - q[0]",
        ]

    def branch(self, depth):
        lines = [f"if {self.condition()}:", *self.block(depth + 1)]
        return lines + ["else:", *self.block(depth + 1)] if self.random.random() < 0.6 else lines

    def for_loop(self, depth):
        lines = [f"for {self.name('i')} in range({self.random.randint(0, 3)}):", *self.block(depth + 1, loop=True)]
        return lines + ["else:", *self.block(depth + 1)] if self.random.random() < 0.4 else lines

    def while_loop(self, depth):
        n = self.name("n")
        body = self.block(depth + 1, loop=True)
        return [f"{n} = 0", f"while {n} < {self.random.randint(1, 3)}:", f"    {n} += 1", *body]

    def handler(self, depth):
        lines = ["try:", *self.block(depth + 1)]
        if self.random.random() < 0.6:
            lines.append(f"    if {self.condition()}: raise ValueError({self.expression()})")
        lines += ["except ValueError as error:", *self.block(depth + 1), f"    {self.pick(*self.numbers)} += error.args[0]"]
        if self.random.random() < 0.5:
            lines += ["finally:", *self.block(depth + 1)]
        return lines

    def function(self, depth):
        f = self.name("f")
        with self.scope("a", "b"):
            lines = [f"def {f}(a, b=0.5):", f"    c = {self.expression()}", f"    return c * a + {self.expression()}"]
        self.functions.append(f)
        return lines

    def generator(self, depth):
        g, v = self.name("g"), self.name("v")
        start, step = self.expression(), self.expression()
        self.numbers.append(v)
        return [
            f"def {g}(n=3):",
            f"    q = {start}",
            "    for _ in range(n):",
            f"        q = q * 0.5 + {step}",
            "        yield q",
            f"{v} = sum({g}())",
        ]

    def context(self, depth):
        entered = self.expression()
        v = self.name("v")
        self.numbers.append(v)
        return [f"with halved({entered}) as {v}:", *self.block(depth + 1)]


def write_program(seed):
    """The source of program number `seed`."""
    writer = Writer(seed)
    lines = [line for _ in range(8) for line in writer.statement(0, False)]
    total = " + ".join([f"0.1 * {v}" for v in writer.numbers] + [f"sum({v})" for v in writer.lists])
    return "\n    ".join(["def f(x, y=0.4):", *lines, f"return float({total})\n"])


def write_array_program(seed):
    """A random program of four small arrays and a number, which write into one another through views and masks."""
    rnd = random.Random(seed)
    lines = ["def f(x):", "A = [np.array([x, 1.0 + 0.1 * k, 0.7]) * (1 + 0.1 * k) for k in range(4)]", "s = x"]
    forms = """
        A[I] += A[J]
        A[I] -= 0.3 * A[J]
        A[I] *= A[J]
        A[I] /= 1.5 + A[J] * A[J]
        A[I][:] = A[J] * C
        A[I][K] = A[J][I % 3] * s
        A[I][1:] = A[J][:-1]
        A[I] = A[J][::-1]
        A[I][::-1] = A[J]
        A[I][np.array([True, False, True])] = s * C
        A[I][[0, K, 0]] = A[J][[1, 2, 0]]
        s = s * C + A[I][K]
        A[I] = A[J] * A[K]
        A[I] = A[J][:]
        A[I], A[J] = A[J], A[I]
        A[I].fill(s * C)
        A[I] = np.sin(A[J])
        for q in range(3): A[I][q] += A[J][q] * C
        A[I] **= 2; A[I] /= 1 + A[I] * A[I]
        A[I] += A[I][::-1]
        s = s * 0.5 + float(A[I] @ A[J]) * 0.1
        A[I][K] += A[I].sum() * 0.1
        A[I] = A[J].copy()
        np.multiply(A[J], C, out=A[I])
        np.negative(A[I], out=A[I])
        A[I].reshape(3, 1)[K] *= A[J][K]
        A[I][K:] = np.cumsum(A[J])[K:]
    """.strip().split("\n")
    for _ in range(rnd.randint(4, 14)):
        i, j, k, c = rnd.randrange(4), rnd.randrange(4), rnd.randrange(3), round(rnd.random(), 3)
        line = rnd.choice(forms).strip()
        for letter, value in zip("IJKC", (i, j, k, c)):
            line = line.replace(f"[{letter}", f"[{value}").replace(f" {letter} ", f" {value} ")
            line = line.replace(f" {letter}", f" {value}") if line.endswith(f" {letter}") else line
            line = line.replace(f" {letter})", f" {value})").replace(f" {letter},", f" {value},")
        lines.append(line)
    lines.append("return float(sum((q + 1) * (v * np.arange(1.0, 4.0)).sum() for q, v in enumerate(A)) + s)\n")
    return "\n    ".join(lines)


def compiled(source):
    scope = {"math": math, "np": np, "Pair": Pair, "halved": halved}
    exec(compile(source, "<random program>", "exec"), scope)
    return scope["f"]


def differences(f, x, h=1e-3):
    """f'(x) to about ten digits, or None near a kink."""
    with np.errstate(all="ignore"):
        d = [(f(x + h / 2**k) - f(x - h / 2**k)) / (2 * h / 2**k) for k in range(3)]
    a, b = (4 * d[1] - d[0]) / 3, (4 * d[2] - d[1]) / 3
    best = (16 * b - a) / 15
    return best if math.isfinite(best) and abs(a - best) <= 1e-6 * max(1.0, abs(best)) < 1e2 else None


def compare(source):
    f = compiled(source)
    try:
        expected = differences(f, X)
        value = f(X)
    except Exception:
        pytest.skip("the program itself fails")
    if expected is None:
        pytest.skip("a kink or a pole is near")
    got, pullback = plaingrad.vjp(f, X)
    (first,) = pullback(1.0)
    (second,) = pullback(1.0)
    assert got == value, source
    assert abs(first - expected) <= 1e-5 * max(1.0, abs(expected), abs(value)), source
    assert first == second, source
    return f


@pytest.mark.parametrize("seed", range(count(30, 70)))
def test_a_random_program_has_the_gradient_that_differences_show(seed):
    compare(write_program(seed))


@pytest.mark.parametrize("seed", range(70))
def test_a_random_program_of_array_writes_has_the_gradient_that_differences_show(seed):
    compare(write_array_program(seed))


@pytest.mark.parametrize("write", [write_program, write_array_program])
@pytest.mark.parametrize("seed", range(500, 500 + count(5, 15)))
def test_a_random_program_has_the_second_derivative_that_differences_show(write, seed):
    f = compare(write(seed))
    expected = differences(plaingrad.grad(f), X)
    if expected is None:
        pytest.skip("a kink or a pole is near")
    second = plaingrad.grad(plaingrad.grad(f))(X)
    assert abs(second - expected) <= 1e-4 * max(1.0, abs(expected)), write(seed)
