"""Induction variables: a `while` loop that counts becomes a counted loop.

`while i < n: ...; i += 1`, where the loop assigns neither `n` nor what it is made of, is `for i in range(i, n)`: the
number of iterations is known when it is entered, and all forms of counted loops fit. CPython tests such a loop at its
end, behind a test in front of it; that one goes where a loop of no iterations gives the same values.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from plaingrad.native.analysis.invariants import Invariants, assigned_in, is_same
from plaingrad.native.program.ir import (
    Break,
    Const,
    For,
    If,
    Let,
    Loop,
    Operand,
    Program,
    Ref,
    Stmt,
    Var,
    breaks,
    reads_of,
    renamed,
    statements,
    with_inner,
    without_assignments,
)
from plaingrad.native.runtime.helpers import trips

NOT = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
FARTHEST = 2**31  # steps: a longer one could go past the largest integer and come back

Test = tuple[str, Operand, Operand]  # operator, left, right


def counted_loops(program: Program) -> Program:
    """`program` with `for` loops in place of `while` loops that count."""
    if not any(isinstance(s, Loop) for s in statements(program.body)):
        return program
    work = _Counting(program)
    body = work.body(program.body, ())
    while work.old:
        dead = work.old - reads_of(body)
        if not dead:
            break
        body = without_assignments(body, dead)
        work.old -= dead
    return replace(program, body=body, types=work.known.types)


@dataclass(slots=True)
class _End:
    """The way out of a loop, and what it counts.

    Attributes:
        front: the statements in front of the test.
        onward: those of an iteration behind it.
        leaving: those done on leaving.
        counter: the variable that counts.
        next: the one with the next number.
        step: by which it counts.
        at_end: whether the test stands where an iteration ends, and asks for the next number.
        test: the test to go on: its operator, the bound.
    """

    front: list[Stmt]
    onward: list[Stmt]
    leaving: list[Stmt]
    counter: str = ""
    next: str = ""
    step: int = 0
    at_end: bool = False
    test: tuple[str, Operand] = ("", Const(0))


class _Counting:
    """The pass on one program.

    Attributes:
        known: what is known of its values.
        old: variables that are not read any more, perhaps.
        tests: the variable of a counted loop -> the test that holds where it runs at all.
        ends: what a counter is behind its loop -> what it is where the loop does not run.
    """

    def __init__(self, program: Program) -> None:
        self.known = Invariants(program)
        self.old: set[str] = set()
        self.tests: dict[str, Test] = {}
        self.ends: dict[str, Operand] = {}

    # -- the tree ------------------------------------------------------------------------------------------------------

    def body(self, body: list[Stmt], sure: tuple[Test, ...]) -> list[Stmt]:
        """Statements where the tests `sure` hold."""
        out: list[Stmt] = []
        for s in body:
            if isinstance(s, If):
                out += self.branch(s, sure)
                continue
            made = self.counted(s, out, sure) if isinstance(s, Loop) else None
            if made is None:
                out.append(with_inner(s, lambda inner: self.body(inner, sure)))
                continue
            before, loop, after = made
            self.known.learn([*before, loop, *after])
            out += [*before, replace(loop, body=self.body(loop.body, sure)), *after]
        return out

    def branch(self, s: If, sure: tuple[Test, ...]) -> list[Stmt]:
        """A branch, or, of one around a loop that counts, what is left if the loop may as well run no iteration."""
        test = self.test_of(s.test)
        if test is None:
            return [with_inner(s, lambda inner: self.body(inner, sure))]
        op, a, b = test
        then, orelse = self.body(s.then, (*sure, test)), self.body(s.orelse, (*sure, (NOT[op], a, b)))
        for runs, arm, other in ((test, then, orelse), ((NOT[op], a, b), orelse, then)):
            arm = [*self.given_inside(arm, other), *arm]
            if self.is_superfluous(runs, arm, other):
                self.old |= {s.test.name} if isinstance(s.test, Var) else set()
                self.known.assigned -= Counter(x.target for x in other if isinstance(x, Let))
                return arm
        return [If(s.test, then, orelse, s.line)]

    def is_superfluous(self, test: Test, arm: list[Stmt], other: list[Stmt]) -> bool:
        """Whether `arm` is a counted loop that runs only where `test` holds, and gives else what `other` gives."""
        loops = [k for k, s in enumerate(arm) if isinstance(s, For)]
        runs = self.tests.get(arm[loops[0]].target) if len(loops) == 1 else None  # type: ignore[union-attr]
        if runs is None or not self.is_one(runs, test) or not all(map(_is_copy, other)):
            return False
        values: dict[str, Operand] = {}
        for k, s in enumerate(arm):
            if k == loops[0]:
                continue
            if not isinstance(s, Let) or not self.known.is_harmless(s):
                return False
            source = s.args[0]
            values[s.target] = Var(s.target)
            if s.op == "copy":
                values[s.target] = values.get(source.name, source) if isinstance(source, Var) else source
            if s.target in self.ends:
                values[s.target] = self.ends[s.target]
        given: Any = other
        inside = Counter(s.target for s in statements(arm) if isinstance(s, (Let, For)))
        left = inside.keys() - {s.target for s in given}
        if any(self.known.assigned[name] > inside[name] for name in left):
            return False  # it keeps its value where the loop does not run
        return all(s.target in values and is_same(values[s.target], s.args[0]) for s in given)

    def given_inside(self, arm: list[Stmt], other: list[Stmt]) -> list[Stmt]:
        """The statements of `other` that give values to what else the iterations of a loop in `arm` do."""
        assigned = assigned_in(arm)
        inside = {name for s in arm if isinstance(s, For) for name in assigned_in(s.body)}
        inside -= {s.target for s in arm if isinstance(s, Let)}
        return [
            s
            for s in other
            if _is_copy(s) and s.target in inside and s.args[0] not in map(Var, assigned)  # type: ignore[union-attr]
        ]

    # -- tests ---------------------------------------------------------------------------------------------------------

    def test_of(self, x: Operand) -> Test | None:
        """The comparison of integers that an operand is; None where one of these may have changed since."""
        d = self.known.definition(x)
        if d is None or d.op != "compare" or d.detail not in NOT:
            return None
        if not all(self.known.is_integer(a) and self.known.is_steady(a) for a in d.args):
            return None
        return d.detail, d.args[0], d.args[1]

    def is_one(self, one: Test, other: Test) -> bool:
        """Whether two tests are the same."""
        (a, *xs), (b, *ys) = one, other
        x, y = [map(self.known.number, zs) for zs in (xs, ys)]
        found, wanted = (a, *x), (b, *y)
        return found == wanted or (TURNED[found[0]], found[2], found[1]) == wanted

    def holds(self, test: Test, sure: tuple[Test, ...]) -> bool:
        """Whether a test surely holds."""
        op, a, b = test
        if isinstance(a, Const) and isinstance(b, Const):
            return {"<": a.value < b.value, "<=": a.value <= b.value, ">": a.value > b.value}.get(
                op, a.value >= b.value
            )
        return any(self.is_one(test, other) for other in sure)

    # -- one loop ------------------------------------------------------------------------------------------------------

    def counted(
        self, s: Loop, out: list[Stmt], sure: tuple[Test, ...]
    ) -> tuple[list[Stmt], For, list[Stmt]] | None:
        """(statements before, the `for` loop, statements behind) for a loop behind the statements `out`; or None."""
        inside = assigned_in(s.body)
        end = self.end_of(s, inside)
        if end is None:
            return None
        i = end.counter
        op, bound = end.test
        start = self.start_of(i, out, inside)
        moves = [x for x in end.onward if isinstance(x, Let) and x.op == "copy"]
        carried = {x.target for x in moves}
        inside = assigned_in([*end.front, *end.onward])
        outside = self.known.reads - self.known.reads_in([s])
        read = {name for name in inside if outside[name]}
        if not end.at_end and read - carried:
            return None
        before: list[Stmt] = []
        bound = self.known.before(bound, inside, before)
        if end.at_end and not self.holds((op, start, bound), sure):
            return None  # it runs once before the test
        stop = self.stop_of(op, bound, before, s.line)
        count, far, last = (self.known.fresh(f"{i}_{word}") for word in ("count", "far", "end"))
        final = [
            Let(count, "call", (Ref(trips, "trips"), start, stop, Const(end.step)), (), s.line),
            Let(far, "binary", (Var(count), Const(end.step)), "*", s.line),
            Let(last, "binary", (start, Var(far)), "+", s.line),
        ]
        new = {name: self.known.unused(name) for name in read} if end.at_end else {}
        end.leaving += [Let(name, "copy", (Var(name),), None, s.line) for name in sorted(new)]
        each: list[Stmt] = []
        if end.at_end:
            after = self.left(end, inside, moves, last, each)
        else:
            after = self.left_at_top(end, last, bool(outside[i]))
        if after is None:
            return None
        k = self.known.fresh(i)
        self.known.assigned[i] -= 1
        self.tests[k] = op, start, bound
        self.ends[last] = start
        onward = [x for x in end.onward if not (isinstance(x, Let) and x.target == i)]
        self.old |= {i, end.next, count, far, last}
        self.old |= {x.target for x in end.front if isinstance(x, Let) and self.known.is_harmless(x)}
        body = renamed([*end.front, *each, *onward], {**new, i: k})
        return before, For(k, start, stop, Const(end.step), body, s.line), [*final, *after]

    def end_of(self, s: Loop, inside: set[str]) -> _End | None:
        """How a loop ends that counts; None for any other."""
        last = s.body[-1] if s.body else None
        if not isinstance(last, If) or breaks(last.then) == breaks(last.orelse):
            return None
        leaves_if = breaks(last.then)
        leaving, onward = (last.then, last.orelse) if leaves_if else (last.orelse, last.then)
        if not isinstance(leaving[-1], Break) or not all(map(_is_copy, leaving[:-1])):
            return None
        found = _End(s.body[:-1], onward, leaving[:-1])
        test = self.known.definition(last.test)
        if test is None or test.op != "compare" or test.detail not in NOT or test.target not in inside:
            return None
        op = NOT[test.detail] if leaves_if else test.detail
        a, b = test.args
        for sign, x, bound in ((op, a, b), (TURNED[op], b, a)):
            if self.counts(found, x, sign) and self.is_bound(bound, inside):
                found.test = sign, bound
                return found if self.is_alone(found, s) else None
        return None

    def counts(self, end: _End, x: Operand, op: str) -> bool:
        """Whether the loop counts by x, the counter at its top or the next number at its end, towards a bound."""
        if not isinstance(x, Var) or not self.known.is_integer(x):
            return False
        moves = {s.target: s.args[0] for s in end.onward if _is_copy(s)}  # type: ignore[union-attr]
        if all(map(_is_copy, end.onward)) and any(source == x for source in moves.values()):
            end.next, end.at_end = x.name, True
            end.counter = next(name for name, source in moves.items() if source == x)
        elif isinstance(moves.get(x.name), Var) and all(map(self.known.is_harmless, end.front)):
            end.counter, end.next, end.at_end = x.name, moves[x.name].name, False
        else:
            return False
        d = self.known.definition(Var(end.next))
        counter = Var(end.counter)
        if d is None or d.op != "binary" or d.detail not in ("+", "-") or not self.known.is_integer(counter):
            return False
        a, b = d.args if d.args[0] == counter or d.detail == "-" else reversed(d.args)
        if a != counter or not isinstance(b, Const) or type(b.value) is not int:
            return False
        end.step = b.value if d.detail == "+" else -b.value
        return 0 < abs(end.step) < FARTHEST and (op in ("<", "<=")) == (end.step > 0)

    def is_bound(self, bound: Operand, inside: set[str]) -> bool:
        """Whether a loop leaves the integer as it is."""
        return self.known.is_integer(bound) and self.known.is_fixed(bound, inside)

    def is_alone(self, end: _End, s: Loop) -> bool:
        """Whether the counter changes only where an iteration ends, to the next number, which each one computes."""
        assigned = [x for x in statements(s.body) if isinstance(x, (Let, For)) and x.target == end.counter]
        where = [k for k, x in enumerate(end.onward) if x in assigned]
        if len(assigned) != 1 or len(where) != 1:
            return False
        behind = end.onward[where[0] + 1 :]
        every = [*end.front, *end.onward]
        return (
            all(map(_is_copy, behind))
            and not any(x.args[0] == Var(end.counter) for x in behind)  # type: ignore[union-attr]
            and any(isinstance(x, Let) and x.target == end.next for x in every)
            and not breaks(end.onward)
        )

    def start_of(self, i: str, out: list[Stmt], inside: set[str]) -> Operand:
        """What a counter begins with."""
        later: set[str] = set()
        for s in reversed(out):
            if isinstance(s, Let) and s.target == i:
                x = s.args[0]
                if s.op == "copy" and not (isinstance(x, Var) and x.name in later | inside):
                    return x if self.known.is_integer(x) else Var(i)
                break
            later |= assigned_in([s])
            if i in later:
                break
        return Var(i)

    def stop_of(self, op: str, bound: Operand, before: list[Stmt], line: int) -> Operand:
        """The number in front of which a `range` ends."""
        if op in ("<", ">"):
            return bound
        one = 1 if op == "<=" else -1
        if isinstance(bound, Const):
            return Const(bound.value + one)
        name = self.known.fresh("stop")
        before.append(Let(name, "binary", (bound, Const(one)), "+", line))
        return Var(name)

    def left(
        self, end: _End, inside: set[str], moves: list[Let], last: str, each: list[Stmt]
    ) -> list[Stmt] | None:
        """What is done behind the loop where the test stands at its end: the moves of the last iteration are done.

        What has its value only until then is kept in every iteration, by statements that go to `each`.
        """
        now: dict[str, Operand] = {}  # a variable -> the value at the test that it has then
        for s in moves:
            now[s.target] = now.get(s.args[0].name, s.args[0]) if isinstance(s.args[0], Var) else s.args[0]
        places = {x.name: name for name, x in now.items() if isinstance(x, Var) and name != end.counter}
        out: list[Stmt] = []
        done: set[str] = set()
        for s in end.leaving:
            assert isinstance(s, Let)
            x = s.args[0]
            if isinstance(x, Var) and x.name in inside:
                if x.name != end.next and x.name not in places:
                    if x.name == end.counter or s.target in inside or s.target in self.known.reads_in(moves):
                        return None
                    each.append(s)
                    continue
                x = Var(last if x.name == end.next else places[x.name])
            if isinstance(x, Var) and x.name in done:
                return None
            done.add(s.target)
            out.append(Let(s.target, "copy", (x,), None, s.line))
        return out

    def left_at_top(self, end: _End, last: str, is_read: bool) -> list[Stmt] | None:
        """What is done behind the loop where the test stands at its top."""
        made = assigned_in(end.front)
        if any(isinstance(x, Var) and x.name in made for s in end.leaving for x in s.args):  # type: ignore[union-attr]
            return None
        after: list[Stmt] = [Let(end.counter, "copy", (Var(last),), None, 0)] if is_read else []
        return [*after, *renamed(end.leaving, {end.counter: last})]


def _is_copy(s: Stmt) -> bool:
    return isinstance(s, Let) and s.op == "copy"
