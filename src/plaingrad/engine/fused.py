"""Runs of scalar arithmetic recorded in one step, with a generated straight-line adjoint.

The rewriter finds the runs (`plaingrad.rewrite.fusion`). Here each gets a recorder, called once behind the native
instructions with the values that matter, and an adjoint, called once in the reverse pass. Both are generated source,
made once a run; the recorder shares the cells of its level's hot hooks.
"""

from __future__ import annotations

import itertools
import linecache
import math
import threading
import weakref
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from plaingrad import rulebook
from plaingrad.engine.tape import CALLED
from plaingrad.rewrite.fusion import FUNCTIONS, Block, values_read

_sources: weakref.WeakKeyDictionary[Block, tuple[CodeType, Any]] = weakref.WeakKeyDictionary()
_lock = threading.RLock()  # a finaliser may come in between
_numbers = itertools.count(1)


class Blocks(dict):  # type: ignore[type-arg]
    """The recorders of one level, made when first asked for."""

    def __init__(self, cells: dict[str, Any]) -> None:
        super().__init__()
        self.cells = cells  # of the level's hot hooks, by name

    def __missing__(self, block: Block) -> Callable[..., None]:
        code, adjoint = sources_of(block)
        space = {"adjoint": adjoint, "CALLED": CALLED, "id": id}
        recorder = FunctionType(
            code, space, "record", None, tuple(self.cells[name] for name in code.co_freevars)
        )
        self[block] = recorder
        return recorder


def may_fuse() -> bool:
    """Whether the functions of `math` that runs may hold have plaingrad's own rules."""
    for function in FUNCTIONS.values():
        rule = rulebook.find(function)
        if rule is None or not rule.own or rule.kind != "scalar":
            return False
    return True


def sources_of(block: Block) -> tuple[CodeType, Any]:
    """The code of the recorder of `block`, and its adjoint."""
    found = _sources.get(block)
    if found is None:
        with _lock:
            found = _sources.get(block)
            if found is None:
                found = _sources[block] = (
                    recorder_code(block),
                    make_adjoint(block, block.outputs, space_of(block)),
                )
    return found


def recorder_code(block: Block) -> CodeType:
    """The recorder: nothing if no input is active, else one triple, and an identity for each result that lives on."""
    values = [f"v{k}" for k in block.passed]
    ins = [f"i{k}" for k in range(block.inputs)]
    outs = [f"n{k}" for k in block.outputs]
    # an active number that the tape itself holds could never be swept: the tape gets a copy
    filed = {*range(block.inputs), *block.outputs}
    kept = [f"v{k} * 1.0" if k in filed else f"v{k}" for k in kept_values(block)]
    lines = [
        "def make(n, limit, get, extend, push, index, sweep):",
        f" def record({', '.join(values)}):",
        "  nonlocal n",
    ]
    lines += [f"  i{k} = get(id(v{k}))" for k in range(block.inputs)]
    lines.append(f"  if {' and '.join(f'{i} is None' for i in ins) or 'True'}: return")
    for k in block.outputs:
        lines.append(f"  n{k} = n = n + 1")
    lines.append(f"  extend((({', '.join([*ins, *outs, *kept])},), CALLED, adjoint))")
    for k in block.outputs:
        lines += [f"  index[id(v{k})] = n{k}", f"  push(v{k})"]
    lines += ["  if n > limit: sweep()", " return record", ""]
    space: dict[str, Any] = {}
    exec(compiled("\n".join(lines)), space)
    make = space["make"]
    return make(0, 0, None, None, None, None, None).__code__


def kept_values(block: Block) -> list[int]:
    """The values that the adjoint reads, kept on the tape."""
    return sorted(values_read(block.operations, block.inputs))


def make_adjoint(block: Block, reached: tuple[int, ...], space: dict[str, Any]) -> Callable[..., None]:
    """adjoint(shadow, *indices of inputs and outputs, *kept values): the reverse of the run, straight down.

    It is made for cotangents at the outputs `reached` and none elsewhere: what received nothing must contribute
    nothing at all (not 0 times infinity). It looks first, and leaves other cases to `mixed`.
    """
    arguments = [f"i{k}" for k in range(block.inputs)] + [f"n{k}" for k in block.outputs]
    arguments += [f"v{k}" for k in kept_values(block)]
    lines = [f"def adjoint(shadow, {', '.join(arguments)}):", " bars = shadow.bars"]
    lines += [f" g{k} = bars[n{k}]" for k in block.outputs]
    others = [f"g{k} is None" if k in reached else f"g{k} is not None" for k in block.outputs]
    lines += [f" if {' or '.join(others)}:", f"  return mixed(block(), shadow, ({', '.join(arguments)},))"]
    lines += reversed_lines(block, set(reached), space)
    for k in range(block.inputs):
        lines += [f" if i{k} is not None and g{k} is not None:", f"  c = bars[i{k}]"]
        lines.append(f"  bars[i{k}] = g{k} if c is None else c + g{k}")
    exec(compiled("\n".join([*lines, ""])), space)
    return space["adjoint"]


def space_of(block: Block) -> dict[str, Any]:
    """The globals of the adjoints of `block`."""
    space: dict[str, Any] = {"math": math, "mixed": mixed, "block": weakref.ref(block), "__name__": __name__}
    for name in block.functions:
        rule = rulebook.find(FUNCTIONS[name])
        assert rule is not None
        space[f"p_{name}"] = rule.partials[0]
    return space


def reversed_lines(block: Block, reached: set[int], space: dict[str, Any]) -> list[str]:
    """The statements that carry the cotangents `g` of results back to the inputs; g of what is not reached is None."""
    lines: list[str] = []
    reached = set(reached)

    def add(operand: Any, term: str) -> None:
        if isinstance(operand, tuple):
            return
        if operand in reached:
            lines.append(f" g{operand} = g{operand} + {term}")
        else:
            lines.append(f" g{operand} = {term}")
            reached.add(operand)

    def read(operand: Any) -> str:
        if not isinstance(operand, tuple):
            return f"v{operand}"
        name = f"c{len(space)}"
        space[name] = operand[0]
        return name

    for k in reversed(range(len(block.operations))):
        kind, operands = block.operations[k]
        z = block.inputs + k
        if z not in reached:
            continue
        a = operands[0]
        b = operands[-1]
        if kind == "add":
            add(a, f"g{z}")
            add(b, f"g{z}")
        elif kind == "sub":
            add(a, f"g{z}")
            add(b, f"-g{z}")
        elif kind == "mul":
            add(a, f"g{z} * {read(b)}")
            add(b, f"g{z} * {read(a)}")
        elif kind == "truediv":
            add(a, f"g{z} / {read(b)}")
            add(b, f"-g{z} * v{z} / {read(b)}")
        elif kind == "neg":
            add(a, f"-g{z}")
        elif kind == "pow":
            n = b[0]
            add(a, f"g{z} * ({n} * {read(a)}" + (f" ** {n - 1})" if n > 2 else ")"))
        else:
            add(a, f"g{z} * p_{kind}(math, {read(a)}, v{z})")
    lines += [f" g{k} = None" for k in range(block.inputs) if k not in reached]
    return lines


def mixed(block: Block, shadow: Any, entry: tuple[Any, ...]) -> None:
    """The adjoint where other outputs received something than it was made for; it is that one's turn next time."""
    bars = shadow.bars
    reached = tuple(k for at, k in enumerate(block.outputs) if bars[entry[block.inputs + at]] is not None)
    if reached:
        usual = sources_of(block)[1]
        made = _variants.setdefault(block, {})
        if reached not in made:
            made[reached] = make_adjoint(block, reached, usual.__globals__)
            if len(made) == 1:
                usual.__code__ = made[reached].__code__
        made[reached](shadow, *entry)


_variants: weakref.WeakKeyDictionary[Block, dict[tuple[int, ...], Any]] = weakref.WeakKeyDictionary()


def compiled(source: str) -> CodeType:
    """`source`, compiled so that tracebacks and debuggers can show it."""
    filename = f"<plaingrad fused {next(_numbers)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    return compile(source, filename, "exec")
