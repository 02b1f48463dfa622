"""A hidden Markov model: forward algorithm in the log domain and expected dwell times, all in lists."""

import math
import random

STATES = ["calm", "busy", "storm"]
DRAW = random.Random(5)
SEEN = [DRAW.gauss(0.0, 1.0) + (2.0 if 15 < k < 30 else 0.0) for k in range(40)]


def log_sum_exp(values):
    top = max(values)
    return top + math.log(sum(math.exp(v - top) for v in values))


def log_softmax(scores):
    total = log_sum_exp(scores)
    return [s - total for s in scores]


def log_normal(x, mean, log_scale):
    z = (x - mean) / math.exp(log_scale)
    return -0.5 * z * z - log_scale - 0.5 * math.log(2 * math.pi)


def forward(seen, start, move, emit):
    """log p(seen), and the filtered log probabilities by time."""
    alpha = [s + emit(k, seen[0]) for k, s in enumerate(start)]
    filtered = []
    for x in seen[1:]:
        alpha = [
            log_sum_exp([alpha[i] + move[i][j] for i in range(len(alpha))]) + emit(j, x)
            for j in range(len(alpha))
        ]
        total = log_sum_exp(alpha)
        filtered.append([a - total for a in alpha])
    return log_sum_exp(alpha), filtered


def main(p):
    n = len(STATES)
    start = log_softmax(p[:n])
    move = [log_softmax(p[n + i * n : n + (i + 1) * n]) for i in range(n)]
    means = p[n + n * n : 2 * n + n * n]
    scales = p[2 * n + n * n :]

    def emit(state, x):
        return log_normal(x, means[state], scales[state])

    likelihood, filtered = forward(SEEN, start, move, emit)
    dwell = dict.fromkeys(STATES, 0.0)
    for row in filtered:
        for state, log_p in zip(STATES, row):
            dwell[state] += math.exp(log_p)
    return -likelihood + 0.01 * dwell["storm"] ** 2


X = [0.2, 0.1, -0.3, 1.5, 0.1, -0.5, 0.3, 1.2, 0.0, -0.2, 0.4, 1.1, -0.3, 0.8, 2.0, 0.1, -0.2, 0.3]
