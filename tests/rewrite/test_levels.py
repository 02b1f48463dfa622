"""The hooks are those of the context in which the frame was last resumed."""

import asyncio

from plaingrad.rewrite import CURRENT, PLAIN, Hooks, rewrite_function
from tests.rewrite.support import using


def level(name):
    """Hooks whose sums say where they were made."""
    return Hooks(PLAIN, add=lambda a, b: name)


ONE, TWO = level("one"), level("two")


def started(f, *args):
    with using(ONE):
        g = rewrite_function(f)(*args)
        g.send(None)
    return g


def finish(step):
    """The value of a generator or coroutine that ends in `step`."""
    try:
        return "yielded", step()
    except StopIteration as e:
        return "returned", e.value


def test_a_generator_sees_who_resumes_it():
    def f(x):
        while True:
            yield x + 1

    with using(ONE):
        g = rewrite_function(f)(1)
    assert next(g) == 2
    with using(ONE):
        assert next(g) == "one"
        with using(TWO):
            assert next(g) == "two"
        assert g.send(None) == "one"
    assert next(g) == 2


def test_a_generator_sees_who_throws():
    def f(x):
        try:
            yield
        except ValueError:
            return x + 1

    with using(TWO):
        g = started(f, 1)
        assert finish(lambda: g.throw(ValueError)) == ("returned", "two")


def test_a_generator_sees_who_closes_it():
    log = []

    def f(x):
        try:
            yield
        finally:
            log.append(x + 1)

    g = started(f, 1)
    with using(TWO):
        g.close()
    assert log == ["two"]


def inner(x):
    try:
        yield
    except ValueError:
        return


def test_a_delegation_that_ends_by_send():
    def f(x):
        yield from inner(x)
        return x + 1

    g = started(f, 1)
    with using(TWO):
        assert finish(lambda: g.send(None)) == ("returned", "two")


def test_a_delegation_that_ends_by_throw():
    def f(x):
        yield from inner(x)
        return x + 1

    g = started(f, 1)
    with using(TWO):
        assert finish(lambda: g.throw(ValueError)) == ("returned", "two")


def test_a_delegation_to_a_plain_iterator():
    def f(x):
        try:
            yield from iter([1, 2])
        except KeyError:
            yield x + 1
        return x + 2

    g = started(f, 1)
    with using(TWO):
        assert g.throw(KeyError) == "two"
    assert finish(lambda: next(g)) == ("returned", 3)


class Pause:
    def __await__(self):
        try:
            return (yield)
        except ValueError:
            return None


def test_a_coroutine_sees_who_resumes_it():
    async def f(x):
        await Pause()
        return x + 1

    with using(TWO):
        assert finish(lambda g=started(f, 1): g.send(None)) == ("returned", "two")
        assert finish(lambda g=started(f, 1): g.throw(ValueError)) == ("returned", "two")


class Endless:
    def __aiter__(self):
        return self

    async def __anext__(self):
        await Pause()
        raise StopAsyncIteration


def test_an_async_loop_that_ends_while_suspended():
    async def f(x):
        async for _ in Endless():
            pass
        return x + 1

    with using(TWO):
        assert finish(lambda g=started(f, 1): g.send(None)) == ("returned", "two")
        assert finish(lambda g=started(f, 1): g.throw(StopAsyncIteration)) == ("returned", "two")


class Manager:
    async def __aenter__(self):
        await Pause()

    async def __aexit__(self, *exc):
        await Pause()
        return True


def test_async_with_enters_and_leaves_in_the_level_of_the_moment():
    async def f(x):
        async with Manager():
            y = x + 1
            raise KeyError
        return y, x + 2

    g = started(f, 1)
    with using(TWO):
        g.send(None)
    with using(level("three")):
        assert finish(lambda: g.send(None)) == ("returned", ("two", "three"))


def test_async_generators():
    async def f(x):
        try:
            while True:
                yield x + 1
        except ValueError:
            yield x + 2

    async def main():
        CURRENT.set(ONE)
        g = rewrite_function(f)(1)
        out = [await anext(g)]
        CURRENT.set(TWO)
        out.append(await anext(g))
        CURRENT.set(PLAIN)
        out.append(await g.athrow(ValueError))
        await g.aclose()
        return out

    assert asyncio.run(main()) == ["one", "two", 3]


def test_the_level_of_a_generator_expression():
    def f(xs):
        return (x + 1 for x in xs)

    g = rewrite_function(f)([1, 2, 3])
    with using(ONE):
        assert next(g) == "one"
    assert next(g) == 3


def test_nobody_but_the_frame_itself_knows_its_level():
    def f(x):
        return x + 1, (lambda: x + 1)()

    with using(ONE):
        assert rewrite_function(f)(1) == ("one", 2)


def test_threads_begin_plain():
    import threading

    out = []
    f = rewrite_function(lambda x: out.append(x + 1))
    with using(ONE):
        t = threading.Thread(target=f, args=(1,))
        f(1)
        t.start()
        t.join()
    assert out[0] == "one"
    assert out[1] in (2, "one")  # newer threads may inherit their context
