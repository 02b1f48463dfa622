"""Reverse mode inside forward mode, one number at a time: hooks that know both levels, and their reverse pass.

What a reverse level does is differentiated by the forward level around it. For arithmetic on floats that need not go
through the hooks of the forward level: here an operation computes its tangent and files it there, and where its
partial derivative moves, it goes on the tape with its tangent beside it. Runs of operations are `engine.fused`'s.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from types import CellType
from typing import Any

import numpy as np

from plaingrad import rulebook
from plaingrad.engine.fusion.fused import CELLS, PairedBlocks
from plaingrad.engine.fusion.hot_hooks import OPERATORS
from plaingrad.engine.fusion.reverse_in_forward_steps import slope_back, slopes_back
from plaingrad.engine.fusion.straight import SPACE, Straight
from plaingrad.engine.memory.memory import Shadow
from plaingrad.engine.memory.regions import Region
from plaingrad.engine.memory.tape import CALLED, PAIRED, read_number_back
from plaingrad.engine.reverse.nested_reverse import called_back, reversed_from, step_back
from plaingrad.rewrite.fusion import FUNCTIONS


def reverse_pairs(outer: Any, level: Any, end: int, shadow: Shadow, undone: list[Any]) -> None:
    """The reverse pass at level `outer`, a forward level around `level`: cotangents go beside their tangents.

    The tangents of cotangents are kept in `dots` by index, and filed at `outer` before any other step is taken.
    """
    dot_of = outer.index.get
    bars = shadow.bars
    dots: dict[int, Any] = {}

    def file_dots() -> None:
        for k, x_dot in dots.items():
            file_tangent(outer, bars[k], x_dot)
        dots.clear()

    back = reversed_from(level.tape, end)
    for partial, i, o in zip(back, back, back, strict=True):
        if i >= 0:
            z_bar = bars[o]
            if type(z_bar) is float and type(partial) is float:  # as in `slope_back`
                z_dot = dots.get(o)
                if z_dot is None:
                    z_dot = dot_of(id(z_bar))
                slope_dot = dot_of(id(partial))
                term_dot = None if z_dot is None else z_dot * partial
                if slope_dot is not None:
                    term_dot = z_bar * slope_dot if term_dot is None else term_dot + z_bar * slope_dot
                x_bar = bars[i]
                if x_bar is None:
                    bars[i] = z_bar * partial
                else:
                    x_dot = dots.get(i)
                    if x_dot is None:
                        x_dot = dot_of(id(x_bar))
                    if x_dot is not None:
                        term_dot = x_dot if term_dot is None else x_dot + term_dot
                    bars[i] = x_bar + z_bar * partial
                if term_dot is not None:
                    dots[i] = term_dot
            elif z_bar is not None:
                file_dots()
                term = outer.mul(z_bar, partial)
                x_bar = bars[i]
                bars[i] = term if x_bar is None else outer.add(x_bar, term)
        elif i == PAIRED:
            partial(bars, dots, dot_of, *o)
        elif partial is read_number_back and added_to_element(outer, shadow, dots, *o):
            pass
        else:
            if dots:
                file_dots()
            if i == CALLED:
                called_back(outer, partial, shadow, o)
            else:
                step_back(outer, partial, shadow, undone)
    for k in dots.keys() & range(level.inputs):
        file_tangent(outer, bars[k], dots[k])


def added_to_element(
    outer: Any, shadow: Shadow, dots: dict[int, Any], n: int, i: int, a: np.ndarray, k: Any
) -> bool:
    """`read_number_back` where memory for the cotangent of `a`, and for its tangent, is there; False if not."""
    z_bar = shadow.bars[n]
    if z_bar is None:
        return True
    if a.base is not None or i not in shadow.owned:
        return False
    a_bar = shadow.bars[i]
    region = outer.index.get(id(a_bar))
    if type(region) is not Region or type(z_bar) is not float:
        return False
    z_dot = dots.pop(n, None)
    if z_dot is None:
        z_dot = outer.index.get(id(z_bar))
    a_bar[k] += z_bar
    if z_dot is not None:
        region.writable(a_bar)[k] += z_dot
    return True


def file_tangent(level: Any, x: Any, x_dot: Any) -> None:
    """File the number `x` as active at a forward level, if it is not."""
    if id(x) not in level.index:
        level.alive.append(x)
        level.index[id(x)] = x_dot


# -- hooks -------------------------------------------------------------------------------------------------------------

_FILED = """\
o = n = n + 1
extend(({entry}))
push({z})
index[id({z})] = o
if o > limit: sweep()
outer_push({z})
outer_index[id({z})] = z_dot
outer_n += 1
if outer_n > outer_limit: outer_sweep()
return {z}"""

# Operands that move at one of the two levels only are left to the hooks that go through the forward level.
_BINARY = """\
def hook(a, b):
    nonlocal n, outer_n
    ta = type(a)
    tb = type(b)
    if (
        (ta is float or ta is int or ta is number64)
        and (tb is float or tb is int or tb is number64)
        and not ({pole})
    ):
        i = get(id(a))
        j = get(id(b))
        a_dot = outer_get(id(a))
        b_dot = outer_get(id(b))
        if (i is None) is not (a_dot is None) or (j is None) is not (b_dot is None):
            return nested_{name}(a, b)
        number = a {op} b
        if i is None and j is None:
            return number
        if ta is float and tb is float:
            z = number
        else:
            a = float(a)
            b = float(b)
            z = float(number)
        if i is None:
            b_dot = float(b_dot)
{only_b}
        if j is None:
            a_dot = float(a_dot)
{only_a}
{both}
    return nested_{name}(a, b)
"""
_POLES = {"truediv": "b == 0"}

# Where NumPy's number overflows, Python's float raises: a square is the only power whose slopes are none.
_POW = """\
def hook(a, b):
    nonlocal n, outer_n
    ta = type(a)
    if type(b) is int and (b == 2 and ta is number64 or 2 <= b <= 8 and ta is float):
        i = get(id(a))
        a_dot = outer_get(id(a))
        if i is not None and a_dot is not None:
            number = a ** b
            a = float(a)
            if b == 2:
                slope = 2.0 * a
                slope_dot = 2.0 * a_dot
            else:
                slope = b * a ** (b - 1)
                slope_dot = b * (b - 1) * a ** (b - 2) * a_dot
            z_dot = slope * a_dot
{filed}
        if i is None and a_dot is None:
            return a ** b
    return nested_{name}(a, b)
"""

_UNARY = """\
def hook(x, *others):
    nonlocal n, outer_n
    if type(x) is float and not others:
        i = get(id(x))
        x_dot = outer_get(id(x))
        if i is not None and x_dot is not None:
            z = {f}(x)
{statements}
{filed}
        if i is None and x_dot is None:
            return {f}(x)
    return nested_unary(x, *others)
"""


def indented(text: str, depth: int) -> str:
    """`text` with so many spaces before every line."""
    return "\n".join(" " * depth + line for line in text.splitlines())


def case_of(name: str, moving: str) -> str:
    """What a binary operation does where the operands `moving` are active."""
    code = Straight()
    code.emit(name, "a", "b", name="z")
    code.dots.update((x, f"{x}_dot") for x in moving)
    code.push(["z"])
    bars = {"z": "1.0"}
    code.pull(["z"], bars)
    known = {*code.dots, *code.dots.values()}
    code.push([x for x in code.operations if x not in known])
    slopes = [bars[x] for x in moving]
    slope_dots = [code.dots.get(slope) for slope in slopes]
    results = [code.dots["z"], *slopes, *[x for x in slope_dots if x is not None]]
    statements, texts = code.lines(results, {"a", "b", "z", "a_dot", "b_dot"})
    z_dot, *written = [f"{x} * 1.0" if x in ("a", "b") else x for x in texts]  # the tape gets copies
    places = ["ij"["ab".index(x)] for x in moving]
    if len(written) > len(slopes):
        steps = [item for pair in zip(places, written, strict=False) for item in pair]
        steps += written[len(slopes) :]
        entry = f"(o, {', '.join(steps)}), PAIRED, {'slopes_back' if len(moving) > 1 else 'slope_back'}"
    else:
        entry = ", ".join(f"o, {i}, {slope}" for i, slope in zip(places, written, strict=True))
    return "\n".join([*statements, f"z_dot = {z_dot}", _FILED.format(entry=entry, z="number")])


def binary_source(name: str) -> str:
    """The source of the hook of a binary operator."""
    cases = {
        "only_b": indented(case_of(name, "b"), 12),
        "only_a": indented(case_of(name, "a"), 12),
        "both": indented("a_dot = float(a_dot)\nb_dot = float(b_dot)\n" + case_of(name, "ab"), 8),
    }
    return _BINARY.format(name=name, op=OPERATORS[name], pole=_POLES.get(name, "False"), **cases)


def pow_source(name: str) -> str:
    """The source of the hook of powers."""
    entry = "(o, i, slope, slope_dot), PAIRED, slope_back"
    return _POW.format(name=name, filed=indented(_FILED.format(entry=entry, z="number"), 12))


def unary_source(name: str) -> str:
    """The source of the hook of a function of `math`."""
    code = Straight()
    code.emit(name, "x", name="z")
    code.dots["x"] = "x_dot"
    slope = code.slope("z")
    code.push(list(code.operations))
    statements, texts = code.lines([slope, code.dots["z"], code.dots[slope]], {"x", "z", "x_dot"})
    statements += [f"{x} = {text}" for x, text in zip(("slope", "z_dot", "slope_dot"), texts, strict=True)]
    entry = "(o, i, slope, slope_dot), PAIRED, slope_back"
    filed = _FILED.format(entry=entry, z="z")
    return _UNARY.format(f=name, statements=indented("\n".join(statements), 12), filed=indented(filed, 12))


_templates: dict[tuple[Callable[[str], str], str], Any] = {}


def template(source: Callable[[str], str], name: str) -> Any:
    """The hook with this source, to be bound to the cells of a level; made once."""
    if (source, name) not in _templates:
        filename = f"<plaingrad paired hook, {name}>"
        names = [*CELLS.split(), f"nested_{name}", "nested_unary"]
        lines = [f"def make({', '.join(names)}):", indented(source(name), 1), " return hook", ""]
        text = "\n".join(lines)
        linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
        space: dict[str, Any] = {
            **SPACE,
            "__name__": __name__,
            "PAIRED": PAIRED,
            "slope_back": slope_back,
            "slopes_back": slopes_back,
            "number64": np.float64,
        }
        exec(compile(text, filename, "exec"), space)
        _templates[source, name] = space["make"](*[None] * len(names))
    return _templates[source, name]


def paired_hooks(blocks: PairedBlocks, nested: dict[str, Any]) -> dict[str, Any]:
    """The hot hooks `nested` of a reverse level, with those replaced that can know the forward level around it."""
    hooks = dict(nested)
    for name in ("add", "sub", "mul", "truediv", "pow"):
        for variant in (name, f"i{name}"):
            blocks.cells[f"nested_{name}"] = CellType(nested[variant])
            hooks[variant] = blocks.bound(template(pow_source if name == "pow" else binary_source, name))

    def unary(f: Any, partial: Any, m: Any, general: Any) -> Any:
        rule = rulebook.find(f)
        through_level = nested["unary"](f, partial, m, general)
        name = getattr(f, "__name__", "")
        if FUNCTIONS.get(name) is not f or rule is None or not rule.own or rule.partials[0] is not partial:
            return through_level
        blocks.cells["nested_unary"] = CellType(through_level)
        return blocks.bound(template(unary_source, name))

    hooks["unary"] = unary
    return hooks
