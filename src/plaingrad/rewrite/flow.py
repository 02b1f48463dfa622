"""Which form each CALL is in: one forward pass over the stack.

The stack is a depth and the positions of the calls in preparation: below some callables the compiler pushed a NULL,
others come prepared from the `method` hook or from a comprehension rewritten together with its parent.
"""

import dis

from bytecode import UNSET

NULL, PREPARED = "null", "prepared"


def call_forms(listing, version, is_inline) -> list:
    """For each instruction NULL, PREPARED or None (no mark) if it is a CALL that is reached; None elsewhere.

    `is_inline(i)` says whether line i loads the code of a comprehension that is rewritten with its parent.
    """
    lines = listing.lines
    forms = [None] * len(lines)
    depths = [None] * len(lines)
    handler = [None] * len(lines)
    for region in listing.regions:
        for i in range(region.start, region.stop + 1):
            handler[i] = region
    todo = [(0, 0, None)]  # where to go on, the depth there, marks: (position, kind, rest) or None
    while todo:
        i, depth, marks = todo.pop()
        while depths[i] is None:
            depths[i] = depth
            name, arg, _, target = lines[i]
            region = handler[i]
            if region is not None and depths[region.target] is None:
                todo.append((region.target, region.depth + region.lasti + 1, below(region.depth, marks)))
            if name in CALLS:
                depth -= CALLS[name] + arg
                marks = below(depth + 1, marks)
                if marks is not None and marks[0] == depth:
                    forms[i], marks = marks[1], marks[2]
                depth += 1
            elif name != "PRECALL":
                before = depth
                depth += effect(name, arg, False)
                # the target of END_ASYNC_FOR only says where the loop began
                if target is not None and name != "END_ASYNC_FOR":
                    todo.append((target, before + effect(name, arg, True), marks))
                if name == "CALL_FUNCTION_EX":  # takes its NULL, and leaves the result there
                    marks = below(depth - 1, marks)
                mark = new_mark(lines, i, before, depth, version, is_inline)
                if mark is not None:
                    marks = (*mark, below(mark[0], marks))
            if name in version.final:
                break
            i += 1
        else:
            if depths[i] != depth:  # a wrong effect somewhere would put hooks over the wrong items
                raise RuntimeError(f"the stack is {depths[i]} or {depth} deep at {i}, {lines[i].name}")
    return forms


#: Items that a call takes off the stack besides its `arg` arguments.
CALLS = {"CALL": 2, "CALL_KW": 3}


def below(depth, marks):
    """The marks at positions under `depth`."""
    while marks is not None and marks[0] >= depth:
        marks = marks[2]
    return marks


def new_mark(lines, i, before, after, version, is_inline):
    """The (position, kind) that instruction i puts on the stack, or None."""
    name, arg = lines[i].name, lines[i].arg
    if name == "LOAD_METHOD" or (name in ("LOAD_ATTR", "LOAD_SUPER_ATTR") and version.method_bit and arg & 1):
        return after - 2, PREPARED
    if version.null_first and (name == "PUSH_NULL" or (name == "LOAD_GLOBAL" and arg & 1)):
        return before, NULL
    if name == "MAKE_FUNCTION" and is_inline(i - 1):
        return after - 1, PREPARED
    if name == "SET_FUNCTION_ATTRIBUTE":  # the attribute was pushed first
        made = next(j for j in range(i, -1, -1) if lines[j].name == "MAKE_FUNCTION")
        return (after - 1, PREPARED) if is_inline(made - 1) else None
    return None


def effect(name, arg, jump):
    """How much deeper the stack is after the instruction."""
    if name == "RETURN_GENERATOR":
        return 1  # the first value sent, which a POP_TOP takes off; not every `dis` counts it
    return dis.stack_effect(dis.opmap[name], None if arg is UNSET else arg, jump=jump)
