"""A function in C that has no rule gets one. Search: rule. Page: docs/how-to/missing-rule.md."""

import ctypes
import ctypes.util
import math

import plaingrad
from plaingrad import MissingRuleError, grad

libm = ctypes.CDLL(ctypes.util.find_library("m"))
c_erf = libm.erf
c_erf.restype, c_erf.argtypes = ctypes.c_double, [ctypes.c_double]


def erf(x):
    return c_erf(x)


try:
    grad(erf)(0.5)
except MissingRuleError as error:
    assert "rrule" in str(error)
else:
    raise AssertionError("a C function without a rule was not refused")


@plaingrad.rrule(erf)
def erf_rrule(x):
    def erf_pullback(z_bar):
        return (z_bar * 2.0 / math.sqrt(math.pi) * math.exp(-x * x),)

    return erf(x), erf_pullback


assert math.isclose(grad(lambda x: erf(x) ** 2)(0.5), 2 * math.erf(0.5) * 2 / math.sqrt(math.pi) * math.exp(-0.25))
plaingrad.remove_rule(erf)
