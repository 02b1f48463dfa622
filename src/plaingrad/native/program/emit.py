"""From a `Program` to Python source that Numba compiles, or CPython runs, with the user's lines in comments."""

from __future__ import annotations

import builtins
from typing import Any

from plaingrad.native.program.ir import (
    RESULT,
    Break,
    Const,
    Do,
    For,
    If,
    InPlace,
    Let,
    Loop,
    Operand,
    Place,
    Program,
    Raise,
    Ref,
    Stmt,
    Store,
    Var,
    statements,
    unused,
)


def source(*programs: Program) -> tuple[str, dict[str, Any]]:
    """(source of one function for each program, the objects that they refer to by name)."""
    writer = _Writer({name for program in programs for name in names_in(program)})
    for k, program in enumerate(programs):
        if k:
            writer.lines += ["", ""]
        first = program.body[0].line if program.body else 0
        writer.line(0, f"def {program.name}({', '.join(program.params)}):", first)
        *before, last = program.body or [None]
        if isinstance(last, Let) and last.target == RESULT:
            writer.statements(1, before)
            writer.line(1, f"return {writer.expression(last)}", last.line)
        else:
            writer.body(1, program.body)
            writer.line(1, f"return {RESULT}", 0)
    return "\n".join(writer.lines) + "\n", writer.space


def names_in(program: Program) -> set[str]:
    """The names that a program gives to itself and to its variables."""
    assigned = {s.target for s in statements(program.body) if isinstance(s, (Let, For))}
    return assigned | set(program.params) | {program.name}


class _Writer:
    def __init__(self, taken: set[str]) -> None:
        self.taken = taken
        self.lines: list[str] = []
        self.space: dict[str, Any] = {}
        self.last: Any = 0
        self.loops = 0  # around the statement that is written

    def line(self, depth: int, text: str, line: int) -> None:
        """One line; the user's line is named where it changes."""
        mark = ""
        place = (int(line), line.function) if isinstance(line, Place) else line
        if line and place != self.last:
            mark = f"  # line {int(line)}" + (f" of {line.function}" if isinstance(line, Place) else "")
            self.last = place
        self.lines.append("    " * depth + text + mark)

    def alone(self, x: Operand | Let) -> str:
        """An operand where nothing stands beside it."""
        return self.expression(x) if isinstance(x, Let) else self.operand(x)

    def operand(self, x: Operand | Let) -> str:
        if isinstance(x, Var):
            return x.name
        if isinstance(x, Let):  # an expression in the place of a variable
            text = self.expression(x)
            return f"({text})" if x.op in ("binary", "compare", "unary") else text
        if isinstance(x, Const):
            return literal(x.value)
        if getattr(x.value, "is_own_name", False):
            return x.value.name
        base = name = x.name if x.name.isidentifier() else "function"
        n = 1
        while name in self.taken or hasattr(builtins, name) or self.space.get(name, x.value) is not x.value:
            name = f"{base}_{n}"
            n += 1
        self.space[name] = x.value
        return name

    def body(self, depth: int, body: list[Stmt]) -> None:
        """Statements, one level in."""
        if not body:
            self.line(depth, "pass", 0)
        self.statements(depth, body)

    def statements(self, depth: int, body: list[Stmt]) -> None:
        """Statements, none perhaps."""
        for s in body:
            self.statement(depth, s)

    def statement(self, depth: int, s: Stmt) -> None:
        """One statement with what is inside it."""
        o = self.operand
        if isinstance(s, Let):
            self.line(depth, f"{s.target} = {self.expression(s)}", s.line)
        elif isinstance(s, Store):
            self.line(depth, f"{o(s.array)}[{o(s.index)}] = {self.alone(s.value)}", s.line)
        elif isinstance(s, InPlace):
            self.line(depth, f"{o(s.array)} {s.op}= {o(s.value)}", s.line)
        elif isinstance(s, Do):
            self.line(depth, self.expression(s.call), s.line)
        elif isinstance(s, If):
            self.line(depth, f"if {self.alone(s.test)}:", s.line)
            self.arm(depth + 1, s.then)
            if s.orelse:
                self.line(depth, "else:", 0)
                self.arm(depth + 1, s.orelse)
        elif isinstance(s, For):
            bounds = [o(s.start), o(s.stop), o(s.step)]
            if s.step == Const(1):
                bounds = bounds[:2] if s.start != Const(0) else bounds[1:2]
            self.loop(depth, f"for {s.target} in range({', '.join(bounds)}):", s)
        elif isinstance(s, Loop):
            test = "True"
            if not self.loops and assigns_when_it_leaves(s.body):
                test = unused("always", self.taken)
                self.line(depth, f"{test} = True", s.line)
            self.loop(depth, f"while {test}:", s)
        elif isinstance(s, Break):
            self.line(depth, "break", s.line)
        elif isinstance(s, Raise):
            name = o(Ref(s.exception, s.exception.__name__))
            self.line(depth, f"raise {name}({', '.join(map(o, s.args))})", s.line)

    def arm(self, depth: int, body: list[Stmt]) -> None:
        """An arm of a branch; one that leaves its loop is not inside of it."""
        leaves = bool(body) and isinstance(body[-1], Break)
        self.loops -= leaves
        self.body(depth, body)
        self.loops += leaves

    def loop(self, depth: int, head: str, s: For | Loop) -> None:
        """A loop that begins with the line `head`."""
        self.line(depth, head, s.line)
        self.loops += 1
        self.body(depth + 1, s.body)
        self.loops -= 1

    def expression(self, s: Let) -> str:
        """The right-hand side."""
        a = [self.operand(x) for x in s.args]
        if s.op == "copy":
            return self.alone(s.args[0])
        if s.op in ("binary", "compare"):
            return f"{a[0]} {s.detail} {a[1]}"
        if s.op == "unary":
            return f"not {a[0]}" if s.detail == "not" else f"{s.detail}{a[0]}"
        if s.op == "item":
            return f"{a[0]}[{a[1]}]"
        if s.op == "attribute":
            return f"{a[0]}.{s.detail}"
        if s.op == "tuple":
            return f"({', '.join(a)}{',' if len(a) == 1 else ''})"
        if s.op == "list":
            return f"[{', '.join(a)}]"
        if s.op == "slice":
            return f"slice({', '.join(a)})"
        if s.op == "call":
            return f"{a[0]}({', '.join(_with_keywords(list(map(self.alone, s.args[1:])), s.detail))})"
        if s.op == "method":
            name, keywords = s.detail
            return f"{a[0]}.{name}({', '.join(_with_keywords(a[1:], keywords))})"
        raise AssertionError(s.op)


def assigns_when_it_leaves(body: list[Stmt]) -> bool:
    """Whether an arm of a loop that leaves it assigns variables.

    Numba (0.68) takes a variable for a new one where it is assigned in a block that every way through the function
    passes, and from there on in the order of the bytecode. The only way out of `while True` is such a block, but code
    of the loop follows it, whose assignments are lost to the next iteration. A loop with a test has two ways out.
    """
    if body and isinstance(body[-1], Break):
        return any(isinstance(s, (Let, For, Loop, If)) for s in body)
    return any(
        assigns_when_it_leaves(s.then) or assigns_when_it_leaves(s.orelse) for s in body if isinstance(s, If)
    )


def _with_keywords(args: list[str], keywords: tuple[str, ...]) -> list[str]:
    if not keywords:
        return args
    return [
        *args[: -len(keywords)],
        *[f"{k}={a}" for k, a in zip(keywords, args[-len(keywords) :], strict=True)],
    ]


def literal(value: Any) -> str:
    """A constant as source."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return f"float('{value}')"
    if isinstance(value, complex):
        return f"complex({literal(value.real)}, {literal(value.imag)})"
    if value is Ellipsis:
        return "..."
    if isinstance(value, tuple):  # a constant, from Python 3.13 on
        return f"({', '.join(map(literal, value))},)" if value else "()"
    if value is None or isinstance(value, (int, float, str)):
        text = repr(value)
        return f"({text})" if text.startswith("-") else text
    return "..." if value is Ellipsis else value.__name__
