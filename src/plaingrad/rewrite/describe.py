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
    from plaingrad.rewrite.transform import Rewriting

    source = original(code)
    if source is None:
        raise ValueError(f"the code that {code.co_qualname} was rewritten from is gone")
    work = Rewriting(source, facts(), rewritten)
    new = work.run()
    old_texts, new_texts = texts(source, work.lines), texts(new, work.out)
    rows, last = [], None
    for i, old in enumerate(old_texts):
        number = work.lines[i].location[0]
        shown = "" if number is None or number == last else str(number)
        last = last if number is None else number
        became = new_texts[work.first[i] : work.first[i + 1]]
        rows.append((shown, str(i), old, became[0] if became else ""))
        rows.extend(("", "", "", text) for text in became[1:])
    rows.insert(0, ("line", "", "original", "rewritten"))
    head = f"{source.co_qualname} ({source.co_filename}:{source.co_firstlineno})"
    return f"{head}\n{aligned(rows, right=(0, 1))}"


def texts(code, lines):
    """What to print for each of `lines`, which are the instructions of `code`."""
    shown = (i for i in dis.get_instructions(code) if i.opname not in ("EXTENDED_ARG", "CACHE"))
    return [text(line, instruction) for line, instruction in zip(lines, shown, strict=True)]


def text(line, instruction):
    """`LOAD_FAST x`, `JUMP_FORWARD to 12`."""
    if line.target is not None:
        return f"{line.name} to {line.target}"
    if instruction.arg is None:
        return line.name
    if instruction.argval is FETCH:
        return f"{line.name} CURRENT.get"
    if isinstance(instruction.argval, CodeType):
        return f"{line.name} <code {instruction.argval.co_name}>"
    return f"{line.name} {instruction.argrepr or instruction.arg}"
