"""Tasks for other processes that read what they are not given, and tasks that fail, in a module that workers can import."""

import contextvars
import functools
import sys
from functools import lru_cache

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
    Settings().scaled,
    Settings.scaled_by_class,
    Settings().scaled_by_property,
]


def set_all(x):
    """Let all of it be x."""
    global SCALE
    SCALE = HELD["scale"] = Settings.scale = x
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
