"""The `operator` module: the functions that are not rows of `elementwise`, by the syntax that they stand for."""

from __future__ import annotations

import operator
from typing import Any

from plaingrad.define import composed, inspector, mover

mover(operator.is_, operator.is_not)
inspector(operator.not_, operator.truth, operator.index, operator.length_hint)
mover(operator.lt, operator.le, operator.eq, operator.ne, operator.ge, operator.gt)
mover(operator.and_, operator.or_, operator.xor, operator.invert, operator.lshift, operator.rshift)
mover(operator.itemgetter, operator.attrgetter, operator.methodcaller)


@composed(operator.getitem)
def getitem(o: Any, k: Any) -> Any:
    """o[k]."""
    return o[k]


@composed(operator.setitem, mutates=True)
def setitem(o: Any, k: Any, v: Any) -> None:
    """o[k] = v."""
    o[k] = v


@composed(operator.delitem, mutates=True)
def delitem(o: Any, k: Any) -> None:
    """del o[k]."""
    del o[k]


@composed(operator.contains)
def contains(o: Any, x: Any) -> bool:
    """x in o."""
    return x in o


@composed(operator.concat)
def concat(a: Any, b: Any) -> Any:
    """a + b."""
    return a + b


@composed(operator.countOf)
def count_of(o: Any, x: Any) -> int:
    """How often x is in o."""
    n = 0
    for y in o:
        if y is x or y == x:
            n += 1
    return n


@composed(operator.indexOf)
def index_of(o: Any, x: Any) -> int:
    """Where x is first in o."""
    for i, y in enumerate(o):
        if y is x or y == x:
            return i
    raise ValueError("sequence.index(x): x not in sequence")


if hasattr(operator, "call"):

    @composed(operator.call)
    def call(f: Any, /, *args: Any, **kwargs: Any) -> Any:
        """f(*args, **kwargs)."""
        return f(*args, **kwargs)


def _keys(getter: Any) -> tuple[Any, ...]:
    """What an itemgetter or attrgetter keeps."""
    return getter.__reduce__()[1]


mover(_keys)


@composed(operator.itemgetter.__call__, mutates=True)  # run always: to look through the object would take longer
def itemgetter_call(getter: Any, o: Any) -> Any:
    """o[k], or a tuple of them."""
    keys = _keys(getter)
    return o[keys[0]] if len(keys) == 1 else tuple([o[k] for k in keys])


@composed(operator.attrgetter.__call__, mutates=True)  # run always
def attrgetter_call(getter: Any, o: Any) -> Any:
    """o.name, o.name.name, or a tuple of them."""
    found = []
    for path in _keys(getter):
        x = o
        for name in path.split("."):
            x = getattr(x, name)
        found.append(x)
    return found[0] if len(found) == 1 else tuple(found)


def _method_call(getter: Any) -> tuple[Any, ...]:
    """The name, positional and keyword arguments that a methodcaller keeps."""
    made, arguments = getter.__reduce__()
    if made is operator.methodcaller:
        return arguments[0], arguments[1:], {}
    return made.args[0], arguments, made.keywords  # a partial of methodcaller


mover(_method_call)


@composed(operator.methodcaller.__call__)
def methodcaller_call(getter: Any, o: Any) -> Any:
    """o.name(*args, **kwargs)."""
    name, args, kwargs = _method_call(getter)
    return getattr(o, name)(*args, **kwargs)


# In-place forms ---------------------------------------------------------------------------------------------


@composed(operator.iadd, mutates=True)
def iadd(a: Any, b: Any) -> Any:
    """a += b."""
    a += b
    return a


@composed(operator.isub, mutates=True)
def isub(a: Any, b: Any) -> Any:
    """a -= b."""
    a -= b
    return a


@composed(operator.imul, mutates=True)
def imul(a: Any, b: Any) -> Any:
    """a *= b."""
    a *= b
    return a


@composed(operator.itruediv, mutates=True)
def itruediv(a: Any, b: Any) -> Any:
    """a /= b."""
    a /= b
    return a


@composed(operator.ifloordiv, mutates=True)
def ifloordiv(a: Any, b: Any) -> Any:
    """a //= b."""
    a //= b
    return a


@composed(operator.imod, mutates=True)
def imod(a: Any, b: Any) -> Any:
    """a %= b."""
    a %= b
    return a


@composed(operator.ipow, mutates=True)
def ipow(a: Any, b: Any) -> Any:
    """a **= b."""
    a **= b
    return a


@composed(operator.imatmul, mutates=True)
def imatmul(a: Any, b: Any) -> Any:
    """a @= b."""
    a @= b
    return a


@composed(operator.iand, mutates=True)
def iand(a: Any, b: Any) -> Any:
    """a &= b."""
    a &= b
    return a


@composed(operator.ior, mutates=True)
def ior(a: Any, b: Any) -> Any:
    """a |= b."""
    a |= b
    return a


@composed(operator.ixor, mutates=True)
def ixor(a: Any, b: Any) -> Any:
    """a ^= b."""
    a ^= b
    return a


@composed(operator.ilshift, mutates=True)
def ilshift(a: Any, b: Any) -> Any:
    """a <<= b."""
    a <<= b
    return a


@composed(operator.irshift, mutates=True)
def irshift(a: Any, b: Any) -> Any:
    """a >>= b."""
    a >>= b
    return a


@composed(operator.iconcat, mutates=True)
def iconcat(a: Any, b: Any) -> Any:
    """a += b."""
    a += b
    return a
