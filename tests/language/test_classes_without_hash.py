"""A class whose metaclass has no hash can be no key of the engine's tables: it is refused by name, with a way out."""

import pytest

from plaingrad import UnsupportedPythonError, derivative, grad


class Meta(type):
    def __eq__(cls, other):
        return cls is other


class Plain(metaclass=Meta):
    def __init__(self, v):
        self.v = v

    def times(self, y):
        return self.v * y


class Mended(type):
    def __eq__(cls, other):
        return cls is other

    __hash__ = type.__hash__


class Hashable(metaclass=Mended):
    def __init__(self, v):
        self.v = v

    def times(self, y):
        return self.v * y


CAPTURED = Plain(2.0)


@pytest.mark.parametrize("operator", [grad, derivative])
@pytest.mark.parametrize("f", [lambda x: Plain(x).times(x), lambda x: CAPTURED.times(x) * x, lambda x: [Plain(x)][0].v ** 2])
def test_it_is_refused_by_name(operator, f):
    with pytest.raises(UnsupportedPythonError, match="Plain of .* its metaclass Meta defines __eq__ without __hash__"):
        operator(f)(3.0)


def test_as_an_argument_too():
    with pytest.raises(UnsupportedPythonError, match="Plain"):
        grad(lambda m: m.times(2.0))(Plain(3.0))


@pytest.mark.parametrize("operator", [grad, derivative])
def test_with_a_hash_it_works(operator):
    assert operator(lambda x: Hashable(x).times(x))(3.0) == 6.0
