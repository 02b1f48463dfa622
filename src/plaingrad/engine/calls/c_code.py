"""C code: what is called instead of a function that has no rule, that iterates over its arguments, or calls them.

Code without a rule is called when nothing among its arguments is active, and refused otherwise; functions that it is
given run rewritten, and the classes of what it compares or hashes are adopted first.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import operator
import sys
from collections import OrderedDict, _count_elements, defaultdict
from types import FunctionType, GeneratorType, MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from plaingrad import number_classes, rulebook
from plaingrad.class_keys import is_among
from plaingrad.engine.calls import elsewhere
from plaingrad.engine.compiled import core
from plaingrad.engine.memory.kinds import ARRAY, MAPPING, NOTHING, NUMBER, OBJECT, SEQUENCE, kind_of
from plaingrad.engine.memory.memory import owner_of
from plaingrad.engine.refusals.refuse import missing_rule
from plaingrad.engine.users_code import earlier_frames
from plaingrad.engine.users_code.adopt import LruCached
from plaingrad.engine.users_code.class_attributes import lookup
from plaingrad.engine.values import lookups, text_into_c, texts, truncated

if TYPE_CHECKING:
    from plaingrad.engine.calls.calls import Calls

HEAP_FUNCTIONS = frozenset((heapq.heappush, heapq.heappop, heapq.heapreplace, heapq.heappushpop))
# Of these, the elements are neither compared, hashed nor called.
MOVING_ONLY = frozenset((zip, enumerate, reversed, list, tuple, itertools.chain, itertools.islice))
# Of these the items of an argument, at such a position, are compared, hashed or tested.
COMPARED_AT: dict[Any, int] = dict.fromkeys(
    (dict, set, frozenset, OrderedDict, sorted, min, max, any, all, itertools.groupby), 0
)
COMPARED_AT |= {filter: 1, defaultdict: 1, itertools.compress: 1, _count_elements: 1}
SET_METHODS = frozenset(
    "update union intersection difference symmetric_difference intersection_update difference_update "
    "symmetric_difference_update issubset issuperset isdisjoint".split()
)  # of all their arguments
# Methods that compare or hash what the container holds.
COMPARING_METHODS = frozenset(
    "__contains__ __eq__ __ge__ __gt__ __le__ __lt__ __ne__ count index remove".split()
)
ITERATED = ("iterable", "data", "selectors")  # keyword arguments that C functions iterate over
# Of these, nothing inside of the argument is entered.
OUTSIDE_ONLY = frozenset(
    (len, id, callable, bool, operator.not_, operator.truth, operator.index, operator.length_hint)
)
# And those that they call.
CALLED_BY_NAME = ("key", "func", "function", "mycmp", "repl", "predicate", "callback")


def meeting_class(calls: Calls, f: Any) -> Any:
    """`object.__new__` and its like: the class that is made, or initialised next, is met first."""

    def make(*args: Any, **kwargs: Any) -> Any:
        if args:
            calls.meet(args[0])
        return f(*args, **kwargs) if kwargs else f(*args)

    return make


def iterating(calls: Calls, f: Any) -> Any:
    """A C function that iterates over its arguments or calls them, on what it may safely touch."""
    only_functions = f is defaultdict or f is functools.cmp_to_key
    maker = f if isinstance(f, type) else getattr(f, "__objclass__", object)
    fills = kind_of(maker) == MAPPING  # keyword arguments are entries
    used = (*ITERATED, *CALLED_BY_NAME)
    on_heap = is_among(f, HEAP_FUNCTIONS)
    moves = is_among(f, MOVING_ONLY)
    compared = compared_at(f)
    begins = (
        2 if f is functools.reduce else None
    )  # what is no iterable, though an array of a system can be one

    def over_elements(*args: Any, **kwargs: Any) -> Any:
        if on_heap and args and type(args[0]) is list:
            calls.meet_heap(args[0])
            return f(args[0], *[safe(calls, x, only_functions) for x in args[1:]], **kwargs)
        if compared and not (len(args) > 1 and (f is min or f is max)):
            args = tuple([items(calls, x) if k in compared else x for k, x in enumerate(args)])
        args = tuple(
            [
                x
                if (moves and (type(x) is list or type(x) is tuple)) or k == begins
                else safe(calls, x, only_functions)
                for k, x in enumerate(args)
            ]
        )
        if (moves or f is map) and not kwargs:
            made = f(*args)
            if type(made) is not list and type(made) is not tuple:
                calls.made = made
            return made
        if kwargs:
            kwargs = {
                name: safe(calls, x, only_functions) if name in used and not fills else calls.meet(x)
                for name, x in kwargs.items()
            }
        return f(*args, **kwargs) if kwargs else f(*args)

    if core is None or only_functions:
        return over_elements
    texts = calls.level.texts
    lists = 0 if on_heap else 2 if moves else 1  # long heaps are not gone through each time
    return core.PlainCall(f, over_elements, texts, True, on_heap, lists, calls if moves else None, True).call


def safe(calls: Calls, x: Any, only_functions: bool) -> Any:
    """`x` as C code may have it that iterates over it or calls it."""
    t = type(x)
    kind = kind_of(t)
    if kind == NUMBER and number_classes.known and number_classes.system_of(x) is not None and x.ndim:
        return calls.level._iterable(x)
    if kind == NUMBER or (kind == NOTHING and not callable(x)):
        if (t is bytes or t is bytearray or t is memoryview) and calls.level.texts.raw:
            texts.check_bytes(calls.level, x)
        return x
    if t is FunctionType or t is MethodType:
        if only_functions and rulebook.find(x) is None:
            elsewhere.adopt_callback(x)  # it stays the object that it is
            return x
        return calls.prep(x)
    if kind in (SEQUENCE, MAPPING):
        return calls.meet_all(x)
    if kind == ARRAY or t is np.flatiter or t is memoryview:
        return calls.level._iterable(x) if kind != ARRAY or x.ndim else calls.meet(x)
    if callable(x) and not (only_functions and (isinstance(x, (type, np.ufunc)) or only_looks(x))):
        return calls.prep(x)
    if t is GeneratorType or earlier_frames.is_iterator(t):
        return calls.level._iterable(x)
    calls.meet(x)
    return x


def only_looks(f: Any) -> bool:
    """Whether `f` only looks at what it is given: it may stay the object that it is."""
    rule = rulebook.find(f)
    return rule is not None and rule.kind in ("mover", "inspector", "no_tangent")


def compared_at(f: Any) -> range:
    """At which positions the arguments of `f` are whose items it compares, hashes or tests."""
    if isinstance(f, type):
        if any(type(lookup(f, name)) is FunctionType for name in ("__init__", "__new__")):
            return range(0)
        f = next((base for base in f.__mro__ if is_among(base, COMPARED_AT)), f)
    if is_among(f, COMPARED_AT):
        return range(COMPARED_AT[f], COMPARED_AT[f] + 1)
    name, owner = getattr(f, "__name__", ""), getattr(f, "__objclass__", None)
    if owner is not None and name in SET_METHODS:
        return range(1, sys.maxsize)
    return range(0)


def items(calls: Calls, x: Any) -> Any:
    """`x` for C code that compares, hashes or tests the items that it iterates over."""
    t = type(x)
    if kind_of(t) != OBJECT or not hasattr(t, "__iter__") or hasattr(t, "keys"):
        return x
    return calls.level._met_items(x)


def guarded(calls: Calls, f: Any) -> Any:
    """A C function without a rule: called when nothing among its arguments is active, else refused."""
    level = calls.level
    pickles = getattr(getattr(f, "__objclass__", f), "__module__", None) == "_pickle"
    # Functions are pickled by name, not called.
    given = calls.meet if pickles else functools.partial(callback, calls, f)
    reads = text_into_c.reader_kind(f)
    takes_items = text_into_c.takes_items(f, reads)
    hashes, digests = text_into_c.only_hashes(f, reads), text_into_c.only_digests(f)

    def opaque(*args: Any, **kwargs: Any) -> Any:
        if level.texts:
            text_into_c.check_arguments(level, f, reads, args, kwargs)
            if level.texts.raw and not hashes:
                texts.check_bytes(level, *args, *kwargs.values())
        watched = None
        for position, x in enumerate(itertools.chain(args, kwargs.values())):
            kind = kind_of(type(x))
            if kind == NOTHING:
                continue
            if calls.finds_active(x):
                if digests and kind == ARRAY:
                    continue
                missing_rule(
                    f,
                    f"Its argument {position} depends on the differentiated inputs, so its derivative is needed.",
                )
            if (kind == ARRAY or type(x) is memoryview) and id(owner_of(x)) in level.captured:
                watched = [*(watched or ()), x]
        if watched and f is not memoryview:  # writes through one are seen
            refuse_writes(f)
        if takes_items and any(map(text_into_c.is_stepped, args)):
            args = tuple(
                [text_into_c.checked_items(level, f, x) if text_into_c.is_stepped(x) else x for x in args]
            )
        ready = [given(x) for x in args]
        if kwargs:
            kwargs = {name: given(x) for name, x in kwargs.items()}
        result = f(*ready, **kwargs) if kwargs else f(*ready)
        if level.texts:
            text_into_c.check_result(level, f, reads, args, result)
        if digests:
            lookups.digested(level, args, result)
        return result

    made = truncated.spans(level, f, opaque) if truncated.is_span(f) else opaque
    return made if core is None or pickles else core.PlainCall(f, made, level.texts, False).call


def refuse_writes(f: Any) -> None:
    """An unknown C function may write an array that a pullback reads: let it have a read-only look only."""
    missing_rule(
        f, "One of its arguments is an array that the reverse pass reads again, and it may write it."
    )


def callback(calls: Calls, f: Any, x: Any) -> Any:
    """A callable handed to the C function `f`: its rewritten form, which may not return active values to it."""
    t = type(x)
    if t is FunctionType or t is MethodType or (t is functools.partial):
        return elsewhere.callback(calls.level, f, x)
    if t is LruCached:
        calls.memos.of_function(x)  # its function runs rewritten
    if kind_of(t) != NUMBER:
        calls.meet_all(x)
    return x


def inspecting(calls: Calls, f: Any) -> Any:
    """A C function that only looks at its arguments, which are met first."""
    if f.__name__ == "fromkeys":

        def fromkeys(keys: Any, *value: Any) -> Any:
            return f(calls.meet_all(items(calls, keys)), *value)

        return fromkeys
    if core is not None:
        made = core.InspectingCall(f, calls.meet_all)
        if is_among(f, OUTSIDE_ONLY):
            return made.one if f is len else made.outside
        return made.method if is_bound_later(f) else made.call
    meet = calls.meet if is_among(f, OUTSIDE_ONLY) else calls.meet_all
    first = int(is_bound_later(f))

    def inspect(*args: Any, **kwargs: Any) -> Any:
        for x in (*args[first:], *kwargs.values()):
            meet(x)
        return f(*args, **kwargs) if kwargs else f(*args)

    return inspect


def is_bound_later(f: Any) -> bool:
    """Whether `f` is a method of a container that looks at its arguments, and not at all that the container holds."""
    owner = getattr(f, "__objclass__", None)
    return owner is not None and owner is not slice and f.__name__ not in COMPARING_METHODS


def integer_part(calls: Calls, f: Any) -> Any:
    """int(x), floor(x), ...: no derivative; refused where the integer keeps every digit of x."""
    level = calls.level

    def integer(*args: Any, **kwargs: Any) -> Any:
        if args:
            x = args[0]
            if isinstance(x, texts.TEXT):
                result = f(*args, **kwargs) if kwargs else f(*args)
                if level.texts:
                    texts.check(level, x, texts.SHORT_DIGITS)
                return result
            kind = kind_of(type(x))
            if kind == NUMBER and calls.finds_active(x):
                if (
                    not isinstance(x, complex)
                    and abs(x) >= truncated.INTEGER_LIMIT
                    and abs(x) != float("inf")
                ):
                    truncated.refuse_digits(f.__name__)
                result = f(*args, **kwargs) if kwargs else f(*args)
                if type(result) is int and len(level.texts.truncated) < truncated.MOST:
                    level.texts.truncated.add(result)
                return result
            elif kind == OBJECT:
                calls.meet(x)
            for x in args[1:]:
                calls.meet_all(x)
        return f(*args, **kwargs) if kwargs else f(*args)

    return integer
