"""Classes of numbers that a program declares: their arithmetic is differentiated in itself."""

from __future__ import annotations

import copy as copying
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from plaingrad import number_classes, rulebook
from plaingrad.engine.memory.kinds import forget
from plaingrad.errors import RuleError
from plaingrad.rules import numbers


def _by_class(x: Any, number: Any) -> Any:
    return type(x)(number)


def number_class(
    cls: type,
    *,
    functions: Any = None,
    copy: Callable[[Any], Any] = copying.copy,
    made: Callable[[Any, Any], Any] | None = None,
    is_complex: bool = False,
) -> type:
    """Declare that instances of `cls` are numbers, each with a derivative that is such a number, too.

    Their operators (`+ - * / ** %`, negation, `abs`) are then differentiated by the rules of mathematics, in the
    arithmetic of the class; nobody looks inside them. Without this they are objects: their methods are run rewritten,
    and a gradient is a `Tangent` of what they hold. Functions of such numbers get the rules that functions of these
    names have (`exp`, `log`, `sin`, ...); others need a rule, `plaingrad.scalar_rule`.

    Args:
        cls: the class; those derived from it are meant, too. It is declared before it is first differentiated.
        functions: a module, or an object, with the functions of such numbers, by the names that they have in `math`.
        copy: a new object equal to a number.
        made: made(x, number) is an int, float, or other number as one like `x`; `type(x)(number)` if it is not given.
        is_complex: they are complex numbers, with `real`, `imag` and `conjugate()`.

    Returns:
        `cls`, so that this may decorate a class.

    Raises:
        RuleError: floats, complex numbers and NumPy's numbers have their rules.

    Examples:
        >>> import plaingrad
        >>> class Dollars:
        ...     def __init__(self, amount):
        ...         self.cents = round(100 * amount) if not isinstance(amount, Dollars) else amount.cents
        ...     def __add__(self, other):
        ...         return Dollars((self.cents + Dollars(other).cents) / 100)
        ...     def __mul__(self, other):
        ...         return Dollars(self.cents * Dollars(other).cents / 10000)
        ...     __rmul__ = __mul__
        >>> _ = plaingrad.number_class(Dollars)
        >>> plaingrad.grad(lambda x: 3 * x * x + x)(Dollars(1.25)).cents
        850
    """
    if issubclass(cls, (float, complex, int, np.generic, np.ndarray)):
        raise RuleError(
            f"{cls.__qualname__} is a kind of {cls.__mro__[1].__name__}, whose arithmetic is known; number_class is "
            "for numbers of other kinds.\n  See docs: errors#rule"
        )

    module = SimpleNamespace() if functions is None else functions
    known = number_classes.NumberClass(copy, made or _by_class, lambda x: module, is_complex)
    number_classes.declare(cls, known)
    forget(cls)
    for rule in numbers.rules_of_functions(module):
        if rulebook.find(rule.function) is None:
            rulebook.add(rule)
    return cls
