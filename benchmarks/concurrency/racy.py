"""Derivatives of programs whose tasks race with each other, many times: is the result the same to the last bit?

    python -m benchmarks.concurrency --racy 10000

The interpreter changes threads as often as it can. Each turn takes a derivative of the next shape, run in the next way
(`programs`): reverse, forward, and forward over reverse in turn. What the tasks add to the same cotangents must come in
the same order whichever is faster. The control is complex steps of the same shape without threads, and differences of
these for second derivatives. Ctrl-C tells what was found so far.
"""

import functools
import itertools
import sys
import time

import numpy as np

import plaingrad
from benchmarks.concurrency.programs import SHAPES, SIZE, WAYS, one_after_another

STEP = 1e-30  # of complex steps: there is no difference that could cancel
DIFFERENCE = 1e-5  # between gradients
DIRECTION = np.cos(np.arange(SIZE))


def by_complex_steps(shape, a):
    """The gradient of a shape, without threads and without plaingrad."""
    return np.array([shape(one_after_another, a + STEP * 1j * e).imag / STEP for e in np.eye(len(a))])


def forward(f, a):
    """The derivative along DIRECTION."""
    return np.asarray(plaingrad.jvp(f, (a,), (DIRECTION,))[1])


def reverse(f, a):
    """The gradient."""
    return plaingrad.grad(f)(a)


def forward_over_reverse(f, a):
    """The derivative of the gradient along DIRECTION."""
    return plaingrad.jvp(plaingrad.grad(f), (a,), (DIRECTION,))[1]


MODES = [reverse, forward, forward_over_reverse]


def controls(shape, a):
    """What each mode has to find for a shape."""
    slope = by_complex_steps(shape, a)
    ahead, behind = (by_complex_steps(shape, a + h * DIRECTION) for h in (DIFFERENCE, -DIFFERENCE))
    return {
        reverse: slope,
        forward: np.asarray(slope @ DIRECTION),
        forward_over_reverse: (ahead - behind) / (2.0 * DIFFERENCE),
    }


def main(turns):
    """Take so many derivatives; 1 if one was wrong or differs in a bit from the others of its program and mode."""
    a = np.linspace(0.1, 1.1, SIZE)
    true = {shape: controls(shape, a) for shape in SHAPES}
    first, counts = {}, {}
    before, began = sys.getswitchinterval(), time.perf_counter()
    wrong = differ = 0
    sys.setswitchinterval(1e-6)
    try:
        for key in itertools.islice(itertools.cycle(itertools.product(SHAPES, WAYS, MODES)), turns):
            shape, way, mode = key
            found = mode(functools.partial(shape, way), a)
            counts[key] = counts.get(key, 0) + 1
            differ += not np.array_equal(first.setdefault(key, found), found)
            near = 1e-7 if mode is forward_over_reverse else 1e-12
            wrong += not np.allclose(found, true[shape][mode], rtol=near, atol=near / 100.0)
    except KeyboardInterrupt:
        print("interrupted")
    finally:
        sys.setswitchinterval(before)
    print(
        f"{sum(counts.values())} derivatives of {len(counts)} programs and modes in {time.perf_counter() - began:.0f} s"
    )
    print(f"{wrong} wrong, {differ} that differ in a bit from the first of their program and mode")
    return 1 if wrong or differ else 0
