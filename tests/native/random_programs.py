"""Random numeric programs in the language that Numba compiles: what a seed stands for.

`program(seed)` gives the text of a function `f(x, y, a, b, M, U, n)` of two numbers, two vectors of 4, a 4x4 matrix, a
6x5 grid and an integer; `function_of(seed)` the function with arguments. Its statements are those that a transform can get
wrong: nested loops with every way out, branches, writes through views, in-place operators, swapped buffers, tuples, calls,
integers, and whole idioms (stencils, sums, recurrences, Newton steps, random walks) whose holes are filled at random.
"""

import linecache
import math
import random
import re
from collections import namedtuple

import numpy as np

NUMBERS, VECTORS, MATRICES, GRIDS, WHOLE = "numbers", "vectors", "matrices", "grids", "whole"
Pair = namedtuple("Pair", "left right")


def h1(x, y):
    if x > y:
        return math.sin(x) * y
    return x * 0.5 - y


def h2(v, x, i):
    s = 0.0
    for k in range(i % 4):
        s += v[k] * x
        if s > 2.0:
            break
    return s


def h3(x, y):
    return x * y * 0.3, math.cos(x) + y


def h4(v, x, i):
    v[i] = v[i - 1] * 0.5 + x
    v[0] *= 0.9


def h5(v, x):
    for k in range(v.shape[0]):
        if v[k] > x:
            return v[k] * x + k
        x = x * 0.7 + v[k - 1]
    return math.sin(x)


def h6(x, y):
    while x < y:
        x = x + 0.5 + 0.1 * math.sin(y)
    return x * y


HELPERS = {f.__name__: f for f in (h1, h2, h3, h4, h5, h6)}


HOLE = re.compile(r"{(\w+)}")
HOLES = {
    "n": lambda w, names, depth: w.number(names, depth + 1),
    "array": lambda w, names, depth: w.vector(names, depth + 2),
    "atom": lambda w, names, depth: w.atom(names),
    "test": lambda w, names, depth: w.condition(names, depth + 1),
    "at": lambda w, names, depth: w.index(names),
    "at6": lambda w, names, depth: w.index(names, 6),
    "at5": lambda w, names, depth: w.index(names, 5),
    "x": lambda w, names, depth: w.pick(names[NUMBERS]),
    "v": lambda w, names, depth: w.pick(names[VECTORS]),
    "m": lambda w, names, depth: w.pick(names[MATRICES]),
    "u": lambda w, names, depth: w.pick(names[GRIDS]),
    "i": lambda w, names, depth: w.pick(names[WHOLE]),
    "cut": lambda w, names, depth: str(w.random.randint(0, 4)),
}
ONE_NUMBER = """
    ({n} + {atom})
    ({n} - {atom})
    {n} * {atom}
    math.sin({n}) * {n}
    math.cos({n}) + {n}
    math.exp(-abs({n}))
    {n} / (1.5 + math.cos({n}))
    math.tanh({n}) ** 2
    math.tanh({n}) ** 3
    math.tanh({n}) ** 1
    math.tanh({n}) ** 0
    (2.0 + math.sin({n})) ** math.tanh({n})
    (1.0 + abs({x})) ** -1
    max({n}, {n})
    min({n}, {n})
    max({n}, 0.0)
    max({n}, {x}, {n})
    math.atan2({n}, 2.0 + math.sin({n}))
    math.tanh({n}) % 0.7
    h1({n}, {n})
    h2({v}, {n}, {i})
    h3({n}, {n})[0]
    h3({n}, {n})[1]
    h5({v}, {n})
    h6(math.tanh({n}), 1.0 + math.sin({n}))
    np.sum({array})
    np.dot({v}, {v})
    {v} @ {v}
    np.max(np.tanh({v}))
    np.mean({v})
    np.prod(np.tanh({v}))
    ({n} if {test} else {n})
    float({i})
    -{n}
    math.sqrt(1.0 + {x} ** 2)
    abs({n})
    math.log1p(abs({n}))
    math.hypot({n}, 1.0)
    abs(complex({n}, 1.0 + {x} ** 2))
    (complex({n}, {n}) * complex({n}, 0.3)).real
    (complex({n}, {x}) ** 2).imag
    float(np.floor({n})) * {n}
""".strip().split("\n")
ONE_VECTOR = """
    {v} * {v}
    np.sin({v}) * {n}
    {v} - {n} * {v}
    np.tanh({v})
    {v}[::-1] + {v}
    {m} @ {v}
    {v} @ {m}
    {v}.copy()
    np.where({v} > {v}, {v}, 0.5 * {v})
    np.maximum({v}, {n})
    {v} / (1.5 + np.cos({v}))
    np.sum({m}, axis=0)
    np.sum({m}, axis=1)
    {m}[{at}] * {v}
    np.exp(-np.abs({v}))
    np.concatenate(({v}[:{cut}], {v}))[:4]
    {v}[np.array([2, 0, 2, 1])]
    {u}[1:5, {at5}] - {v}
""".strip().split("\n")


class Writer:
    """Writes one program; `names` maps a kind to the names in scope that are certainly assigned."""

    def __init__(self, seed, size):
        self.random = random.Random(seed)
        self.size = size
        self.lines = []
        self.count = 0

    # -- choices ---------------------------------------------------------------------------------------------------

    def pick(self, names):
        return self.random.choice(sorted(names))

    def one_of(self, *texts):
        return self.random.choice(texts)

    def chance(self, probability):
        return self.random.random() < probability

    def fresh(self, prefix):
        self.count += 1
        return f"{prefix}{self.count}"

    def emit(self, depth, text):
        self.lines.append("    " * depth + text)

    # -- expressions -----------------------------------------------------------------------------------------------

    def index(self, names, size=4):
        """An index into an axis of `size`, negative ones too."""
        if self.chance(0.35):
            return str(self.random.randint(-size, size - 1))
        i = self.pick(names[WHOLE])
        return self.one_of(
            f"{i} % {size}",
            f"({i} + {self.random.randint(1, 3)}) % {size} - {self.random.randint(0, size)}",
            f"({i} * {self.random.randint(2, 3)} // 2) % {size}",
            f"-1 - {i} % {size}",
        )

    def whole(self, names):
        i = self.pick(names[WHOLE])
        number, vector = self.pick(names[NUMBERS]), self.pick(names[VECTORS])
        return self.one_of(
            f"{i} + 1", f"{i} % 3", f"-{i}", f"{i} // 2", f"({i} * 2) % 5", "2", f"{i} & 3", f"len({vector})",
            f"int(math.tanh({number}) * 3) % 4", f"{vector}.shape[0] - 2", f"int({number} > 0.3)", f"{i} ^ 1",
            f"min({i}, 3)", f"max({i}, -2)", f"np.argmax({vector})", f"abs({i}) % 4",
        )  # fmt: skip

    def atom(self, names):
        where = self.random.random()
        if where < 0.6:
            return self.pick(names[NUMBERS])
        if where < 0.75:
            return repr(round(self.random.uniform(-2, 2), 2))
        if where < 0.85:
            return self.pick(names[WHOLE])
        return f"{self.pick(names[VECTORS])}[{self.index(names)}]"

    def number(self, names, depth=0):
        """A number; every function is bounded or nearly, so that long programs stay finite."""
        where = self.random.random()
        if depth > 2 or where < 0.25:
            return self.atom(names)
        if where < 0.36:
            return self.filled("{v}[{at}]", names, depth)
        if where < 0.43:
            return self.filled(
                self.one_of("{m}[{at}, {at}]", "{m}[{at}, {at}]", "{u}[{at6}, {at5}]"), names, depth
            )
        return self.filled(self.one_of(*self.number_templates(names)).strip(), names, depth)

    def number_templates(self, names):
        """The templates of expressions for a number."""
        return ONE_NUMBER

    def vector(self, names, depth=0):
        """An array expression of 4 elements."""
        return self.filled(self.one_of(*self.vector_templates(names)).strip(), names, depth)

    def vector_templates(self, names):
        """The templates of expressions for an array of 4 elements."""
        return ONE_VECTOR

    def filled(self, template, names, depth):
        """A template with every hole filled at random: see `HOLES`."""
        return HOLE.sub(lambda hole: HOLES[hole[1]](self, names, depth), template)

    def condition(self, names, depth=0):
        where = self.random.random()
        if where < 0.35:
            return f"{self.pick(names[WHOLE])} % {self.random.randint(2, 3)} == {self.random.randint(0, 1)}"
        if where < 0.8:
            sign = self.one_of("<", ">", "<=", ">=")
            return f"{self.number(names, depth + 1)} {sign} {self.number(names, 2)}"
        if where < 0.9 and depth < 2:
            return f"{self.condition(names, 2)} {self.one_of('and', 'or')} {self.condition(names, 2)}"
        return f"not {self.pick(names[NUMBERS])} > 0.3"

    # -- statements ------------------------------------------------------------------------------------------------

    def block(self, depth, names, length, in_loop):
        """Statements; whether they surely end in a jump."""
        start = len(self.lines)
        for _ in range(length):
            if self.statement(depth, names, in_loop):
                return True
        if len(self.lines) == start:
            self.emit(depth, "x = x * 0.9")
        return False

    def statement(self, depth, names, in_loop):
        weights, makers = zip(*self.statements(depth, names, in_loop))
        return self.random.choices(makers, weights)[0](depth, names, in_loop) is True

    def statements(self, depth, names, in_loop):
        """(weight, what writes it) of every kind of statement that may stand here."""
        kinds = [
            (17, self.assignment), (6, self.augmented), (14, self.element), (4, self.new_vector), (5, self.view),
            (4, self.slice_write), (3, self.in_place), (3, self.row_write), (3, self.swap_numbers),
            (4, self.swap_buffers), (3, self.pair), (3, self.writing_call), (4, self.new_whole), (2, self.fresh_memory),
        ]  # fmt: skip
        if depth <= 4:
            kinds += [(15, self.branch)]
        if depth <= 3:
            kinds += [(11, self.counted), (6, self.conditional), (10, self.idiom)]
        if in_loop:
            kinds += [(5, self.leave)]
        if depth > 1:
            kinds += [(1, self.finish)]
        return kinds

    def assignment(self, depth, names, in_loop):
        if self.chance(0.4):
            v = self.fresh("v")
            self.emit(depth, f"{v} = 1.0 * {self.number(names)}")
            names[NUMBERS].add(v)
        else:
            self.emit(depth, f"{self.pick(names[NUMBERS])} = 1.0 * {self.number(names)}")

    def augmented(self, depth, names, in_loop):
        sign = self.one_of("+=", "-=", "*=")
        self.emit(depth, f"{self.pick(names[NUMBERS])} {sign} math.sin({self.number(names)})")

    def element(self, depth, names, in_loop):
        sign = self.one_of("=", "=", "+=", "-=", "*=")
        value = self.number(names) if sign != "*=" else f"math.cos({self.number(names)})"
        if self.chance(0.7):
            place = f"{self.pick(names[VECTORS])}[{self.index(names)}]"
        elif self.chance(0.7):
            place = f"{self.pick(names[MATRICES])}[{self.index(names)}, {self.index(names)}]"
        else:
            place = f"{self.pick(names[GRIDS])}[{self.index(names, 6)}, {self.index(names, 5)}]"
        self.emit(depth, f"{place} {sign} {value}")

    def new_vector(self, depth, names, in_loop):
        v = self.fresh("a")
        self.emit(depth, f"{v} = {self.vector(names)}")
        names[VECTORS].add(v)

    def fresh_memory(self, depth, names, in_loop):
        v, k, base = self.fresh("z"), self.fresh("k"), self.pick(names[VECTORS])
        maker = self.one_of(
            "np.zeros(4)", "np.empty(4)", f"np.zeros_like({base})", f"np.empty_like({base})", "np.ones(4)"
        )
        self.emit(depth, f"{v} = {maker}")
        if "empty" in maker:
            inner = self.inside(names)
            inner[WHOLE].add(k)
            self.emit(depth, f"for {k} in range(4):")
            self.emit(depth + 1, f"{v}[{k}] = {self.number(inner)}")
        names[VECTORS].add(v)

    def view(self, depth, names, in_loop):
        v, a, m, u = (
            self.fresh("w"),
            self.pick(names[VECTORS]),
            self.pick(names[MATRICES]),
            self.pick(names[GRIDS]),
        )
        self.emit(depth, f"{v} = " + self.one_of(
            f"{a}[::-1]", f"{m}[{self.index(names)}]", f"{m}[:, {self.index(names)}]", f"{m}.T[{self.index(names)}]",
            f"{m}[::-1, {self.index(names)}][::-1]", f"{m}[1:3, ::2].copy().reshape(4)", a, f"{a}[:]",
            f"{u}[1:5, {self.index(names, 5)}]", f"{u}[{self.index(names, 6)}, 4:0:-1]", f"{u}.T[{self.index(names, 5)}][::-1][:4]",
        ))  # fmt: skip
        names[VECTORS].add(v)

    def slice_write(self, depth, names, in_loop):
        a, source = self.pick(names[VECTORS]), self.pick(names[VECTORS])
        where = self.one_of("1:3", ":2", "::2", "::-2", "-2:", "3:1:-1")
        value = self.one_of(
            f"{source}[1:3] * {self.pick(names[NUMBERS])}",
            self.number(names, 1),
            f"{source}[2:]",
            f"{source}[::-2]",
        )
        self.emit(depth, f"{a}[{where}] {self.one_of('=', '=', '+=', '-=')} {value}")

    def in_place(self, depth, names, in_loop):
        value = self.one_of(
            self.pick(names[NUMBERS]),
            self.pick(names[VECTORS]),
            "0.5",
            f"np.cos({self.pick(names[VECTORS])})",
        )
        self.emit(depth, f"{self.pick(names[VECTORS])} {self.one_of('*=', '+=', '-=')} {value}")

    def row_write(self, depth, names, in_loop):
        m = self.pick(names[MATRICES])
        place = self.one_of(f"{m}[{self.index(names)}]", f"{m}[:, {self.index(names)}]")
        self.emit(
            depth,
            f"{place} {self.one_of('=', '=', '+=')} {self.one_of(self.pick(names[VECTORS]), self.vector(names))}",
        )

    def swap_numbers(self, depth, names, in_loop):
        one, two = self.pick(names[NUMBERS]), self.pick(names[NUMBERS])
        if one != two:
            self.emit(depth, f"{one}, {two} = {self.one_of(two, f'1.0 * {self.number(names)}')}, 1.0 * {one}")

    def swap_buffers(self, depth, names, in_loop):
        if self.chance(0.25):
            self.emit(depth, "U, V = V, U")
            return
        own = [a for a in sorted(names[VECTORS]) if a.startswith("s")]
        one, two = self.random.sample(own, 2)
        self.emit(
            depth,
            self.one_of(
                f"{one}, {two} = {two}, {one}", f"{one} = {two}", f"{one} = {two} * {self.number(names, 2)}"
            ),
        )

    def pair(self, depth, names, in_loop):
        p, q = self.fresh("p"), self.fresh("q")
        if self.chance(0.5):
            self.emit(depth, f"{p}, {q} = h3({self.number(names)}, {self.pick(names[NUMBERS])})")
        else:
            t = self.fresh("t")
            kind = self.one_of("", "Pair")
            self.emit(depth, f"{t} = {kind}(1.0 * {self.number(names)}, 1.0 * {self.number(names)})")
            self.emit(depth, f"{p}, {q} = {t}[1], {t}[0]" if not kind else f"{p}, {q} = {t}.right, {t}.left")
        names[NUMBERS] |= {p, q}

    def writing_call(self, depth, names, in_loop):
        self.emit(depth, f"h4({self.pick(names[VECTORS])}, {self.number(names)}, {self.index(names)})")

    def new_whole(self, depth, names, in_loop):
        mine = [i for i in sorted(names[WHOLE]) if i.startswith("i")]
        i = self.random.choice(mine) if mine and self.chance(0.5) else self.fresh("i")
        self.emit(depth, f"{i} = {self.whole(names)}")
        names[WHOLE].add(i)

    def leave(self, depth, names, in_loop):
        if self.chance(0.75):
            self.emit(depth, f"if {self.condition(names)}:")
            self.emit(depth + 1, self.one_of("break", "continue"))
            return False
        self.emit(depth, self.one_of("break", "continue"))
        return True

    def finish(self, depth, names, in_loop):
        if self.chance(0.7):
            self.emit(depth, f"if {self.condition(names)}:")
            depth += 1
        self.emit(depth, f"return {self.number(names)} * 1.0")
        return not self.lines[-2].strip().startswith("if") or depth == 1

    def inside(self, names):
        return {kind: set(found) for kind, found in names.items()}

    def branch(self, depth, names, in_loop):
        self.emit(depth, f"if {self.condition(names)}:")
        one, two = self.inside(names), self.inside(names)
        leaves = self.block(depth + 1, one, self.random.randint(1, 3), in_loop), False
        if self.chance(0.5):
            self.emit(depth, "else:")
            leaves = leaves[0], self.block(depth + 1, two, self.random.randint(1, 3), in_loop)
        if all(leaves):
            return True
        for kind in names:
            names[kind] = two[kind] if leaves[0] else one[kind] if leaves[1] else one[kind] & two[kind]
        return False

    def counted(self, depth, names, in_loop):
        i, inner = self.fresh("k"), self.inside(names)
        bounds = self.one_of(
            "n", "3", "n - 1", "1, 4", "3, -1, -1", "0, 6, 2", "n, 0, -1", "0", "len(a)", "2, n + 2"
        )
        if self.chance(0.3):
            bounds = self.pick(names[WHOLE]) + " % 4"
        if self.chance(0.12):
            element = self.fresh("e")
            self.emit(depth, f"for {i}, {element} in enumerate({self.pick(names[VECTORS])}):")
            inner[NUMBERS].add(element)
        else:
            self.emit(depth, f"for {i} in range({bounds}):")
        inner[WHOLE].add(i)
        self.block(depth + 1, inner, self.random.randint(1, 5), True)
        if self.chance(0.15):
            self.emit(depth, "else:")
            self.block(depth + 1, self.inside(names), 1, in_loop)

    def conditional(self, depth, names, in_loop):
        c, inner = self.fresh("c"), self.inside(names)
        self.emit(depth, f"{c} = {self.one_of('0', '1', 'n')}")
        bound = self.random.randint(1, 5)
        test = self.one_of(f"{c} < {bound} and {self.condition(names)}", f"{c} < {bound}", "True")
        self.emit(depth, f"while {test}:")
        inner[WHOLE].add(c)
        self.emit(depth + 1, f"{c} += 1")
        if test == "True":
            self.emit(depth + 1, f"if {c} > {bound} or {self.condition(names)}:")
            self.emit(depth + 2, "break")
        self.block(depth + 1, inner, self.random.randint(1, 4), True)
        if test != "True" and self.chance(0.1):
            self.emit(depth, "else:")
            self.block(depth + 1, self.inside(names), 1, in_loop)
        names[WHOLE].add(c)

    # -- idioms ----------------------------------------------------------------------------------------------------

    def idiom(self, depth, names, in_loop):
        self.random.choice((self.stencil, self.line_stencil, self.sums, self.recurrence, self.newton, self.scan, self.product,
                            self.elementwise, self.walk, self.log_sum_exp))(depth, names)  # fmt: skip

    def stencil(self, depth, names):
        """Steps on the grid, from U to V and back; `V` has the shape of `U`."""
        k, i, j = self.fresh("k"), self.fresh("k"), self.fresh("k")
        low, high = self.one_of(("1", "1"), ("1", "2"), ("0", "0"), ("2", "1"), ("0", "1"))
        self.emit(depth, f"for {k} in range({self.one_of('n', '2', 'n % 3')}):")
        inner = self.inside(names)
        inner[WHOLE] |= {k, i, j}
        make = self.one_of("V = U.copy()", "V = np.zeros_like(U)", "V[:, :] = U", "", "V = np.zeros(U.shape)")
        if make:
            self.emit(depth + 1, make)
        self.emit(depth + 1, f"for {i} in range({low}, U.shape[0] - {high}):")
        self.emit(depth + 2, f"for {j} in range({low}, U.shape[1] - {high}):")
        reach = 0 if high == "0" else 1

        def near():
            down, right = self.random.randint(-1, reach), self.random.randint(-1, reach)
            return f"U[{i}{down:+d}, {j}{right:+d}]" if (down, right) != (0, 0) else f"U[{i}, {j}]"

        terms = [
            f"{self.one_of('0.1', '0.2', self.pick(names[NUMBERS]), 'M[0, 1]')} * {near()}"
            for _ in range(self.random.randint(1, 5))
        ]
        if self.chance(0.4):
            terms.append(f"{near()} * (1.0 - {near()})")
        if self.chance(0.3):
            terms.append(f"math.sin({near()}) * {self.atom(inner)}")
        value = " + ".join(terms)
        if self.chance(0.15):
            self.emit(depth + 3, f"if {near()} > {near()}:")
            depth += 1
        self.emit(depth + 3, f"V[{i}, {j}] {self.one_of('=', '=', '=', '+=')} math.tanh({value})")
        if self.lines[-2].strip().startswith("if"):
            depth -= 1
        self.emit(depth + 1, self.one_of("U = V", "U, V = V, U", "U[:, :] = V", "U = V.copy()"))

    def line_stencil(self, depth, names):
        a, b, k, i = self.pick(names[VECTORS]), "s1", self.fresh("k"), self.fresh("k")
        self.emit(depth, f"for {k} in range({self.one_of('n', '2')}):")
        self.emit(
            depth + 1,
            self.one_of(
                "s2 = s1.copy()",
                "s2 = np.zeros(4)",
                f"s2 = {a} * 0.5",
                "s2 = np.empty_like(s1)\n" + "    " * (depth + 1) + "s2[:] = 0.3",
            ),
        )
        self.emit(depth + 1, f"for {i} in range({self.one_of('1, 3', '0, 4', '1, 4', '2, -1, -1')}):")
        self.emit(
            depth + 2,
            f"s2[{i}] = math.sin({b}[{i} - 1]) * {self.pick(names[NUMBERS])} + {self.one_of(f'{b}[{i}]', f'{a}[({i} + 1) % 4]', f's2[{i} - 1]')}",
        )
        self.emit(depth + 1, self.one_of("s1 = s2", "s1, s2 = s2, s1", "s1[:] = s2"))

    def sums(self, depth, names):
        """A loop that only adds up, with an inner product inside now and then."""
        s, t, i, j = self.fresh("v"), self.fresh("v"), self.fresh("k"), self.fresh("k")
        inner = self.inside(names)
        inner[WHOLE].add(i)
        self.emit(depth, f"{s} = {self.one_of('0.0', '1.0 * x')}")
        self.emit(depth, f"{t} = 0.0")
        self.emit(depth, f"for {i} in range({self.one_of('4', 'n', 'len(a)', '1, 4')}):")
        if self.chance(0.5):
            z = self.fresh("v")
            self.emit(depth + 1, f"{z} = {self.one_of('0.0', self.number(inner, 2) + ' * 1.0')}")
            self.emit(depth + 1, f"for {j} in range({self.one_of('4', 'n', i)}):")
            self.emit(
                depth + 2,
                f"{z} += {self.pick(names[MATRICES])}[{i} % 4, {j} % 4] * {self.pick(names[VECTORS])}[{j} % 4]",
            )
            inner[NUMBERS].add(z)
        if self.chance(0.3):
            self.emit(depth + 1, f"if {self.condition(inner)}:")
            self.emit(depth + 2, self.one_of("continue", f"{s} -= {self.number(inner, 1)}"))
        self.emit(depth + 1, f"{s} {self.one_of('+=', '-=')} {self.number(inner)}")
        if self.chance(0.6):
            self.emit(depth + 1, f"{t} += {self.number(inner)}")
        names[NUMBERS] |= {s, t}

    def recurrence(self, depth, names):
        """Several numbers carried, with elements of an array as constants."""
        i, a = self.fresh("k"), self.pick(names[VECTORS])
        one, two = self.pick(names[NUMBERS]), self.pick(names[NUMBERS])
        step = self.fresh("v")
        self.emit(depth, f"for {i} in range({self.one_of('n', '5', 'n + 1')}):")
        self.emit(
            depth + 1, f"{step} = {one} * {a}[0] - math.sin({two}) * {a}[{self.one_of('1', '-1', '3')}]"
        )
        self.emit(depth + 1, f"{two} = {two} * 0.9 + 0.1 * math.tanh({step} * {a}[2])")
        self.emit(
            depth + 1, f"{one} = {self.one_of(f'math.tanh({step})', f'{step} * 0.3', f'max({step}, -1.0)')}"
        )

    def newton(self, depth, names):
        t, i = self.fresh("v"), self.fresh("k")
        inner = self.inside(names)
        target = self.number(names, 1)
        self.emit(depth, f"{t} = 1.0 + abs({self.pick(names[NUMBERS])})")
        if self.chance(0.5):
            self.emit(depth, f"for {i} in range({self.one_of('n', '4')}):")
        else:
            self.emit(depth, f"{i} = 0")
            self.emit(depth, f"while abs({t} * {t} - 2.0) > 1e-3 and {i} < 6:")
            self.emit(depth + 1, f"{i} += 1")
        inner[NUMBERS].add(t)
        self.emit(
            depth + 1,
            f"{t} = {t} - ({t} * {t} - 1.5 - math.cos({target})) / (2.0 * {t} + {self.one_of('0.0', '0.1')})",
        )
        names[NUMBERS].add(t)

    def scan(self, depth, names):
        a, i = self.pick(names[VECTORS]), self.fresh("k")
        bounds, shift = self.one_of(("1, 4", "-1"), ("2, -1, -1", "+1"), ("0, 4", "-1"), ("0, 3", "+1"))
        self.emit(depth, f"for {i} in range({bounds}):")
        self.emit(
            depth + 1,
            f"{a}[{i}] {self.one_of('+=', '=', '-=')} math.sin({a}[{i} {shift}]) * {self.number(names, 2)}",
        )

    def product(self, depth, names):
        m, one, two = self.fresh("m"), self.pick(names[MATRICES]), self.pick(names[MATRICES])
        i, j, k = self.fresh("k"), self.fresh("k"), self.fresh("k")
        self.emit(depth, f"{m} = np.{self.one_of('zeros', 'ones')}((4, 4))")
        self.emit(depth, f"for {i} in range(4):")
        self.emit(depth + 1, f"for {j} in range({self.one_of('4', i, f'{i} + 1')}):")
        if self.chance(0.5):
            self.emit(depth + 2, f"for {k} in range({self.one_of('4', j)}):")
            self.emit(depth + 3, f"{m}[{i}, {j}] += {one}[{i}, {k}] * {two}[{k}, {j}]")
        else:
            self.emit(
                depth + 2,
                f"{m}[{i}, {j}] = math.tanh({one}[{i}, {j}] * {two}[{j}, {i}] + {self.pick(names[NUMBERS])})",
            )
        names[MATRICES].add(m)

    def elementwise(self, depth, names):
        a, b, c, i = self.pick(names[VECTORS]), self.pick(names[VECTORS]), self.fresh("a"), self.fresh("k")
        self.emit(depth, f"{c} = np.{self.one_of('zeros(4)', f'empty_like({a})', 'empty(4)')}")
        self.emit(depth, f"for {i} in range({self.one_of('4', f'{a}.size', f'{a}.shape[0]', f'len({b})')}):")
        self.emit(
            depth + 1,
            f"{c}[{i}] = math.exp(-{a}[{i}] * {a}[{i}]) * {self.pick(names[NUMBERS])} + {b}[{self.one_of(i, f'3 - {i}', f'-1 - {i}')}]",
        )
        names[VECTORS].add(c)

    def walk(self, depth, names):
        s, t, i = self.fresh("v"), self.fresh("v"), self.fresh("k")
        self.emit(depth, f"{s}, {t} = 1.0 + 0.1 * x, 0.0")
        self.emit(depth, f"for {i} in range({self.one_of('n', '4')}):")
        self.emit(
            depth + 1,
            f"{s} *= math.exp(0.1 * {self.pick(names[VECTORS])}[{i} % 4] - 0.05 * {self.pick(names[NUMBERS])} ** 2 / (1.0 + {self.pick(names[NUMBERS])} ** 2))",
        )
        self.emit(depth + 1, f"{t} += {s}")
        self.emit(depth, f"{t} = max({t} - {self.number(names, 2)}, 0.0)")
        names[NUMBERS] |= {s, t}

    def log_sum_exp(self, depth, names):
        m, s, i, a = self.fresh("v"), self.fresh("v"), self.fresh("k"), self.pick(names[VECTORS])
        self.emit(depth, f"{m} = {a}[0]")
        self.emit(depth, f"for {i} in range(1, 4):")
        self.emit(
            depth + 1,
            self.one_of(
                f"{m} = max({m}, {a}[{i}])", f"if {a}[{i}] > {m}:\n{'    ' * (depth + 2)}{m} = {a}[{i}]"
            ),
        )
        self.emit(depth, f"{s} = 0.0")
        self.emit(depth, f"for {i} in range(4):")
        self.emit(depth + 1, f"{s} += math.exp({a}[{i}] - {m})")
        self.emit(depth, f"{s} = math.log({s}) + {m}")
        names[NUMBERS] |= {m, s}

    # -- the whole -------------------------------------------------------------------------------------------------

    def text(self):
        names = {
            NUMBERS: {"x", "y"},
            VECTORS: {"a", "b", "s1", "s2"},
            MATRICES: {"M"},
            GRIDS: {"U", "V"},
            WHOLE: {"n"},
        }
        self.emit(0, "def f(x, y, a, b, M, U, n):")
        self.emit(1, "s1 = a.copy()")
        self.emit(1, "s2 = b * x")
        self.emit(1, self.one_of("V = U * 0.5", "V = np.zeros_like(U)", "V = U.copy()"))
        self.begin(names)
        if not self.block(1, names, self.random.randint(2, self.size), False):
            vectors = self.random.sample(sorted(names[VECTORS]), min(3, len(names[VECTORS])))
            parts = [f"math.tanh({v})" for v in sorted(names[NUMBERS])]
            parts += [f"np.sum({v} * {v}[::-1])" for v in sorted(vectors)]
            parts += [
                f"np.sum({self.pick(names[MATRICES])}) * y",
                "np.sum(U * U)",
                "V[2, 3]",
                *self.end(names),
            ]
            self.emit(1, "return " + " + ".join(parts))
        return "\n".join(self.lines) + "\n"

    def begin(self, names):
        """Statements before the first random one."""

    def end(self, names):
        """More terms of the result."""
        return []


def program(seed, size=6):
    """The text of program `seed`, of up to `size` outermost statements."""
    return Writer(seed, size).text()


def compiled_text(text, name, helpers=HELPERS):
    """The function `f` of a program that calls `helpers`."""
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {"math": math, "np": np, "Pair": Pair, **helpers}
    exec(compile(text, name, "exec"), space)
    space["f"].__module__ = "random_program"
    return space["f"]


def arguments(seed):
    """(arguments of program `seed`, the positions that are differentiated); arrays have any layout."""
    random_numbers = np.random.default_rng(seed)

    def laid_out(values):
        where = random_numbers.integers(0, 6)
        if where == 0:
            return np.asfortranarray(values) if values.ndim == 2 else np.repeat(values, 2)[::2]
        if where == 1:
            return values[::-1]
        return values

    a, b = laid_out(random_numbers.normal(size=4)), laid_out(random_numbers.normal(size=4))
    m, u = (
        laid_out(random_numbers.normal(size=(4, 4)) * 0.5),
        laid_out(random_numbers.normal(size=(6, 5)) * 0.5),
    )
    args = (
        float(random_numbers.normal()),
        float(random_numbers.normal()),
        a,
        b,
        m,
        u,
        int(random_numbers.integers(0, 5)),
    )
    every = (0, 1, 2, 3, 4, 5)
    chosen = tuple(k for k in every if random_numbers.random() < 0.6)
    return args, chosen if chosen and random_numbers.random() < 0.5 else every


def function_of(seed, size=6):
    """(the function of program `seed`, its arguments, the positions that are differentiated)."""
    return compiled_text(program(seed, size), f"<random program {seed}>"), *arguments(seed)
