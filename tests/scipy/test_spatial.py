"""`scipy.spatial`: distances, trees and Qhull's geometry compared with differences."""

import numpy as np
import pytest
from scipy import spatial
from scipy.spatial import distance

import plaingrad
from plaingrad import errors

from tests.scipy.agreement import agrees

RNG = np.random.default_rng(0)
X, Y = RNG.random((5, 3)) + 0.1, RNG.random((4, 3)) + 0.2
WEIGHTS = np.array([1.0, 2.0, 0.5])
ROOT = RNG.random((3, 3))
INVERSE = ROOT @ ROOT.T + np.eye(3)
PLAIN = [
    "braycurtis",
    "canberra",
    "chebyshev",
    "cityblock",
    "correlation",
    "cosine",
    "euclidean",
    "minkowski",
    "sqeuclidean",
]


@pytest.mark.parametrize("metric", [*PLAIN, "jensenshannon", "seuclidean", "mahalanobis"])
def test_distances_of_two_sets_are_right_in_both(metric):
    nested = metric in ("euclidean", "minkowski", "cityblock", "mahalanobis", "jensenshannon")
    agrees(lambda x: distance.cdist(x[:5], x[5:], metric), np.concatenate([X, Y]), 1e-7, nested)
    agrees(lambda x: distance.pdist(x, metric), X, 1e-7, metric in ("euclidean", "sqeuclidean"))


@pytest.mark.parametrize("metric", PLAIN)
def test_weights_count_and_have_derivatives(metric):
    agrees(lambda x: distance.cdist(x, Y, metric, w=WEIGHTS), X, 1e-7, False)
    agrees(lambda w: distance.cdist(X, Y, metric, w=w), WEIGHTS, 1e-7, False)
    agrees(lambda w: distance.pdist(X, metric, w=w), WEIGHTS, 1e-7, False)


def test_parameters_of_metrics_have_derivatives():
    agrees(lambda p: distance.cdist(X, Y, "minkowski", p=p[0]), [2.5])
    agrees(lambda v: distance.cdist(X, Y, "seuclidean", V=v), WEIGHTS)
    agrees(lambda vi: distance.cdist(X, Y, "mahalanobis", VI=vi), INVERSE)
    agrees(lambda x: distance.pdist(x, "minkowski", p=np.inf), X, 1e-7, False)


def test_metrics_may_be_named_in_any_way_and_be_functions():
    agrees(lambda x: distance.cdist(x, Y, distance.cityblock), X, 1e-7, False)
    agrees(lambda x: distance.cdist(x, Y, lambda u, v: ((u - v) ** 3).sum()), X, 1e-7, False)
    agrees(lambda x: distance.pdist(x, lambda u, v: ((u - v) ** 3).sum()), X, 1e-7, False)


def test_a_place_for_the_result_is_written():
    def f(x):
        out = np.zeros((5, 4))
        assert distance.cdist(x, Y, out=out) is out
        return out

    agrees(f, X, 1e-7, False)


def test_distances_of_near_points_far_from_the_origin_keep_their_digits():
    x = np.array([[1e3, 1.0], [1e3, 1.0 + 1e-6]])
    gradient = plaingrad.grad(lambda x: distance.cdist(x[:1], x[1:]).sum())(x)
    np.testing.assert_allclose(gradient, [[0.0, -1.0], [0.0, 1.0]], atol=1e-12)


def test_the_distance_of_a_point_from_itself_has_the_derivative_zero():
    for metric in ("euclidean", "minkowski", "jensenshannon", "canberra", "mahalanobis"):
        gradient = plaingrad.grad(lambda x, m=metric: distance.cdist(x, x, m).sum())(X + 0.1)
        assert np.all(np.isfinite(gradient))
    assert not plaingrad.grad(lambda x: distance.cdist(x, x, "euclidean").trace())(X).any()


def test_metrics_that_count_are_constant():
    assert not plaingrad.grad(lambda x: distance.cdist(x, Y, "hamming").sum())(X).any()
    with pytest.raises(errors.MissingRuleError, match="weights"):
        plaingrad.grad(lambda w: distance.cdist(X, Y, "hamming", w=w).sum())(WEIGHTS)


def test_float32_and_empty_points():
    x = X.astype(np.float32)
    assert plaingrad.grad(lambda x: distance.cdist(x, Y).sum())(x).dtype == np.float32
    assert plaingrad.grad(lambda x: distance.cdist(x, Y).sum())(np.zeros((0, 3))).shape == (0, 3)
    assert plaingrad.grad(lambda x: distance.pdist(x).sum())(X[:1]).tolist() == [[0.0] * 3]
    agrees(lambda x: distance.cdist(x[::-1], Y[:, ::-1]), X, 1e-7, False)


def test_condensed_and_square_forms():
    agrees(lambda x: distance.squareform(x), np.arange(1.0, 7.0))
    agrees(lambda x: distance.squareform(distance.squareform(x) ** 2), np.arange(1.0, 7.0))
    agrees(lambda x: distance.directed_hausdorff(x, Y)[0], X, 1e-7, False)


@pytest.mark.parametrize("tree", [spatial.KDTree, spatial.cKDTree])
def test_distances_of_neighbours_are_right_in_points_and_queries(tree):
    points, places = np.random.default_rng(3).random((9, 3)), np.random.default_rng(4).random((4, 3))
    agrees(
        lambda x: tree(x[:9]).query(x[9:], k=2)[0],
        np.concatenate([points, places]),
        1e-7,
        tree is spatial.KDTree,
    )
    agrees(lambda x: tree(points).query(x, p=1)[0], places, 1e-7, False)
    agrees(lambda x: tree(x, boxsize=1.0).query(places % 1.0)[0], points % 1.0, 1e-7, False)
    agrees(lambda x: tree(x).sparse_distance_matrix(tree(places), 0.7).toarray(), points, 1e-7, False)

    def counted(x):
        grown = tree(x)
        assert isinstance(grown, tree)
        pairs = grown.count_neighbors(tree(points), [0.4, 0.7]).sum() + grown.count_neighbors(grown, 0.61)
        return x * len(grown.query_pairs(0.61)) + grown.data * len(grown.query_ball_point(x[0], 0.7)) * pairs

    agrees(counted, points, 1e-7, False)


def test_neighbours_that_are_not_there_are_infinitely_far():
    def f(x):
        d, i = spatial.KDTree(x).query([0.0, 0.0], k=4)
        assert np.isinf(d[2:]).all() and i[3] == 2
        return d[0] + d[1]

    x = np.array([[3.0, 4.0], [6.0, 8.0]])
    np.testing.assert_allclose(plaingrad.grad(f)(x), [[0.6, 0.8], [0.6, 0.8]])


CORNERS = np.array(
    [[0.0, 0.1, 0.0], [1.1, 0.0, 0.2], [0.1, 0.9, 0.1], [0.0, 0.2, 1.0], [0.9, 0.8, 0.9], [0.4, 0.4, 0.4]]
)
FLAT = np.array([[0.0, 0.1], [1.1, 0.0], [0.1, 0.9], [0.9, 1.2], [0.45, 0.4], [0.7, 0.6]])


def test_volume_area_and_equations_of_a_hull():
    agrees(lambda x: spatial.ConvexHull(x).volume, CORNERS)
    agrees(lambda x: spatial.ConvexHull(x).area, CORNERS)
    agrees(lambda x: np.sort(spatial.ConvexHull(x).equations, 0), CORNERS, 1e-7, False)
    agrees(lambda x: spatial.ConvexHull(x).volume + spatial.ConvexHull(x).area, FLAT)


def test_triangulations():
    def f(x):
        d = spatial.Delaunay(x)
        here = d.find_simplex(x.mean(0))
        weights = d.transform[here, :2] @ (np.array([0.5, 0.5]) - d.transform[here, 2])
        return np.concatenate([weights, d.points[d.simplices].ravel()])

    agrees(f, FLAT, 1e-7, False)
    with pytest.raises(errors.MissingRuleError, match=r"Delaunay\.equations"):
        plaingrad.grad(lambda x: spatial.Delaunay(x).equations.sum())(FLAT)


def test_corners_of_voronoi_cells_and_of_halfspaces():
    agrees(lambda x: np.sort(spatial.Voronoi(x).vertices, 0), FLAT, 1e-6)
    agrees(lambda x: np.sort(spatial.Voronoi(x).vertices, 0), np.random.default_rng(8).random((7, 3)), 1e-6, False)
    planes = np.array([[-1, 0.0, 0], [0, -1, 0], [2, 1, -4], [-0.5, 1, -2]])
    agrees(
        lambda x: spatial.HalfspaceIntersection(x, np.array([0.5, 0.5])).intersections, planes, 1e-7, False
    )


def test_areas_on_a_sphere_add_up():
    points = RNG.standard_normal((8, 3))

    def areas(x):
        return spatial.SphericalVoronoi(x / np.linalg.norm(x, axis=1)[:, None]).calculate_areas()

    agrees(areas, points, 1e-6, False)
    np.testing.assert_allclose(plaingrad.grad(lambda x: areas(x).sum())(points), 0, atol=1e-9)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_rest_derives_by_itself():
    agrees(lambda x: spatial.distance_matrix(x, Y, 3), X, 1e-7, False)
    agrees(lambda x: spatial.minkowski_distance(x, X[0] + 2), X, 1e-7, False)
    agrees(lambda x: spatial.procrustes(x, X[::-1] ** 2)[2], X + 0.3 * RNG.random(X.shape), 1e-7, False)
    agrees(lambda t: spatial.geometric_slerp([1.0, 0, 0], [0, 1.0, 0], t), [0.1, 0.4], 1e-7, False)


@pytest.mark.parametrize("kind", [spatial.KDTree, spatial.cKDTree])
def test_the_box_of_a_tree_moves_with_its_points_and_its_nodes_are_refused(kind):
    x = np.array([[1.0, 2.0], [3.0, 5.0], [2.0, 0.0]])

    def f(x):
        tree = kind(x)
        return (tree.maxes**2).sum() + (tree.mins * np.array([3.0, 4.0])).sum()

    np.testing.assert_array_equal(plaingrad.grad(f)(x), [[3.0, 0.0], [6.0, 10.0], [0.0, 4.0]])
    assert plaingrad.jvp(f, (x,), (np.ones_like(x),))[1] == 23.0
    for refused in (plaingrad.grad, plaingrad.jacobian):
        with pytest.raises(plaingrad.MissingRuleError, match="its nodes"):
            refused(lambda x: kind(x, leafsize=1).tree.split * 1.0)(x)
    assert kind(x, leafsize=1).tree.split == plaingrad.grad(lambda y: y * kind(x, leafsize=1).tree.split)(1.0)
