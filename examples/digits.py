"""Handwritten digits: a network in plain classes, trained with Adam; then its gradients, example by example.

A batch is one matrix product in NumPy. `vmap(grad(loss))` gives the gradient of each example by itself: digits
whose gradient is long are those that the network is least at peace with. The gradient with respect to the pixels
says what would make a digit less likely to be read as it is.

Data: 1,797 digits of 8 x 8 pixels, E. Alpaydin and C. Kaynak, UCI Machine Learning Repository, as scikit-learn has
them (`pip install scikit-learn`).

    python examples/digits.py
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

import plaingrad
from differences import gap_of_gradient
from plaingrad.optimizers import Adam, cosine

HERE = Path(__file__).resolve().parent
TRAINED = 1200  # the rest tests


@dataclass
class Layer:
    """A matrix and an offset."""

    weights: np.ndarray
    offsets: np.ndarray

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return x @ self.weights + self.offsets


@dataclass
class Network:
    """Layers with tanh between them; the result are log odds of the ten digits."""

    layers: list[Layer]

    def __call__(self, x: np.ndarray) -> np.ndarray:
        for layer in self.layers[:-1]:
            x = np.tanh(layer(x))
        return self.layers[-1](x)


def fresh(rng: np.random.Generator, *sizes: int) -> Network:
    """A network with random weights."""
    made = [rng.normal(size=(m, n)) / np.sqrt(m) for m, n in zip(sizes, sizes[1:])]
    return Network([Layer(weights, np.zeros(weights.shape[1])) for weights in made])


def loss(net: Network, x: np.ndarray, digit: np.ndarray) -> float:
    """The mean of minus the log probability of the right digit; x is one image or a batch."""
    z = net(x)
    top = z.max(axis=-1, keepdims=True)
    logs = z - top - np.log(np.sum(np.exp(z - top), axis=-1, keepdims=True))
    return -np.mean(np.take_along_axis(logs, np.asarray(digit)[..., None], axis=-1))


def trained(net: Network, x: np.ndarray, digit: np.ndarray, steps: int, rng: np.random.Generator):
    """The network after so many steps of Adam on batches of 64, and the loss of every batch."""
    optimizer = Adam(learning_rate=cosine(0.01, steps=steps))
    state, losses = optimizer.init(net), []
    value_and_grad = plaingrad.value_and_grad(loss)
    for _ in range(steps):
        rows = rng.integers(0, len(x), 64)
        value, gradient = value_and_grad(net, x[rows], digit[rows])
        net, state = optimizer.step(net, gradient, state)
        losses.append(value)
    return net, losses


def lengths(net: Network, x: np.ndarray, digit: np.ndarray) -> np.ndarray:
    """Of the gradient of each example."""
    each = plaingrad.vmap(plaingrad.grad(loss), in_axes=(None, 0, 0))(net, x, digit)
    parts = plaingrad.tree_leaves(each)
    return np.sqrt(sum(np.sum(part**2, axis=tuple(range(1, part.ndim))) for part in parts))


def draw(
    path: Path, net: Network, x: np.ndarray, digit: np.ndarray, long: np.ndarray, losses: list[float]
) -> None:
    """The loss of the batches, and the digits with the longest gradients, above what their pixels' gradients say."""
    from pictures import BROWN, TEAL, picture, plt

    with picture(path, width=12.5, height=3.3, ncols=9, nrows=2, width_ratios=(3.2, *[1] * 8)) as (
        figure,
        axes,
    ):
        grid = axes[0, 0].get_gridspec()
        for panel in axes[:, 0]:
            panel.remove()
        left = figure.add_subplot(grid[:, 0])
        left.semilogy(losses, ".", color=BROWN, markersize=3)
        left.semilogy(np.convolve(losses, np.ones(25) / 25, "valid"), color=TEAL, linewidth=2)
        left.set(title="Loss of each batch", xlabel="step")
        read = net(x).argmax(axis=1)
        slopes = plaingrad.grad(loss, argnums=1)
        for k, (above, below) in zip(long, axes[:, 1:].T):
            above.imshow(x[k].reshape(8, 8), cmap="gray_r")
            above.set_title(f"{digit[k]}, read {read[k]}", fontsize=9)
            slope = slopes(net, x[k], digit[k]).reshape(8, 8)
            limit = np.abs(slope).max()
            below.imshow(slope, cmap="PuOr", vmin=-limit, vmax=limit)
            for panel in (above, below):
                panel.set(xticks=[], yticks=[])
                plt.setp(panel.spines.values(), visible=False)


def main(path: Path = HERE / "output" / "digits.png", steps: int = 600) -> float:
    """Train, look, print, draw; returns the share of right answers on the rest."""
    from sklearn.datasets import load_digits

    images, digit = load_digits(return_X_y=True)
    x, rng = images / 8.0 - 1.0, np.random.default_rng(8)
    net = fresh(rng, 64, 32, 10)
    vector, back = plaingrad.ravel(net)
    slope = plaingrad.ravel(plaingrad.grad(loss)(net, x[:64], digit[:64]))[0]
    error = gap_of_gradient(lambda v: loss(back(v), x[:64], digit[:64]), vector, slope)
    net, losses = trained(net, x[:TRAINED], digit[:TRAINED], steps, rng)
    rest, right = x[TRAINED:], digit[TRAINED:]
    share = float(np.mean(net(rest).argmax(axis=1) == right))
    norms = lengths(net, rest, right)
    long = np.argsort(norms)[::-1][:8]
    wrong = np.flatnonzero(net(rest).argmax(axis=1) != right)
    print("Handwritten digits: a network of classes, Adam, and a gradient for each example")
    print(f"  the gradient by {vector.size:,} weights agrees with differences to {error:.0e}")
    print(f"  {steps} steps; {share:.1%} of {len(rest)} digits that were not trained on are read right")
    among = np.isin(wrong, np.argsort(norms)[::-1][: 2 * len(wrong)]).mean()
    print(f"  gradients of single examples are {norms.min():.0e} to {norms.max():.0e} long;")
    print(f"  {among:.0%} of the {len(wrong)} that are read wrong are among the {2 * len(wrong)} longest")
    draw(path, net, rest, right, long, losses)
    print(f"  {path}")
    return share


if __name__ == "__main__":
    main()
