"""Functions of eight numbers at once, equal to the C library's to the last bit.

Numba calls the C library for every single number, which keeps a loop from being vectorised. The steps that glibc
takes (`exp`, ...), without branches and for a whole vector register, give the same bits several times as fast.
They are compared with the C library of the machine before they are used (`is_exact`), so that a value stays what the
user's own compiled function gives. Numbers for which these steps are not made (too large, not positive, nan) are left
to the C library.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.core import config
from numba.core.codegen import get_host_cpu_features

from plaingrad.native.machine import c_library
from plaingrad.native.runtime.declare import njit
from plaingrad.native.runtime.vector import exp, log, sin
from plaingrad.native.runtime.vector.code import WIDTH, Doubles, Test
from plaingrad.native.runtime.vector.simd import native, type_of_pack
from plaingrad.native.runtime.vector.simd_memory import pack_at, put_at


@dataclass(frozen=True)
class Form:
    """How a function is computed.

    Attributes:
        steps: the code of it.
        is_done: where that is right.
        samples: random numbers, a number of them -> arguments to compare it at.
    """

    steps: Callable[[Doubles], Doubles]
    is_done: Callable[[Doubles], Test]
    samples: Callable[[np.random.Generator, int], np.ndarray]


def _of_all_sizes(random: np.random.Generator, n: int, smallest: float, largest: float) -> np.ndarray:
    """Numbers of both signs between powers of two."""
    return random.choice([-1.0, 1.0], n) * 2.0 ** random.uniform(smallest, largest, n)


def _up_to(limit: float, power: float) -> Callable[[np.random.Generator, int], np.ndarray]:
    def samples(random: np.random.Generator, n: int) -> np.ndarray:
        sizes = _of_all_sizes(random, n, -60.0, power)
        return np.concatenate([random.uniform(-limit, limit, n), random.normal(size=n), sizes])

    return samples


def _positive(random: np.random.Generator, n: int) -> np.ndarray:
    sizes = 2.0 ** random.uniform(-1022.0, 1023.0, n)
    return np.concatenate([random.uniform(0.5, 2.0, n), 1.0 + random.uniform(-0.1, 0.1, n), sizes])


def _above_minus_1(random: np.random.Generator, n: int) -> np.ndarray:
    sizes = np.abs(_of_all_sizes(random, n, -60.0, 52.0))
    return np.concatenate(
        [random.uniform(-1.0, 1.0, n), random.uniform(0.0, 1.0, n) ** 4, sizes, -sizes[sizes < 1.0]]
    )


FORMS = {
    "exp": Form(exp.exp, exp.exp_is_done, _up_to(exp.LIMIT, 8.9)),
    "expm1": Form(exp.expm1, exp.expm1_is_done, _up_to(60.0, 9.4)),
    "tanh": Form(exp.tanh, exp.tanh_is_done, _up_to(23.0, 5.0)),
    "log": Form(log.log, log.log_is_done, _positive),
    "log1p": Form(log.log1p, log.log1p_is_done, _above_minus_1),
    "sin": Form(sin.sin, sin.is_done, _up_to(100.0, 26.6)),
    "cos": Form(sin.cos, sin.is_done, _up_to(100.0, 26.6)),
}


def by_steps(name: str) -> Any:
    """A function of packs that is right where `is_done` holds; nothing is said of other numbers."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return FORMS[name].steps(Doubles(builder, args[0])).value

    def function(x):  # type: ignore[no-untyped-def]
        return getattr(np, name)(x)

    function.__name__ = function.__qualname__ = f"{name}_steps"
    native(function, type_of_pack, generate)
    return function


exp_steps, expm1_steps, tanh_steps, log_steps, log1p_steps, sin_steps, cos_steps = map(by_steps, FORMS)


def _of_all(name: str) -> Any:
    """A compiled function that puts what the steps give at the numbers of a vector into another one."""
    steps = globals()[f"{name}_steps"]

    @njit
    def values(x, out):  # type: ignore[no-untyped-def]
        for first in range(0, x.size, WIDTH):
            put_at(out, first, steps(pack_at(x, first)))

    return values


@functools.cache
def is_exact(name: str) -> bool:
    """Whether there are steps for a function of `math` and they give what the C library gives, at 24,000 points.

    False on processors without fused multiply-add, with other C libraries than glibc of certain versions, and where
    Numba is told not to compile.
    """
    if config.DISABLE_JIT or name not in FORMS or "+fma" not in get_host_cpu_features().split(","):
        return False
    library = getattr(math, name)
    x = np.concatenate([c_library.TELLING[library], FORMS[name].samples(np.random.default_rng(0), 8000)])
    x = x[: x.size // WIDTH * WIDTH]
    found = np.empty_like(x)
    _of_all(name)(x, found)
    return found.tobytes() == np.array([library(number) for number in x.tolist()]).tobytes()
