"""Random programs with more of the language than `random_programs` has; a seed stands for another program here.

Complex and float32 arrays, lists of numbers, closures, recursion, drawn numbers, masks and arrays as indices, slices with
steps, matrix products and `np.linalg`, tuples that are carried, arrays that share memory as arguments of a call, returns
out of nested loops, `assert` and `raise`.
"""

import cmath
import math

import numpy as np

from tests.native import random_programs
from tests.native.random_programs import (
    HELPERS,
    HOLES,
    MATRICES,
    NUMBERS,
    ONE_NUMBER,
    ONE_VECTOR,
    VECTORS,
    WHOLE,
    Pair,
    Writer,
)

COMPLEX, COMPLEX_VECTORS, SINGLES, LISTS, CLOSURES, DRAWS = (
    "complex",
    "complex vectors",
    "singles",
    "lists",
    "closures",
    "draws",
)


def r1(x, k):
    if k <= 0:
        return math.sin(x)
    return x * r1(x * 0.7 + 0.1, k - 1) + 0.2


def r2(v, k):
    if k <= 0:
        return v[0] * 0.5
    v[k % 4] += 0.1 * v[k - 1]
    return v[k % 4] * 0.5 + r2(v, k - 1)


def r3(v, low, high):
    if high - low == 1:
        return v[low] * v[low]
    middle = (low + high) // 2
    return r3(v, low, middle) - 0.5 * r3(v, middle, high)


def turned(p, k):
    left, right = p
    for _ in range(k):
        left, right = right * 0.5, left + math.sin(right)
    return (left, right)


def grown(pair, y):
    return Pair(pair.left * y, pair.right + math.sin(y))


def checked(x):
    if x > 40.0:
        raise ValueError("large")
    return x * 0.5


def mixed(v, w, x):
    for k in range(4):
        v[k] = v[k] * 0.5 + w[3 - k] * x


def squashed(v, x):
    v[:] = np.tanh(v) * x
    return v


def packed(x, y):
    return np.array([x, y, x * y, x - y])


def parts_of(m):
    return m.T, m[0], m[1, 2]


def scaled(factor, weights):
    def weighted(x):
        return math.sin(x) * factor + x * weights[1]

    return weighted


weighted = scaled(0.7, np.array([0.5, -0.3, 0.2]))
MORE_HELPERS = {
    f.__name__: f for f in (r1, r2, r3, turned, grown, checked, mixed, squashed, packed, parts_of, weighted)
}

HOLES.update(
    mat=lambda w, names, depth: w.matrix(names, depth + 2),
    c=lambda w, names, depth: w.pick(names[COMPLEX]),
    C=lambda w, names, depth: w.pick(names[COMPLEX_VECTORS]),
    s=lambda w, names, depth: w.pick(names[SINGLES]),
    l=lambda w, names, depth: w.pick(names[LISTS]),
    g=lambda w, names, depth: w.pick(names[CLOSURES]),
)
MORE_NUMBERS = """
    np.sum({v}[{v} > {n}])
    np.sum({m}[{at}, :{cut}])
    np.sum({v}[{i} % 4:])
    np.sum({v}[{cut}::-2] ** 2)
    np.sum({mat} * {m}.T)
    np.trace({m})
    np.var({v})
    np.std({v} + np.arange(4.0))
    np.linalg.norm({v} + 2.0)
    np.linalg.det(np.eye(4) * 3.0 + np.tanh({m}))
    np.min({m})
    np.mean({m})
    np.median({v})
    np.dot({m}, {v})[{at}]
    r1({n}, {i} % 5)
    r3({v}, 0, 4)
    weighted({n})
    checked({n})
    grown(Pair({n}, {x} * 1.0), {n}).left
    turned(({n} * 1.0, {x} * 1.0), {i} % 4)[1]
    packed({n}, {n})[{at}]
    parts_of({m})[2]
    ({n} // 0.7) * {x}
    math.tanh({n}) ** ({i} % 3)
    math.copysign({n}, {x})
    math.floor(math.tanh({n}) * 3.0) * {n}
    ({n} if {x} < {n} < 2.0 else {x})
    math.erf({n})
    math.gamma(1.5 + math.tanh({n}))
    np.fmod({n}, 0.7)
""".strip().split("\n")
MORE_VECTORS = """
    {v}[np.argsort({v})]
    np.sort({v})
    np.cumsum({v})
    np.array([{n}, {x} * 1.0, 0.5, {n}])
    np.array([math.sin(e) * {x} for e in {v}])
    np.dot({m}.T, {v})
    np.linalg.solve(np.eye(4) * 6.0 + np.tanh({m}), {v})
    np.full(4, {n} * 1.0)
    np.roll({v}, 1)
    np.append({v}[:3], {n})
    np.minimum({v}, {v}[::-1])
    {v} ** 2
    squashed({v}.copy(), {n})
    parts_of({m})[1] * {n}
    {v} % 0.7
    np.arange(4) * {n}
    np.power(np.abs({v}) + 0.5, {n})
    np.arctan2({v}, 2.0)
    np.diag({m}).copy()
    {mat}[{at}]
    {mat} @ {v}
    np.clip({v}, -0.5, 0.7)
    np.sqrt(1.0 + {v} * {v})
    np.where({m}[{at}] > {n}, {v}, {n})
""".strip().split("\n")
ONE_MATRIX = """
    {m} @ {m} * 0.3
    {m}.T + {m}
    np.tanh({m}) * {n}
    np.outer({v}, {v})
    {m} * {v}
    {m} + {v}[:, None]
    {m}[::-1] - {m}
    np.where({m} > 0.1, {m}, 0.5 * {m})
    np.eye(4) * {n} + {m}
    np.linalg.inv(np.eye(4) * 6.0 + np.tanh({m}))
    {m}.copy()
    np.dot({m}, {m}.T)
    {m}.T
    np.exp(-np.abs({m}))
""".strip().split("\n")
OF_KINDS = {  # templates of numbers and vectors that need a variable of a kind
    COMPLEX: (["abs({c} + 1.5)", "({c} * {c}).real", "{c}.imag * {n}", "({c} * complex({n}, 0.2)).imag", "abs(cmath.exp({c} * 0.1j))",
               "({c} / (3.0 + abs({c}))).real", "({c}.conjugate() * {c}).real"], ["{v} * {c}.real"]),
    COMPLEX_VECTORS: (["{C}[{at}].real", "abs({C}[{at}] + 2.0)", "np.sum(np.abs({C}) ** 2)", "np.dot({C}, {C}).imag", "np.vdot({C}, {C}).real"],
                      ["{C}.real * {n}", "{C}.imag", "np.abs({C} + 2.0)", "({C} * {C}).real", "np.conj({C}).imag + {v}"]),
    SINGLES: (["float({s}[{at}])", "float(np.sum({s} * {s}))", "np.dot({v}, {s}.astype(np.float64))"], ["{v} * {s}", "{s} + {v}[::-1]"]),
    LISTS: (["{l}[{i} % len({l})]", "{l}[-1]", "sum({l})", "{l}[0] * len({l})"], ["np.array([{l}[0], {l}[-1], {n}, 0.5])"]),
    CLOSURES: (["{g}({n})", "{g}({g}({x}))"], []),
    DRAWS: (["np.random.normal() * {n}", "np.random.random() * {x}", "np.random.uniform(0.2, 1.0)"], ["np.random.normal(0.0, 1.0, 4) * {n}"]),
}  # fmt: skip


class RichWriter(Writer):
    """Writes one program of the richer language."""

    def number_templates(self, names):
        return [
            *ONE_NUMBER,
            *MORE_NUMBERS,
            *[text for kind, (more, _) in OF_KINDS.items() if names.get(kind) for text in more * 2],
        ]

    def vector_templates(self, names):
        return [
            *ONE_VECTOR,
            *MORE_VECTORS,
            *[text for kind, (_, more) in OF_KINDS.items() if names.get(kind) for text in more * 2],
        ]

    def matrix(self, names, depth=0):
        """An expression of a 4x4 matrix."""
        return self.filled("(" + self.one_of(*ONE_MATRIX).strip() + ")", names, depth)

    def begin(self, names):
        """The variables of the kinds that this program has."""
        for kind in OF_KINDS:
            names[kind] = set()
        for kind, maker in self.random.sample(
            [(COMPLEX, self.complex_variables), (SINGLES, self.singles), (LISTS, self.list_of_numbers),
             (CLOSURES, self.closure), (DRAWS, self.draws)],
            self.random.randint(0, 3),
        ):  # fmt: skip
            maker(names)
            assert names[kind]

    def end(self, names):
        """A term of the result for each variable of these kinds."""
        forms = {
            COMPLEX: "abs({} + 4.0)",
            COMPLEX_VECTORS: "np.sum(({} * {}).real)",
            SINGLES: "float(np.sum({} * {}))",
            LISTS: "{}[-1] * {}[0]",
        }
        return [form.format(name, name) for kind, form in forms.items() for name in sorted(names[kind])]

    def complex_variables(self, names):
        c, array = self.fresh("c"), self.fresh("C")
        self.emit(1, f"{c} = complex(x, {self.one_of('y', '0.5', 'a[0]')})")
        self.emit(
            1,
            f"{array} = {self.one_of('a * (0.3 + 1j) + b', 'np.zeros(4, np.complex128)', 'np.exp(0.5j * a)')}",
        )
        names[COMPLEX].add(c)
        names[COMPLEX_VECTORS].add(array)

    def singles(self, names):
        f = self.fresh("f")
        self.emit(
            1,
            f"{f} = {self.one_of('a.astype(np.float32)', 'np.zeros(4, np.float32)', '(a * b).astype(np.float32)')}",
        )
        names[SINGLES].add(f)

    def list_of_numbers(self, names):
        numbers = self.fresh("l")
        self.emit(1, f"{numbers} = [x, {self.one_of('y', '0.5', 'y * x')}]")
        names[LISTS].add(numbers)

    def closure(self, names):
        f, x, w = self.fresh("g"), self.fresh("x"), self.fresh("w")
        self.emit(1, f"{x} = {self.one_of('x * 0.5', 'x + y', 'a[2]')}")
        self.emit(1, f"{w} = b")
        self.emit(1, f"def {f}(t):")
        self.emit(
            2,
            self.one_of(
                f"return t * {x} + math.sin(t) * {w}[1]",
                f"return math.tanh(t * {x})",
                f"return max(t, {x}) * {w}[2]",
            ),
        )
        self.emit(1, f"y = {f}(y)")  # a closure that is not called is not inlined
        names[CLOSURES].add(f)

    def draws(self, names):
        self.emit(1, "np.random.seed(7)")
        names[DRAWS].add("np.random")

    # -- statements ------------------------------------------------------------------------------------------------

    def statements(self, depth, names, in_loop):
        kinds = [*super().statements(depth, names, in_loop),
                 (5, self.masked), (5, self.new_matrix), (6, self.matrix_write), (3, self.aliased_call), (3, self.guard),
                 (2, self.recursive_write)]  # fmt: skip
        if depth <= 3:
            kinds += [
                (5, self.carried_tuple),
                (4, self.several_iterated),
                (3, self.search),
                (2, self.over_indices),
            ]
        if names[COMPLEX]:
            kinds += [(12, self.complex_statement)]
        if names[SINGLES]:
            kinds += [(10, self.single_statement)]
        if names[LISTS]:
            kinds += [(12, self.list_statement)]
        return kinds

    def masked(self, depth, names, in_loop):
        """A write through a mask or an array of indices."""
        self.emit(depth, self.filled(self.one_of(
            "{v}[{v} > {n}] = {n}", "{v}[{v} < 0.3] *= {n}", "{v}[np.array([3, 0])] = {v}[:2] * {n}",
            "{v}[{v} > {x}] += 0.5", "{m}[{at}][{v} > 0.0] = {n}", "{v}[np.argsort({v})] = {v} * 1.0",
        ), names, 1))  # fmt: skip

    def new_matrix(self, depth, names, in_loop):
        m = self.fresh("m")
        self.emit(depth, f"{m} = {self.matrix(names)}")
        names[MATRICES].add(m)

    def matrix_write(self, depth, names, in_loop):
        self.emit(depth, self.filled(self.one_of(
            "{m}[1:3, ::2] = {n}", "{m}[{i} % 3:, 0] *= math.cos({n})", "{m}[:] = {mat}", "{m}.T[0] += {v}", "{m} *= math.sin({n})",
            "{m} += 0.1 * {v}", "{m}[::2] -= {m}[1::2]", "{m}[:, ::-1][0] = {v}", "{v}[...] = {n}", "{m}[2:, 2:] = {m}[:2, :2].T",
            "{v}[{cut}:] = {n}", "{v}[{i} % 4:] += {n}", "{m}[{at}, 1:] = {v}[:3]", "{m}[1:][1:][0, 0] = {n}", "{m}[::-1].T[1] *= {x}",
        ), names, 1))  # fmt: skip

    def aliased_call(self, depth, names, in_loop):
        v = self.pick(names[VECTORS])
        other = self.one_of(
            v, f"{v}[::-1]", f"{self.pick(names[MATRICES])}[{self.index(names)}]", self.pick(names[VECTORS])
        )
        self.emit(depth, f"mixed({v}, {other}, {self.number(names, 2)})")

    def recursive_write(self, depth, names, in_loop):
        v = self.fresh("v")
        self.emit(depth, f"{v} = r2({self.pick(names[VECTORS])}, {self.pick(names[WHOLE])} % 6)")
        names[NUMBERS].add(v)

    def guard(self, depth, names, in_loop):
        """What is raised by a few programs only."""
        x = self.pick(names[NUMBERS])
        if self.chance(0.5):
            self.emit(depth, f"assert abs({x}) < 30.0, 'too large'")
        else:
            self.emit(depth, f"if {x} > 30.0:")
            self.emit(depth + 1, f"raise {self.one_of('ValueError', 'OverflowError')}('too large')")

    def carried_tuple(self, depth, names, in_loop):
        t, i, p, q = self.fresh("t"), self.fresh("k"), self.fresh("p"), self.fresh("q")
        kind = self.one_of("", "Pair")
        inner = self.inside(names)
        inner[WHOLE].add(i)
        left, right = ("left", "right") if kind else ("0", "1")
        left, right = (f"{t}.{left}", f"{t}.{right}") if kind else (f"{t}[{left}]", f"{t}[{right}]")
        self.emit(depth, f"{t} = {kind}(1.0 * {self.number(names, 1)}, 1.0 * {self.pick(names[NUMBERS])})")
        self.emit(depth, f"for {i} in range({self.one_of('n', '3', '4 - n')}):")
        step = f"{kind}(math.tanh({right} * {self.number(inner, 2)}), {left} + 0.1 * {self.atom(inner)})"
        if kind and self.chance(0.3):
            step = f"grown({t}, math.sin({self.number(inner, 2)}))"
        if self.chance(0.4):
            self.emit(depth + 1, f"if {self.condition(inner)}:")
            self.emit(depth + 2, f"{t} = {step}")
            if self.chance(0.4):
                self.emit(depth + 2, self.one_of("break", "continue"))
            self.emit(depth + 1, f"{t} = {kind}({right}, {left} * 0.9)")
        else:
            self.emit(depth + 1, f"{t} = {step}")
        self.emit(depth, f"{p}, {q} = {t}")
        names[NUMBERS] |= {p, q}

    def several_iterated(self, depth, names, in_loop):
        """zip, rows of a matrix, reversed views, a tuple of arrays."""
        e, f, inner = self.fresh("e"), self.fresh("e"), self.inside(names)
        one, two = self.pick(names[VECTORS]), self.pick(names[VECTORS])
        where = self.random.random()
        if where < 0.4:
            self.emit(depth, f"for {e}, {f} in zip({one}, {two}):")
            inner[NUMBERS] |= {e, f}
        elif where < 0.7:
            self.emit(depth, f"for {e} in {self.pick(names[MATRICES])}:")
            inner[VECTORS].add(e)
        else:
            self.emit(
                depth, f"for {e} in {self.one_of(one, f'{one}[::-1]', f'{one}[1:]', f'({one}, {one})[0]')}:"
            )
            inner[NUMBERS].add(e)
        self.block(depth + 1, inner, self.random.randint(1, 3), True)

    def over_indices(self, depth, names, in_loop):
        i, j, inner, m = self.fresh("k"), self.fresh("k"), self.inside(names), self.pick(names[MATRICES])
        inner[WHOLE] |= {i, j}
        self.emit(depth, f"for {i}, {j} in np.ndindex({self.one_of('4, 4', f'{m}.shape', 'n, 2')}):")
        self.emit(
            depth + 1,
            f"{m}[{i}, {j}] {self.one_of('=', '+=')} math.sin({m}[{j}, {i}]) * {self.number(inner, 1)}",
        )

    def search(self, depth, names, in_loop):
        """A return or a break out of nested loops."""
        i, j, m, s = self.fresh("k"), self.fresh("k"), self.pick(names[MATRICES]), self.fresh("v")
        inner = self.inside(names)
        inner[WHOLE] |= {i, j}
        self.emit(depth, f"{s} = 0.0")
        self.emit(depth, f"for {i} in range({self.one_of('4', 'n')}):")
        self.emit(depth + 1, f"for {j} in range({self.one_of('4', i)}):")
        self.emit(depth + 2, f"if {m}[{i}, {j}] > {self.number(inner, 1)}:")
        self.emit(depth + 3, self.one_of("break", "continue", f"return {s} * {m}[{i}, {j}] + x"))
        self.emit(depth + 2, f"{s} += {m}[{i}, {j}] * {self.atom(inner)}")
        if self.chance(0.3):
            self.emit(depth + 1, "else:")
            self.emit(depth + 2, self.one_of("continue", f"{s} -= 0.5"))
        self.emit(depth + 1, self.one_of(f"{s} *= 0.5", f"if {s} > 3.0:\n{'    ' * (depth + 2)}break"))
        names[NUMBERS].add(s)

    def complex_statement(self, depth, names, in_loop):
        if self.chance(0.15):
            new = self.fresh("c")
            self.emit(depth, self.filled(f"{new} = {{c}} * complex({{n}}, {{x}})", names, 1))
            names[COMPLEX].add(new)
        elif self.chance(0.15):
            new = self.fresh("C")
            self.emit(
                depth,
                self.filled(
                    new
                    + " = "
                    + self.one_of(
                        "{C} * {C}",
                        "{v} + 1j * {v}",
                        "{C}[::-1] * {c}",
                        "np.conj({C})",
                        "{C} * {n}",
                        "{C} / (3.0 + np.abs({C}))",
                    ),
                    names,
                    1,
                ),
            )
            names[COMPLEX_VECTORS].add(new)
        else:
            self.emit(depth, self.filled(self.one_of(
                "{c} = {c} * {c} * 0.3 + {n}", "{c} += 0.5j * {n}", "{c} *= complex(math.cos({n}), math.sin({n}))", "{c} = {c} / (2.0 + abs({c}))",
                "{c} = {c}.conjugate() - {C}[{at}]", "{c} -= {n}", "{C}[{at}] = {c}", "{C}[{at}] += {n}", "{C}[1:3] *= {c}", "{C}[{at}] *= 1j",
                "{C} *= 0.5 + 0.2j", "{C} += {v}", "{C}[::2] = {C}[1::2] * {n}", "{c} = cmath.exp({c} * 0.1j)", "{c} = np.sum({C}) * 0.3", "{c} = np.sqrt({c} + 4.0)",
            ), names, 1))  # fmt: skip

    def single_statement(self, depth, names, in_loop):
        if self.chance(0.2):
            new = self.fresh("f")
            self.emit(
                depth,
                self.filled(
                    new
                    + " = "
                    + self.one_of(
                        "{s} * {s}",
                        "np.sin({s})",
                        "{s}[::-1].copy()",
                        "({v} * {n}).astype(np.float32)",
                        "np.empty_like({s})\n" + "    " * depth + new + "[:] = {n}",
                    ),
                    names,
                    1,
                ),
            )
            names[SINGLES].add(new)
        else:
            self.emit(depth, self.filled(self.one_of(
                "{s}[{at}] = {n}", "{s}[{at}] += math.sin({n})", "{s} *= {s}", "{s}[1:3] = {v}[:2]", "{v}[{at}] = {s}[{at}]", "{v} += {s}", "{s} -= np.tanh({s})",
                "{v}[:2] = {s}[2:]", "{s}[:] = {v} * {n}",
            ), names, 1))  # fmt: skip

    def list_statement(self, depth, names, in_loop):
        where = self.random.random()
        if where < 0.15:
            e, inner = self.fresh("e"), self.inside(names)
            inner[NUMBERS].add(e)
            s = self.pick(names[NUMBERS])
            self.emit(depth, self.filled(f"for {e} in {{l}}:", names, 1))
            self.emit(depth + 1, f"{s} += {e} * {self.number(inner, 2)}")
        elif where < 0.3:
            self.emit(depth, self.filled("if len({l}) > 2:", names, 1))
            self.emit(depth + 1, self.lines[-1].strip()[7:-6] + ".pop()")
        elif where < 0.4:
            new = self.fresh("l")
            e = self.fresh("e")
            self.emit(
                depth,
                self.filled(
                    new
                    + " = "
                    + self.one_of(
                        "[{n} * 1.0, {n} * 1.0]",
                        f"[{e} * {{x}} for {e} in {{v}}]",
                        "[1.0 * {n}]",
                        f"[{e} * {{x}} for {e} in {{l}}]",
                    ),
                    names,
                    1,
                ),
            )
            names[LISTS].add(new)
        else:
            self.emit(
                depth,
                self.filled(
                    self.one_of(
                        "{l}.append({n} * 1.0)",
                        "{l}[{i} % len({l})] = 1.0 * {n}",
                        "{l}[-1] *= math.sin({n})",
                        "{l}[0] += {n}",
                    ),
                    names,
                    1,
                ),
            )


def program(seed, size=6):
    """The text of program `seed`, of up to `size` outermost statements."""
    return RichWriter(seed, size).text()


def compiled_text(text, name):
    """The function `f` of a program."""
    return random_programs.compiled_text(text, name, {"cmath": cmath, **HELPERS, **MORE_HELPERS})


def function_of(seed, size=6):
    """(the function of program `seed`, its arguments, the positions that are differentiated)."""
    return compiled_text(program(seed, size), f"<rich random program {seed}>"), *random_programs.arguments(
        seed
    )
