"""Find the line where an argument loses its influence. Search: zero. Page: docs/how-to/zero-gradient.md."""

from plaingrad import explain, grad


def cost(length, parts):
    whole = int(length)
    return whole * 2.0 + parts**2


assert grad(cost, (0, 1))(3.7, 2.0) == (0.0, 4.0)
said = str(explain(cost, 3.7, 2.0))
assert "find_the_cut.py:7" in said and "int" in said, said
