"""The loss of a small recurrent network that predicts text, and its gradient: ADBench's problem LSTM.

A text is a sequence of characters, each a vector of b bits. Every layer has a gate matrix that is diagonal: four
weights and four biases for each bit, side by side in one row of 4 b (forget, input, output, change).

    python examples/adbench/lstm.py [FILE]
"""

import math
import sys
import timeit
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

import plaingrad

DATA = Path(__file__).resolve().parents[1] / "data" / "adbench" / "lstm_l2_c1024.txt"


class Network(NamedTuple):
    """The arguments of `loss`: l layers, b bits, c characters.

    Attributes:
        main: (2 l, 4 b) weights and biases of the layers, in turns.
        extra: (3, b) weights of the input, weights and biases of the prediction.
        state: (2 l, b) hidden value and cell of the layers before the text, in turns.
        text: (c, b).
    """

    main: np.ndarray
    extra: np.ndarray
    state: np.ndarray
    text: np.ndarray


def read(path: Path | str) -> Network:
    """A problem: `l c b`; 2 l lines of 4 b, 3 of b, 2 l of b; c lines of b."""
    numbers = iter(Path(path).read_text().split())
    layers, length, bits = (int(next(numbers)) for _ in range(3))

    def table(rows: int, columns: int) -> np.ndarray:
        return np.array([float(next(numbers)) for _ in range(rows * columns)]).reshape(rows, columns)

    shapes = (2 * layers, 4 * bits), (3, bits), (2 * layers, bits), (length, bits)
    return Network(*[table(*shape) for shape in shapes])


@numba.njit
def sigmoid(x):
    """1 / (1 + exp(-x))."""
    return 1.0 / (1.0 + math.exp(-x))


@numba.njit
def advance(main, state, k, signal):
    """Layer k reads `signal`: its hidden value and its cell are changed, and it hands on its hidden value."""
    b = signal.size
    weights, biases = main[2 * k], main[2 * k + 1]
    hidden, cell = state[2 * k], state[2 * k + 1]
    for j in range(b):
        forget = sigmoid(signal[j] * weights[j] + biases[j])
        take = sigmoid(hidden[j] * weights[b + j] + biases[b + j])
        give = sigmoid(signal[j] * weights[2 * b + j] + biases[2 * b + j])
        change = math.tanh(hidden[j] * weights[3 * b + j] + biases[3 * b + j])
        cell[j] = cell[j] * forget + take * change
        hidden[j] = give * math.tanh(cell[j])
        signal[j] = hidden[j]


@numba.njit
def loss(main, extra, state, text):
    """Minus the mean log-probability of the bits that follow, see `Network`."""
    length, b = text.shape
    state = state.copy()
    signal = np.empty(b)
    total = 0.0
    for t in range(length - 1):
        for j in range(b):
            signal[j] = text[t, j] * extra[0, j]
        for k in range(state.shape[0] // 2):
            advance(main, state, k, signal)
        exponentials = 0.0
        for j in range(b):
            signal[j] = signal[j] * extra[1, j] + extra[2, j]
            exponentials += math.exp(signal[j])
        level = math.log(exponentials + 2.0)
        for j in range(b):
            total += text[t + 1, j] * (signal[j] - level)
    return -total / ((length - 1) * b)


PARAMETERS = (0, 1)
gradient = plaingrad.value_and_grad(loss, PARAMETERS, tier="native")


def main(arguments: list[str] | None = None) -> tuple[float, Any]:
    """Print and return the value and the gradient for a file of ADBench's."""
    paths = sys.argv[1:] if arguments is None else arguments
    network = read(paths[0] if paths else DATA)
    value, parts = gradient(*network)  # compiles
    milliseconds = 1e3 * min(timeit.repeat(lambda: gradient(*network), number=1, repeat=5))
    norm = math.sqrt(sum(float(np.sum(part * part)) for part in parts))
    print(f"loss {value:.10g}, |gradient| {norm:.10g}, {milliseconds:.2f} ms")
    return value, parts


if __name__ == "__main__":
    main()
