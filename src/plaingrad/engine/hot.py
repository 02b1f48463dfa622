"""The hooks that run most: arithmetic on Python floats and calls of scalar rules on them.

One operation on active floats appends one flat triple per active operand to the tape, files the identity of the
result, and is done. Everything else falls through to the level's general methods.

These are closures, not methods: the interpreter calls a plain function without a frame of C between, and reads
the tape, the table and the counter from cells. They exist in source form once, as a template per shape.

Several threads may run them at one level. The interpreter changes threads only after a call or a jump back, so
`o = n = n + 1` is one step, and from there on a hook uses its own `o`; `extend` is one call of C code.
"""

from __future__ import annotations

import linecache
from collections import deque
from collections.abc import Callable
from itertools import compress
from operator import not_
from sys import getrefcount
from typing import Any

import numpy as np

SWEEP_NUMBERS = 4000  # operations between two looks for dead numbers
SWEEP_BYTES = 1 << 26  # bytes of new arrays between two looks for dead arrays

_HEAD = """
def hot_hooks(level, index, alive, tape, sweep_dead):
    n = -1
    limit = {sweep}
    get = index.get
    extend = tape.extend
    push = alive.append

    def new_index():
        nonlocal n
        o = n = n + 1
        return o

    def sweep():
        nonlocal limit
        limit = n + max({sweep}, sweep_dead())

    def unary(f, partial, m, general):
        def scalar_rule(x, *others):
            nonlocal n
            if type(x) is float and not others:
                z = f(x)
                i = get(id(x))
                if i is None:
                    return z
                o = n = n + 1
                extend((o, i, partial(m, x, z)))
                index[id(z)] = o
                push(z)
                if o > limit:
                    sweep()
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
            z = a {op} b
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
            index[id(z)] = o
            push(z)
            if o > limit:
                sweep()
            return z
        if ta in reals and tb in reals and not ({pole}):
            z = a {op} b
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
            index[id(z)] = o
            push(z)
            if o > limit:
                sweep()
            return z
        return {name}_general(a, b)
"""

# The exponent must be inactive; a power below one (it may have a pole), and whatever is not real, has a general rule.
_POW = """
    {name}_general = level.general_{name}
    def {name}(a, b):
        nonlocal n
        tb = type(b)
        if type(a) is float and (tb is int or tb is float) and b >= 1 and get(id(b)) is None:
            z = a ** b
            i = get(id(a))
            if i is None or type(z) is not float:
                return z if i is None else {name}_general(a, b)
            slope = 2.0 * a if b == 2 else b * a ** (b - 1)
            o = n = n + 1
            extend((o, i, slope))
            index[id(z)] = o
            push(z)
            if o > limit:
                sweep()
            return z
        return {name}_general(a, b)
"""

_NEG = """
    neg_general = level.general_neg
    def neg(a):
        nonlocal n
        if type(a) is float:
            z = -a
            i = get(id(a))
            if i is None:
                return z
            o = n = n + 1
            extend((o, i, -1.0))
            index[id(z)] = o
            push(z)
            return z
        return neg_general(a)
"""

# operator, dz/da and dz/db, the same copied, the same of Python floats, where NumPy has a pole and Python raises
_PARTIALS = {
    "add": ("+", "1.0", "1.0", "1.0", "1.0", "1.0", "1.0", "False"),
    "sub": ("-", "1.0", "-1.0", "1.0", "-1.0", "1.0", "-1.0", "False"),
    "mul": ("*", "b", "a", "b * 1.0", "a * 1.0", "b", "a", "False"),
    "truediv": ("/", "1.0 / b", "-z / b", "1.0 / b", "-z / b", "1.0 / b", "float(-z) / b", "b == 0"),
}
_FIELDS = ("op", "a", "b", "a_copy", "b_copy", "a_float", "b_float", "pole")


def _source() -> str:
    names = ["new_index", "unary", "neg"]
    parts = [_HEAD.format(sweep=SWEEP_NUMBERS), _NEG]
    for name, row in _PARTIALS.items():
        for variant in (name, "i" + name):
            parts.append(_BINARY.format(name=variant, **dict(zip(_FIELDS, row, strict=True))))
            names.append(variant)
    for variant in ("pow", "ipow"):
        parts.append(_POW.format(name=variant))
        names.append(variant)
    parts.append("    return {" + ", ".join(f"'{name}': {name}" for name in names) + "}\n")
    return "".join(parts)


def _build() -> Callable[..., dict[str, Callable[..., Any]]]:
    source = _source()
    filename = "<plaingrad hot hooks>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    namespace: dict[str, Any] = {"__name__": __name__, "reals": frozenset((float, int, np.float64))}
    exec(compile(source, filename, "exec"), namespace)
    return namespace["hot_hooks"]


hot_hooks = _build()


def sweep(values: list[Any], index: dict[int, int]) -> int:
    """Drop those of `values` that nothing besides the table refers to; how many stay.

    All of it runs in C, one pass each; the dead stay in `values` until their identities are out of the table.
    """
    seen = values[:]  # another thread may append meanwhile
    dead = list(map(_DEAD.__ge__, map(getrefcount, seen)))
    deque(map(index.__delitem__, map(id, compress(seen, dead))), 0)
    values[: len(seen)] = compress(seen, map(not_, dead))
    return len(values)


def _calibrate() -> int:
    """The reference count that `sweep` sees for a value that only its list holds."""
    values = [float(k) + 0.5 for k in range(3)]
    seen = values[:]
    return max(map(getrefcount, seen))


_DEAD = _calibrate()
