"""Derivatives of coroutine functions are coroutine functions."""

import asyncio
import functools

import pytest

import plaingrad
import plaingrad.testing
from plaingrad import ArgumentError, MissingRuleError


async def square(x):
    await asyncio.sleep(0)
    return x * x


async def f(x):
    """4 x^4."""
    a, b = await asyncio.gather(square(x), square(2 * x))
    return a * b


async def times(x, y):
    return await square(x) * y


class Model:
    async def __call__(self, x):
        return await square(x)

    async def method(self, x):
        return await square(x) * 2


OPERATORS = {
    "grad": (plaingrad.grad(f), 432.0),
    "value_and_grad": (plaingrad.value_and_grad(f), (324.0, 432.0)),
    "derivative": (plaingrad.derivative(f), 432.0),
    "second derivative": (plaingrad.derivative(f, 2), 432.0),
    "jacobian": (plaingrad.jacobian(f), 432.0),
    "hessian": (plaingrad.hessian(f), 432.0),
    "of a partial application": (plaingrad.grad(functools.partial(times, y=2.0)), 12.0),
    "of an object": (plaingrad.grad(Model()), 6.0),
    "of a method": (plaingrad.grad(Model().method), 12.0),
    "with several arguments": (lambda x: plaingrad.grad(times, (0, 1))(x, 2.0), (12.0, 9.0)),
    "jvp": (lambda x: plaingrad.jvp(f, (x,), (2.0,)), (324.0, 864.0)),
    "hvp": (lambda x: plaingrad.hvp(f, (x,), (1.0,)), (432.0,)),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_the_result_is_awaited(name):
    operator, expected = OPERATORS[name]

    async def main():
        return await operator(3.0)

    assert asyncio.run(main()) == pytest.approx(expected)


def test_a_pullback_is_an_ordinary_function():
    y, pullback = asyncio.run(plaingrad.vjp(f, 3.0))
    assert (y, pullback(1.0)) == (324.0, (432.0,))


def test_the_event_loop_is_free_meanwhile():
    async def main():
        return await asyncio.gather(*[plaingrad.grad(f)(float(k)) for k in range(4)])

    assert asyncio.run(main()) == [0.0, 16.0, 128.0, 432.0]


def test_exceptions_are_those_of_the_function():
    async def failing(x):
        await asyncio.sleep(0)
        raise KeyError("no")

    with pytest.raises(KeyError, match="no"):
        asyncio.run(plaingrad.grad(failing)(1.0))


def test_inside_of_another_derivative_it_is_refused():
    async def outer(x):
        return await plaingrad.grad(square)(x) * x

    with pytest.raises(MissingRuleError, match="inside of another derivative"):
        asyncio.run(plaingrad.grad(outer)(3.0))
    with pytest.raises(MissingRuleError):
        asyncio.run(plaingrad.grad(plaingrad.grad(square))(3.0))


@pytest.mark.parametrize(
    "call",
    [
        lambda: plaingrad.taylor(square, 2.0, 2),
        lambda: plaingrad.linearize(square, 2.0),
        lambda: plaingrad.vmap(square),
        lambda: plaingrad.explain(square, 2.0),
        lambda: plaingrad.wirtinger(functools.partial(square)),
        lambda: plaingrad.testing.check_grads(square, (2.0,)),
    ],
)
def test_operators_that_would_take_the_coroutine_for_a_value_refuse(call):
    """`taylor` gave a coroutine of None, and `explain` said that no input has influence."""
    with pytest.raises(ArgumentError, match="is a coroutine function"):
        call()


def test_an_object_is_told_by_its_class():
    class Any:
        def __getattr__(self, name):
            if name == "__code__":
                return square.__code__
            raise AttributeError(name)

        def __call__(self, x):
            return x * x

    assert plaingrad.grad(Any())(3.0) == 6.0
