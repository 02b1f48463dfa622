"""The whole programs: modules with a function `main` of the argument `X`, in a dozen styles and domains."""

import importlib

from benchmarks.ordinary.program import Program

NAMES = {
    "bouncing_ball": "bouncing ball: dataclasses, events",
    "loan_book": "loan book: dates, dicts, a ledger",
    "american_option": "American options: lattices in lists",
    "small_network": "neural network: classes and lists",
    "hidden_markov": "hidden Markov model: lists, log-sum-exp",
    "kalman_smoother": "Kalman smoother: NumPy, lists of pairs",
    "truss": "truss: dicts of nodes, assembled in place",
    "ray_tracer": "ray tracer: a vector class with operators",
    "kinetics": "chemical kinetics: generators, dicts",
    "splines": "splines: tridiagonal algorithm in lists",
    "attitude": "attitude filter: quaternions in NumPy",
    "alignment": "soft alignment: dynamic programming",
    "closures": "signal chain: closures, itertools, functools",
    "brewery": "brewery: enum, named tuples, match",
    "calculator": "calculator: parser, nested tuples, lambdas",
    "robot_arm": "robot arm: 4x4 transforms, properties",
    "queue_network": "queues: heapq, deque, objects",
    "doses": "doses: adaptive steps, try, while",
    "colour_difference": "CIEDE2000 of a palette: scalars, degrees",
    "village": "village economy: slots, properties",
    "image_filter": "image filter: slices, strides, in place",
    "page_rank": "PageRank: power iteration, np.add.at",
    "mixture": "mixture of Gaussians: EM in NumPy",
    "volatility": "ARMA-GARCH: arrays element by element",
    "grammar": "grammar: recursion with a memo dict",
}
GOAL = 12  # plain calls at worst; 5 at the median


def wholes() -> list[Program]:
    """All of them."""
    found = []
    for stem, name in NAMES.items():
        module = importlib.import_module(f"benchmarks.ordinary.whole.{stem}")
        found.append(Program(name, module.main, module.X, GOAL))
    return found
