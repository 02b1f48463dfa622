"""From a control-flow graph to a tree: loops, branches and blocks recovered, jumps out of them turned into tails.

First every block is placed in the tree of dominators, which gives loops, branches and labelled blocks with exits
(N. Ramsey, "Beyond Relooper", ICFP 2022, sections 4 and 5). Then exits become ends of arms: what follows a branch
that may exit moves into the arm that does not, and where several may, a flag says which way was taken.
"""

from __future__ import annotations

import collections
import itertools
from dataclasses import dataclass
from typing import Any

from plaingrad.native.program.ir import Break, Const, If, Let, Loop, Raise, Stmt, Var

RETURN = "return"  # the label behind the whole program


@dataclass(slots=True)
class Exit:
    """Go to the end of the block, or the top of the loop, called `label`."""

    label: Any
    line: int = 0


@dataclass(slots=True)
class Block:
    """Statements that may be left by an `Exit(label)`."""

    label: Any
    body: list[Any]


@dataclass(slots=True)
class Graph:
    """A control-flow graph: what each block does, where it goes, what moves along an edge.

    Attributes:
        entry: the first block.
        body: block -> its statements.
        successors: block -> () at a return or raise, (next,) or (if true, if false).
        test: block with two successors -> the operand tested.
        moves: (from, to) -> statements to run on the way.
        lines: block -> the line of its end.
    """

    entry: Any
    body: dict[Any, list[Stmt]]
    successors: dict[Any, tuple[Any, ...]]
    test: dict[Any, Any]
    moves: dict[tuple[Any, Any], list[Stmt]]
    lines: dict[Any, int]


class Irreducible(Exception):
    """A loop has two entries; Python code makes none such."""


def structured(graph: Graph) -> list[Stmt]:
    """The statements of `graph` as a tree without jumps; chains of its blocks become one block each."""
    join_chains(graph)
    tree = [Block(RETURN, _Placer(graph).tree(graph.entry))]
    flags = itertools.count(1)
    return _without(RETURN, _lowered(tree, flags))


def join_chains(graph: Graph) -> None:
    """Make one block of blocks that always follow each other."""
    ways = collections.Counter(s for after in graph.successors.values() for s in after)
    ways[graph.entry] += 1
    for b in list(graph.body):
        if b not in graph.body:
            continue  # it has become part of another
        while len(after := graph.successors[b]) == 1 and ways[s := after[0]] == 1 and s != b:
            graph.body[b] += [*graph.moves.pop((b, s), ()), *graph.body.pop(s)]
            graph.successors[b] = graph.successors.pop(s)
            graph.lines[b] = graph.lines[s]
            if s in graph.test:
                graph.test[b] = graph.test.pop(s)
            for to in graph.successors[b]:
                if (s, to) in graph.moves:
                    graph.moves[b, to] = graph.moves.pop((s, to))


class _Placer:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.order = self._reverse_postorder()
        self.rank = {b: k for k, b in enumerate(self.order)}
        self.parents = self._dominators()
        forward: dict[Any, int] = dict.fromkeys(self.order, 0)
        self.loops: dict[Any, set[Any]] = {}  # header -> the blocks of its loop
        before = self._predecessors()
        for b in self.order:
            for s in graph.successors[b]:
                if self.rank[s] <= self.rank[b]:
                    if not self._dominates(s, b):
                        raise Irreducible
                    self._add_to_loop(self.loops.setdefault(s, {s}), b, before)
                else:
                    forward[s] += 1
        self.merges = {b for b, count in forward.items() if count > 1}
        self.children: dict[Any, list[Any]] = {b: [] for b in self.order}
        self.behind: dict[Any, list[Any]] = {
            h: [] for h in self.loops
        }  # header -> blocks that follow its loop
        for b in self.order[1:]:
            left = [h for h, loop in self.loops.items() if self.parents[b] in loop and b not in loop]
            if left:
                self.merges.add(b)
                self.behind[min(left, key=self.rank.__getitem__)].append(b)
            else:
                self.children[self.parents[b]].append(b)

    def _predecessors(self) -> dict[Any, list[Any]]:
        before: dict[Any, list[Any]] = {b: [] for b in self.order}
        for b in self.order:
            for s in self.graph.successors[b]:
                before[s].append(b)
        return before

    def _add_to_loop(self, loop: set[Any], end: Any, before: dict[Any, list[Any]]) -> None:
        stack = [end]
        while stack:
            b = stack.pop()
            if b not in loop:
                loop.add(b)
                stack += before[b]

    def _reverse_postorder(self) -> list[Any]:
        seen, order = {self.graph.entry}, []
        stack = [(self.graph.entry, iter(self.graph.successors[self.graph.entry]))]
        while stack:
            block, rest = stack[-1]
            for s in rest:
                if s not in seen:
                    seen.add(s)
                    stack.append((s, iter(self.graph.successors[s])))
                    break
            else:
                order.append(block)
                stack.pop()
        return order[::-1]

    def _dominators(self) -> dict[Any, Any]:
        """Immediate dominators (Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", 2001)."""
        before = self._predecessors()
        entry = self.order[0]
        found: dict[Any, Any] = {entry: entry}
        changed = True
        while changed:
            changed = False
            for b in self.order[1:]:
                new = None
                for p in before[b]:
                    if p in found:
                        new = p if new is None else self._meeting(found, p, new)
                if found.get(b) != new:
                    found[b] = new
                    changed = True
        return found

    def _meeting(self, found: dict[Any, Any], a: Any, b: Any) -> Any:
        while a != b:
            while self.rank[a] > self.rank[b]:
                a = found[a]
            while self.rank[b] > self.rank[a]:
                b = found[b]
        return a

    def _dominates(self, a: Any, b: Any) -> bool:
        while b != a and self.parents[b] != b:
            b = self.parents[b]
        return a == b

    def tree(self, block: Any) -> list[Any]:
        """Everything that `block` dominates."""
        merges = sorted((c for c in self.children[block] if c in self.merges), key=self.rank.__getitem__)
        out = self._within(block, merges)
        if block in self.loops:
            out = [_RawLoop(("top", block), out, self.graph.lines[block])]
            for later in sorted(self.behind[block], key=self.rank.__getitem__):
                out = [Block(later, out), *self.tree(later)]
        return out

    def _within(self, block: Any, merges: list[Any]) -> list[Any]:
        if merges:
            *inner, last = merges
            return [Block(last, self._within(block, inner)), *self.tree(last)]
        graph = self.graph
        out: list[Any] = list(graph.body[block])
        after = graph.successors[block]
        line = graph.lines[block]
        if len(after) == 2 and after[0] != after[1]:
            out.append(If(graph.test[block], self._go(block, after[0]), self._go(block, after[1]), line))
        elif after:
            out += self._go(block, after[0])
        elif not (out and isinstance(out[-1], Raise)):
            out.append(Exit(RETURN, line))
        return out

    def _go(self, block: Any, to: Any) -> list[Any]:
        out: list[Any] = list(self.graph.moves.get((block, to), ()))
        if self.rank[to] <= self.rank[block]:
            return [*out, Exit(("top", to), self.graph.lines[block])]
        if to in self.merges:
            return [*out, Exit(to, self.graph.lines[block])]
        return out + self.tree(to)


@dataclass(slots=True)
class _RawLoop:
    label: Any
    body: list[Any]
    line: int


def _lowered(nodes: list[Any], flags: Any) -> list[Any]:
    """`nodes` with blocks opened up; an `Exit` is left only where a list, or an arm at its end, ends."""
    out: list[Any] = []
    for k, node in enumerate(nodes):
        rest = nodes[k + 1 :]
        if isinstance(node, (Exit, Raise, Break)):
            out.append(node)
            return out
        if isinstance(node, If):
            if rest:  # by construction nothing follows a branch that exits on both ways
                then, orelse = _lowered(node.then, flags), _lowered(node.orelse, flags)
                return out + _followed([If(node.test, then, orelse, node.line)], rest, None, flags)
            out.append(If(node.test, _lowered(node.then, flags), _lowered(node.orelse, flags), node.line))
        elif isinstance(node, Block):
            return out + _followed(_lowered(node.body, flags), rest, node.label, flags)
        elif isinstance(node, _RawLoop):
            out += _lowered_loop(node, flags)
            return out
        else:
            out.append(node)
    return out


def _followed(body: list[Any], rest: list[Any], label: Any, flags: Any) -> list[Any]:
    """`body`, in which an exit to `label` goes on with `rest`."""
    ends = _exits(body)
    others = [end for end in ends if end != label]
    if not rest:
        return _without(label, body)
    if not others:
        return _without(label, body) + _lowered(rest, flags)
    if ends.count(label) + _falls(body) == 1:
        return _continued(label, body, _lowered(rest, flags))
    flag = f"exit_{next(flags)}"
    targets = sorted(set(others), key=str)
    code = {target: n for n, target in enumerate(targets, 1)}
    body = [Let(flag, "copy", (Const(0),)), *_without(label, _coded(body, code, flag, []))]
    return [*body, *_dispatched(flag, targets, _lowered(rest, flags))]


def _towards(flag: str, targets: list[Any]) -> list[Any]:
    """An exit to the target that `flag` names, the first being number 1; in tail position."""
    out: list[Any] = [Exit(targets[-1])]
    for n in range(len(targets) - 1, 0, -1):
        is_n = f"{flag}_is_{n}"
        out = [
            Let(is_n, "compare", (Var(flag), Const(n)), "=="),
            If(Var(is_n), [Exit(targets[n - 1])], out),
        ]
    return out


def _dispatched(flag: str, targets: list[Any], rest: list[Any]) -> list[Any]:
    """If no flag was raised `rest`, else an exit to the target it names; in tail position."""
    test = f"{flag}_none"
    return [Let(test, "compare", (Var(flag), Const(0)), "=="), If(Var(test), rest, _towards(flag, targets))]


def _lowered_loop(node: _RawLoop, flags: Any) -> list[Any]:
    body = _without(node.label, _lowered(node.body, flags))
    targets = sorted(set(_exits(body)), key=str)
    if len(targets) <= 1:
        loop = Loop(_coded(body, {}, None, [Break()]), node.line)
        return [loop, *[Exit(target) for target in targets]]
    flag = f"exit_{next(flags)}"
    code = {target: n for n, target in enumerate(targets, 1)}
    loop = Loop(_coded(body, code, flag, [Break()]), node.line)
    return [Let(flag, "copy", (Const(0),)), loop, *_towards(flag, targets)]


def _exits(body: list[Any]) -> list[Any]:
    """The labels of the exits at the ends of `body`, with repetition."""
    if not body:
        return []
    last = body[-1]
    if isinstance(last, Exit):
        return [last.label]
    if isinstance(last, If):
        return _exits(last.then) + _exits(last.orelse)
    return []


def _falls(body: list[Any]) -> int:
    """In how many places control may run off the end of `body`."""
    if not body:
        return 1
    last = body[-1]
    if isinstance(last, (Exit, Raise, Break)):
        return 0
    if isinstance(last, If):
        return _falls(last.then) + _falls(last.orelse)
    return 1


def _without(label: Any, body: list[Any]) -> list[Any]:
    """`body` with exits to `label`, which come next anyway, taken away."""
    return _continued(label, body, None)


def _continued(label: Any, body: list[Any], rest: list[Any] | None) -> list[Any]:
    """`body` going on with `rest` where it exits to `label` or, if `rest` is given, runs off its end."""
    if not body:
        return list(rest or ())
    last = body[-1]
    if isinstance(last, Exit):
        return [*body[:-1], *(rest or ())] if last.label == label else body
    if isinstance(last, If):
        then, orelse = _continued(label, last.then, rest), _continued(label, last.orelse, rest)
        return [*body[:-1], If(last.test, then, orelse, last.line)]
    if isinstance(last, (Raise, Break)) or rest is None:
        return body
    return [*body, *rest]


def _coded(body: list[Any], code: dict[Any, int], flag: str | None, ending: list[Any]) -> list[Any]:
    """`body` whose exits set `flag` to the number of their target and go on with `ending`."""
    if not body:
        return body
    last = body[-1]
    if isinstance(last, Exit):
        if flag is None or last.label in code:
            mark = [Let(flag, "copy", (Const(code[last.label]),), None, last.line)] if flag else []
            return [*body[:-1], *mark, *ending]
        return body
    if isinstance(last, If):
        then, orelse = _coded(last.then, code, flag, ending), _coded(last.orelse, code, flag, ending)
        return [*body[:-1], If(last.test, then, orelse, last.line)]
    return body
