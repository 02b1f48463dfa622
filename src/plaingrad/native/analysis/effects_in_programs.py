"""Effects read off a program in the form in which it is differentiated."""

from __future__ import annotations

from plaingrad.native.analysis.array_lists import changed
from plaingrad.native.analysis.effects import Effects, argument_types, effects_of, once_only
from plaingrad.native.analysis.memory import Memory
from plaingrad.native.analysis.users_functions import is_users
from plaingrad.native.program.ir import Do, Let, Program, statements


def effects_in(whole: Program, results: list[str], leaves: dict[str, list[str]]) -> Effects:
    """The effects of a call of a program.

    Args:
        whole: the program, tuples split into their parts.
        results: the variables that it returns.
        leaves: the parts of each parameter.
    """
    memory = Memory(whole)
    lengthened = {memory.of(name) for s in statements(whole.body) for name in changed(s, whole.types)}
    written = [
        {leaf for leaf in leaves[p] if memory.is_written(leaf) or memory.of(leaf) in lengthened}
        for p in whole.params
    ]
    writes = [k for k, found in enumerate(written) if found]
    owners = {memory.of(leaf) for p in whole.params for leaf in leaves[p]}
    aliases = any(memory.of(name) in owners for name in results)
    once = ""
    for s in statements(whole.body):
        call = s.call if isinstance(s, Do) else s
        if isinstance(call, Let) and call.op == "call":
            once = once or once_only(call)
            callee = getattr(call.args[0], "value", None)
            if is_users(callee):
                once = once or effects_of(callee, argument_types(whole, call)).once
    return Effects(frozenset(writes), aliases, once)
