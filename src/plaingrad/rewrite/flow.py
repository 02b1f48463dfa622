"""Which form each CALL is in: one forward pass over the stack.

The stack is a depth and the positions of the calls in preparation: below some callables the compiler pushed a NULL,
others come prepared from the `method` hook or from a comprehension rewritten together with its parent.
"""

from plaingrad.rewrite.encoding import JUMPS, effect

NULL, PREPARED = "null", "prepared"
#: Items that a call takes off the stack besides its `arg` arguments.
CALLS = {"CALL": 2, "CALL_KW": 3}
#: What may put a mark on the stack.
MARKING = frozenset(
    "LOAD_METHOD LOAD_ATTR LOAD_SUPER_ATTR PUSH_NULL LOAD_GLOBAL MAKE_FUNCTION SET_FUNCTION_ATTRIBUTE".split()
)


def call_forms(listing, version, is_inline) -> list:
    """For each instruction NULL, PREPARED or None (no mark) if it is a CALL that is reached; None elsewhere.

    `is_inline(i)` says whether instruction i loads the code of a comprehension that is rewritten with its parent.
    """
    instructions, targets, final = listing.instructions, listing.targets, version.final
    forms = [None] * len(instructions)
    if not any(name in CALLS for name, _ in instructions):
        return forms
    depths = [None] * len(instructions)
    handler = {}
    for region in listing.regions:
        handler.update(dict.fromkeys(range(region.start, region.stop + 1), region))
    todo = [(0, 0, None)]  # where to go on, the depth there, marks: (position, kind, rest) or None
    while todo:
        i, depth, marks = todo.pop()
        while depths[i] is None:
            depths[i] = depth
            name, arg = instructions[i]
            if i in handler:
                region = handler[i]
                if depths[region.target] is None:
                    todo.append((region.target, region.depth + region.lasti + 1, below(region.depth, marks)))
            if name in CALLS:
                depth -= CALLS[name] + arg
                marks = below(depth + 1, marks)
                if marks is not None and marks[0] == depth:
                    forms[i], marks = marks[1], marks[2]
                depth += 1
            elif name != "PRECALL":
                before = depth
                depth += effect(name, arg)
                # the target of END_ASYNC_FOR only says where the loop began
                if i in targets and name != "END_ASYNC_FOR":
                    todo.append((targets[i], before + effect(name, arg, True), marks))
                if name == "CALL_FUNCTION_EX":  # takes its NULL, and leaves the result there
                    marks = below(depth - 1, marks)
                if name in MARKING:
                    mark = new_mark(instructions, i, before, depth, version, is_inline)
                    if mark is not None:
                        marks = (*mark, below(mark[0], marks))
            if name in final:
                break
            i += 1
        else:
            if depths[i] != depth:  # a wrong effect somewhere would put hooks over the wrong items
                raise RuntimeError(f"the stack is {depths[i]} or {depth} deep at {i}, {instructions[i][0]}")
    return forms


def below(depth, marks):
    """The marks at positions under `depth`."""
    while marks is not None and marks[0] >= depth:
        marks = marks[2]
    return marks


def new_mark(instructions, i, before, after, version, is_inline):
    """The (position, kind) that instruction i puts on the stack, or None."""
    name, arg = instructions[i]
    if name == "LOAD_METHOD" or (name in ("LOAD_ATTR", "LOAD_SUPER_ATTR") and version.method_bit and arg & 1):
        return after - 2, PREPARED
    if version.null_first and (name == "PUSH_NULL" or (name == "LOAD_GLOBAL" and arg & 1)):
        return before, NULL
    if name == "MAKE_FUNCTION" and is_inline(i - 1):
        return after - 1, PREPARED
    if name == "SET_FUNCTION_ATTRIBUTE":  # the attribute was pushed first
        made = next(j for j in range(i, -1, -1) if instructions[j][0] == "MAKE_FUNCTION")
        return (after - 1, PREPARED) if is_inline(made - 1) else None
    return None


#: What only pushes something, and may be the first instruction of an argument.
PUSHING = frozenset(
    "LOAD_FAST LOAD_FAST_BORROW LOAD_FAST_CHECK LOAD_FAST_LOAD_FAST LOAD_FAST_BORROW_LOAD_FAST_BORROW LOAD_CONST "
    "LOAD_SMALL_INT LOAD_GLOBAL LOAD_DEREF LOAD_NAME PUSH_NULL".split()
)
NEITHER = JUMPS.keys() | {"SWAP", "SEND", "YIELD_VALUE", "RETURN_GENERATOR"}  # not looked across


def producer(instructions, entered, i, above):
    """The instruction that pushed what has `above` items above it right before i, and after which nothing took it.

    None if that is not seen by going straight back, past instructions that leave the stack higher than that.
    """
    height, following = above, None  # of the stack before `following`, above the item
    while height > 0:
        if i in entered or i == 0:
            return None
        i -= 1
        name, arg = instructions[i]
        if name in NEITHER:
            return None
        if name != "PRECALL":
            height -= effect(name, arg) if name not in CALLS else 1 - CALLS[name] - arg
        following = name
    if i in entered or i == 0 or (following is not None and following not in PUSHING) or height < 0:
        return None
    return i - 1
