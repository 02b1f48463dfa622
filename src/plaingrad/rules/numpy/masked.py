"""Masked arrays: elements under the mask of a result have no part in the derivative, whatever the numbers there are.

The functions of `numpy.ma` are Python code, and run as such. They compute with the numbers under the mask, too: 1/0 and
log(-1), which are overwritten or hidden afterwards. In the reverse pass that would be a cotangent of zero times a
slope of infinity. So operands go in with such elements held constant: the values are the same.
"""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from plaingrad.define import composed, no_tangent


def original(method: Any) -> Any:
    """The same Python code without a rule."""
    return types.FunctionType(
        method.__code__, method.__globals__, method.__name__, method.__defaults__, method.__closure__
    )


def with_constants(x: Any, mask: np.ndarray) -> Any:
    """The values of `x`, as constants where `mask` is set."""
    shape = np.broadcast_shapes(np.shape(x), mask.shape)
    if shape != mask.shape:
        return x
    numbers = np.asarray(x) if not isinstance(x, np.ndarray) else x.view(np.ndarray)
    if numbers.shape != shape:
        numbers = np.broadcast_to(numbers, shape)
    held = np.where(mask, constant(numbers), numbers)
    if not isinstance(x, np.ma.MaskedArray):
        return held
    if x.shape == shape:
        return np.ndarray.__array_wrap__(x, held)
    return np.ma.array(held, mask=np.broadcast_to(np.ma.getmaskarray(x), shape))


def constant(numbers: np.ndarray) -> np.ndarray:
    """A copy."""
    return np.array(numbers)


def poles_under_mask(call: Any, f: Any, args: Any, options: dict[str, Any]) -> Any:
    """Where call(*args, **options) is masked and the slope of the ufunc `f` there may be infinite; None if nowhere.

    These are the elements where `f` has no finite value, and, without looking at the slope, those where an operand is 0,
    1 or -1, the ends of the domains of real functions.
    """
    operands = args[-f.nin :]
    if not all(
        isinstance(x, (int, float, complex, np.number)) or getattr(x, "dtype", np.dtype("O")).kind in "fciub"
        for x in operands
    ):
        return None
    with np.errstate(all="ignore"):
        z = call(*args, **options)
        if not isinstance(z, np.ma.MaskedArray) or z is np.ma.masked or not np.ma.getmaskarray(z).any():
            return None
        numbers = [np.ma.getdata(x) for x in operands]
        raw = f(*numbers)
        if isinstance(raw, tuple) or raw.dtype.kind not in "fc" or raw.shape != z.shape:
            return None
        poles = ~np.isfinite(raw)
        for x in numbers:
            poles = poles | ~np.isfinite(x) | (x == 0) | (abs(x) == 1)
    poles = poles & np.ma.getmaskarray(z)
    return poles if poles.any() else None


no_tangent(constant, poles_under_mask)


def enter(cls: Any, operands: int) -> None:
    """Enter the calls of `cls`, functions of `numpy.ma` with so many operands."""
    call = original(cls.__call__)

    @composed(cls.__call__)
    def masked_call(self, *args, **options):
        if len(args) == operands:
            poles = poles_under_mask(call, self.f, (self, *args), options)
            if poles is not None:
                args = tuple([with_constants(x, poles) for x in args])
        return call(self, *args, **options)


for _name, _operands in (("_MaskedUnaryOperation", 1), ("_MaskedBinaryOperation", 2), ("_DomainedBinaryOperation", 2)):
    if hasattr(np.ma.core, _name):
        enter(getattr(np.ma.core, _name), _operands)

plain_power = original(np.ma.power)


@composed(np.ma.power)
def masked_power(a, b, third=None):
    """a ** b where neither is masked and the result is finite."""
    poles = poles_under_mask(plain_power, np.power, (a, b), {"third": third})
    if poles is not None:
        a, b = with_constants(a, poles), with_constants(b, poles)
    return plain_power(a, b, third)


@composed(np.ma.MaskedArray.std)
def masked_std(self, axis=None, dtype=None, out=None, ddof=0, keepdims=np._NoValue, mean=np._NoValue):
    """The root of the variance; its derivative is 0 where that is 0, as np.std has it."""
    options = {name: x for name, x in (("keepdims", keepdims), ("mean", mean)) if x is not np._NoValue}
    variance = self.var(axis, dtype, out, ddof, **options)
    if variance is np.ma.masked:
        return variance
    if out is not None:
        np.power(out, 0.5, out=out, casting="unsafe")
        return out
    zero = np.ma.getdata(variance) == 0
    if not zero.any():
        return np.ma.sqrt(variance)
    return with_constants(np.ma.sqrt(with_constants(variance, zero)), zero)
