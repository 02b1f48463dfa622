"""Writes into arrays that Numba drops when it puts closures in the place of their calls: whether they were wanted.

Numba (0.68) drops a write into an array that it takes for unused from there on, and overlooks views that come from
iteration. Here a write is dead only if nothing that can run after it reads the array, or anything that may share its
memory: whatever an expression takes shares memory with what it gives, except for arithmetic and calls that make arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numba.core import ir
from numba.core.analysis import compute_cfg_from_blocks

from plaingrad.native.program.union_find import Classes

NEW = frozenset(
    (
        "copy",
        "zeros",
        "ones",
        "empty",
        "full",
        "arange",
        "linspace",
        "eye",
        "zeros_like",
        "ones_like",
        "empty_like",
    )
)
HANDED_ON = frozenset(
    ("cast", "phi", "getattr", "getiter", "iternext", "pair_first", "build_tuple", "exhaust_iter")
)
LISTS = frozenset(("build_list", "build_map", "build_set"))


def writes(func_ir: Any) -> list[Any]:
    """The statements that write into arrays."""
    return [s for block in func_ir.blocks.values() for s in block.body if is_write(s)]


def is_write(s: Any) -> bool:
    """Whether a statement of the IR writes into an array."""
    return isinstance(s, (ir.SetItem, ir.StaticSetItem))


class Deadness:
    """Which writes of a function are dead; taken down before Numba changes its IR."""

    def __init__(self, func_ir: Any) -> None:
        blocks = func_ir.blocks
        self.memory = Classes()  # of variables that may share memory
        self.reads: list[tuple[Any, int, str]] = []  # (block, place in it, variable)
        self.places: dict[int, tuple[Any, int]] = {}  # id of a write -> (block, place in it)
        self.graph = compute_cfg_from_blocks(blocks)
        self.known_after: dict[Any, set[Any]] = {}  # what `after` has found
        self.calls = {  # variable that is called -> what it is called
            s.target.name: s.value.attr
            for s in _assignments(blocks)
            if isinstance(s.value, ir.Expr) and s.value.op == "getattr"
        }
        made = {s.value.op for s in _assignments(blocks) if isinstance(s.value, ir.Expr)}
        self.new = NEW if made.isdisjoint(LISTS) else NEW - {"copy"}  # a list's has the same arrays in it
        self.given: set[str] = set()  # arguments, which are read after the function
        for label, block in blocks.items():
            for place, s in enumerate(block.body):
                if is_write(s):
                    self.places[id(s)] = label, place
                self.reads += [(label, place, name) for name in self.read(s)]

    def read(self, s: Any) -> Iterator[str]:
        """The variables that a statement reads the memory of; what may share memory is joined."""
        if isinstance(s, ir.Del):
            return
        if is_write(s):
            self.memory.join(s.target.name, s.value.name)
            index = s.index if isinstance(s, ir.SetItem) else s.index_var
            if index is not None:
                yield index.name
            return
        if not isinstance(s, ir.Assign):
            yield from (v.name for v in s.list_vars())
            return
        target, value = s.target.name, s.value
        if isinstance(value, ir.Arg):
            self.given.add(target)
        elif isinstance(value, ir.Var):
            self.memory.join(target, value.name)
        elif isinstance(value, ir.Expr):
            shared = self.shared(value)
            for name in shared:
                self.memory.join(target, name)
            if value.op not in HANDED_ON:
                seen = (
                    {value.value.name}
                    if value.op in ("getitem", "static_getitem", "typed_getitem")
                    else set()
                )
                seen |= {value.lhs.name} if value.op == "inplace_binop" else set()
                yield from (v.name for v in value.list_vars() if v.name not in seen)

    def shared(self, value: Any) -> list[str]:
        """The variables whose memory the value of an expression may lie in."""
        if value.op in ("binop", "unary") or (
            value.op == "call" and self.calls.get(value.func.name) in self.new
        ):
            return []
        if value.op == "inplace_binop":
            return [value.lhs.name]
        return [v.name for v in value.list_vars()]

    def after(self, label: Any) -> set[Any]:
        """The blocks that may run after a block, which only blocks with writes are asked for."""
        if label not in self.known_after:
            self.known_after[label] = _reached(self.graph, label)
        return self.known_after[label]

    def is_dead(self, write: Any) -> bool:
        """Whether nothing reads what a write has written."""
        label, place = self.places[id(write)]
        memory = self.memory.of(write.target.name)
        if any(self.memory.of(name) == memory for name in self.given):
            return False
        return not any(
            self.memory.of(name) == memory and (block in self.after(label) or (block == label and at > place))
            for block, at, name in self.reads
        )


def _assignments(blocks: dict[Any, Any]) -> Iterator[Any]:
    return (s for block in blocks.values() for s in block.body if isinstance(s, ir.Assign))


def _reached(cfg: Any, label: Any) -> set[Any]:
    """The blocks that may run after a block."""
    found: set[Any] = set()
    open_ = [label]
    while open_:
        for successor, _ in cfg.successors(open_.pop()):
            if successor not in found:
                found.add(successor)
                open_.append(successor)
    return found
