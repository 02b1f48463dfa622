"""Preaccumulation: loops of a reverse sweep that carry one cotangent multiply it once an iteration.

Such a loop carries one cotangent from iteration to iteration, and adds up others.

Such an iteration takes the cotangent c to c * J, and adds c * K to each of the others. Written as the transform writes
it, every operation of the chain from c to c * J waits for the one before, and the next iteration waits for all. Here J
and K are computed first, with 1 for c, which waits for nothing; c then costs one multiplication an iteration.

J and K may be infinite where c * J is not, as with c = 0. So where they, or c, are huge (or nan), the iteration is done
in the ordinary order. What underflows in J or K changes cotangents by less than HUGE_COTANGENT times the smallest
number, 1e-224 or so.
"""

from __future__ import annotations

from plaingrad.native.program.ir import Const, For, If, Let, Operand, Stmt, Var, statements

HUGE, HUGE_COTANGENT = 1e200, 1e100
CHAIN = 3  # operations from c to c * J, from which on it pays

# what a cotangent is made of: carried cotangent -> (whether with the factor 1, the operations on the way); {} for zero,
# None for what is no cotangent
Form = dict[str, tuple[bool, int]] | None


class _NotLinear(Exception):
    """A statement does more with cotangents than add and scale them."""


def preaccumulated(s: For, carried: list[str], zero: set[str], own: set[str]) -> list[Stmt] | None:
    """The body of a loop of a reverse sweep with one carried cotangent scaled at the end; None for other loops.

    Args:
        s: the loop.
        carried: the cotangents, numbers, that live through its iterations.
        zero: the cotangents that are zero at the top of every iteration.
        own: all names of the reverse sweep's own.
    """
    others: set[str] = set()  # assigned in the body, not of the reverse sweep's own
    for x in statements(s.body):
        if not isinstance(x, (Let, If)) or (isinstance(x, Let) and x.target in others):
            return None
        if isinstance(x, Let) and x.target not in own:
            others.add(x.target)
    forms: dict[str, Form] = {name: {name: (True, 0)} for name in carried}
    forms.update({name: {} for name in zero})
    try:
        _follow(s.body, forms, own)
    except _NotLinear:
        return None
    ends = {name: forms[name] or {} for name in carried}
    chains = [name for name in carried if not ends[name].get(name, (False, 0))[0]]  # the others add up
    if len(chains) != 1 or any(set(ends[name]) - {name, chains[0]} for name in carried):
        return None
    chain = chains[0]
    if any(forms[name] is None for name in carried) or ends[chain].get(chain, (True, 0))[1] < CHAIN:
        return None
    return _scaled(s, chain, [name for name in carried if name != chain], own)


def _form(x: Operand, forms: dict[str, Form], own: set[str]) -> Form:
    if isinstance(x, Var) and x.name in own:
        if x.name not in forms:  # it comes from outside the loop
            raise _NotLinear
        return forms[x.name]
    return None


def _follow(body: list[Stmt], forms: dict[str, Form], own: set[str]) -> None:
    """Enter the forms of the cotangents that statements assign."""
    for s in body:
        if isinstance(s, If):
            if _form(s.test, forms, own) is not None:
                raise _NotLinear
            left, right = dict(forms), dict(forms)
            _follow(s.then, left, own)
            _follow(s.orelse, right, own)
            for name in left.keys() & right.keys():
                forms[name] = _either(left[name], right[name])
        elif isinstance(s, Let):
            found = _result(s, [_form(a, forms, own) for a in s.args])
            if s.target in own:
                forms[s.target] = found
            elif found is not None:
                raise _NotLinear


def _either(a: Form, b: Form) -> Form:
    if a is None or b is None:
        if a is b:
            return None
        raise _NotLinear
    found: dict[str, tuple[bool, int]] = {}
    for name in dict.fromkeys((*a, *b)):
        whole, longest = True, 0
        for form in (a, b):
            unit, count = form.get(name, (False, 0))
            whole, longest = whole and unit, max(longest, count)
        found[name] = whole, longest
    return found


def _result(s: Let, args: list[Form]) -> Form:
    if s.op == "copy":
        value = getattr(s.args[0], "value", None)
        return {} if type(value) is float and value == 0.0 else args[0]
    if all(form is None for form in args):
        return None
    if s.op == "unary" and s.detail in "+-" and args[0] is not None:
        return _times(args[0], s.detail == "+")
    if s.op != "binary":
        raise _NotLinear
    a, b = args
    if s.detail in "+-" and a is not None and b is not None:
        if not a or not b:
            return (a or b) if s.detail == "+" or not b else _times(b, False)
        found = _times(a, True)
        for name, (unit, n) in b.items():
            _, before = found.get(name, (False, 0))
            found[name] = name not in found and unit and s.detail == "+", max(n + 1, before)
        return found
    if s.detail == "*" and (a is None) != (b is None):
        return _times(b if a is None else a, False)  # type: ignore[arg-type]
    if s.detail == "/" and a is not None and b is None:
        return _times(a, False)
    raise _NotLinear


def _times(form: dict[str, tuple[bool, int]], unit: bool) -> dict[str, tuple[bool, int]]:
    """The form of one more operation on a cotangent."""
    return {name: (is_unit and unit, n + 1) for name, (is_unit, n) in form.items()}


def _scaled(s: For, chain: str, sums: list[str], own: set[str]) -> list[Stmt]:
    line = s.line
    before = {name: f"{name}_before" for name in (chain, *sums)}
    out: list[Stmt] = [Let(before[name], "copy", (Var(name),), None, line) for name in before]
    out.append(Let(chain, "copy", (Const(1.0),), None, line))
    out += [Let(name, "copy", (Const(0.0),), None, line) for name in sums]
    out += s.body
    size = ""
    for k, name in enumerate(before):
        part = f"{chain}_part{k}"
        out.append(Let(part, "call", (Const(abs), Var(name)), (), line))
        if size:
            out.append(Let(f"{chain}_size{k}", "binary", (Var(size), Var(part)), "+", line))
        size = f"{chain}_size{k}" if size else part
    fair, small, safe, given = (f"{chain}_{word}" for word in ("fair", "small", "safe", "given"))
    scaled: list[Stmt] = []
    for name in sums:
        term = f"{name}_term"
        scaled.append(Let(term, "binary", (Var(before[chain]), Var(name)), "*", line))
        scaled.append(Let(name, "binary", (Var(before[name]), Var(term)), "+", line))
    scaled.append(Let(chain, "binary", (Var(before[chain]), Var(chain)), "*", line))
    ordinary: list[Stmt] = [Let(name, "copy", (Var(old),), None, line) for name, old in before.items()]
    # what else it needs has been computed, but for what branches compute for themselves
    ordinary += [x for x in s.body if isinstance(x, If) or (isinstance(x, Let) and x.target in own)]
    return [
        *out,
        Let(small, "compare", (Var(size), Const(HUGE)), "<=", line),
        Let(given, "call", (Const(abs), Var(before[chain])), (), line),
        Let(fair, "compare", (Var(given), Const(HUGE_COTANGENT)), "<=", line),
        Let(safe, "binary", (Var(small), Var(fair)), "&", line),
        If(Var(safe), scaled, ordinary, line),
    ]
