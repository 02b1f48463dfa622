"""Operators: of numbers as Numba does them, of objects by the methods of their classes; truth, comparison, choice."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from plaingrad.native.objects import attributes, lists
from plaingrad.native.objects.engine import Frame
from plaingrad.native.objects.values import (
    FROZEN,
    UNSET,
    Instance,
    Items,
    Keys,
    Leaf,
    Maybe,
    Ref,
    Refused,
    Rows,
    Static,
    Tup,
    is_number,
)

BINARY: dict[type, tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul),
    ast.Div: ("truediv", operator.truediv),
    ast.FloorDiv: ("floordiv", operator.floordiv),
    ast.Mod: ("mod", operator.mod),
    ast.Pow: ("pow", operator.pow),
    ast.MatMult: ("matmul", operator.matmul),
    ast.LShift: ("lshift", operator.lshift),
    ast.RShift: ("rshift", operator.rshift),
    ast.BitAnd: ("and", operator.and_),
    ast.BitOr: ("or", operator.or_),
    ast.BitXor: ("xor", operator.xor),
}
UNARY: dict[type, tuple[str, Callable[[Any], Any]]] = {
    ast.USub: ("neg", operator.neg),
    ast.UAdd: ("pos", operator.pos),
    ast.Invert: ("invert", operator.invert),
}
COMPARE: dict[type, tuple[str, str, Callable[[Any, Any], Any]]] = {
    ast.Lt: ("lt", "gt", operator.lt),
    ast.LtE: ("le", "ge", operator.le),
    ast.Gt: ("gt", "lt", operator.gt),
    ast.GtE: ("ge", "le", operator.ge),
    ast.Eq: ("eq", "eq", operator.eq),
    ast.NotEq: ("ne", "ne", operator.ne),
}


def operation(f: Frame, op: ast.operator, x: Any, y: Any, node: ast.AST) -> Any:
    """x op y."""
    f.line = getattr(node, "lineno", f.line)
    word, function = BINARY[type(op)]
    if isinstance(x, Static) and isinstance(y, Static):
        try:
            found = function(x.value, y.value)
            if f.whole.enters and is_otherwise_compiled(op, x.value, y.value, found):
                raise f.refuse("an operation of constants that compiled code does in another way")
            return Static(found)
        except Refused:
            raise
        except Exception:
            if not (is_number(x) and is_number(y)):
                raise f.refuse("an operation that raises") from None
    found = of_users(f, f"__{word}__", f"__r{word}__", x, y)
    if found is not None:
        return found
    both = lists.joined(f, type(op), x, y)
    if both is not None:
        return both
    return f.leaf(ast.BinOp(f.expression(x), op, f.expression(y)))


def is_otherwise_compiled(op: ast.operator, x: Any, y: Any, found: Any) -> bool:
    """Whether compiled code may have another result: whole numbers of 64 bits, powers of them."""
    if not (isinstance(x, int) and isinstance(y, int)):
        return False
    return (isinstance(op, ast.Pow) and y < 0) or (isinstance(found, int) and abs(found) >= 2**63)


def of_users(f: Frame, name: str, reflected: str, x: Any, y: Any) -> Any:
    """x op y by the methods of users' classes; None if they have none."""
    pairs = [(x, name, y), (y, reflected, x)]
    if isinstance(f.thing(x), Instance) and isinstance(f.thing(y), Instance):
        mine, its = f.thing(x).cls, f.thing(y).cls
        if mine is not its and issubclass(its, mine):
            pairs.reverse()
    known_to_be_users = False
    for first, method, second in pairs:
        found = attributes.special(f, first, method)
        if found is not None:
            known_to_be_users = True
            result = f.call(found, [second], {})
            if f.state is None:
                return UNSET
            if not (isinstance(result, Static) and result.value is NotImplemented):
                return result
    if known_to_be_users or isinstance(f.thing(x), Instance) or isinstance(f.thing(y), Instance):
        raise f.refuse(f"an object without `{name}` is an operand")
    return None


def truth(f: Frame, x: Any) -> Any:
    """bool(x), as a known value or a leaf to be tested."""
    thing = f.thing(x)
    if isinstance(x, Leaf):
        return x
    if isinstance(x, Maybe):
        return truth_of_some(f, x)
    if isinstance(x, Static):
        return Static(bool(x.value))
    if isinstance(thing, (Items, Keys)):
        return Static(bool(thing.items))
    if isinstance(thing, Tup):
        return Static(bool(thing.items))
    if isinstance(thing, Rows):
        return f.leaf(ast.Compare(lists.length(f, x), [ast.Gt()], [ast.Constant(0)]))
    if isinstance(thing, Instance):
        for method in ("__bool__", "__len__"):
            found = attributes.special(f, x, method)
            if found is not None:
                return truth(f, f.call(found, [], {}))
    return Static(True)


def truth_of_some(f: Frame, x: Any) -> Any:
    """bool(x) of what may be None."""
    there = Static(not x.is_none.value) if isinstance(x.is_none, Static) else None
    if there is None:
        there = f.leaf(ast.UnaryOp(ast.Not(), f.expression(x.is_none)))
    if isinstance(there, Static):
        return truth(f, x.value) if there.value else there
    return truth(f, chosen(f, there, lambda: truth(f, x.value), lambda: Static(False)))


def both(f: Frame, a: Any, b: Any) -> Any:
    """a and b, of truth values."""
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Static):
            return other if one.value else one
    return f.leaf(ast.BoolOp(ast.And(), [f.expression(a), f.expression(b)]))


def compared(f: Frame, op: ast.cmpop, x: Any, y: Any) -> Any:
    """The truth of x op y."""
    if isinstance(op, (ast.Is, ast.IsNot)):
        test = none_test(x, y)
        if isinstance(test, Leaf):
            return test if isinstance(op, ast.Is) else f.leaf(ast.UnaryOp(ast.Not(), f.expression(test)))
        if test is not None:
            return test if isinstance(op, ast.Is) else Static(not test.value)
        x, y = f.sure(x), f.sure(y)
        found = is_one(f, x, y)
        return Static(found if isinstance(op, ast.Is) else not found)
    if isinstance(op, (ast.In, ast.NotIn)):
        found = lists.contains(f, y, x)
        if isinstance(op, ast.In):
            return found
        if isinstance(found, Leaf):
            return f.leaf(ast.UnaryOp(ast.Not(), f.expression(found)))
        return Static(not found.value)
    x, y = f.sure(x), f.sure(y)
    word, reflected, function = COMPARE[type(op)]
    if isinstance(x, Static) and isinstance(y, Static):
        try:
            return Static(function(x.value, y.value))
        except TypeError:
            raise f.refuse("a comparison that raises") from None
    if isinstance(f.thing(x), Instance) or isinstance(f.thing(y), Instance):
        return of_users(f, f"__{word}__", f"__{reflected}__", x, y)
    return f.leaf(ast.Compare(f.expression(x), [op], [f.expression(y)]))


def none_test(x: Any, y: Any) -> Any:
    """The test of `x is None`, of what may be None; None where it is another question."""
    for one, other in ((x, y), (y, x)):
        if isinstance(one, Maybe) and isinstance(other, Static) and other.value is None:
            return one.is_none
    return None


def is_one(f: Frame, x: Any, y: Any) -> bool:
    """Whether two values are one object."""
    if isinstance(x, Ref) and isinstance(y, Ref):
        if x.at != y.at and (is_shared(f, x) or is_shared(f, y)):
            raise f.refuse("`is` of objects that may be one")
        return x.at == y.at
    if isinstance(x, Static) and isinstance(y, Static):
        return x.value is y.value
    unlike = [v for v in (x, y) if isinstance(v, Static) and (v.value is None or isinstance(v.value, type))]
    if unlike:
        return False
    raise f.refuse("`is` of numbers")


def is_shared(f: Frame, x: Any) -> bool:
    """Whether an object may have a second name."""
    return bool(f.thing(x).frozen & FROZEN)


def chosen(f: Frame, test: Any, then: Callable[[], Any], orelse: Callable[[], Any]) -> Any:
    """The value of one of two, by a test that is not known."""
    outer = f.block
    before = f.state
    ends = []
    for arm in (then, orelse):
        f.block, f.state = [], before.copy()
        value = arm()
        ends.append((value, f.state, f.block))
    live = [(value, state, block) for value, state, block in ends if state is not None]
    for value, state, _ in live:
        state.names["$value"] = value
    merged = f.merge([state for _, state, _ in live])
    for k, (_, _, block) in enumerate(live):
        block.append(merged.assignments(k))
    f.block, f.state = outer, merged.target
    f.emit(ast.If(f.expression(test), [], []))
    f.block[-1].body, f.block[-1].orelse = ends[0][2], ends[1][2]
    return f.state.names.pop("$value")
