"""Find the line that makes a gradient zero. Search: zero gradient. Page: docs/how-to/zero-gradient.md."""

from plaingrad import explain, grad


def price(amount, rate):
    cents = round(amount * 100.0)
    return cents / 100.0 * rate


assert grad(price)(2.5, 3.0) == 0.0
(one,) = explain(price, 2.5, 3.0).without_influence
assert one.path == "amount" and one.cuts[0].place.expression == "round(amount * 100.0)"
