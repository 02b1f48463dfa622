"""Expressions, evaluated as far as they are known; what is not becomes a statement of the program that is made."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any

from plaingrad.native.objects import attributes, calls, lists, loops, operators, outside
from plaingrad.native.objects.engine import MISSING, Frame
from plaingrad.native.objects.sources import names_read
from plaingrad.native.objects.values import (
    CLASH,
    UNKNOWN,
    UNSET,
    Cell,
    Closure,
    Items,
    Keys,
    Leaf,
    Ref,
    Rows,
    Several,
    Static,
    Tup,
    is_number,
)


def evaluate(f: Frame, node: ast.expr) -> Any:
    """The value of an expression."""
    f.line = getattr(node, "lineno", f.line)
    if f.whole.obstacles is None:
        return followed(f, node)
    value = f.attempt(node, lambda: followed(f, node), lambda: UNKNOWN)
    f.whole.unknowns += value == UNKNOWN
    return value


def followed(f: Frame, node: ast.expr) -> Any:
    """The value of an expression, or an error."""
    rule = RULES.get(type(node))
    if rule is None:
        raise f.refuse(WORDS.get(type(node), f"`{ast.unparse(node)}`"))
    return rule(f, node)


WORDS = {
    ast.Await: "`await`",
    ast.Yield: "`yield`",
    ast.YieldFrom: "`yield from`",
    ast.Set: "a set",
    ast.SetComp: "a set",
    ast.JoinedStr: "text made of values, other than that of an exception",
}


def name(f: Frame, node: ast.Name) -> Any:
    """A variable, a captured one, a global, or one of Python's own."""
    if node.id in f.own or node.id in f.state.names:
        found = f.state.names.get(node.id, UNSET)
        if isinstance(found, Ref) and isinstance(f.thing(found), Cell) and node.id in f.cells:
            found = f.thing(found).value
        if found is CLASH:
            raise f.refuse(f"`{node.id}` is of different kinds, depending on which way is taken")
        if found is UNSET:
            raise f.refuse(f"`{node.id}` is read where it may have no value")
        return found
    if node.id in f.home.captured:
        held = f.home.captured[node.id]
        if isinstance(held, Ref):
            return f.thing(held).value
        return outside.known(f, f.whole.check(outside.content_of, held), node.id)
    found = f.whole.check(outside.global_of, f.home.space, node.id)
    if found is MISSING:
        raise f.refuse(f"`{node.id}` is not defined")
    return outside.known(f, found, node.id)


def constant(f: Frame, node: ast.Constant) -> Any:
    return Static(node.value)


def binary(f: Frame, node: ast.BinOp) -> Any:
    left = f.evaluate(node.left)
    right = f.after([left], node.right)
    return operators.operation(f, node.op, f.sure(left), f.sure(right), node)


def unary(f: Frame, node: ast.UnaryOp) -> Any:
    x = f.evaluate(node.operand)
    if isinstance(node.op, ast.Not):
        test = operators.truth(f, x)
        if isinstance(test, Static):
            return Static(not test.value)
        return f.leaf(ast.UnaryOp(node.op, f.expression(test)))
    x = f.sure(x)
    word, function = operators.UNARY[type(node.op)]
    if is_number(x):
        return Static(function(x.value))
    found = attributes.special(f, x, f"__{word}__")
    if found is not None:
        return f.call(found, [], {})
    return f.leaf(ast.UnaryOp(node.op, f.expression(x)))


def comparison(f: Frame, node: ast.Compare) -> Any:
    x = f.evaluate(node.left)
    if len(node.ops) == 1:
        return operators.compared(f, node.ops[0], x, f.after([x], node.comparators[0]))
    result: Any = None
    for op, right in zip(
        node.ops, node.comparators, strict=True
    ):  # all operands are evaluated: they have no effects
        if not isinstance(right, (ast.Name, ast.Constant, ast.Attribute, ast.BinOp)):
            raise f.refuse("a chain of comparisons with a call in it")
        y = f.evaluate(right)
        each = operators.compared(f, op, x, y)
        result = each if result is None else operators.both(f, result, each)
        x = y
    return result


def choice(f: Frame, node: ast.BoolOp) -> Any:
    """`a and b`, `a or b`: as a choice between the two."""
    wants = isinstance(node.op, ast.Or)
    x = f.evaluate(node.values[0])
    for rest in node.values[1:]:
        test = operators.truth(f, x)
        if isinstance(test, Static):
            if test.value is wants:
                return x
            x = f.evaluate(rest)
            continue
        keep = x

        def later(rest: ast.expr = rest) -> Any:
            return f.evaluate(rest)

        arms = (lambda keep=keep: keep, later) if wants else (later, lambda keep=keep: keep)
        x = operators.chosen(f, test, *arms)
    return x


def conditional(f: Frame, node: ast.IfExp) -> Any:
    test = operators.truth(f, f.evaluate(node.test))
    if isinstance(test, Static):
        return f.evaluate(node.body if test.value else node.orelse)
    return operators.chosen(f, test, lambda: f.evaluate(node.body), lambda: f.evaluate(node.orelse))


def sequence(f: Frame, node: ast.Tuple | ast.List) -> Any:
    items: list[Any] = []
    for part in node.elts:
        if isinstance(part, ast.Starred):
            items += lists.all_of(f, f.after(items, part.value))
        else:
            items.append(f.storable(f.after(items, part)))
    return Tup(tuple(items)) if isinstance(node, ast.Tuple) else f.object(Items(items))


def dictionary(f: Frame, node: ast.Dict) -> Any:
    items: dict[Any, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            other = f.thing(f.evaluate(value))
            if not isinstance(other, Keys):
                raise f.refuse("`**` of what is no dictionary with known keys")
            items.update(other.items)
        else:
            found = lists.key_of(f, f.evaluate(key))
            items[found] = f.storable(f.after(list(items.values()), value))
    return f.object(Keys(items))


def attribute(f: Frame, node: ast.Attribute) -> Any:
    return attributes.attribute(f, f.sure(f.evaluate(node.value)), node.attr)


def subscript(f: Frame, node: ast.Subscript) -> Any:
    x = f.sure(f.evaluate(node.value))
    return lists.item(f, x, lists.index_of(f, node.slice))


SUMS: dict[Any, tuple[int, ast.operator]] = {sum: (0, ast.Add()), math.prod: (1, ast.Mult())}


def called(f: Frame, node: ast.Call) -> Any:
    if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and f.first is not None:
        owner = f.home.captured.get("__class__")
        if owner is None:
            raise f.refuse("`super()` outside of a method")
        return Several("super", (Static(f.whole.check(outside.content_of, owner)), f.first))
    function = f.sure(f.evaluate(node.func))
    if (
        isinstance(function, Static)
        and calls.is_hashable(function.value)
        and function.value in SUMS
        and len(node.args) == 1
        and not node.keywords
    ):
        if isinstance(node.args[0], ast.GeneratorExp):
            start, op = SUMS[function.value]
            combine = lambda a, b: operators.operation(f, op, a, b, node)
            return loops.comprehension(f, node.args[0], (Static(start), combine))
    args: list[Any] = []
    for a in node.args:
        if isinstance(a, ast.Starred):
            args += spread(f, function, args, f.after([function, *args], a.value))
        else:
            args.append(f.after([function, *args], a))
    named: dict[str, Any] = {}
    for keyword in node.keywords:
        value = f.after([function, *args, *named.values()], keyword.value)
        if keyword.arg is not None:
            named[keyword.arg] = value
        elif isinstance(f.thing(value), Keys):
            named.update(f.thing(value).items)
        else:
            raise f.refuse("a call with `**` of what is no dictionary with known keys")
    f.line = node.lineno
    return f.call(function, args, named)


def spread(f: Frame, function: Any, args: list[Any], x: Any) -> list[Any]:
    """The arguments that `*x` stands for: as many as are missing, where the length of x is not known."""
    if lists.entries(f, x) is not None or not isinstance(f.thing(x), (Leaf, Rows)):
        return lists.all_of(f, x)
    wanted = calls.parameters_of(f, function)
    if wanted is None or wanted < len(args):
        return lists.all_of(f, x)
    count = ast.Constant(wanted - len(args))
    differs = ast.Compare(lists.length(f, x), [ast.NotEq()], [count])
    f.emit(ast.If(differs, [f.raising(TypeError)], []))
    return [lists.item(f, x, Static(k)) for k in range(wanted - len(args))]


def function(f: Frame, node: Any) -> Closure:
    """A function defined inside."""
    a = node.args
    defaults = tuple([f.evaluate(d) for d in a.defaults])
    pairs = zip(a.kwonlyargs, a.kw_defaults, strict=True)
    named = tuple([(p.arg, f.evaluate(d)) for p, d in pairs if d is not None])
    cells = []
    for free in sorted(names_read(node)):
        if free in f.cells:
            if free not in f.state.names:
                f.state.names[free] = f.object(Cell(UNSET))
            cells.append((free, f.state.names[free]))
        elif isinstance(f.home.captured.get(free), Ref):
            cells.append((free, f.home.captured[free]))
    return Closure(node, tuple(cells), defaults, named, f.home)


def yielded(f: Frame, node: ast.Yield | ast.YieldFrom) -> Any:
    """What a generator gives to the loop that goes through it."""
    if not f.generates:
        raise f.refuse(WORDS[type(node)])
    value = Static(None) if node.value is None else f.evaluate(node.value)
    if isinstance(node, ast.YieldFrom):
        loops.over(f, value, f.yields[-1])
    else:
        f.yields[-1](value)
    return Static(None)


def named_expression(f: Frame, node: ast.NamedExpr) -> Any:
    value = f.evaluate(node.value)
    loops.bind(f, node.target, value)
    return value


RULES: dict[type, Callable[..., Any]] = {
    ast.Name: name,
    ast.Constant: constant,
    ast.BinOp: binary,
    ast.UnaryOp: unary,
    ast.Compare: comparison,
    ast.BoolOp: choice,
    ast.IfExp: conditional,
    ast.Tuple: sequence,
    ast.List: sequence,
    ast.Dict: dictionary,
    ast.Attribute: attribute,
    ast.Subscript: subscript,
    ast.Call: called,
    ast.Lambda: function,
    ast.ListComp: lambda f, node: loops.comprehension(f, node),
    ast.GeneratorExp: lambda f, node: Several("once", (loops.comprehension(f, node),)),
    ast.DictComp: lambda f, node: loops.comprehension(f, node),
    ast.NamedExpr: named_expression,
    ast.Yield: yielded,
    ast.YieldFrom: yielded,
}

__all__ = ["evaluate"]
