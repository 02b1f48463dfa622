"""Straight-line code over numbers as data: its tangents, its cotangents, and its source text.

A value is a name or the text of a constant. A name stands for one operation, so that what is computed twice is
computed once; a name without an operation is given from outside. Tangents and cotangents are more operations of the
same kind, so there are tangents of cotangents, too. Only what is asked for is written out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from plaingrad import rulebook
from plaingrad.rewrite.fusion import FUNCTIONS
from plaingrad.rules.elementwise import over

# {0} and {1}: the operands. `over` is a quotient by what may be zero, as IEEE arithmetic has it.
TEXTS = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "truediv": "{0} / {1}",
    "pow": "{0} ** {1}",
    "neg": "-{0}",
    "over": "({0} / {1} if {1} else over({0}, {1}))",
}
DEPTH = 12  # of nested parentheses; the compiler knows a limit

#: What the text of any code here may refer to.
SPACE: dict[str, Any] = {"over": over, "math": math, **FUNCTIONS}


def constant(c: float) -> str:
    """The text of a number; floats are what the interpreter is quickest with."""
    if isinstance(c, int) and abs(c) < 1 << 53:
        c = float(c)
    if isinstance(c, float) and not math.isfinite(c):
        return "math.nan" if c != c else "math.inf" if c > 0 else "(-math.inf)"
    text = repr(c)
    return f"({text})" if text.startswith("-") else text


class Straight:
    """Straight-line code that is being written.

    Attributes:
        operations: name -> (kind, operands), in order.
        dots: name -> the name of its tangent; what is not there has none.
    """

    def __init__(self) -> None:
        self.operations: dict[str, tuple[str, tuple[str, ...]]] = {}
        self.dots: dict[str, str] = {}
        self._names: dict[tuple[str, tuple[str, ...]], str] = {}
        self._slopes: dict[str, str] = {}

    def emit(self, kind: str, *operands: str, name: str | None = None) -> str:
        """The name of this operation on `operands`, or the operand that it comes to."""
        if kind == "mul" and "1.0" in operands and name is None:
            return operands[operands[0] == "1.0"]
        if kind == "neg" and not is_name(operands[0]):
            return f"(-{operands[0]})"
        found = self._names.get((kind, operands)) if name is None else None
        if found is None:
            found = name or f"t{len(self.operations)}"
            self.operations[found] = kind, operands
            self._names.setdefault((kind, operands), found)
        return found

    def slope(self, z: str) -> str:
        """The derivative of the power or function of one argument that `z` names."""
        kind, (x, *exponent) = self.operations[z]
        if kind == "pow":
            n = int(exponent[0])
            return self.emit("mul", f"{float(n)}", self.emit("pow", x, f"{n - 1}") if n > 2 else x)
        if z not in self._slopes:
            rule = rulebook.find(FUNCTIONS[kind])
            assert rule is not None
            slope = rule.partials[0](Functions(self), Symbol(self, x), Symbol(self, z))
            self._slopes[z] = text_of(slope)
        return self._slopes[z]

    # -- tangents --------------------------------------------------------------------------------------------------

    def push(self, names: Iterable[str]) -> None:
        """Tangents of `names`, which are in the order of their operations, from those of what they are made of."""
        for name in names:
            z_dot = self._tangent(name)
            if z_dot is not None:
                self.dots[name] = z_dot

    def _tangent(self, z: str) -> str | None:
        kind, operands = self.operations[z]
        a, b = operands[0], operands[-1]
        a_dot, b_dot = self.dots.get(a), self.dots.get(b)
        emit = self.emit
        if a_dot is None and b_dot is None:
            return None
        if kind == "neg":
            return emit("neg", a_dot)
        if kind == "add":
            return a_dot if b_dot is None else b_dot if a_dot is None else emit("add", a_dot, b_dot)
        if kind == "sub":
            return (
                a_dot if b_dot is None else emit("neg", b_dot) if a_dot is None else emit("sub", a_dot, b_dot)
            )
        if kind == "mul":
            left = None if a_dot is None else emit("mul", a_dot, b)
            right = None if b_dot is None else emit("mul", a, b_dot)
            return left if right is None else right if left is None else emit("add", left, right)
        if kind in ("truediv", "over"):
            if b_dot is None:
                return emit(kind, a_dot, b)
            moved = emit("mul", z, b_dot)
            return emit(kind, emit("neg", moved) if a_dot is None else emit("sub", a_dot, moved), b)
        return emit("mul", self.slope(z), a_dot)

    # -- cotangents ------------------------------------------------------------------------------------------------

    def pull(self, names: list[str], bars: dict[str, str]) -> None:
        """Carry the cotangents `bars` of some of `names` back to what they are made of."""
        for name in reversed(names):
            if name in bars:
                for operand, term in self._cotangents(name, bars[name]):
                    if is_name(operand):
                        bars[operand] = self.emit("add", bars[operand], term) if operand in bars else term

    def _cotangents(self, z: str, z_bar: str) -> list[tuple[str, str]]:
        kind, operands = self.operations[z]
        a, b = operands[0], operands[-1]
        emit = self.emit
        if kind == "neg":
            return [(a, emit("neg", z_bar))]
        if kind == "add":
            return [(a, z_bar), (b, z_bar)]
        if kind == "sub":
            return [(a, z_bar), (b, emit("neg", z_bar))]
        if kind == "mul":
            return [(a, emit("mul", z_bar, b)), (b, emit("mul", z_bar, a))]
        if kind in ("truediv", "over"):
            # Not the first times z: 1 / b of a denormal number is infinite.
            return [(a, emit(kind, z_bar, b)), (b, emit("neg", emit(kind, emit("mul", z_bar, z), b)))]
        return [(a, emit("mul", z_bar, self.slope(z)))]

    # -- text ------------------------------------------------------------------------------------------------------

    def needed(self, results: Iterable[str], given: set[str]) -> list[str]:
        """What must be computed for `results` where `given` is known, in the order of the operations."""
        wanted = {name for name in results if name not in given}
        found = []
        for name in reversed(self.operations):
            if name in wanted:
                found.append(name)
                wanted.update(x for x in self.operations[name][1] if is_name(x) and x not in given)
        return found[::-1]

    def lines(self, results: list[str], given: set[str]) -> tuple[list[str], list[str]]:
        """(statements, the text of each of `results`); what is read once is written where it is read."""
        needed = self.needed(results, given)
        reads = dict.fromkeys(needed, 0)
        for x in [*results, *(x for name in needed for x in self.operations[name][1])]:
            if x in reads:
                reads[x] += 1
        texts: dict[str, tuple[str, int]] = {}
        statements = []
        for name in needed:
            kind, operands = self.operations[name]
            if kind == "over" and operands[1] in texts and texts[operands[1]][1]:
                statements.append(f"{operands[1]} = {texts[operands[1]][0]}")  # it is read twice in the text
                texts[operands[1]] = operands[1], 0
            parts = [texts.get(x, (x, 0)) for x in operands]
            text = TEXTS.get(kind, kind + "({0})").format(*[part for part, _ in parts])
            depth = 1 + max(depth for _, depth in parts)
            if reads[name] == 1 and depth < DEPTH:
                texts[name] = text if kind in FUNCTIONS else f"({text})", depth
            else:
                statements.append(f"{name} = {text}")
                texts[name] = name, 0
        return statements, [texts.get(x, (x, 0))[0] for x in results]


def is_name(x: str) -> bool:
    """Whether `x` is a name and not the text of a constant."""
    return x.isidentifier()


class Symbol:
    """A number in a row of the rulebook that is being written down instead of computed."""

    __slots__ = ("code", "name")

    def __init__(self, code: Straight, name: str) -> None:
        self.code = code
        self.name = name

    def __add__(self, other: Any) -> Symbol:
        return written(self.code, "add", self, other)

    def __radd__(self, other: Any) -> Symbol:
        return written(self.code, "add", other, self)

    def __sub__(self, other: Any) -> Symbol:
        return written(self.code, "sub", self, other)

    def __rsub__(self, other: Any) -> Symbol:
        return written(self.code, "sub", other, self)

    def __mul__(self, other: Any) -> Symbol:
        return written(self.code, "mul", self, other)

    def __rmul__(self, other: Any) -> Symbol:
        return written(self.code, "mul", other, self)

    def __truediv__(self, other: Any) -> Symbol:
        return written(self.code, "over", self, other)

    def __rtruediv__(self, other: Any) -> Symbol:
        return written(self.code, "over", other, self)

    def __neg__(self) -> Symbol:
        return written(self.code, "neg", self)

    def __bool__(self) -> bool:
        raise TypeError("a row whose slope depends on a decision cannot be written as straight-line code")


class Functions:
    """The module that such a row calls."""

    def __init__(self, code: Straight) -> None:
        self.code = code

    def __getattr__(self, name: str) -> Any:
        if name not in FUNCTIONS:
            raise AttributeError(name)
        return lambda x: written(self.code, name, x)


def written(code: Straight, kind: str, *operands: Any) -> Symbol:
    """One more operation."""
    return Symbol(code, code.emit(kind, *map(text_of, operands)))


def text_of(x: Any) -> str:
    """The name of a symbol, the text of a constant."""
    return x.name if isinstance(x, Symbol) else constant(x)
