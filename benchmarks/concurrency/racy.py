"""Gradients of programs whose tasks race with each other, many times: is the result the same to the last bit?

    python -m benchmarks.concurrency --racy 10000

The interpreter changes threads as often as it can. Each turn takes the gradient of the next shape, run in the next way
(`programs`); what the tasks add to the same cotangents must come in the same order whichever is faster. The control is
complex steps of the same shape without threads. Ctrl-C tells what was found so far.
"""

import functools
import itertools
import sys
import time

import numpy as np

import plaingrad
from benchmarks.concurrency.programs import SHAPES, SIZE, WAYS, one_after_another

STEP = 1e-30  # of complex steps: there is no difference that could cancel


def by_complex_steps(shape, a):
    """The gradient of a shape, without threads and without plaingrad."""
    return np.array([shape(one_after_another, a + STEP * 1j * e).imag / STEP for e in np.eye(len(a))])


def main(turns):
    """Run so many gradients; 1 if one was wrong or differs in a bit from the others of its program."""
    a = np.linspace(0.1, 1.1, SIZE)
    true = {shape: by_complex_steps(shape, a) for shape in SHAPES}
    first, counts = {}, {}
    before, began = sys.getswitchinterval(), time.perf_counter()
    wrong = differ = 0
    sys.setswitchinterval(1e-6)
    try:
        for shape, way in itertools.islice(itertools.cycle(itertools.product(SHAPES, WAYS)), turns):
            slope = plaingrad.grad(functools.partial(shape, way))(a)
            found = first.setdefault((shape, way), slope)
            counts[shape, way] = counts.get((shape, way), 0) + 1
            differ += not np.array_equal(found, slope)
            wrong += not np.allclose(slope, true[shape], rtol=1e-12, atol=1e-14)
    except KeyboardInterrupt:
        print("interrupted")
    finally:
        sys.setswitchinterval(before)
    print(
        f"{sum(counts.values())} gradients of {len(counts)} programs in {time.perf_counter() - began:.0f} s"
    )
    print(f"{wrong} wrong, {differ} that differ in a bit from the first of their program")
    return 1 if wrong or differ else 0
