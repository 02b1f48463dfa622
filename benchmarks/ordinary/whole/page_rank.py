"""PageRank by power iteration in NumPy: weights of links by kind, teleports by topic, ranks compared with clicks."""

import numpy as np

DRAW = np.random.default_rng(9)
PAGES, LINKS, KINDS, TOPICS = 60, 300, 4, 3
SOURCE = np.concatenate([np.arange(PAGES), DRAW.integers(0, PAGES, LINKS)])
TARGET = np.concatenate([(np.arange(PAGES) * 7 + 1) % PAGES, DRAW.integers(0, PAGES, LINKS)])
KIND = DRAW.integers(0, KINDS, len(SOURCE))
TOPIC = DRAW.integers(0, TOPICS, PAGES)
CLICKS = DRAW.dirichlet(np.ones(PAGES))


def transition(strengths):
    """Links of a page share its rank in proportion to their strengths."""
    weights = np.exp(strengths)[KIND]
    matrix = np.zeros((PAGES, PAGES))
    np.add.at(matrix, (TARGET, SOURCE), weights)
    return matrix / matrix.sum(axis=0)


def teleport(preferences):
    mass = np.exp(preferences - preferences.max())[TOPIC]
    return mass / mass.sum()


def rank(matrix, jump, damping, tolerance=1e-10):
    ranks = np.full(PAGES, 1 / PAGES)
    for _ in range(200):
        new = damping * (matrix @ ranks) + (1 - damping) * jump
        if np.abs(new - ranks).sum() < tolerance:
            return new
        ranks = new
    return ranks


def main(theta):
    strengths, preferences = theta[:KINDS], theta[KINDS : KINDS + TOPICS]
    damping = 1 / (1 + np.exp(-theta[-1]))
    ranks = rank(transition(strengths), teleport(preferences), damping)
    surprise = -np.sum(CLICKS * np.log(ranks))
    best = np.sort(ranks)[-5:]
    return surprise + 10 * np.var(best) + 0.01 * theta @ theta


X = np.array([0.1, 0.5, -0.4, 0.2, 0.3, -0.2, 0.1, 1.2])
