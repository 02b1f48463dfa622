"""What code changes that outlives its call, as far as its instructions say."""

from __future__ import annotations

from types import CodeType

from plaingrad.rewrite.cache import facts
from plaingrad.rewrite.hooks import IN_PLACE
from plaingrad.rewrite.listing import Listing

STORES = frozenset(
    "STORE_ATTR STORE_SUBSCR STORE_SLICE STORE_GLOBAL STORE_NAME DELETE_ATTR DELETE_SUBSCR DELETE_GLOBAL".split()
)
DISPLAYS = ("BUILD_", "LIST_", "SET_", "DICT_")
#: Methods and functions that change what they are called with, or the world.
MUTATORS = frozenset(
    "append appendleft add clear discard extend extendleft insert update setdefault pop popitem popleft remove "
    "reverse sort write writelines put push send throw fill itemset setflags resize print input open next setattr "
    "delattr exec eval copyto place putmask fill_diagonal heappush heappop __setitem__ __setattr__ __iadd__ __next__ "
    "__delitem__ cache_clear seed shuffle".split()
)


def has_effects(code: CodeType) -> bool:
    """Whether `code` stores into attributes, items, globals or variables of a function around it, extends something in
    place, names a mutator, or says `out=`; of functions made inside, too."""
    if not MUTATORS.isdisjoint(code.co_names):
        return True
    version, free = facts(), code.co_freevars
    before = ""
    for name, arg in Listing(code).instructions:
        if name in STORES:
            return True
        if name in ("STORE_DEREF", "DELETE_DEREF") and free and names_of_cells(code)[arg] in free:
            return True
        if name == "BINARY_OP" and before.startswith(DISPLAYS) and version.arithmetic[arg] in IN_PLACE:
            return True
        before = name
    if any(type(const) is tuple and "out" in const for const in code.co_consts):  # a keyword
        return True
    return any(has_effects(const) for const in code.co_consts if isinstance(const, CodeType))


def imports(code: CodeType) -> bool:
    """Whether `code`, or a function made inside, imports something."""
    if any(name.startswith("IMPORT_") for name, _ in Listing(code).instructions):
        return True
    return any(imports(const) for const in code.co_consts if isinstance(const, CodeType))


def names_of_cells(code: CodeType) -> list[str]:
    """The names of the slots that instructions count: locals, cells that are no locals, free variables."""
    cells = [name for name in code.co_cellvars if name not in code.co_varnames]
    return [*code.co_varnames, *cells, *code.co_freevars]


__all__ = ["MUTATORS", "has_effects", "imports"]
