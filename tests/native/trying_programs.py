"""Random programs with `try`, `else` and `finally`, raising callees and loops over generators and `np.nditer`.

As in `random_programs`, but that the functions are Numba's: `try` is taken natively in these alone. Each program is
made twice, for CPython, with which it is compared, and for Numba. What raises does so in both: divisions are of floats
of Python, since NumPy's raise nothing, and nothing depends on an index out of bounds.
"""

import functools
import linecache
import math

import numba
import numpy as np

from tests.native import random_programs
from tests.native.random_programs import NUMBERS, VECTORS, WHOLE, Pair, Writer

HELPERS = """
@njit
def t1(x):
    if x < 0.4:
        raise ValueError("small")
    return x * x


@njit
def t2(x, n):
    for k in range(n):
        try:
            x = float(0.5 * t1(x)) / (k - 1.0) + x
        except Exception:
            x = x + 0.1
        if x > 3.0:
            raise ValueError
    return x


@njit
def t3(v, x):
    v[0] = 1.5 * x
    v[1] = t1(x) * v[2]
    v[2] = v[1] * v[0]
    return v[2] * x


@njit
def t4(v, x, i):
    s = x
    while s < 3.0:
        s = s + 0.7 + 0.1 * v[i % 4]
        if s > 1.5 and v[i % 4] > 0.3:
            raise KeyError("in a loop")
        v[i % 4] = 0.5 * s
        i = i + 1
    return s, s * x


@njit
def t5(x, y):
    try:
        z = t1(x * y)
    except Exception:
        if y > 0.5:
            return y * x
        z = y
    else:
        z = z + x
    return z * x


@njit
def g1(v, x):
    for k in range(v.shape[0]):
        x = 0.5 * x + v[k]
        yield x * v[k]


@njit
def g2(x, n):
    k = 0
    while k < n % 4:
        x = math.sin(x) + 0.1 * k
        yield x
        if x > 0.8:
            x = 0.5 * x
        k = k + 1
"""
RAISING = """
    t1({n})
    t2({n}, {i} % 4)
    t3({v}, {n})
    t4({v}, {n}, abs({i}))[0]
    t4({v}, {n}, abs({i}))[1]
    t5({n}, {x})
    float({n}) / float({i} - {cut})
    float({n}) / float({i} % 2)
    math.sin(t1({n}) * {x})
    (t1({n}) if {test} else t2({n}, 2))
    (t1({n}) + t2({n}, 3))
""".strip().split("\n")
CERTAIN = """
    ({n} + {atom})
    {x} * {atom}
    math.sin({n}) * {x}
    math.tanh({n})
    h1({n}, {x})
    h3({n}, {x})[0]
    t5({n}, {x})
    np.sum({v})
    {v} @ {v}
    max({n}, {x})
    ({n} if {test} else {x})
    float({i})
    {v}[{at}] * {x}
""".strip().split("\n")
CERTAIN_VECTORS = """
    {v} * {n}
    {v} - {v}
    np.sin({v})
    {v}.copy()
    {v}[::-1] + {v}
""".strip().split("\n")


class TryingWriter(Writer):
    """Writes one program; `tries` says how many `try` are around a statement."""

    def __init__(self, seed, size, generators=False):
        super().__init__(seed, size)
        self.tries = 0
        self.generators = generators

    def number(self, names, depth=0):
        if depth > 1 or self.chance(0.3):
            return self.atom(names)
        return self.filled(self.one_of(*CERTAIN).strip(), names, depth)

    def vector_templates(self, names):
        return CERTAIN_VECTORS

    def condition(self, names, depth=0):
        return f"{self.pick(names[NUMBERS])} {self.one_of('<', '>')} {self.one_of('0.3', self.atom(names))}"

    def whole(self, names):
        i = self.pick(names[WHOLE])
        return self.one_of(f"{i} + 1", f"{i} % 3", f"({i} * 2) % 5", "2", f"min({i}, 3)", f"abs({i}) % 4")

    def statements(self, depth, names, in_loop):
        kinds = [
            (14, self.assignment), (5, self.augmented), (10, self.element), (2, self.new_vector), (2, self.view),
            (2, self.in_place), (2, self.swap_numbers), (2, self.swap_buffers), (2, self.writing_call),
            (2, self.new_whole),
        ]  # fmt: skip
        if depth <= 3:
            kinds += [(30 if self.tries < 2 else 6, self.trying), (6, self.branch)]
        kinds += [(25, self.risky), (8, self.raising)] if self.tries else [(1, self.risky)]
        if depth <= 2:
            kinds += [(10, self.counted), (4, self.conditional), (4, self.over_array)]
            kinds += [(25 if self.generators else 0, self.over_generator)]
        if in_loop:
            kinds += [(6, self.leave)]
        if depth > 1:
            kinds += [(1, self.finish)]
        return kinds

    def element(self, depth, names, in_loop):
        place = f"{self.pick(names[VECTORS])}[{self.index(names)}]"
        self.emit(depth, f"{place} {self.one_of('=', '=', '+=')} {self.number(names)}")

    def writing_call(self, depth, names, in_loop):
        i = self.pick(names[WHOLE])
        self.emit(depth, f"h4({self.pick(names[VECTORS])}, {self.number(names)}, abs({i}) % 4)")

    def swap_buffers(self, depth, names, in_loop):
        self.emit(depth, self.one_of("s1, s2 = s2, s1", "s1 = s2", f"s1 = s2 * {self.number(names)}"))

    def view(self, depth, names, in_loop):
        v, a = self.fresh("w"), self.pick(names[VECTORS])
        self.emit(depth, f"{v} = {self.one_of(a, f'{a}[::-1]', f'{a}[:]')}")
        names[VECTORS].add(v)

    def text(self):
        names = {NUMBERS: {"x", "y"}, VECTORS: {"a", "s1", "s2"}, WHOLE: {"n"}}
        self.emit(0, "def f(x, y, a, n):")
        self.emit(1, "s1 = a.copy()")
        self.emit(1, "s2 = a * x")
        if not self.block(1, names, self.random.randint(1, self.size), False):
            parts = [f"math.tanh({v})" for v in sorted(names[NUMBERS])]
            parts += ["np.sum(s1 * s1[::-1])", "np.sum(s2 * a)"]
            self.emit(1, "return " + " + ".join(parts))
        return "\n".join(self.lines) + "\n"

    def trying(self, depth, names, in_loop):
        body, handler = self.inside(names), self.inside(names)
        self.emit(depth, "try:")
        self.tries += 1
        leaves = self.block(depth + 1, body, self.random.randint(1, 4), in_loop)
        self.tries -= 1
        self.emit(depth, self.one_of("except Exception:", "except:"))
        handled = self.block(depth + 1, handler, self.random.randint(1, 3), in_loop)
        if not leaves and self.chance(0.3):
            self.emit(depth, "else:")
            leaves = self.block(depth + 1, body, self.random.randint(1, 3), in_loop)
        if self.chance(0.15):
            self.emit(depth, "finally:")
            self.assignment(depth + 1, self.inside(names), False)
        if leaves and handled:
            return True
        for kind in names:
            names[kind] = handler[kind] if leaves else body[kind] if handled else body[kind] & handler[kind]
        return False

    def risky(self, depth, names, in_loop):
        value = self.filled(self.one_of(*RAISING).strip(), names, 0)
        place = self.one_of(
            self.pick(names[NUMBERS]),
            self.pick(names[NUMBERS]),
            f"{self.pick(names[VECTORS])}[{self.index(names)}]",
        )
        sign = self.one_of("=", "=", "+=", "-=")
        self.emit(depth, f"{place} {sign} 1.0 * {value}")

    def raising(self, depth, names, in_loop):
        what = self.one_of("ValueError", 'ValueError("a")', "KeyError", 'ZeroDivisionError("b")')
        if self.chance(0.85):
            self.emit(depth, f"if {self.condition(names)}:")
            self.emit(depth + 1, f"raise {what}")
            return False
        self.emit(depth, f"raise {what}")
        return True

    def over_array(self, depth, names, in_loop):
        e, inner = self.fresh("e"), self.inside(names)
        self.emit(depth, f"for {e} in np.nditer(np.sin({self.pick(names[VECTORS])})):")
        v = self.fresh("v")
        self.emit(depth + 1, f"{v} = 1.0 * {e}.item()")
        inner[NUMBERS].add(v)
        self.block(depth + 1, inner, self.random.randint(1, 3), True)

    def over_generator(self, depth, names, in_loop):
        e, inner = self.fresh("e"), self.inside(names)
        made = self.filled(self.one_of("g1({v}, {n})", "g2({n}, {i})", "g2({n}, n)"), names, 0)
        self.emit(depth, f"for {e} in {made}:")
        inner[NUMBERS].add(e)
        self.block(depth + 1, inner, self.random.randint(1, 3), True)


def program(seed, size=6):
    """The text of program `seed`, of up to `size` outermost statements."""
    return TryingWriter(seed, size).text()


def compiled_text(text, name, njit=None):
    """The function `f` of a program, made by `njit`, which calls functions made by it, too."""
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {**helpers(njit), "__name__": "random_program"}
    exec(compile(text, name, "exec"), space)
    return njit(space["f"]) if njit else space["f"]


@functools.cache
def helpers(njit):
    """What programs call, made by `njit`."""
    make = njit or (lambda f: f)
    name = f"<functions of trying programs, {njit}>"
    linecache.cache[name] = (len(HELPERS), None, HELPERS.splitlines(True), name)
    space = {"math": math, "np": np, "Pair": Pair, "njit": make, "__name__": "helpers_of_random_programs"}
    exec(compile(HELPERS, name, "exec"), space)
    return space | {h: make(f) for h, f in random_programs.HELPERS.items()}


def native_form(text, name):
    """The same function as Numba's."""
    return compiled_text(text, name, numba.njit)


def arguments(seed):
    """(arguments of program `seed`, the positions that are differentiated)."""
    (x, y, a, _, _, _, n), _ = random_programs.arguments(seed)
    return (x, y, a, n), (0, 1, 2)


def function_of(seed, size=6):
    """(the function of program `seed`, its arguments, the positions that are differentiated)."""
    name = f"<trying random program {seed}>"
    return compiled_text(program(seed, size), name), *arguments(seed)
