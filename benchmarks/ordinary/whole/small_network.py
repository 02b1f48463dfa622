"""A neural network written with classes and lists: neurons, layers, a loss with decay."""

import math
import random


class Module:
    def parameters(self):
        return []

    def __call__(self, x):
        raise NotImplementedError


class Neuron(Module):
    def __init__(self, weights, bias, nonlinear=True):
        self.w, self.b, self.nonlinear = weights, bias, nonlinear

    def __call__(self, x):
        act = sum((wi * xi for wi, xi in zip(self.w, x)), self.b)
        return math.tanh(act) if self.nonlinear else act

    def parameters(self):
        return [*self.w, self.b]


class Layer(Module):
    def __init__(self, neurons):
        self.neurons = neurons

    def __call__(self, x):
        out = [n(x) for n in self.neurons]
        return out[0] if len(out) == 1 else out

    def parameters(self):
        return [p for n in self.neurons for p in n.parameters()]


class Network(Module):
    def __init__(self, sizes, numbers):
        taken = iter(numbers)
        self.layers = []
        for k, (inputs, outputs) in enumerate(zip(sizes, sizes[1:])):
            last = k == len(sizes) - 2
            neurons = [
                Neuron([next(taken) for _ in range(inputs)], next(taken), nonlinear=not last)
                for _ in range(outputs)
            ]
            self.layers.append(Layer(neurons))

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

    def parameters(self):
        return [p for layer in self.layers for p in layer.parameters()]


SIZES = [2, 6, 4, 1]
DRAW = random.Random(3)
POINTS = [(DRAW.uniform(-1, 1), DRAW.uniform(-1, 1)) for _ in range(12)]
LABELS = [1.0 if x * y > 0 else -1.0 for x, y in POINTS]


def main(p):
    network = Network(SIZES, p)
    losses = []
    for point, label in zip(POINTS, LABELS):
        score = network(list(point))
        losses.append(math.log(1.0 + math.exp(-label * score)))
    decay = sum(w * w for w in network.parameters())
    return sum(losses) / len(losses) + 1e-3 * decay


X = [DRAW.uniform(-1, 1) for _ in range(6 * 3 + 4 * 7 + 5)]
