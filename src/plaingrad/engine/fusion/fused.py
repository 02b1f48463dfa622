"""Runs of scalar arithmetic taken in one step, by generated straight-line code.

The rewriter finds the runs (`plaingrad.rewrite.fusion`). Here each gets a recorder, called once behind the native
instructions with the values that matter. What it does depends on the level:

- in reverse mode it puts one entry on the tape, with an adjoint that the reverse pass calls;
- in forward mode it computes the tangents of what lives on;
- in reverse mode inside forward mode it does both, and its adjoint carries back each cotangent with its tangent.

All of it is written by `engine.straight` from the same description of the run, made once a run and once for each
set of values that are active in it, and shares the cells of its level's hot hooks.
"""

from __future__ import annotations

import itertools
import linecache
import weakref
from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any

import numpy as np

from plaingrad import rulebook
from plaingrad.critical import exclusively, shared_lock
from plaingrad.engine.fusion.straight import SPACE, Straight, constant
from plaingrad.engine.memory.tape import CALLED, PAIRED
from plaingrad.rewrite import PLAIN
from plaingrad.rewrite.fusion import FUNCTIONS, Block, values_read

MANY = 50  # sets of active values that one run gets code of its own for; the rest is left to the hooks

_lock = shared_lock()  # a finaliser may come in between
_numbers = itertools.count(1)


def may_fuse() -> bool:
    """Whether the functions of `math` that runs may hold have plaingrad's own rules."""
    for function in FUNCTIONS.values():
        rule = rulebook.find(function)
        if rule is None or not rule.own or rule.kind != "scalar" or rule.frule is not None:
            return False
    return True


# -- the recorders of a level ------------------------------------------------------------------------------------------


class Blocks(dict):  # type: ignore[type-arg]
    """The recorders of one reverse level, made when first asked for."""

    def __init__(self, cells: dict[str, Any]) -> None:
        super().__init__()
        self.cells = cells  # of the level's hot hooks, by name

    def __missing__(self, block: Block) -> Callable[..., None]:
        recorder = self[block] = self.bound(made(block, reverse_recorder))
        return recorder

    def bound(self, template: FunctionType) -> FunctionType:
        """The recorder `template` with the cells of this level."""
        code = template.__code__
        cells = tuple([self.cells[name] for name in code.co_freevars])
        return FunctionType(code, template.__globals__, "record", None, cells)


class ForwardBlocks(Blocks):
    """The recorders of a forward level. Each is for one set of active inputs, and is replaced as that changes."""

    def __init__(self, level: Any, dot_of: Callable[[int], Any], cells: dict[str, Any]) -> None:
        super().__init__(cells)
        self.level = level
        self.dot_of = dot_of  # the tangent filed under an identity
        self.chunked = bool(level.lead)
        self.variants: dict[tuple[Block, tuple[int, ...]], Callable[..., None]] = {}
        cells["again"] = CellType(self.again)

    def __missing__(self, block: Block) -> Callable[..., None]:
        return lambda *values: self.again(block, *values)

    def again(self, block: Block, *values: Any) -> None:
        """Record with the recorder for what is active now, and expect the same next time."""
        moving = tuple([k for k in range(block.inputs) if self.dot_of(id(values[k])) is not None])
        recorder = self.variants.get((block, moving))
        if recorder is None:
            if sum(known is block for known, _ in self.variants) >= MANY:
                by_hooks(self.level, block, values)
                return
            recorder = self.variants[block, moving] = self.bound(self.template(block, moving))
        self[block] = recorder
        recorder(*values)

    def template(self, block: Block, moving: tuple[int, ...]) -> FunctionType:
        """The recorder where the inputs `moving` have tangents."""
        return made(block, forward_recorder, moving, self.chunked)


class PairedBlocks(ForwardBlocks):
    """The recorders of a reverse level whose parent is a forward level that carries one tangent."""

    def __init__(self, level: Any, cells: dict[str, Any]) -> None:
        super().__init__(level.parent, level.parent.index.get, cells)
        outer = level.parent.blocks
        self.level = level
        for name in ("n", "limit", "get", "push", "index", "sweep"):
            cells[f"outer_{name}"] = outer.cells[name]
        cells["outer_blocks"] = CellType(outer)

    def template(self, block: Block, moving: tuple[int, ...]) -> FunctionType:
        """The recorder where the inputs `moving` have tangents."""
        return made(block, Paired, moving).recorder


def cells_of(hooks: dict[str, Any]) -> dict[str, Any]:
    """The cells that the hot hooks of a level share, by name."""
    mul = hooks["mul"]
    return dict(zip(mul.__code__.co_freevars, mul.__closure__, strict=True))


def may_pair(level: Any) -> bool:
    """Whether a reverse level may take runs together with the forward level around it."""
    outer = level.parent
    return level.has_own_table and type(outer.blocks) is ForwardBlocks and not outer.lead and outer.fuses


def by_hooks(level: Any, block: Block, values: tuple[Any, ...]) -> None:
    """Record a run operation by operation: its results are computed again, and stand for the ones that live on."""
    found: list[Any] = list(values[: block.inputs])
    for kind, operands in block.operations:
        xs = [x[0] if isinstance(x, tuple) else found[x] for x in operands]
        hook = level.prep(FUNCTIONS[kind]) if kind in FUNCTIONS else getattr(level, kind)
        found.append(hook(*xs))
    place = dict(zip(block.passed, values, strict=True))
    while level is not PLAIN:
        for k in block.outputs:
            active = level.index.get(id(found[k]))
            if active is not None:
                level.alive.append(place[k])
                level.index[id(place[k])] = active
        level = level.parent


# -- what is made of a run ---------------------------------------------------------------------------------------------

_made: weakref.WeakKeyDictionary[Block, dict[Any, Any]] = weakref.WeakKeyDictionary()


def made(block: Block, make: Callable[..., Any], *parameters: Any) -> Any:
    """make(block, *parameters), made once."""
    known = _made.get(block)
    found = None if known is None else known.get((make, parameters))
    return exclusively(_lock, _made_now, block, make, parameters) if found is None else found


def _made_now(block: Block, make: Callable[..., Any], parameters: tuple[Any, ...]) -> Any:
    known = _made.setdefault(block, {})
    found = known.get((make, parameters))
    if found is None:
        found = known[make, parameters] = make(block, *parameters)
    return found


def straight_code(block: Block, moving: tuple[int, ...] = ()) -> Straight:
    """The operations of `block`: its values are v0, v1, ...; the tangents d of the inputs `moving` are pushed on."""
    code = Straight()
    for k, (kind, operands) in enumerate(block.operations):
        texts = []
        for x in operands:
            c = x[0] if isinstance(x, tuple) else None
            texts.append(f"v{x}" if c is None else str(c) if kind == "pow" else constant(c))
        code.emit(kind, *texts, name=f"v{block.inputs + k}")
    code.dots.update((f"v{k}", f"d{k}") for k in moving)
    code.push(list(code.operations))
    return code


def kept_values(block: Block) -> list[int]:
    """The values that the adjoint reads, kept on the tape."""
    return sorted(values_read(block.operations, block.inputs))


def kept_texts(block: Block) -> list[str]:
    """Those values for the tape: an active number that the tape itself holds could never be swept, it gets a copy."""
    filed = {*range(block.inputs), *block.outputs}
    return [f"v{k} * 1.0" if k in filed else f"v{k}" for k in kept_values(block)]


def places(block: Block) -> list[str]:
    """The names of the indices of inputs and outputs."""
    return [f"i{k}" for k in range(block.inputs)] + [f"n{k}" for k in block.outputs]


def values_of(block: Block) -> list[str]:
    """The names of the values that a recorder is called with."""
    return [f"v{k}" for k in block.passed]


CELLS = "n limit get extend push index sweep again "
CELLS += "outer_n outer_limit outer_get outer_push outer_index outer_sweep outer_blocks"


def recorder_of(block: Block, lines: list[str], space: dict[str, Any]) -> FunctionType:
    """record(*values passed) with these lines, to be bound to the cells of a level."""
    names = CELLS.split()
    head = [f"def make({', '.join(names)}):", f" def record({', '.join(values_of(block))}):"]
    make = function_of(block, [*head, *[" " + line for line in lines], " return record"], space, "make")
    return make(*[None] * len(names))


def function_of(block: Block, lines: list[str], space: dict[str, Any], name: str) -> FunctionType:
    """The function with these lines; tracebacks and debuggers can show them while the run is known."""
    filename = f"<plaingrad fused {next(_numbers)}>"
    source = "\n".join([*lines, ""])
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    weakref.finalize(block, linecache.cache.pop, filename, None).atexit = False
    space = {**SPACE, "id": id, "__name__": __name__, "block": weakref.ref(block), **space}
    exec(compile(source, filename, "exec"), space)
    return space[name]


def reverse_recorder(block: Block) -> FunctionType:
    """In reverse mode: nothing if no input is active, else one entry, and an identity for each result that lives on."""
    lines = [
        " nonlocal n",
        *[f" i{k} = get(id(v{k}))" for k in range(block.inputs)],
        f" if {idle(block)}: return",
    ]
    lines += [f" n{k} = n = n + 1" for k in block.outputs]
    lines.append(f" extend((({', '.join([*places(block), *kept_texts(block)])},), CALLED, adjoint))")
    for k in block.outputs:
        lines += [f" push(v{k})", f" index[id(v{k})] = n{k}"]
    lines.append(" if n > limit: sweep()")
    return recorder_of(block, lines, {"adjoint": made(block, usual_adjoint), "CALLED": CALLED})


def idle(block: Block, names: str = "i") -> str:
    """Whether no input has an index (i) or tangent (d)."""
    return " and ".join([f"{names}{k} is None" for k in range(block.inputs)])


def looked_up(block: Block, moving: tuple[int, ...], get: str, nothing: str = "") -> list[str]:
    """Look up the tangents d of the inputs. If they are not those of `moving`, another recorder has to do it.

    If there are none, and `nothing` holds as well, there is nothing to do.
    """
    surprises = [f"d{k} is {'' if k in moving else 'not '}None" for k in range(block.inputs)]
    return [
        *[f" d{k} = {get}(id(v{k}))" for k in range(block.inputs)],
        f" if {' or '.join(surprises)}:",
        *([f"  if {idle(block, 'd')}{nothing}: return"] if moving else []),
        f"  return again(block(), {', '.join(values_of(block))})",
    ]


def filed(outputs: list[int], dots: list[str], outer: str = "") -> list[str]:
    """File the tangents `dots` of the results `outputs` at the forward level."""
    if not outputs:
        return []
    lines = []
    for k, z_dot in zip(outputs, dots, strict=True):
        lines += [f" {outer}push(v{k})", f" {outer}index[id(v{k})] = {z_dot}"]
    return [*lines, f" {outer}n += {len(outputs)}", f" if {outer}n > {outer}limit: {outer}sweep()"]


def forward_recorder(block: Block, moving: tuple[int, ...], chunked: bool) -> FunctionType:
    """In forward mode: the tangents of the results that live on, where the inputs `moving` have tangents."""
    code = straight_code(block, moving)
    outputs = [k for k in block.outputs if f"v{k}" in code.dots]
    given = {*values_of(block), *[f"d{k}" for k in moving]}
    results = [code.dots[f"v{k}"] for k in outputs]
    lines = [" nonlocal n", *looked_up(block, moving, "get")]
    if chunked and results:
        lines += chunk_lines(code, results, [f"d{k}" for k in moving], given)
        dots = [f"z{at}" for at in range(len(results))]
    else:
        statements, dots = code.lines(results, given)
        lines += [f" {line}" for line in statements]
    return recorder_of(block, [*lines, *filed(outputs, dots)], {"errstate": np.errstate, "array": np.array})


def few(operations: int) -> int:
    """So many tangents are quicker computed one after another, a float each, than by so many operations of NumPy.

    From measurements: an operation on a short array costs as much as thirty on floats.
    """
    return max(0, int((9 * operations - 34) / (5 + 0.4 * operations)))


def chunk_lines(code: Straight, results: list[str], dots: list[str], given: set[str]) -> list[str]:
    """The lines that compute chunks of tangents z0, z1, ...: one tangent after another if they are few.

    What is the same for all of them is computed first.
    """
    needed = code.needed(results, given)
    moving = set(dots)
    for name in needed:
        if moving.intersection(code.operations[name][1]):
            moving.add(name)
    shared = {x for name in needed if name in moving for x in code.operations[name][1]}
    shared = [name for name in needed if name in shared - moving]
    first, texts = code.lines(shared, given)
    first += [f"{x} = {text}" for x, text in zip(shared, texts, strict=True) if x != text]
    statements, texts = code.lines(results, given | set(shared))
    names = [f"z{at}" for at in range(len(results))]
    together = [*statements, *[f"{z} = {text}" for z, text in zip(names, texts, strict=True)]]
    each = [*statements, f"rows.append(({', '.join(texts)},))"]
    return [
        *[f" {line}" for line in first],
        f" if len({dots[0]}) > {few(sum(name in moving for name in needed))}:",
        "  with errstate(all='ignore'):",  # the primal has warned, if there was anything to warn of
        *[f"   {line}" for line in together],
        " else:",
        "  rows = []",
        f"  for {', '.join(dots)}, in zip({', '.join(f'{x}.tolist()' for x in dots)}):",
        *[f"   {line}" for line in each],
        f"  {', '.join(names)}, = array(rows).T.copy()",
    ]


# -- adjoints ----------------------------------------------------------------------------------------------------------


def usual_adjoint(block: Block) -> FunctionType:
    """The adjoint on the tape."""
    return make_adjoint(block, block.outputs)


def make_adjoint(block: Block, reached: tuple[int, ...]) -> FunctionType:
    """adjoint(shadow, *indices of inputs and outputs, *kept values): the reverse of the run, straight down.

    It is made for cotangents at the outputs `reached` and none elsewhere: what received nothing must contribute
    nothing at all (not 0 times infinity). It looks first, and leaves other cases to `mixed`.
    """
    kept = [f"v{k}" for k in kept_values(block)]
    arguments = ", ".join([*places(block), *kept])
    code = straight_code(block)
    bars = {f"v{k}": f"g{k}" for k in reached}
    code.pull(list(code.operations), bars)
    found = [k for k in range(block.inputs) if f"v{k}" in bars]
    statements, texts = code.lines([bars[f"v{k}"] for k in found], {*kept, *[f"g{k}" for k in reached]})
    others = [f"g{k} is {'' if k in reached else 'not '}None" for k in block.outputs]
    lines = [f"def adjoint(shadow, {arguments}):", " bars = shadow.bars"]
    lines += [f" g{k} = bars[n{k}]" for k in block.outputs]
    lines += [f" if {' or '.join(others)}:", f"  return mixed(block(), shadow, ({arguments},))"]
    lines += [f" {line}" for line in statements]
    for k, x_bar in zip(found, texts, strict=True):
        lines += [f" if i{k} is not None:", f"  x_bar = {x_bar}", f"  c = bars[i{k}]"]
        lines.append(f"  bars[i{k}] = x_bar if c is None else c + x_bar")
    return function_of(block, lines, {"mixed": mixed}, "adjoint")


def mixed(block: Block, shadow: Any, entry: tuple[Any, ...]) -> None:
    """The adjoint where other outputs received something than it was made for; the first such is made the usual."""
    at = block.inputs
    reached = tuple(
        [k for k, n in zip(block.outputs, entry[at:], strict=False) if shadow.bars[n] is not None]
    )
    if reached:
        variant = made(block, make_adjoint, reached)
        make_usual(made(block, usual_adjoint), variant)
        variant(shadow, *entry)


def make_usual(adjoint: FunctionType, variant: FunctionType) -> None:
    """Let the adjoint on the tape do what `variant` does, if it has not been changed yet."""
    if not hasattr(adjoint, "changed"):
        adjoint.changed = True  # type: ignore[attr-defined]
        adjoint.__code__ = variant.__code__


class Paired:
    """A run in reverse mode inside forward mode, where the inputs `moving` have tangents.

    An entry on the tape holds the indices, the kept values, the tangents of these, and the slopes that the recorder
    has computed on the way.

    Attributes:
        recorder: files tangents and indices.
        adjoint: on the tape; carries cotangents and their tangents back.
        plain: the adjoint without tangents; its arguments are the first `count` of an entry.
        dotted: (place of a value, place of its tangent) in an entry.
    """

    def __init__(self, block: Block, moving: tuple[int, ...]) -> None:
        self.block = weakref.ref(block)
        self.moving = moving
        kept = [f"v{k}" for k in kept_values(block)]
        self.plain = made(block, usual_adjoint)
        code = straight_code(block, moving)
        outputs = [k for k in block.outputs if f"v{k}" in code.dots]
        dots = list(dict.fromkeys(code.dots[x] for x in kept if x in code.dots))
        given = {*values_of(block), *[f"d{k}" for k in moving]}
        results = [*[code.dots[f"v{k}"] for k in outputs], *dots]
        slopes = [x for x in code.needed(results, given) if code.operations[x][0] in FUNCTIONS]
        self.arguments = [*places(block), *kept, *dots, *slopes]
        self.count = len(places(block)) + len(kept)
        at = {x: place for place, x in enumerate(self.arguments)}
        self.dotted = [(at[x], at[code.dots[x]]) for x in kept if x in code.dots]
        self.adjoint = self.make_adjoint(block, block.outputs, block.outputs)
        self.adjoint.paired = self  # type: ignore[attr-defined]
        statements, texts = code.lines([*results, *slopes], given)
        known = dict(zip([*results, *slopes], texts, strict=True))
        entry = [*places(block), *kept_texts(block), *[known[x] for x in (*dots, *slopes)]]
        lines = [" nonlocal n, outer_n"]
        lines += [f" i{k} = get(id(v{k}))" for k in range(block.inputs)]
        lines += looked_up(block, moving, "outer_get", f" and {idle(block)}")
        only_pushed = f" outer_blocks[block()]({', '.join(values_of(block))})" if moving else ""
        lines.append(f" if {idle(block)}: return{only_pushed}")
        lines += [f" n{k} = n = n + 1" for k in block.outputs]
        lines += [f" {line}" for line in statements]
        lines.append(f" extend((({', '.join(entry)},), PAIRED, adjoint))")
        for k in block.outputs:
            lines += [f" push(v{k})", f" index[id(v{k})] = n{k}"]
        lines += [" if n > limit: sweep()", *filed(outputs, texts[: len(outputs)], "outer_")]
        self.recorder = recorder_of(block, lines, {"adjoint": self.adjoint, "PAIRED": PAIRED})

    def make_adjoint(self, block: Block, reached: tuple[int, ...], dotted: tuple[int, ...]) -> FunctionType:
        """adjoint(bars, dots, dot_of, *entry): `bars` are cotangents by index, `dots` their tangents.

        It is made for cotangents at the outputs `reached`, with tangents for `dotted` among them. A cotangent that
        was not computed here may have its tangent in the table of the forward level, where `dot_of` finds it.
        """
        code = straight_code(block, self.moving)
        bars = {f"v{k}": f"g{k}" for k in reached}
        code.pull([f"v{block.inputs + k}" for k in range(len(block.operations))], bars)
        code.dots.update((f"g{k}", f"h{k}") for k in dotted)
        known = {*code.dots, *code.dots.values()}
        code.push([x for x in code.operations if x not in known])
        found = [k for k in range(block.inputs) if f"v{k}" in bars]
        x_bars = [bars[f"v{k}"] for k in found]
        x_dots = [code.dots.get(x_bar) for x_bar in x_bars]
        given = {*self.arguments, *[f"g{k}" for k in reached], *[f"h{k}" for k in dotted]}
        statements, texts = code.lines([*x_bars, *[x for x in x_dots if x is not None]], given)
        written = iter(texts[len(found) :])
        arguments = ", ".join(self.arguments)
        lines = [f"def adjoint(bars, dots, dot_of, {arguments}):"]
        surprises = []
        for k in block.outputs:
            lines += [f" g{k} = bars[n{k}]", f" h{k} = dots.pop(n{k}, None)"]
            lines.append(f" if h{k} is None: h{k} = dot_of(id(g{k}))")
            if k in dotted:
                surprises.append(f"h{k} is None")
            elif k in reached:
                surprises.append(f"g{k} is None or h{k} is not None")
            else:
                surprises.append(f"g{k} is not None")
        tangents = ", ".join([f"h{k}" for k in block.outputs])
        lines.append(f" if {' or '.join(surprises)}:")
        lines.append(f"  return mixed(block(), bars, dots, dot_of, ({arguments},), ({tangents},))")
        lines += [f" {line}" for line in statements]
        for k, x_bar, x_dot in zip(found, texts, x_dots, strict=False):
            dot = None if x_dot is None else next(written)
            lines += [f" if i{k} is not None:", f"  x_bar = {x_bar}", f"  x_dot = {dot}", f"  c = bars[i{k}]"]
            lines += ["  if c is not None:", "   x_bar = c + x_bar"]
            lines += [f"   e = dots.get(i{k})", "   if e is None: e = dot_of(id(c))"]
            if dot is None:
                lines.append(f"   if e is not None: dots[i{k}] = e")
            else:
                lines += ["   if e is not None: x_dot = e + x_dot", f"  dots[i{k}] = x_dot"]
            lines.append(f"  bars[i{k}] = x_bar")
        return function_of(block, lines, {"mixed": self.mixed}, "adjoint")

    def mixed(self, block: Block, bars: Any, dots: Any, dot_of: Any, entry: Any, tangents: Any) -> None:
        """The adjoint where something else arrived than it was made for; see `mixed`."""
        indices = entry[block.inputs : block.inputs + len(block.outputs)]
        for n, h in zip(indices, tangents, strict=True):
            if h is not None:
                dots[n] = h
        reached = tuple([k for k, n in zip(block.outputs, indices, strict=True) if bars[n] is not None])
        dotted = tuple([k for k, h in zip(block.outputs, tangents, strict=True) if h is not None])
        if reached:
            variant = made(block, self.variant, reached, dotted)
            if dotted or not self.moving:
                make_usual(self.adjoint, variant)
            variant(bars, dots, dot_of, *entry)

    def variant(self, block: Block, reached: tuple[int, ...], dotted: tuple[int, ...]) -> FunctionType:
        """One more adjoint."""
        return self.make_adjoint(block, reached, dotted)
