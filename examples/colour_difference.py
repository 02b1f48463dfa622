"""The gradient of a colour difference through colour-science, a package that knows nothing about plaingrad.

This is the example of the Zygote paper (Innes et al., "A Differentiable Programming System to Bridge Machine
Learning and Scientific Computing", 2019), which took the CIE 2000 difference between the sRGB colours red and green
through Julia's Colors.jl. Here the same difference goes through Python's colour-science, neither edited nor wrapped.

    python examples/colour_difference.py
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import colour
import numpy as np

import plaingrad

RED = np.array([1.0, 0.0, 0.0])
GREEN = np.array([0.0, 1.0, 0.0])
PAPER_VALUE = 86.608
PAPER_GRADIENT = (-1.77, 28.88, -0.04)


def difference(green: np.ndarray, red: np.ndarray) -> float:
    """The CIE 2000 difference of two sRGB colours."""
    lab_red = colour.XYZ_to_Lab(colour.sRGB_to_XYZ(red))
    lab_green = colour.XYZ_to_Lab(colour.sRGB_to_XYZ(green))
    return colour.delta_E(lab_red, lab_green, method="CIE 2000")


def central_differences(green: np.ndarray, red: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """The gradient with respect to green by two evaluations a channel."""
    sides = [[difference(green + s * e, red) for s in (step, -step)] for e in np.eye(3)]
    return np.array([(up - down) / (2 * step) for up, down in sides])


def lines_run(package: Path, f: Callable[[], object]) -> set[tuple[str, int]]:
    """The source lines (file, number) under `package` that a plain call of f runs."""
    root, lines = str(package), set()

    def trace(frame: FrameType, event: str, argument: object):
        if not frame.f_code.co_filename.startswith(root):
            return None
        if event == "line":
            lines.add((frame.f_code.co_filename, frame.f_lineno))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        f()
    finally:
        sys.settrace(before)
    return lines


def row(name: str, value: float | None, gradient, digits: int) -> str:
    """One line of the table."""
    shown = "" if value is None else f"{value:.{digits}f}"
    return f"  {name:<34}{shown:>12}   " + "".join(f"{part:>12.{digits}f}" for part in gradient)


def main() -> tuple[float, np.ndarray]:
    """Print our value and gradient beside the paper's and beside differences; returns ours."""
    begun = time.perf_counter()
    value, gradient = plaingrad.value_and_grad(difference)(GREEN, RED)
    first = time.perf_counter() - begun
    begun = time.perf_counter()
    plaingrad.value_and_grad(difference)(GREEN, RED)
    again = time.perf_counter() - begun
    begun = time.perf_counter()
    difference(GREEN, RED)
    plain = time.perf_counter() - begun

    package = Path(colour.__file__).parent
    lines = lines_run(package, lambda: difference(GREEN, RED))
    files = {file for file, _ in lines}

    print("The paper's example: d(CIE 2000 difference of red and green) / d(green)")
    print("-----------------------------------------------------------------------\n")
    print(f"  {'':<34}{'difference':>12}   {'d/dR':>12}{'d/dG':>12}{'d/dB':>12}")
    print(row("the paper (Zygote, Colors.jl)", PAPER_VALUE, PAPER_GRADIENT, 3))
    print(row("plaingrad, colour-science", value, gradient, 7))
    print(row("central differences of the same", difference(GREEN, RED), central_differences(GREEN, RED), 7))
    print("\nThe two packages take a slightly different white point, hence the paper's third decimal.")
    print(
        f"The gradient went through {len(lines)} source lines in {len(files)} files of "
        f"colour-science {colour.__version__}, unmodified."
    )
    times = (1e3 * seconds for seconds in (plain, again, first))
    print("Value alone {:.1f} ms; with the gradient {:.1f} ms ({:.0f} ms the first time).".format(*times))
    return float(value), gradient


if __name__ == "__main__":
    main()
