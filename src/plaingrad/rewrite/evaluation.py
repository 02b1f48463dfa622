"""What rewritten code asks of a level in one call: an expression, evaluated by the level's hooks one after another."""

#: The verbs of steps: what each pushes, or makes of the top of the stack. Those that set something push None.
(
    LOAD,
    DEREF,
    CONST,
    GLOBAL,
    ATTR,
    METHOD,
    GETITEM,
    BINARY,
    NEG,
    COMPARE,
    CALL,
    PREP_CALL,
    SET_ATTR,
    SET_ITEM,
) = VERBS = (
    "load",
    "deref",
    "const",
    "global",
    "attr",
    "method",
    "getitem",
    "binary",
    "neg",
    "compare",
    "call",
    "prep_call",
    "set_attr",
    "set_item",
)


class Expression:
    """Steps, (verb, what), that make one value of so many operands; the compiled core has its own such class."""

    __slots__ = ("operands", "steps")

    def __init__(self, steps, operands):
        self.steps, self.operands = steps, operands


_classes = [Expression]


def make_with(cls):
    """Expressions are to be of a class that the compiled core knows."""
    _classes[:] = [cls, Expression]


def expression(steps, operands):
    """An expression of the class in use."""
    return _classes[0](steps, operands)


def evaluate(hooks, given, frame):
    """The value of an expression by `hooks`; `given` is what rewritten code passes, `frame` where it does so."""
    k = next(k for k, x in enumerate(given[:3]) if type(x) in _classes)
    found, operands = given[k], given[:k] + given[k + 1 :]
    stack = []
    for verb, what in found.steps:
        if verb == LOAD:
            stack.append(operands[what])
        elif verb == DEREF:
            stack.append(contents(operands[what[0]], *what[1:]))
        elif verb == CONST:
            stack.append(what)
        elif verb == GLOBAL:
            stack.append(global_value(frame.f_globals, frame.f_builtins, what))
        else:
            last = stack.pop()
            if verb == ATTR:
                made = hooks.attr(last, what)
            elif verb == METHOD:
                made = hooks.method(last, what)
            elif verb == NEG:
                made = hooks.neg(last)
            elif verb == GETITEM:
                made = hooks.getitem(stack.pop(), last)
            elif verb == CALL:
                made = stack.pop()(last)
            elif verb == SET_ATTR:
                made = hooks.set_attr(stack.pop(), last, what)
            elif verb == SET_ITEM:
                made = hooks.setitem(*(stack.pop(), stack.pop())[::-1], last)
            elif verb == PREP_CALL:
                made = hooks.prep(stack.pop())(last)
            else:
                made = getattr(hooks, what)(stack.pop(), last)
            stack.append(made)
    return stack[0]


def contents(cell, name, is_free):
    """What is in a variable that functions share."""
    try:
        return cell.cell_contents
    except ValueError:
        pass
    if is_free:
        raise NameError(
            f"cannot access free variable {name!r} where it is not associated with a value in enclosing scope",
            name=name,
        )
    raise UnboundLocalError(f"cannot access local variable {name!r} where it is not associated with a value")


def global_value(names, builtins, name):
    """A global variable or builtin."""
    try:
        return names[name]
    except KeyError:
        pass
    try:
        return builtins[name]
    except KeyError:
        raise NameError(f"name {name!r} is not defined", name=name) from None
