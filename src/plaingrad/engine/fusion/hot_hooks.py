"""The hooks that run most: arithmetic on Python floats and calls of scalar rules on them, in both modes.

In reverse, one operation on active floats appends one flat triple per active operand to the tape; in forward, it
computes one tangent. Either files the identity of the result, and is done. Everything else falls through to the
level's general methods.

These are closures, not methods: the interpreter calls a plain function without a frame of C between, and reads
the tape, the table and the counter from cells. They exist in source form once, as a template per shape; under a
nested derivative the same templates call the hooks of the next level out where they otherwise compute.

Several threads may run them at one level. The interpreter changes threads only after a call or a jump back, so
`o = n = n + 1` is one step, and from there on a hook uses its own `o`; `extend` is one call of C code.

An exception may arrive between any two instructions, and the program may catch it and go on. So a result is kept alive
before its identity is filed, and what was in force is so again.
"""

from __future__ import annotations

import linecache
import re
from collections import deque
from collections.abc import Callable
from functools import cache
from itertools import compress, repeat
from operator import not_
from sys import getrefcount
from typing import Any

import numpy as np

from plaingrad.rewrite import CURRENT

SWEEP_NUMBERS = 4000  # operations between two looks for dead numbers
SWEEP_BYTES = 1 << 17  # bytes of new arrays before the first look for dead arrays; see `_sweep_arrays`

# In the templates, [op a b] is a op b as the level computes it: with Python's operator where no derivative is
# taken further out, else with the hook of the next level out.
OPERATORS = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "pow": "**", "neg": "-"}


def _lines(indent: int, *lines: str) -> str:
    return "\n".join([" " * indent + line for line in lines])


def _filed(what: str, count: str, z: str = "z") -> tuple[str, ...]:
    """The lines that file a result: it is kept alive, the table knows it, and now and then the dead are swept."""
    return (f"push({z})", f"index[id({z})] = {what}", f"if {count} > limit:", "    sweep()")


_HEAD = """
def hot_hooks(level, index, alive, {tape}sweep_dead):
    n = {first}
    limit = {sweep}
    get = index.get
    push = alive.append
    parent = level.parent
    set_hooks = CURRENT.set
    current_hooks = CURRENT.get
    {extend}

    def sweep():
        nonlocal limit
        limit = n + max({sweep}, sweep_dead())
"""

_REVERSE_HEAD = """
    def new_index():
        nonlocal n
        o = n = n + 1
        return o
"""

# Both values of a call of a rule on one float: the result and the slope there.
_UNARY_PLAIN = """
                z = f(x)
                {active} = get(id(x))
                if {active} is None:
                    return z
                slope = partial(m, x, z)
"""
_UNARY_NESTED = """
                {active} = get(id(x))
                before = current_hooks()
                try:
                    try:
                        set_hooks(parent)
                        if prepared is None:
                            prepared_partial = parent.calls.inside(partial)
                            prepared = parent.calls.prep(f)
                        z = prepared(x)
                        if {active} is None:
                            return z
                        slope = prepared_partial(m, x, z)
                    finally:
                        set_hooks(before)
                except BaseException:
                    set_hooks(before)
                    raise
"""

_UNARY = """
    def unary(f, partial, m, general):
        prepared = prepared_partial = None
        def scalar_rule(x, *others):
            nonlocal n, prepared, prepared_partial
            if type(x) is float and not others:
{both}
{file}
                return z
            return general(x, *others)
        return scalar_rule
"""

# {a} and {b}: the partials, while z = a op b. Where both operands are active the tape keeps copies of them:
# a number that the tape itself holds could never be swept.
_BINARY = """
    {name}_general = level.general_{name}
    def {name}(a, b):
        nonlocal n
        ta = type(a)
        tb = type(b)
        if (ta is float or ta is int) and (tb is float or tb is int):
            z = {z}
            i = get(id(a))
            j = get(id(b))
            if i is None:
                if j is None:
                    return z
                o = n = n + 1
                extend((o, j, {b}))
            elif j is None:
                o = n = n + 1
                extend((o, i, {a}))
            else:
                o = n = n + 1
                extend((o, i, {a_copy}, o, j, {b_copy}))
{file}
            return z
{mixed}
        return {name}_general(a, b)
"""

_MIXED = """
        if (
            (ta is float or ta is int or ta is number64)
            and (tb is float or tb is int or tb is number64)
            and not ({pole})
        ):
            z = {z}
            i = get(id(a))
            j = get(id(b))
            if i is None and j is None:
                return z
            a = float(a)
            b = float(b)
            o = n = n + 1
            if i is None:
                extend((o, j, {b_float}))
            elif j is None:
                extend((o, i, {a_float}))
            else:
                extend((o, i, {a_float}, o, j, {b_float}))
{file}
            return z
"""

_FORWARD_BINARY = """
    {name}_general = level.general_{name}
    def {name}(a, b):
        nonlocal n
        ta = type(a)
        tb = type(b)
        if (ta is float or ta is int) and (tb is float or tb is int):
            z = {z}
            a_dot = get(id(a))
            b_dot = get(id(b))
            if a_dot is None and b_dot is None:
                return z
{tangent}
            return z
{mixed}
        return {name}_general(a, b)
"""

_FORWARD_MIXED = """
        if (
            (ta is float or ta is int or ta is number64)
            and (tb is float or tb is int or tb is number64)
            and not ({pole})
        ):
            number = {z}
            a_dot = get(id(a))
            b_dot = get(id(b))
            if a_dot is None and b_dot is None:
                return number
            a = float(a)
            b = float(b)
            z = float(number)
{tangent}
            return number
"""

_TANGENT = """
            if a_dot is None:
                {quiet}z_dot = {b}
            elif b_dot is None:
                {quiet}z_dot = {a}
            else:
                {quiet}z_dot = {ab}
            n += 1
{file}"""

# The exponent must be inactive; a power below one (it may have a pole), and whatever is not real, has a general rule.
_POW = """
    {name}_general = level.general_{name}
    def {name}(a, b):
        nonlocal n
        tb = type(b)
        if type(a) is float and (tb is int or tb is float) and b >= 1 and get(id(b)) is None{settled}:
            z = [pow a b]
            {active} = get(id(a))
            if {active} is None or type(z) is not float:
                return z if {active} is None else {name}_general(a, b)
            slope = [mul 2.0 a] if b == 2 else [mul b [pow a (b - 1)]]
{file}
            return z
{square}
        return {name}_general(a, b)
"""

# NumPy's numbers overflow where Python's raise: a square is the only power of theirs whose slope is safe.
_SQUARE = """
        if type(a) is number64 and tb is int and b == 2:
            z = a ** b
            {active} = get(id(a))
            if {active} is None:
                return z
            slope = 2.0 * float(a)
{file}
            return z
"""

_NEG = """
    neg_general = level.general_neg
    def neg(a):
        nonlocal n
        if type(a) is float:
            z = [neg a]
            {active} = get(id(a))
            if {active} is None:
                return z
{file}
            return z
        return neg_general(a)
"""

# operator, dz/da and dz/db, the same copied, the same of Python floats, where NumPy has a pole and Python raises
_PARTIALS = {
    "add": ("1.0", "1.0", "1.0", "1.0", "1.0", "1.0", "False"),
    "sub": ("1.0", "-1.0", "1.0", "-1.0", "1.0", "-1.0", "False"),
    "mul": ("b", "a", "[mul b 1.0]", "[mul a 1.0]", "b", "a", "False"),
    "truediv": (
        "[truediv 1.0 b]",
        "[truediv [neg z] b]",
        "[truediv 1.0 b]",
        "[truediv [neg z] b]",
        "1.0 / b",
        "float(-z) / b",
        "b == 0",
    ),
}
_FIELDS = ("a", "b", "a_copy", "b_copy", "a_float", "b_float", "pole")

# z_dot where a, b or both are active
_TANGENTS = {
    "add": ("a_dot", "b_dot", "[add a_dot b_dot]"),
    "sub": ("a_dot", "[neg b_dot]", "[sub a_dot b_dot]"),
    "mul": ("[mul a_dot b]", "[mul a b_dot]", "[add [mul a_dot b] [mul a b_dot]]"),
    "truediv": (
        "[truediv a_dot b]",
        "[neg [truediv [mul z b_dot] b]]",
        "[truediv [sub a_dot [mul z b_dot]] b]",
    ),
}
_APPLICATION = re.compile(r"\[(\w+) ([^][ ]+|\([^][]*\))(?: ([^][ ]+|\([^][]*\)))?\]")


def computed(template: str, nested: bool) -> str:
    """`template` with every [op a b] written out, the innermost first."""

    def write(found: re.Match[str]) -> str:
        op, a, b = found.groups()
        if nested:
            text = f"parent.{op}({a}, {b})" if b else f"parent.{op}({a})"
            return "\x00" + text.replace(" ", "\x01") + "\x00"
        return "\x00(" + (f"{a} {OPERATORS[op]} {b}" if b else f"-{a}").replace(" ", "\x01") + ")\x00"

    while _APPLICATION.search(template):
        template = _APPLICATION.sub(write, template).replace("\x00", "")
    return template.replace("\x01", " ")


def _reverse_source(nested: bool) -> str:
    def recorded(indent: int, slope: str) -> str:
        return _lines(indent, "o = n = n + 1", f"extend((o, i, {slope}))", *_filed("o", "o"))

    filed = _lines(12, *_filed("o", "o"))
    both = (_UNARY_NESTED if nested else _UNARY_PLAIN).format(active="i")
    parts = [
        _HEAD.format(sweep=SWEEP_NUMBERS, tape="tape, ", first=-1, extend="extend = tape.extend"),
        _REVERSE_HEAD,
        _UNARY.format(both=both, file=recorded(16, "slope")),
        _NEG.format(active="i", file=recorded(12, "-1.0")),
    ]
    names = ["new_index", "unary", "neg"]
    for name, row in _PARTIALS.items():
        fields = dict(zip(_FIELDS, row, strict=True))
        z = f"[{name} a b]"
        mixed = "" if nested else _MIXED.format(z=z, file=filed, **fields)
        for variant in (name, "i" + name):
            parts.append(_BINARY.format(name=variant, z=z, file=filed, mixed=mixed, **fields))
            names.append(variant)
    for variant in ("pow", "ipow"):
        file = recorded(12, "slope")
        square = "" if nested else _SQUARE.format(active="i", file=file)
        settled = _settled(nested)
        parts.append(_POW.format(name=variant, active="i", file=file, square=square, settled=settled))
        names.append(variant)
    return _returning(parts, names, nested)


def _forward_source(nested: bool, chunked: bool) -> str:
    quiet = "with errstate(all='ignore'): " if chunked else ""

    def made(indent: int, dot: str) -> str:
        return _lines(indent, f"{quiet}x_dot = {dot}", "n += 1", *_filed("x_dot", "n"))

    both = (_UNARY_NESTED if nested else _UNARY_PLAIN).format(active="x_dot")
    along_slope = "[mul slope x_dot]"
    parts = [
        _HEAD.format(sweep=SWEEP_NUMBERS, tape="", first=0, extend=""),
        _UNARY.format(both=both, file=made(16, along_slope)),
        _NEG.format(active="x_dot", file=made(12, "[neg x_dot]")),
    ]
    names = ["unary", "neg"]
    for name, row in _TANGENTS.items():
        a, b, ab = row
        fields = {"a": a, "b": b, "ab": ab, "quiet": quiet}
        z = f"[{name} a b]"
        tangent = _TANGENT.format(file=_lines(12, *_filed("z_dot", "n", "number")), **fields)
        mixed = _FORWARD_MIXED.format(z=z, tangent=tangent, pole=_PARTIALS[name][-1])
        tangent = _TANGENT.format(file=_lines(12, *_filed("z_dot", "n")), **fields)
        for variant in (name, "i" + name):
            parts.append(
                _FORWARD_BINARY.format(name=variant, z=z, tangent=tangent, mixed="" if nested else mixed)
            )
            names.append(variant)
    for variant in ("pow", "ipow"):
        file = made(12, along_slope)
        square = "" if nested else _SQUARE.format(active="x_dot", file=file)
        settled = _settled(nested)
        parts.append(_POW.format(name=variant, active="x_dot", file=file, square=square, settled=settled))
        names.append(variant)
    return _returning(parts, names, nested)


def _settled(nested: bool) -> str:
    """Further out, an active exponent must not be taken apart."""
    return " and tb is int" if nested else ""


def _returning(parts: list[str], names: list[str], nested: bool) -> str:
    parts.append("    return {" + ", ".join(f"'{name}': {name}" for name in names) + "}\n")
    return computed("".join(parts), nested)


def generated(name: str, source: str, filename: str, namespace: dict[str, Any]) -> Any:
    """The function `name` that `source` defines in `namespace`; tracebacks and debuggers can show its lines."""
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    exec(compile(source, filename, "exec"), namespace)
    return namespace[name]


def _build(source: str, what: str) -> Callable[..., dict[str, Callable[..., Any]]]:
    namespace: dict[str, Any] = {
        "__name__": __name__,
        "number64": np.float64,
        "errstate": np.errstate,
        "CURRENT": CURRENT,
    }
    return generated("hot_hooks", source, f"<plaingrad hot hooks, {what}>", namespace)


@cache
def reverse_hooks(nested: bool) -> Callable[..., dict[str, Callable[..., Any]]]:
    """What makes the hooks of a reverse level; compiled when it is first asked for."""
    return _build(_reverse_source(nested), f"reverse, {nested=}")


@cache
def forward_hooks(nested: bool, chunked: bool) -> Callable[..., dict[str, Callable[..., Any]]]:
    """What makes the hooks of a forward level; compiled when it is first asked for."""
    return _build(_forward_source(nested, chunked), f"forward, {nested=}, {chunked=}")


def sweep(values: list[Any], index: dict[int, Any]) -> int:
    """Drop those of `values` that nothing besides the table refers to; how many stay.

    All of it runs in C, one pass each; the dead stay in `values` until their identities are out of the table.
    """
    seen = values[:]  # another thread may append meanwhile
    dead = list(map(_DEAD.__ge__, map(getrefcount, seen)))
    forget(index, list(map(id, compress(seen, dead))))
    values[: len(seen)] = compress(seen, map(not_, dead))
    return len(values)


def sweep_inside(values: list[Any], index: dict[int, Any], tables: list[dict[int, Any]]) -> int:
    """`sweep` of a level inside others, whose `tables` may each hold a value once more."""
    seen = values[:]
    places = list(map(id, seen))
    counts = list(map(getrefcount, seen))
    dead = [
        count <= _DEAD + sum([place in table for table in tables])
        for count, place in zip(counts, places, strict=True)
    ]
    forget(index, list(compress(places, dead)))
    values[: len(seen)] = compress(seen, map(not_, dead))
    return len(values)


def forget(index: dict[int, Any], places: list[int]) -> None:
    """Take identities out of a table. Those of an interrupted step are not in it, nor those of an interrupted sweep."""
    try:
        deque(map(index.__delitem__, places), 0)
    except KeyError:
        deque(map(index.pop, places, repeat(None)), 0)


def _calibrate() -> int:
    """The reference count that `sweep` sees for a value that only its list holds."""
    values = [float(k) + 0.5 for k in range(3)]
    seen = values[:]
    return max(map(getrefcount, seen))


_DEAD = _calibrate()
