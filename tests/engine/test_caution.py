"""Warnings of differentiated code have the file and line that they have in a plain call."""

import functools
import warnings

import pytest

import plaingrad


def told(x):
    warnings.warn("told", UserWarning)
    return x * x


def of_the_caller(x):
    warnings.warn("the caller's", stacklevel=2)
    return x * x


def of_the_callers_caller(x):
    warnings.warn("further out", RuntimeWarning, 3)
    return x * x


def calls(x):
    return of_the_caller(x)


def calls_twice(x):
    return (lambda y: of_the_callers_caller(y))(x) + inner(x)


def inner(x):
    return of_the_callers_caller(x)


class Old:
    def __init__(self, x):
        warnings.warn("constructed", DeprecationWarning, stacklevel=2)
        self.x = x

    @property
    def value(self):
        warnings.warn("read", DeprecationWarning, stacklevel=2)
        return self.x

    def __mul__(self, other):
        warnings.warn("multiplied", stacklevel=2)
        return self.x * other

    def __getattr__(self, name):
        warnings.warn("missing", stacklevel=2)
        return 1.0


def of_a_class(x):
    return Old(x).value * Old(x).other + Old(x) * 2.0


def in_a_map(x):
    return sum(map(of_the_caller, [x, x]))


def in_a_sort(x):
    return sorted([x, 2.0], key=of_the_caller)[0]


@functools.lru_cache
def cached(x):
    warnings.warn("cached", stacklevel=2)
    return x * x


def in_a_cache(x):
    cached.cache_clear()
    return cached(x)


def by_keywords(x):
    warnings.warn(message="by keywords", category=UserWarning, stacklevel=1)
    return x


def an_instance(x):
    warnings.warn(FutureWarning("an instance"), stacklevel=2)
    return x


@pytest.mark.parametrize(
    "f",
    [told, calls, calls_twice, of_a_class, in_a_map, in_a_sort, in_a_cache, by_keywords, lambda x: an_instance(x)],
    ids=lambda f: f.__name__,
)
def test_warnings_are_those_of_the_plain_call(f):
    def heard(call):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            call()
        return [(w.filename, w.lineno, w.category, str(w.message)) for w in found]

    plain = heard(lambda: f(0.5))
    assert plain and all(file == __file__ for file, *_ in plain)
    assert heard(lambda: plaingrad.vjp(f, 0.5)) == plain
    assert heard(lambda: plaingrad.jvp(f, (0.5,), (1.0,))) == plain
    assert heard(lambda: plaingrad.grad(plaingrad.grad(f))(0.5))[: len(plain)] == plain


def test_the_registry_is_the_users():
    def once(x):
        warnings.warn("only once per place")
        return x * x

    globals().pop("__warningregistry__", None)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        plaingrad.grad(once)(1.0)
        plaingrad.grad(once)(1.0)
    assert len(found) == 1
    assert any("only once" in str(key) for key in globals()["__warningregistry__"])
