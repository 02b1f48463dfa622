"""Original and rewritten instructions side by side."""

import dis
from types import CodeType

from plaingrad.rewrite.cache import facts, original, rewritten
from plaingrad.rewrite.hooks import FETCH
from plaingrad.tables import aligned


def describe(code: CodeType) -> str:
    """A table of the instructions of `code` beside what they become: line, place, original, rewritten.

    Jumps name the place they go to. `code` may also be rewritten code whose original is alive.
    """
    from plaingrad.rewrite.listing import Listing
    from plaingrad.rewrite.transform import Rewriting

    source = original(code)
    if source is None:
        raise ValueError(f"the code that {code.co_qualname} was rewritten from is gone")
    work = Rewriting(source, facts(), rewritten)
    new_code = work.run()
    new = Listing(new_code)
    layout, index = work.layout, {unit: k for k, unit in enumerate(new.starts)}
    begun = [index.get(offset // 2, len(new.starts)) for offset in layout.offsets]
    first = [begun[piece] for piece in layout.first]
    goals = {begun[piece]: goal for piece, _, goal in layout.jumps}
    old_texts, new_texts = texts(source, work.targets), texts(new_code, goals)
    rows, last = [], None
    for i, old in enumerate(old_texts):
        number = work.listing.locations[i][0]
        shown = "" if number is None or number == last else str(number)
        last = last if number is None else number
        became = new_texts[first[i] : first[i + 1]]
        rows.append((shown, str(i), old, became[0] if became else ""))
        rows.extend(("", "", "", text) for text in became[1:])
    rows.insert(0, ("line", "", "original", "rewritten"))
    head = f"{source.co_qualname} ({source.co_filename}:{source.co_firstlineno})"
    return f"{head}\n{aligned(rows, right=(0, 1))}"


def texts(code, goals):
    """What to print for each instruction of `code`, the jumps among which go to `goals`."""
    shown = (i for i in dis.get_instructions(code) if i.opname not in ("EXTENDED_ARG", "CACHE"))
    return [text(instruction, goals.get(i)) for i, instruction in enumerate(shown)]


def text(instruction, goal):
    """`LOAD_FAST x`, `JUMP_FORWARD to 12`."""
    name = instruction.opname
    if goal is not None:
        return f"{name} to {goal}"
    if instruction.arg is None:
        return name
    if instruction.argval is FETCH:
        return f"{name} CURRENT.get"
    if isinstance(instruction.argval, CodeType):
        return f"{name} <code {instruction.argval.co_name}>"
    return f"{name} {instruction.argrepr or instruction.arg}"
