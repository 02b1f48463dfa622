"""A function that is looked up in a module is prepared there, in one hook: `np.dot(a, b)` needs no second one."""

import math

import pytest

from plaingrad.rewrite import hooks, rewrite_function
from tests.rewrite.support import recording, using


class Table:
    """Functions in attributes, items and what calls return."""

    rows = (math.sin, math.cos)
    inner = math

    @staticmethod
    def chosen(k):
        return Table.rows[k]

    @staticmethod
    def decorated(f):
        return lambda x: 2.0 * f(x)


def use_of(expression):
    namespace = {"math": math, "Table": Table, "g": lambda x: x + 0.5}
    # Attributes of what a module imports are looked up without the form for methods.
    exec(
        f"import math\nfrom {__name__} import Table\ndef f(x, y=0.25, some=(1.5,)):\n    {expression}",
        namespace,
    )
    return namespace["f"]


@pytest.mark.parametrize(
    ("expression", "late"),
    [
        ("return math.sin(g(x))", 1),  # that of g
        ("return math.atan2(g(x), g(y))", 2),
        ("return Table.inner.atan2(g(x), y)", 1),
        ("return math.sin(math.cos(g(x)))", 1),
        ("return math.pow(math.sin(g(x)), math.cos(g(y)))", 2),
        ("return math.log(g(x), *some)", None),
        ("return math.sin(x if g(x) > 0.0 else y)", None),
        ("return math.sin((x and g(y)) or y)", None),
        ("return Table.rows[0](x) + Table.rows[1](y)", None),
        ("return Table.chosen(1)(x)", None),
        ("return math.isclose(g(x), g(y), rel_tol=g(x))", 3),
        ("return math.fsum([t * x for t in some])", None),
        ("return math.hypot(*some, x)", None),
        ("return [math.sin(t) * math.cos(g(t)) for t in (x, y)][1]", None),
        ("@Table.decorated\n    def h(t):\n        return t * x\n    return h(y)", None),
        ("return math.sin(*(x,), **{})", None),
        ("return (lambda t: math.exp(g(t)))(x)", None),
        ("import math as m\n    return m.sin(g(x))", None),
        ("return Table.decorated(math.sin)(g(x))", None),
    ],
)
def test_it_is_prepared_once_and_the_value_is_the_same(expression, late):
    f, log = use_of(expression), []
    with using(recording(log)):
        found = rewrite_function(f, hooks.HOOKED)(0.75)
    assert found == f(0.75)
    names = [name for name, *_ in log]
    if late is not None:
        assert names.count("prep") == late and "method" in names


def test_the_lookup_comes_before_the_arguments():
    namespace = {"told": []}
    exec("import math\ndef f(x):\n    return math.nothing(told.append(x))", namespace)
    with using(recording([])), pytest.raises(AttributeError):
        rewrite_function(namespace["f"], hooks.HOOKED)(1.0)
    assert namespace["told"] == []
