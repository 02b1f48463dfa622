"""Random numeric programs: the native gradient and tangent, run uncompiled, against the plain tier."""

import linecache
import math
import random

import numpy as np
import pytest

import plaingrad

pytest.importorskip("numba")

SEEDS = (0, 3, 10, 13, 36, 1000, 1003, 1005, 20010)
ARGNUMS = (0, 1, 2, 3, 4)


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


class Gen:
    def __init__(self, seed, size=8):
        self.r = random.Random(seed)
        self.lines = []
        self.n = 0
        self.size = size

    def pick(self, xs):
        return self.r.choice(sorted(xs))

    def fresh(self, p):
        self.n += 1
        return f"{p}{self.n}"

    def index(self, sc):
        r = self.r.random()
        if r < 0.4 or not sc["i"]:
            return str(self.r.randint(-4, 3))
        i = self.pick(sc["i"])
        if r < 0.7:
            return f"{i} % 4"
        if r < 0.85:
            return f"({i} + {self.r.randint(1, 3)}) % 4 - {self.r.randint(0, 4)}"
        return f"({i} * {self.r.randint(2, 3)} // 2) % 4"

    def iexpr(self, sc):
        i = self.pick(sc["i"])
        return self.r.choice(
            [
                f"{i} + 1",
                f"{i} % 3",
                f"-{i}",
                f"{i} // 2",
                f"({i} * 2) % 5",
                "2",
                f"int({self.pick(sc['f'])} * 3) % 4",
                f"{i} & 3",
                f"len({self.pick(sc['a'])})",
                f"{self.pick(sc['a'])}.shape[0] - 2",
            ]
        )

    def fexpr(self, sc, d=0):
        r = self.r.random()
        f = lambda: self.fexpr(sc, d + 1)
        if d > 2 or r < 0.25:
            r = self.r.random()
            if r < 0.65:
                return self.pick(sc["f"])
            if r < 0.8:
                return repr(round(self.r.uniform(-2, 2), 2))
            if r < 0.9 and sc["i"]:
                return self.pick(sc["i"])
            return f"{self.pick(sc['a'])}[{self.index(sc)}]"
        if r < 0.40:
            return f"{self.pick(sc['a'])}[{self.index(sc)}]"
        if r < 0.45:
            return f"{self.pick(sc['m'])}[{self.index(sc)}, {self.index(sc)}]"
        if r < 0.58:
            return f"({f()} {self.r.choice('+-')} {f()})"
        if r < 0.68:
            return f"math.sin({f()}) * {f()}"
        if r < 0.72:
            return f"math.exp(-abs({f()}))"
        if r < 0.76:
            return f"{f()} / (1.5 + math.cos({f()}))"
        if r < 0.79:
            return f"math.tanh({f()}) ** {self.r.choice([2, 3, 0, 1])}"
        if r < 0.82:
            return f"{self.r.choice(['max', 'min'])}({f()}, {f()})"
        if r < 0.84:
            return f"math.atan2({f()}, 2.0 + math.sin({f()}))"
        if r < 0.86:
            return f"math.tanh({f()}) % {self.r.choice(['0.7', '1.3'])}"
        if r < 0.89:
            return f"h1({f()}, {f()})"
        if r < 0.91:
            return f"h2({self.pick(sc['a'])}, {f()}, {self.pick(sc['i'])})"
        if r < 0.93:
            return f"h3({f()}, {f()})[{self.r.randint(0, 1)}]"
        if r < 0.95:
            return f"np.sum({self.aexpr(sc)})"
        if r < 0.96:
            return f"np.dot({self.pick(sc['a'])}, {self.pick(sc['a'])})"
        if r < 0.97:
            return f"({f()} if {self.cond(sc)} else {f()})"
        if r < 0.98:
            return f"float({self.pick(sc['i'])})"
        if r < 0.99:
            return f"-{f()}"
        return f"math.sqrt(1.0 + {self.pick(sc['f'])} ** 2)"

    def aexpr(self, sc):
        a = lambda: self.pick(sc["a"])
        r = self.r.random()
        if r < 0.3:
            return f"{a()} * {a()}"
        if r < 0.5:
            return f"np.sin({a()}) * {self.fexpr(sc, 2)}"
        if r < 0.6:
            return f"{a()} - {self.fexpr(sc, 2)} * {a()}"
        if r < 0.7:
            return f"np.tanh({a()})"
        if r < 0.78:
            return f"{a()}[::-1] + {a()}"
        if r < 0.84:
            return f"{self.pick(sc['m'])} @ {a()}"
        return f"{a()}.copy()"

    def cond(self, sc):
        r = self.r.random()
        if r < 0.35:
            return f"{self.pick(sc['i'])} % {self.r.randint(2, 3)} == {self.r.randint(0, 1)}"
        if r < 0.8:
            return f"{self.fexpr(sc, 2)} {self.r.choice(['<', '>', '<=', '>='])} {self.fexpr(sc, 2)}"
        if r < 0.9:
            return f"{self.cond(sc)} {self.r.choice(['and', 'or'])} {self.cond(sc)}"
        return f"not {self.pick(sc['f'])} > 0.3"

    def emit(self, d, text):
        self.lines.append("    " * d + text)

    def block(self, d, sc, n, loop):
        """Statements at depth d; sc is copied; returns whether it surely ends in a jump."""
        start = len(self.lines)
        for _ in range(n):
            if self.stmt(d, sc, loop):
                return True
        if len(self.lines) == start:
            self.emit(d, "x = x * 0.9")
        return False

    def stmt(self, d, sc, loop):
        r = self.r.random()
        if d > 4 and r > 0.66:
            r *= 0.6
        if r < 0.17:
            v = self.fresh("v") if self.r.random() < 0.4 else self.pick(sc["f"])
            self.emit(d, f"{v} = {self.fexpr(sc)}" if v in sc["f"] else f"{v} = 1.0 * {self.fexpr(sc)}")
            sc["f"].add(v)
        elif r < 0.24:
            self.emit(
                d, f"{self.pick(sc['f'])} {self.r.choice(['+=', '-=', '*='])} math.sin({self.fexpr(sc)})"
            )
        elif r < 0.36:
            self.emit(
                d,
                f"{self.pick(sc['a'])}[{self.index(sc)}] {self.r.choice(['=', '=', '+=', '-='])} {self.fexpr(sc)}",
            )
        elif r < 0.40:
            self.emit(
                d,
                f"{self.pick(sc['m'])}[{self.index(sc)}, {self.index(sc)}] {self.r.choice(['=', '+='])} {self.fexpr(sc)}",
            )
        elif r < 0.43:
            v = self.fresh("a")
            self.emit(d, f"{v} = {self.aexpr(sc)}")
            sc["a"].add(v)
        elif r < 0.47:
            v = self.fresh("w")
            a, m = self.pick(sc["a"]), self.pick(sc["m"])
            self.emit(
                d,
                f"{v} = "
                + self.r.choice(
                    [
                        f"{a}[::-1]",
                        f"{m}[{self.index(sc)}]",
                        f"{m}[:, {self.index(sc)}]",
                        f"{m}.T[{self.index(sc)}]",
                        f"{m}[::-1, {self.index(sc)}][::-1]",
                        f"{m}[1:3, ::2].copy().reshape(4)",
                        a,
                        f"{a}[:]",
                    ]
                ),
            )
            sc["a"].add(v)
        elif r < 0.49:
            self.emit(
                d,
                f"{self.pick(sc['a'])}[{self.r.choice(['1:3', ':2', '::2', '::-2', '-2:'])}] {self.r.choice(['=', '+=', '='])} {self.r.choice([self.pick(sc['a']) + '[1:3] * ' + self.pick(sc['f']), self.fexpr(sc, 1), self.pick(sc['a']) + '[2:]'])}",
            )
        elif r < 0.51:
            self.emit(
                d,
                f"{self.pick(sc['a'])} {self.r.choice(['*=', '+=', '-=', '*='])} {self.r.choice([self.pick(sc['f']), self.pick(sc['a']), '0.5'])}",
            )
        elif r < 0.53:
            self.emit(d, f"{self.pick(sc['m'])}[{self.index(sc)}] = {self.pick(sc['a'])}")
        elif r < 0.55:
            x, y = self.pick(sc["f"]), self.pick(sc["f"])
            if x != y:
                self.emit(d, f"{x}, {y} = {self.r.choice([y, self.fexpr(sc)])}, {x}")
        elif r < 0.58:
            own = [a for a in sc["a"] if a.startswith("s")]
            if len(own) > 1:
                x, y = self.r.sample(sorted(own), 2)
                self.emit(d, f"{x}, {y} = {y}, {x}")
        elif r < 0.60:
            x, y = self.fresh("p"), self.fresh("q")
            self.emit(d, f"{x}, {y} = h3({self.fexpr(sc)}, {self.pick(sc['f'])})")
            sc["f"] |= {x, y}
        elif r < 0.62:
            self.emit(d, f"h4({self.pick(sc['a'])}, {self.fexpr(sc)}, {self.index(sc)})")
        elif r < 0.65:
            i = self.fresh("i") if self.r.random() < 0.5 else self.pick(sc["j"])
            self.emit(d, f"{i} = {self.iexpr(sc)}")
            sc["i"].add(i)
            sc["j"].add(i)
        elif r < 0.79:
            self.emit(d, f"if {self.cond(sc)}:")
            one = {k: set(v) for k, v in sc.items()}
            e1 = self.block(d + 1, one, self.r.randint(1, 3), loop)
            e2 = False
            two = {k: set(v) for k, v in sc.items()}
            if self.r.random() < 0.5:
                self.emit(d, "else:")
                e2 = self.block(d + 1, two, self.r.randint(1, 3), loop)
            if e1 and e2:
                return True
            for k in sc:
                sc[k] = two[k] if e1 else one[k] if e2 else one[k] & two[k]
        elif r < 0.90:
            if d > 3:
                return False
            i = self.fresh("k")
            rng = self.r.choice(
                ["n", "3", "n - 1", "1, 4", "3, -1, -1", "0, 6, 2", "n, 0, -1", "0", "len(a)", "2, n + 2"]
            )
            if sc["i"] - {"n"} and self.r.random() < 0.3:
                rng = self.pick(sc["i"] - {"n"}) + " % 4"
            inner = {k: set(v) for k, v in sc.items()}
            if self.r.random() < 0.12:
                x = self.fresh("e")
                self.emit(d, f"for {i}, {x} in enumerate({self.pick(sc['a'])}):")
                inner["f"].add(x)
            else:
                self.emit(d, f"for {i} in range({rng}):")
            inner["i"].add(i)
            if not self.block(d + 1, inner, self.r.randint(1, 5), True) and self.r.random() < 0.1:
                self.emit(d + 1, "continue")
            if self.r.random() < 0.15:
                self.emit(d, "else:")
                self.block(d + 1, {k: set(v) for k, v in sc.items()}, 1, loop)
        elif r < 0.95:
            if d > 3:
                return False
            c = self.fresh("c")
            self.emit(d, f"{c} = {self.r.choice(['0', '1', 'n'])}")
            self.emit(d, f"while {c} < {self.r.randint(1, 4)} and {self.cond(sc)}:")
            inner = {k: set(v) for k, v in sc.items()}
            inner["i"].add(c)
            self.emit(d + 1, f"{c} += 1")
            self.block(d + 1, inner, self.r.randint(1, 4), True)
            if self.r.random() < 0.1:
                self.emit(d, "else:")
                self.block(d + 1, {k: set(v) for k, v in sc.items()}, 1, loop)
            sc["i"].add(c)
        elif r < 0.985 and loop:
            if self.r.random() < 0.7:
                self.emit(d, f"if {self.cond(sc)}:")
                self.emit(d + 1, self.r.choice(["break", "continue"]))
                return False
            self.emit(d, "continue")
            return True
        elif r > 0.99 and d > 1:
            self.emit(d, f"return {self.fexpr(sc)} * 1.0")
            return True
        else:
            self.emit(d, f"{self.pick(sc['f'])} = {self.fexpr(sc)} * 0.5")
        return False

    def program(self):
        sc = {"f": {"x", "y"}, "a": {"a", "b", "s1", "s2"}, "m": {"M"}, "i": {"n"}, "j": {"n_"}}
        sc["i"].add("n_")
        self.emit(0, "def f(x, y, a, b, M, n):")
        self.emit(1, "n_ = n")
        self.emit(1, "s1 = a.copy()")
        self.emit(1, "s2 = b * x")
        if not self.block(1, sc, self.r.randint(3, self.size), False):
            out = " + ".join(
                [
                    *sorted(sc["f"]),
                    *[
                        f"np.sum({a} * {a}[::-1])"
                        for a in sorted(self.r.sample(sorted(sc["a"]), min(3, len(sc["a"]))))
                    ],
                    "np.sum(M) * y",
                ]
            )
            self.emit(1, f"return {out}")
        return "\n".join(self.lines) + "\n"


def function_of(seed):
    """(a random function, its arguments)."""
    text = Gen(seed, 6).program()
    name = f"<random program {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {"math": math, "np": np, "h1": h1, "h2": h2, "h3": h3, "h4": h4}
    exec(compile(text, name, "exec"), space)
    space["f"].__module__ = "random_program"
    r = np.random.default_rng(seed)
    a, b, m = r.normal(size=4), r.normal(size=4), r.normal(size=(4, 4)) * 0.5
    return space["f"], (float(r.normal()), float(r.normal()), a, b, m, int(r.integers(0, 5)))


def copied(args):
    return [x.copy() if isinstance(x, np.ndarray) else x for x in args]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_program_has_the_same_gradient_and_tangent_natively(seed):
    from plaingrad.native import call
    from plaingrad.native.build import derived

    f, args = function_of(seed)
    kinds = call.signature_of(args)
    pullback = derived("pullback", f, kinds, ARGNUMS).python
    pushforward = derived("pushforward", f, kinds, ARGNUMS).python
    plain_args, native_args = copied(args), copied(args)
    y, expected = plaingrad.value_and_grad(f, ARGNUMS, tier="plain")(*plain_args)
    shadows = call.shadows_of(tuple(native_args), ARGNUMS)
    value, x_bar, y_bar = pullback(*native_args, 1.0, *shadows)
    np.testing.assert_allclose(value, y, rtol=1e-12)
    for left, plain in zip(native_args, plain_args, strict=True):
        np.testing.assert_allclose(left, plain, rtol=1e-12)
    for found, wanted in zip((x_bar, y_bar, *shadows), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11)
    random_numbers = np.random.default_rng(1)
    dots = [random_numbers.normal(size=np.shape(args[k])) for k in ARGNUMS]
    dots = [float(d) if np.ndim(d) == 0 else d for d in dots]
    along = sum(float(np.sum(g * d)) for g, d in zip(expected, dots, strict=True))
    value, y_dot = pushforward(*copied(args), *copied(dots))
    np.testing.assert_allclose(value, y, rtol=1e-12)
    np.testing.assert_allclose(y_dot, along, rtol=1e-9, atol=1e-11)
