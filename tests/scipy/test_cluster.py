"""`scipy.cluster` compared with differences: heights of trees, centres and distances of fixed assignments."""

import numpy as np
import pytest
from scipy.cluster import hierarchy, vq
from scipy.spatial import distance

import plaingrad

from tests.scipy.agreement import agrees

X = np.random.default_rng(2).random((8, 3))
PAIRS = distance.pdist(X)
METHODS = ["single", "complete", "average", "weighted", "centroid", "median", "ward"]


@pytest.mark.parametrize("method", METHODS)
def test_heights_of_a_tree_are_right(method):
    agrees(lambda x: hierarchy.linkage(x, method), X, 1e-7, method in ("average", "ward"))
    agrees(lambda y: hierarchy.linkage(y, method)[:, 2], PAIRS, 1e-7, False)


def test_other_metrics_and_orders_of_leaves():
    agrees(lambda x: hierarchy.linkage(x, "average", "cityblock", optimal_ordering=True), X, 1e-7, False)


def test_what_is_computed_from_a_tree():
    def tree(x):
        return hierarchy.linkage(x, "centroid")

    agrees(lambda x: hierarchy.cophenet(tree(x)), X, 1e-7, False)
    agrees(lambda x: hierarchy.cophenet(tree(x), distance.pdist(x))[0], X)
    agrees(lambda x: hierarchy.inconsistent(tree(x)), X, 1e-7, False)
    agrees(lambda x: hierarchy.inconsistent(tree(x), 3), X, 1e-7, False)
    agrees(lambda x: hierarchy.maxdists(tree(x)), X, 1e-7, False)
    agrees(lambda x: hierarchy.maxRstat(tree(x), hierarchy.inconsistent(tree(x)), 0), X, 1e-7, False)
    agrees(lambda x: hierarchy.to_tree(tree(x)).dist, X, 1e-7, False)


def test_clusters_are_constants():
    agrees(lambda x: x * hierarchy.fcluster(hierarchy.linkage(x), 0.5, "distance")[:, None], X, 1e-7, False)
    agrees(lambda x: x * hierarchy.leaves_list(hierarchy.linkage(x))[:, None], X, 1e-7, False)


def test_equal_distances_are_joined_as_scipy_joins_them():
    x = np.array([0.0, 1.0, 2.0, 3.0])[:, None]
    gradient = plaingrad.grad(lambda x: hierarchy.linkage(x, "single")[:, 2].sum())(x)
    np.testing.assert_allclose(gradient[:, 0], [-1, 0, 0, 1], atol=1e-12)


def test_centres_are_means_of_what_belongs_to_them():
    start = X[:3] + 0.01
    agrees(lambda x: vq.kmeans(x, start)[0], X)
    agrees(lambda x: vq.kmeans(x, start)[1], X, 1e-7, False)
    agrees(lambda x: vq.kmeans2(x, start, minit="matrix")[0], X, 1e-7, False)
    agrees(lambda x: vq.kmeans2(x[:, 0], start[:, 0], minit="matrix")[0], X, 1e-7, False)


def test_distances_from_centres():
    centres = X[:3] + 0.01
    agrees(lambda x: vq.vq(x[:8], x[8:])[1], np.concatenate([X, centres]))
    agrees(lambda x: vq.vq(x[:, 0], centres[:, 0])[1], X, 1e-7, False)
    agrees(vq.whiten, X, 1e-7, False)
