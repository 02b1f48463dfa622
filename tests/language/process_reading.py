"""Tasks for other processes that read what they are not given, and tasks that fail, in a module that workers can import."""

import contextvars
import functools
import operator
import sys
import weakref
from functools import lru_cache

import numpy as np

SCALE = 1.0
HELD = {"scale": 1.0}
CONTEXT = contextvars.ContextVar("CONTEXT", default=1.0)


class Settings:
    """A class with a number."""

    scale = 1.0

    def scaled(self, k):
        """k by it."""
        return self.scale * k

    @classmethod
    def scaled_by_class(cls, k):
        """The same."""
        return cls.scale * k

    @property
    def twice(self):
        """A property that reads a global."""
        return 2.0 * SCALE

    def scaled_by_property(self, k):
        """k by it."""
        return self.twice * k


def in_comprehension(k):
    """A global in code of its own, before CPython 3.12."""
    return sum([SCALE * n for n in range(k)])


def in_lambda(k):
    """A global in a function that is made there."""
    return (lambda n: SCALE * n)(k)


def of_class(k):
    """An attribute of a class."""
    return Settings.scale * k


def of_dict(k):
    """An item of a global dictionary."""
    return HELD["scale"] * k


def of_context(k):
    """A context variable."""
    return CONTEXT.get() * k


def by_name(k):
    """A global by its name."""
    return globals()["SCALE"] * k


def of_module(k):
    """An attribute of a module, imported by the task."""
    import process_reading

    return process_reading.SCALE * k


def by_getattr(k):
    """The same by a text."""
    return getattr(sys.modules[__name__], "SCALE") * k  # noqa: B009


def by_another(k):
    """A function that reads a global."""
    return of_class(k)


remembered = lru_cache(of_class)
partly = functools.partial(of_class)


def by_memo(k):
    """By a function with a memo."""
    return remembered.__wrapped__(k) if k > 100 else remembered(k)


def by_partial(k):
    """By a partial call."""
    return partly(k)


def by_names_in_a_tuple(k):
    """Globals by names that are together in a constant."""
    return sum(globals()[name] for name in ("K", "SCALE") if name in globals()) * k


def by_computed_name(k):
    """A global by a name that is no constant."""
    return globals()["SCA" + "EL"[::-1]] * k


def by_text_of_code(k):
    """A global in an expression that is a text."""
    return eval("1.0 * SCALE") * k


def kept_by_functions():
    """Two functions with a table that only they know."""
    table = {}
    return lambda name: table[name], table.__setitem__


looked_up, remember = kept_by_functions()


def by_cell(k):
    """What the cell of a global function holds."""
    return looked_up("scale") * k


def with_default(k, held=[1.0]):  # noqa: B006
    """What the default of an argument holds."""
    return held[0] * k


def by_default(k):
    """By such a function."""
    return with_default(k)


TABLE = {"of_class": of_class}


def by_table_of_functions(k):
    """By a function in a dictionary."""
    return TABLE["of_class"](k)


def decorated(f):
    """f, wrapped."""
    return lambda *args: f(*args)


wrapped = decorated(of_class)
partly_wrapped = functools.partial(decorated(of_class))
for_each = np.vectorize(of_class)


def by_wrapper(k):
    """By a function that only a wrapper knows."""
    return wrapped(k)


def by_partial_of_wrapper(k):
    """The same in a partial call."""
    return partly_wrapped(k)


def by_vectorize(k):
    """By a function that an object of NumPy calls."""
    return float(for_each(k))


@functools.singledispatch
def dispatched(k):
    """A function that has others by class."""
    return k


@dispatched.register
def _(k: int):
    return of_class(k)


def by_dispatch(k):
    """By one of these."""
    return dispatched(k)


class Meta(type):
    """A class of classes with a number."""

    scale = 1.0


class OfMeta(metaclass=Meta):
    """One of its classes."""


def of_metaclass(k):
    """An attribute of the class of a class."""
    return OfMeta.scale * k


VARIABLES = [CONTEXT]


def by_listed_context(k):
    """A context variable in a list."""
    return VARIABLES[0].get() * k


KEPT = Settings()
REFERENCE = weakref.ref(KEPT)


def by_weak_reference(k):
    """What a weak reference refers to."""
    return REFERENCE().own * k


CLASSES = [Settings]


def by_listed_class(k):
    """An attribute of a class in a list."""
    return CLASSES[0].scale * k


get_scale = operator.attrgetter("process_reading.SCALE")


def by_getter(k):
    """An attribute by a text with dots."""

    class Here:
        process_reading = sys.modules["process_reading"]

    return get_scale(Here) * k


def unrelated(k):
    """Nothing of all that."""
    return 2.0 * k


READERS = [
    in_comprehension,
    in_lambda,
    of_class,
    of_dict,
    of_context,
    by_name,
    of_module,
    by_another,
    by_memo,
    by_partial,
    by_names_in_a_tuple,
    by_computed_name,
    by_text_of_code,
    by_cell,
    by_default,
    by_table_of_functions,
    by_wrapper,
    by_partial_of_wrapper,
    by_vectorize,
    by_dispatch,
    of_metaclass,
    by_listed_context,
    by_weak_reference,
    by_listed_class,
    by_getter,
    Settings().scaled,
    Settings.scaled_by_class,
    Settings().scaled_by_property,
]


def set_all(x):
    """Let all of it be x."""
    global SCALE
    SCALE = HELD["scale"] = Settings.scale = Meta.scale = KEPT.own = x
    remember("scale", x)
    with_default.__defaults__[0][0] = x
    CONTEXT.set(x)


INITIAL = {}


def begin(x):
    """An initializer with an argument."""
    INITIAL["x"] = x


def begin_with_global():
    """An initializer that reads a global."""
    INITIAL["x"] = SCALE


def of_initial(k):
    """What the initializer has left."""
    return INITIAL["x"] * k


def product_of_ends(s):
    """Of a slice."""
    return s.start * s.stop


def called_with(f, x):
    """f(x)."""
    return f(x)


class Failed(Exception):
    """An exception with a number in its arguments and another as an attribute."""

    def __init__(self, message, x):
        super().__init__(message, x)
        self.cube = x**3


def failing_with(x, odd=1):
    """Raise an exception that holds x^2, if odd."""
    if odd % 2:
        raise Failed(f"{x * x:.8f} is too much", x * x)
    return x


def fails_again(path, x):
    """Raise something else the second time."""
    try:
        open(path, "x").close()
    except FileExistsError:
        raise KeyError(x) from None
    raise ValueError(x * x)
