"""Code that compilers and people rarely write: huge, generated, sourceless, evaluated, computed in odd places."""

import asyncio
import builtins
import contextlib
import dataclasses
import functools
import marshal
import math
import types

import pytest
from cases_b import check
from tests.sampling import count

import plaingrad


def compiled(source, name="f", **space):
    """The function `name` that `source` defines, from code that has no file."""
    space["__builtins__"] = builtins
    exec(compile(source, "<generated>", "exec"), space)
    return space[name]


# Size.


def test_three_hundred_arguments():
    names = [f"a{i}" for i in range(300)]
    source = f"def g({', '.join(names)}):\n    return {' + '.join(f'a{i} * {i}.0' for i in range(300))}\n"
    g = compiled(source, "g")
    check(lambda x: g(*[x] * 299, x * x), 1.5, sum(range(299)) + 299 * 2 * 1.5)
    check(lambda x: g(**{name: x for name in names}), 1.5, float(sum(range(300))))
    assert plaingrad.grad(g, argnums=299)(*[1.0] * 300) == 299.0


def test_three_hundred_locals():
    lines = ["def f(x):", "    v0 = x"]
    lines += [f"    v{i} = v{i - 1} + x * {i}.0" for i in range(1, 300)]
    lines += ["    return v299 * v298"]
    # v_n = x (1 + n (n + 1) / 2)
    a, b = 1 + 299 * 300 / 2, 1 + 298 * 299 / 2
    check(compiled("\n".join(lines)), 1.5, 2 * 1.5 * a * b)


def test_three_hundred_cells_and_names_and_constants():
    lines = ["def f(x):"]
    lines += [f"    v{i} = x * {i}.25" for i in range(300)]
    lines += ["    def g():", "        return " + " + ".join(f"v{i}" for i in range(300)), "    return g() * x"]
    check(compiled("\n".join(lines)), 0.5, 2 * 0.5 * sum(i + 0.25 for i in range(300)))


def test_jumps_that_need_extended_arguments():
    body = [f"            y = y + x * {i}.0" for i in range(1200)]
    lines = ["def f(x):", "    y = 0.0", "    for i in range(6):", "        if i == 4:", "            continue"]
    lines += ["        if x > i:"] + body + ["        else:"] + [line.replace("+ x", "- x") for line in body]
    lines += ["        try:"] + body + ["            if i == 5:", "                break"]
    lines += ["        finally:", "            y = y + x", "    else:", "        y = y * 1000.0", "    return y"]
    total = sum(range(1200))
    # x = 2.5: i = 0, 1, 2 add, i = 3, 5 subtract, the try block adds in five rounds, and five finally
    check(compiled("\n".join(lines)), 2.5, (3 - 2 + 5) * total + 5.0)


def test_a_deeply_nested_expression_and_a_long_chain_of_comparisons():
    expression = "x"
    for _ in range(80):
        expression = f"({expression} + x * 0.5)"
    f = compiled(f"def f(x):\n    return {expression} if 0.0 < x <= x < 10.0 != x > 1.0 else -x\n")
    check(f, 1.5, 41.0)
    check(f, 0.5, -1.0)


def test_a_function_of_thousands_of_lines():
    n = count(3_000, 10_000)
    lines = ["def f(x):", "    y = x"] + ["    y = y * 1.0 + x"] * n + ["    return y"]
    check(compiled("\n".join(lines)), 0.75, n + 1.0)


# Code from elsewhere.


def test_a_function_made_by_exec_and_an_expression_by_eval():
    f = compiled("def f(x, k=3.0):\n    return x ** 2 * k + g(x)\ng = lambda x: x * 5.0\n")
    check(f, 1.5, 9.0 + 5.0)
    check(eval("lambda x: x * x * x"), 1.5, 3 * 1.5**2)


def test_eval_and_exec_inside_the_program_see_its_names():
    def f(x):
        y = x * x
        a = eval("x * y")
        b = eval("x * k", {"k": 4.0}, {"x": y})
        space = {"x": x}
        exec("def h(t):\n    return t * t * x\nz = h(x) + sum([x * i for i in range(3)])", space)
        c = eval(compile("y + x", "<expression>", "eval"))
        d = eval("(lambda t: t * 7.0)(x)")
        return a + b + space["z"] + c + d + space["h"](2.0)

    x = 1.1
    check(f, x, 3 * x**2 + 8 * x + 3 * x**2 + 3 + 2 * x + 1 + 7 + 4)


def test_eval_with_comprehension_walrus_and_builtins():
    f = lambda x: eval("(t := 3.0) * max(v, 0.0) + abs(-v) + sum(v * w for w in (1.0, 2.0, t))", {"v": x * x})
    check(f, 1.2, 2 * 1.2 * (6 + 1 + 3))


def test_code_without_source_that_went_through_marshal():
    def f(x):
        return [x * i for i in range(4)][3] * (lambda y: y * y)(x)

    code = marshal.loads(marshal.dumps(f.__code__))
    code = code.replace(co_filename="/no/such/file.py", co_name="g", co_firstlineno=1)
    g = types.FunctionType(code, {"__builtins__": builtins})
    check(g, 1.4, 9 * 1.4**2)


def test_code_without_a_line_table():
    def f(x):
        y = x * x
        return y * 2.0

    g = types.FunctionType(f.__code__.replace(co_linetable=b""), globals())
    check(g, 1.5, 6.0)


def test_a_function_from_function_type_with_its_own_globals_defaults_and_closure():
    k = 2.0

    def f(x, m=1.0):
        return x * k * m * scale  # noqa: F821

    g = types.FunctionType(f.__code__, {"scale": 7.0}, "g", (5.0,), (types.CellType(3.0),))
    check(g, 1.5, 105.0)


def test_globals_without_builtins_and_with_builtins_replaced():
    def f(x):
        return abs(x) * 2.0

    bare = types.FunctionType(f.__code__, {"__builtins__": {"abs": lambda v: v * v}})
    check(bare, -1.5, -6.0)
    none = types.FunctionType(f.__code__, {"__builtins__": {}})
    with pytest.raises(NameError, match="'abs'"):
        plaingrad.grad(none)(1.0)


def test_a_generated_init_repr_eq_and_order_of_a_dataclass():
    @dataclasses.dataclass(order=True)
    class Point:
        x: float
        y: float = 2.0
        r: float = dataclasses.field(init=False)
        tags: list = dataclasses.field(default_factory=list)

        def __post_init__(self):
            self.r = self.x * self.y

    @dataclasses.dataclass(frozen=True, slots=True)
    class Frozen:
        a: float
        b: float

    def f(x):
        p, q = Point(x), Point(x * x, y=x)
        assert repr(p).startswith("test_") and p != q
        small, large = sorted([q, p])
        z = dataclasses.replace(Frozen(x, x * x), a=small.r * 10.0)
        return large.r + z.a * z.b + dataclasses.astuple(z)[1] + dataclasses.asdict(p)["x"]

    # x = 1.5: p = (x, 2), q = (xx, x); p < q; small.r = 2x, large.r = x^3; z.a = 20x
    x = 1.5
    check(f, x, 3 * x**2 + 60 * x**2 + 2 * x + 1)


def test_a_metaclass_and_a_class_made_by_type_and_by_make_dataclass():
    class Meta(type):
        def __new__(meta, name, bases, space, *, k):
            space["k"] = k * 2.0
            return super().__new__(meta, name, bases, space)

        def __init__(cls, name, bases, space, *, k):
            super().__init__(name, bases, space)

        def __call__(cls, v):
            made = super().__call__()
            made.v = v * cls.k
            return made

    def f(x):
        class Model(metaclass=Meta, k=x):
            pass

        made = type("Made", (), {"k": x * x, "times": lambda self, y: self.k * y})()
        Generated = dataclasses.make_dataclass("Generated", ["a", ("b", float, 3.0)])
        g = Generated(x)
        return Model(x).v + made.times(x) + g.a * g.b

    x = 1.2
    check(f, x, 4 * x + 3 * x**2 + 3)


# Computation in odd places.


def test_a_class_body_computes_values():
    def f(x):
        class Model:
            k = x * 2.0
            powers = [x**i for i in range(4)]
            table = {i: x * i for i in range(3)}
            if k > 1.0:
                bonus = k * x
            else:
                bonus = 0.0
            for i in range(3):
                k = k + x
            del i

            def total(self, y=k * 10.0, *, z=k):
                return self.k + y + z

            class Inner:
                j = x * x

        return Model().total() + Model.bonus + Model.powers[3] + Model.table[2] + Model.Inner.j

    # k = 5x: total 5x + 50x + 5x; bonus 2xx; x^3; 2x; xx
    x = 1.3
    check(f, x, 60 + 4 * x + 3 * x**2 + 2 + 2 * x)


def test_defaults_annotations_and_decorators_are_computed_at_the_level():
    def times(k):
        def decorate(g):
            def wrapped(*a, **kw):
                return k * g(*a, **kw)

            return functools.wraps(g)(wrapped)

        return decorate

    def f(x):
        @times(x * 3.0)
        @times(2.0)
        def g(y, k=x * x, *, m=(x + 1.0)):
            return y * k * m

        assert g.__name__ == "g"
        return g(1.0)

    # 6x * xx * (x + 1)
    x = 1.1
    check(f, x, 24 * x**3 + 18 * x**2)


def test_nested_comprehensions_with_conditions_and_closures():
    def f(x):
        grid = [[x * i + j for j in range(3) if (i + j) % 2] for i in range(4)]
        names = {i: {j: x**j for j in range(i)} for i in range(4)}
        makers = [lambda y, k=k: y * k * x for k in range(3)]
        flat = {v for row in grid for v in row if v > 0.0}
        assert len(flat) == 6
        late = [(lambda: x * i) for i in range(3)]
        return (
            sum(map(sum, grid))
            + names[3][2]
            + sum(m(x) for m in makers)
            + sum(v for row in grid for v in row)
            + late[0]()
        )

    # grid: i=0: j=1 -> 1; i=1: j=0,2 -> 2x + 2; i=2: j=1 -> 2x + 1; i=3: j=0,2 -> 6x + 2
    x = 0.9
    check(f, x, 2 * 10 + 2 * x + 3 * 2 * x + 2)


def test_walrus_in_a_comprehension_binds_in_the_function():
    def f(x):
        y = 0.0
        values = [y := y + x * k for k in (1.0, 2.0, 3.0)]
        if any((last := v) > 3.0 * x for v in values):
            return y * last
        return last

    # values x, 3x, 6x; the first greater than 3x is 6x
    check(f, 1.5, 2 * 36 * 1.5)


def test_star_arguments_positional_only_and_keyword_only():
    def g(a, b=2.0, /, c=3.0, *rest, d, e=5.0, **more):
        return a * 1.0 + b * 10.0 + c * 100.0 + sum(rest) * 1000.0 + d * 1e4 + e * 1e5 + sum(more.values()) * 1e6

    def f(x):
        return (
            g(x, d=0.0)
            + g(0.0, x, d=0.0)
            + g(*[0.0, 0.0, x], d=x)
            + g(0.0, 0.0, *(v for v in (0.0, x, x)), d=0.0, e=x)
            + g(0.0, *(), **{"d": 0.0, "a": x, "z": x})
            + g(*(x,), *[x], **{"d": x}, **{"e": x})
        )

    check(f, 1.5, 1 + 10 + (100 + 1e4) + (2000 + 1e5) + 2e6 + (1 + 10 + 1e4 + 1e5))
    for bad in (lambda x: g(a=x, d=x), lambda x: g(x), lambda x: g(x, d=1.0, **{"d": x}), lambda x: g()):
        with pytest.raises(TypeError) as plain:
            bad(1.0)
        with pytest.raises(TypeError) as ours:
            plaingrad.grad(bad)(1.0)
        assert str(ours.value) == str(plain.value)


def test_zero_argument_super_and_the_class_cell():
    class Base:
        def __init__(self, k):
            self.k = k

        def rate(self, x):
            return self.k * x

        @property
        def twice(self):
            return self.k * 2.0

        @classmethod
        def make(cls, k):
            return cls(k * 3.0)

        def __getattr__(self, name):
            if name == "virtual":
                return self.k * 100.0
            raise AttributeError(name)

        def __add__(self, other):
            return self.k + other

    class Middle(Base):
        def rate(self, x):
            return super().rate(x) * x

    class Top(Middle):
        def __init__(self, k):
            super().__init__(k)
            self.k = self.k * 1.0

        def rate(self, x):
            base = super()
            inner = lambda: super(Top, self).rate(x)
            return base.rate(x) + inner() + super(Middle, self).rate(x)

        @property
        def twice(self):
            return super().twice * 2.0

        @classmethod
        def make(cls, k):
            assert __class__ is Top
            return super().make(k)

        def __add__(self, other):
            return super().__add__(other) * 5.0

        def who(self):
            return __class__.__name__

    def f(x):
        top = Top.make(x)  # k = 3x
        assert top.who() == "Top"
        return top.rate(2.0) + top.twice + (top + x) + top.virtual

    # rate: (k x x) * 2 + k x at x = 2 -> 10k = 30x; twice 4k = 12x; (3x + x) * 5 = 20x; 300x
    check(f, 1.5, 30 + 12 + 20 + 300)


def test_super_after_self_was_rebound_deleted_or_made_a_cell():
    class Base:
        def rate(self, x):
            return x * 2.0

    class Rebound(Base):
        def rate(self, x):
            me, self = self, None
            return super(Rebound, me).rate(x)

    class Cell(Base):
        def rate(self, x):
            f = lambda: self
            return super().rate(x) * (f() is self)

    check(lambda x: Rebound().rate(x) + Cell().rate(x) * x, 1.5, 2.0 + 4 * 1.5)


def test_deleted_and_unbound_names_are_the_plain_errors():
    def deleted(x):
        y = x * x
        del y
        return y

    def unbound(x):
        if x < 0.0:
            y = x
        return y * x

    def free(x):
        def g():
            return z * x

        result = g()
        z = 1.0
        return result

    def missing(x):
        del y
        return x
        y = 1.0

    def loop(x):
        for i in []:
            pass
        return i * x

    for f in (deleted, unbound, free, missing, loop):
        with pytest.raises(NameError) as plain:
            f(1.0)
        with pytest.raises(NameError) as ours:
            plaingrad.grad(f)(1.0)
        assert type(ours.value) is type(plain.value) and str(ours.value) == str(plain.value), f.__name__

    def f(x):
        y = x * x
        z = y
        del y, x
        try:
            return y
        except UnboundLocalError:
            return z

    check(f, 1.5, 3.0)


def test_async_functions_run_inside_the_program():
    class Gate:
        def __init__(self, k):
            self.k = k

        async def __aenter__(self):
            await asyncio.sleep(0)
            return self.k * self.k

        async def __aexit__(self, *error):
            self.k = self.k * 2.0
            return error[0] is KeyError

    async def leaf(x, n):
        for _ in range(n):
            await asyncio.sleep(0)
        return x * n

    async def numbers(x):
        for i in range(4):
            await asyncio.sleep(0)
            yield x * i

    async def main(x):
        total = sum(await asyncio.gather(*(leaf(x, n) for n in range(4))))
        gate = Gate(x)
        async with gate as squared:
            total = total + squared
            raise KeyError
        async for v in numbers(x):
            total = total + v * v
        values = [v async for v in numbers(x) if v > 0.0]
        task = asyncio.create_task(leaf(gate.k, 5))
        return total + sum(values) + await task

    def f(x):
        return asyncio.run(main(x))

    # 6x + xx + 14xx + 6x + 10x
    check(f, 1.3, 22 + 30 * 1.3)


def test_async_queue_and_timeout_and_exceptions():
    async def producer(queue, x):
        for i in range(5):
            await queue.put(x * i)
        await queue.put(None)

    async def consumer(queue):
        total = 0.0
        while (v := await queue.get()) is not None:
            total = total + v
        return total

    async def late():
        await asyncio.sleep(100)

    async def main(x):
        queue = asyncio.Queue(maxsize=2)
        _, total = await asyncio.gather(producer(queue, x), consumer(queue))
        try:
            await asyncio.wait_for(late(), timeout=0.001)
        except (TimeoutError, asyncio.TimeoutError):
            total = total * x
        return total

    check(lambda x: asyncio.run(main(x)), 1.3, 20 * 1.3)


def test_with_in_a_generator_and_a_generator_left_half_way():
    class Scale:
        depth = 0

        def __init__(self, k):
            self.k = k

        def __enter__(self):
            Scale.depth += 1
            return self.k * 3.0

        def __exit__(self, *error):
            Scale.depth -= 1

    def walk(x):
        with Scale(x) as k:
            for i in range(10):
                received = yield k * i
                if received is not None:
                    k = k + received

    def f(x):
        g = walk(x)
        a = next(g) + next(g)
        b = g.send(x * x)
        g.close()
        assert Scale.depth == 0
        return a + b

    # 0 + 3x, then k = 3x + xx, i = 2
    check(f, 1.5, 3 + 6 + 4 * 1.5)


def test_generator_expressions_are_lazy_and_see_rebound_names():
    def f(x):
        k = 2.0
        g = (x * k * i for i in (1.0, 2.0))
        a = next(g)
        k = x
        return a + next(g)

    check(f, 1.5, 2 + 4 * 1.5)


def test_conditional_chains_boolean_operators_give_operands():
    def f(x):
        a = x and x * 2.0
        b = 0.0 or x * 3.0
        c = None or [] or (x * 5.0)
        d = (x > 100.0 and x * 1e9) or x * 7.0
        e = 1.0 < x < 2.0 and x * 11.0
        return a + b + c + d + e + (not x) * x

    check(f, 1.5, 28.0)


def test_unpacking_of_every_shape():
    def f(x):
        a, (b, *c), *d = x, [x * 2.0, x * 3.0, x * 4.0], x * 5.0, x * 6.0
        [e] = [x * 7.0]
        (g, h), i = {"k": x}.popitem(), x * 8.0
        *j, k = (v * x for v in (1.0, 2.0, 3.0))
        a, b = b, a
        m = [*c, *d, *(j), *{x * 9.0: 0}]
        n = {**{"u": x}, "v": x * 10.0, **{"u": x * 2.0}}
        return a * 1.0 + b + e + h + i + k + sum(m) + n["u"] + n["v"]

    # 2 + 1 + 7 + 1 + 8 + 3 + (3 + 4 + 5 + 6 + 1 + 2 + 9) + 2 + 10
    check(f, 1.5, 64.0)


def test_augmented_assignment_to_names_items_attributes_and_slices():
    class Box:
        v = 1.0

    def f(x):
        y = x
        y += x * x
        y *= 2.0
        box = Box()
        box.v *= x
        box.v -= 3.0 * x
        store = {"a": [x, x]}
        store["a"][1] **= 3
        store["a"][0] /= 2.0
        items = [x, x, x]
        items[1:] = [v * 5.0 for v in items[:2]]
        items += [x]
        items *= 2
        del items[0]
        return y + box.v + sum(store["a"]) + sum(items)

    # 2x + 2xx; x - 3x; x/2 + x^3; items x,5x,5x,x,x,5x,5x,x minus one x
    x = 1.5
    check(f, x, 2 + 4 * x - 2 + 0.5 + 3 * x**2 + 23)


def test_global_and_nonlocal_augmented_in_nested_scopes():
    space = compiled(
        "total = 0.0\n"
        "def f(x):\n"
        "    global total\n"
        "    total = 0.0\n"
        "    count = x\n"
        "    def g(k):\n"
        "        global total\n"
        "        nonlocal count\n"
        "        total += k * x\n"
        "        count *= x\n"
        "    for k in (1.0, 2.0):\n"
        "        g(k)\n"
        "    return total + count\n"
    )
    check(space, 1.5, 3 + 3 * 1.5**2, state=lambda: space.__globals__["total"])


def test_match_with_classes_mappings_sequences_and_guards():
    @dataclasses.dataclass
    class Circle:
        r: float

    @dataclasses.dataclass
    class Rectangle:
        w: float
        h: float

    def area(shape):
        match shape:
            case Circle(r) if r > 100.0:
                return 0.0
            case Circle(r=radius):
                return math.pi * radius * radius
            case Rectangle(w, h):
                return w * h
            case {"kind": "square", "side": s, **rest}:
                return s * s + len(rest)
            case [first, *middle, last]:
                return first * last + sum(middle)
            case float() | int() as number:
                return number * 2.0
            case _:
                return 0.0

    def f(x):
        return sum(
            area(s)
            for s in [Circle(x), Rectangle(x, 3.0), {"kind": "square", "side": x, "z": 1}, [x, x, x, x], x, "no"]
        )

    x = 1.5
    check(f, x, 2 * math.pi * x + 3 + 2 * x + 2 * x + 2 + 2)


def test_a_lambda_tree_and_functions_as_keys_of_a_dispatch_table():
    table = {"+": lambda a, b: a + b, "*": lambda a, b: a * b, "neg": lambda a: -a}

    def run(program, x):
        stack = []
        for word in program.split():
            if word == "x":
                stack.append(x)
            elif word in table:
                n = table[word].__code__.co_argcount
                arguments = [stack.pop() for _ in range(n)][::-1]
                stack.append(table[word](*arguments))
            else:
                stack.append(float(word))
        return stack.pop()

    check(lambda x: run("x x * 3.0 x * + neg x *", x), 1.5, -3 * 1.5**2 - 6 * 1.5)


def test_contextlib_generators_and_exit_stack_nested_in_comprehension():
    @contextlib.contextmanager
    def scaled(k):
        yield k * 2.0

    def one(x, i):
        with scaled(x) as a, scaled(a) as b:
            return b * i

    check(lambda x: sum(one(x, i) for i in range(4)), 1.5, 24.0)


def test_ellipsis_none_slices_and_tuples_as_subscripts_of_user_objects():
    class Table:
        def __init__(self, k):
            self.k = k
            self.written = 0.0

        def __getitem__(self, key):
            match key:
                case slice(start=a, stop=b, step=c):
                    return self.k * (a or 1.0) * (b or 1.0) * (c or 1.0)
                case (a, EllipsisType()) | (EllipsisType(), a):
                    return self.k * a
                case _:
                    return self.k

        def __setitem__(self, key, value):
            self.written = self.written + value * (key.start if isinstance(key, slice) else key)

        def __delitem__(self, key):
            self.written = self.written * key

    EllipsisType = types.EllipsisType

    def f(x):
        t = Table(x)
        y = t[x:2.0] + t[:x:x] + t[3.0, ...] + t[..., x] + t["name"]
        t[2.0] = x
        t[x:] = x
        del t[x]
        return y + t.written

    # 2xx + x^3 + 3x + xx + x; (2x + xx) x
    x = 1.5
    check(f, x, 4 * x + 3 * x**2 + 3 + 2 * x + 1 + 4 * x + 3 * x**2)
