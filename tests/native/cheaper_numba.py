"""What Numba does over and over while it compiles, done in less time: for `make test`, which compiles all the time.

A sixth of the time of compiling is this: a dictionary of all flags for each comparison of two sets of flags, two event
objects for each call of LLVM, which tell how long its lock was held, and the names in a statement found again after every
pass. Each function here returns what Numba's own returns, but for those times, which nobody reads. What LLVM is given is
the same. The tests marked `optimised`, and all of them with PLAINGRAD_TEST_ALL=1, use Numba as it is.
"""

import contextlib
import functools

from numba.core import codegen, config, event, ir
from numba.core.targetconfig import TargetConfig

TRIGGER, VARIABLES = event.trigger_event, ir.Inst._rec_list_vars


def install():
    """From now on, in this process."""
    TargetConfig.values = values
    TargetConfig.__hash__ = hash_of_names
    ir.Inst._rec_list_vars = variables
    event.start_event = if_heard(event.start_event)
    event.end_event = if_heard(event.end_event)
    event.trigger_event = trigger_event
    event.install_timer = untimed
    if not config.LLVM_REFPRUNE_PASS:  # what Numba has instead prints the code, and parses what remains of it
        codegen.remove_redundant_nrt_refct = lambda module: module


# -- flags -------------------------------------------------------------------------------------------------------------


@functools.cache
def defaults(kind):
    """The values of flags that are not set."""
    return {name: option.default for name, option in kind.options.items()}


@functools.cache
def hash_of(kind):
    """Numba's hash of flags: of their names, whatever their values."""
    return hash(tuple(sorted(kind.options)))


def values(flags):
    """The values of all flags, by name, in the order of their declaration."""
    return {**defaults(type(flags)), **flags._values}


def hash_of_names(flags):
    """The hash of a set of flags."""
    return hash_of(type(flags))


# -- events ------------------------------------------------------------------------------------------------------------


def if_heard(send):
    """`send`, where somebody listens."""

    def sent(kind, *args, **kwargs):
        if event._registered.get(kind):
            send(kind, *args, **kwargs)

    return sent


def trigger_event(kind, data=None):
    """A context that is announced."""
    return TRIGGER(kind, data) if event._registered.get(kind) else contextlib.nullcontext()


def untimed(kind, callback):
    """In place of a clock for the locks of the compiler and of LLVM."""
    return contextlib.nullcontext()


# -- variables ---------------------------------------------------------------------------------------------------------

HOLDS_NONE = set()  # types of what has no variables in it


def variables(_, x):
    """The variables in (part of) a statement, in order."""
    found = []
    collect(x, found)
    return found


def collect(x, found):
    kind = type(x)
    if kind is ir.Var:
        found.append(x)
    elif kind in HOLDS_NONE:
        return
    elif issubclass(kind, ir.Var):
        found.append(x)
    elif issubclass(kind, ir.Inst):
        found += x.list_vars()
    elif issubclass(kind, (list, tuple)):
        for part in x:
            collect(part, found)
    elif issubclass(kind, dict):
        for part in x.values():
            collect(part, found)
    else:
        HOLDS_NONE.add(kind)
