"""What loops over the elements of rows call: lengths that must fit, shares of means, greatest and least elements."""

from __future__ import annotations

from plaingrad.errors import NativeError
from plaingrad.native.runtime.declare import overload, register_jitable

SMALL = 2.0**-600


@register_jitable
def longer(a, b):  # type: ignore[no-untyped-def]
    """The length of the axis that axes of the lengths a and b are broadcast to, if there is one."""
    return b if a == 1 else a


@register_jitable
def scale(y):  # type: ignore[no-untyped-def]
    """A power of two, so that 1 / (y * scale) is a normal number for every y but 0, inf and nan; 1 where 1 / y is."""
    size = abs(y)
    if size < SMALL:
        return 1.0 / SMALL
    return 1.0 if size < 1.0 / SMALL else SMALL


@register_jitable
def check_broadcast(n, length):  # type: ignore[no-untyped-def]
    """Raise if an axis of n elements is not broadcast to this length."""
    if n != length and n != 1:
        raise ValueError("operands could not be broadcast together")


@register_jitable
def check_whole(n, length):  # type: ignore[no-untyped-def]
    """Raise if a vector that is added up, or stored, is shorter than those that it is combined with."""
    if n != length:
        raise NativeError(
            "a vector of length 1 that is combined with longer rows is also added up or stored; take its element"
        )


@register_jitable
def check_stored(n, length):  # type: ignore[no-untyped-def]
    """Raise if n elements are stored into a row of another length."""
    if n != length:
        if n == 1:
            raise NativeError("a vector of length 1 is stored into a longer row; store its element")
        raise ValueError("cannot assign slice from input of different size")


@register_jitable
def share(z_bar, n):  # type: ignore[no-untyped-def]
    """The cotangent of each of n elements of which z is the mean."""
    return z_bar / max(n, 1)


def element_of(x, place, k):  # type: ignore[no-untyped-def]
    """x[place][k], `place` a tuple of whole numbers."""
    return x[(*place, k)]


@overload(element_of)
def _element_of(x, place, k):  # type: ignore[no-untyped-def]
    if len(place) == 0:
        return lambda x, place, k: x[k]
    return lambda x, place, k: x[place + (k,)]


def add_element(x, place, k, term):  # type: ignore[no-untyped-def]
    """x[place][k] += term."""
    x[(*place, k)] += term


@overload(add_element)
def _add_element(x, place, k, term):  # type: ignore[no-untyped-def]
    def to_vector(x, place, k, term):  # type: ignore[no-untyped-def]
        x[k] += term

    def to_row(x, place, k, term):  # type: ignore[no-untyped-def]
        x[place + (k,)] += term

    return to_vector if len(place) == 0 else to_row


@register_jitable
def max_along(x, place):  # type: ignore[no-untyped-def]
    """np.max(x[place]), `place` a tuple of whole numbers that name a row: the first nan, if there is one."""
    n = x.shape[-1]
    if n == 0:
        raise ValueError("zero-size array to reduction operation maximum which has no identity")
    found = element_of(x, place, 0)
    for k in range(n):
        now = element_of(x, place, k)
        if now != now:
            return now
        if now > found:
            found = now
    return found


@register_jitable
def min_along(x, place):  # type: ignore[no-untyped-def]
    """np.min(x[place]): the first nan, if there is one."""
    n = x.shape[-1]
    if n == 0:
        raise ValueError("zero-size array to reduction operation minimum which has no identity")
    found = element_of(x, place, 0)
    for k in range(n):
        now = element_of(x, place, k)
        if now != now:
            return now
        if now < found:
            found = now
    return found


@register_jitable
def add_at_extremes(bar, bar_place, x, place, z, z_bar):  # type: ignore[no-untyped-def]
    """Add to the cotangents of a row's elements their shares in that of z, which is its maximum or minimum.

    Elements that equal z have equal shares, as in `extremes`.
    """
    n = x.shape[-1]
    count = 0
    for k in range(n):
        count += element_of(x, place, k) == z
    if count > 0:
        each = z_bar / count
        for k in range(n):
            add_element(bar, bar_place, k, each if element_of(x, place, k) == z else 0.0)
        return
    for k in range(n):
        now = element_of(x, place, k)
        if now != now:
            add_element(bar, bar_place, k, z_bar)
            return
