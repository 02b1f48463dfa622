"""A few steps of expectation-maximization for a mixture of Gaussians in NumPy, from a start that is optimized."""

import numpy as np

DRAW = np.random.default_rng(3)
CENTRES = np.array([[0.0, 0.0], [3.0, 0.5], [1.0, 3.0]])
DATA = np.concatenate([DRAW.normal(c, s, size=(40, 2)) for c, s in zip(CENTRES, (0.6, 0.9, 0.5))])


class Mixture:
    def __init__(self, means, covariances, weights):
        self.means, self.covariances, self.weights = means, covariances, weights

    @property
    def k(self):
        return len(self.weights)

    def log_densities(self, x):
        """One column a component."""
        columns = []
        for j in range(self.k):
            d = x - self.means[j]
            c = self.covariances[j]
            solved = np.linalg.solve(c, d.T).T
            mahalanobis = np.einsum("ij,ij->i", d, solved)
            _, log_det = np.linalg.slogdet(c)
            columns.append(np.log(self.weights[j]) - 0.5 * (mahalanobis + log_det + 2 * np.log(2 * np.pi)))
        return np.stack(columns, axis=1)

    def responsibilities(self, x):
        logs = self.log_densities(x)
        top = np.max(logs, axis=1, keepdims=True)
        p = np.exp(logs - top)
        total = np.sum(p, axis=1, keepdims=True)
        return p / total, np.sum(top + np.log(total))

    def improved(self, x, ridge=1e-3):
        r, log_likelihood = self.responsibilities(x)
        counts = np.sum(r, axis=0)
        means = (r.T @ x) / counts[:, None]
        covariances = []
        for j in range(self.k):
            d = x - means[j]
            covariances.append((r[:, j, None] * d).T @ d / counts[j] + ridge * np.eye(2))
        return Mixture(means, covariances, counts / len(x)), log_likelihood


def main(theta):
    means = np.reshape(theta[:6], (3, 2))
    spread = np.exp(theta[6])
    weights = np.exp(theta[7:]) / np.sum(np.exp(theta[7:]))
    mixture = Mixture(means, [spread * np.eye(2)] * 3, weights)
    for _ in range(4):
        mixture, log_likelihood = mixture.improved(DATA)
    return -log_likelihood / len(DATA)


X = np.array([0.5, 0.3, 2.0, 0.0, 1.5, 2.0, 0.3, 0.1, -0.1, 0.2])
