"""Numbers of other libraries, and of programs, with arithmetic of their own: derivatives are taken in it.

An instance is one immutable number, as a Fraction is: it has an identity and a derivative of its own class, and nobody
looks inside it. Libraries are known by the names of their classes, so none is imported for it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from plaingrad import systems
from plaingrad.class_keys import entry_for


@dataclass(frozen=True, slots=True)
class NumberClass:
    """What is known about a class of numbers.

    Attributes:
        copy: a new object equal to a number.
        made: made(x, number) is the number in the class, and to the precision, of `x`.
        functions: functions(x) has `exp`, `log`, `sin` and so on of numbers like `x`.
        is_complex: whether they are complex numbers.
        inside: attributes that take a number apart; they are not read of one that is differentiated.
        precision: precision(x) is what sets the precision of arithmetic with numbers like `x`, a function of bits that
            gives a context manager, and how many bits it is now; None: the arithmetic has no precision to be set.
        system: the system of automatic differentiation whose arrays they are; it differentiates what is done with them.
    """

    copy: Callable[[Any], Any]
    made: Callable[[Any, Any], Any]
    functions: Callable[[Any], Any]
    is_complex: bool = False
    inside: frozenset[str] = frozenset()
    precision: Callable[[Any], tuple[Callable[[int], Any], int]] | None = None
    system: systems.System | None = None


def _parts(number: Any) -> tuple[Any, Any] | None:
    """Numerator and denominator of a Fraction, or of what is like one."""
    if type(number).__name__ in ("Fraction", "mpq"):
        return int(number.numerator), int(number.denominator)
    return number.as_integer_ratio() if type(number).__name__ == "Decimal" else None


def _mpmath_context(x: Any) -> Any:
    return type(x).context


def _mpmath_copy(x: Any) -> Any:
    context = type(x).context
    return context.make_mpc(x._mpc_) if hasattr(type(x), "_mpc_") else context.make_mpf(x._mpf_)


def _mpf_made(x: Any, number: Any) -> Any:
    context = type(x).context
    if parts := _parts(number):
        return context.mpf(parts[0]) / parts[1]
    if hasattr(number, "imag"):  # real and imaginary parts of gmpy2's numbers are theirs
        number = number.real
    return context.mpf(number if _is_plain(number) or hasattr(number, "_mpf_") else str(number))


def _mpc_made(x: Any, number: Any) -> Any:
    context = type(x).context
    if parts := _parts(number):
        return context.mpc(context.mpf(parts[0]) / parts[1])
    return context.mpc(number)


def _mpmath_precision(x: Any) -> tuple[Callable[[int], Any], int]:
    context = type(x).context
    return context.workprec, context.prec


def _gmpy2_precision(x: Any) -> tuple[Callable[[int], Any], int]:
    return _with_bits, sys.modules["gmpy2"].get_context().precision


def _with_bits(bits: int) -> Any:
    gmpy2 = sys.modules["gmpy2"]
    return gmpy2.context(gmpy2.get_context(), precision=bits)


def _is_plain(number: Any) -> bool:
    return isinstance(number, (int, float, complex))


def _gmpy2(name: str) -> NumberClass:
    def functions(x: Any) -> Any:
        return sys.modules["gmpy2"]

    def copy(x: Any) -> Any:
        gmpy2 = functions(x)
        if name == "mpq":
            return gmpy2.mpq(x.numerator, x.denominator)
        with gmpy2.context(gmpy2.get_context(), precision=max(_bits(x.precision), 2)):
            opposite = -x
            return -opposite

    def made(x: Any, number: Any) -> Any:
        gmpy2 = functions(x)
        if name != "mpc" and hasattr(number, "imag"):
            number = number.real
        if name == "mpq":
            parts = _parts(number)
            return gmpy2.mpq(*parts) if parts else gmpy2.mpq(number)
        if parts := _parts(number):
            number = gmpy2.mpq(*parts)
        bits = max(_bits(x.precision), _bits(getattr(number, "precision", 53)))
        if name == "mpfr":
            return gmpy2.mpfr(number, bits)
        return (
            gmpy2.mpc(number, bits)
            if hasattr(number, "imag") and number.imag
            else gmpy2.mpc(number.real, 0, bits)
        )

    return NumberClass(
        copy,
        made,
        functions,
        name == "mpc",
        frozenset(("numerator", "denominator")),
        None if name == "mpq" else _gmpy2_precision,
    )


def _without_functions(x: Any) -> Any:
    """Of an array of another system, which has no module of functions: rows with constant slopes need none."""


def _bits(precision: Any) -> int:
    return max(precision) if isinstance(precision, tuple) else precision


#: How pickle and copy take an object apart.
REDUCED = frozenset(("__reduce_ex__", "__reduce__", "__getstate__"))
_PARTS_OF_MPF = frozenset(("_mpf_", "_mpc_", "man_exp", "man", "exp", "bc", "real_imag"))
_FAMILIES: dict[tuple[str, str], Callable[[], NumberClass]] = {
    ("mpmath.ctx_mp_python", "_mpf"): lambda: NumberClass(
        _mpmath_copy, _mpf_made, _mpmath_context, False, _PARTS_OF_MPF, _mpmath_precision
    ),
    ("mpmath.ctx_mp_python", "_mpc"): lambda: NumberClass(
        _mpmath_copy, _mpc_made, _mpmath_context, True, _PARTS_OF_MPF, _mpmath_precision
    ),
    **{("gmpy2", name): (lambda name=name: _gmpy2(name)) for name in ("mpfr", "mpc", "mpq")},
}

#: The classes that have been met, and what is known about them.
known: dict[type, NumberClass] = {}


#: The classes that the program has declared: their heirs are such numbers, too.
declared: dict[type, NumberClass] = {}


def declare(cls: type, number_class: NumberClass) -> None:
    """Instances of `cls`, and of classes derived from it, are numbers."""
    declared[cls] = known[cls] = number_class


def find(cls: type) -> NumberClass | None:
    """What is known about `cls` as a class of numbers with arithmetic of their own; None if it is none."""
    found = entry_for(known, cls)
    if found is not None:
        return found
    for base in cls.__mro__ if declared else ():
        found = entry_for(declared, base)
        if found is not None:
            known[cls] = found
            return found
    if (system := systems.find(cls)) is not None:
        found = known[cls] = NumberClass(system.copied, system.made, _without_functions, system=system)
        return found
    module = getattr(cls, "__module__", "")
    if type(module) is not str or not module.startswith(("mpmath.", "gmpy2")):
        return None
    for base in cls.__mro__:
        family = _FAMILIES.get((base.__module__, base.__qualname__))
        if family is not None:
            found = known[cls] = family()
            return found
    return None


def system_of(x: Any) -> systems.System | None:
    """The system of automatic differentiation whose array `x` is."""
    found = entry_for(known, type(x))
    return None if found is None else found.system


def of(x: Any) -> NumberClass | None:
    """What is known about the class of `x`, if it is one that has been met."""
    return entry_for(known, type(x))


def is_own(x: Any) -> bool:
    """Whether `x` is a number with arithmetic of its own."""
    return of(x) is not None


def copied(x: Any) -> Any:
    """A new object equal to `x`."""
    return known[type(x)].copy(x)


def made(x: Any, number: Any) -> Any:
    """`number` in the class of `x`."""
    found = known[type(x)]
    return number if type(number) is type(x) and found.system is None else found.made(x, number)


Working = dict[Callable[[int], Any], int]  # the highest precision that a program has computed with


def note_precision(working: Working | None, x: Any) -> Working | None:
    """The precisions in `working`, with that in which `x` was computed just now."""
    known_class = of(x)
    if known_class is None or known_class.precision is None:
        return working
    set_bits, bits = known_class.precision(x)
    if working is None:
        return {set_bits: bits}
    working[set_bits] = max(bits, working.get(set_bits, 0))
    return working


@contextmanager
def in_precision(working: Working) -> Iterator[None]:
    """Arithmetic in the precisions that a program has used: what it rounds off on its way back would be lost."""
    with ExitStack() as stack:
        for set_bits, bits in working.items():
            stack.enter_context(set_bits(bits))
        yield


def rounded(x: Any) -> Any:
    """The numbers in a gradient, rounded to the precision that is in force."""
    if isinstance(x, (list, tuple)):
        parts = [rounded(part) for part in x]
        return parts if isinstance(x, list) else type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
    if type(x) is dict:
        return {key: rounded(part) for key, part in x.items()}
    found = of(x)
    return x if found is None or found.precision is None else +x


def zero(x: Any) -> Any:
    """The zero of the class of the number `x`."""
    return made(x, 0) if is_own(x) else type(x)(0)


def one(x: Any) -> Any:
    """The one of the class of the number `x`."""
    return made(x, 1) if is_own(x) else type(x)(1)


def plain(number: Any, is_complex: bool) -> Any:
    """A number with arithmetic of its own as a float, or where complex numbers are meant as a complex number."""
    if is_complex:
        return complex(number)
    return float(number.real if known[type(number)].is_complex else number)
