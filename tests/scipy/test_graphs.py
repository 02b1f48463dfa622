"""scipy.sparse.csgraph: lengths of paths and weights of trees, in the weights of the edges."""

import numpy as np
import pytest
from tests.scipy.agreement import agrees

import plaingrad

pytest.importorskip("scipy")
from scipy import sparse  # noqa: E402
from scipy.sparse import csgraph  # noqa: E402

N = 7
I = np.repeat(np.arange(N), 3).astype(np.int32)
J = np.array([1, 3, 4, 0, 2, 6, 5, 3, 1, 0, 2, 4, 6, 5, 1, 2, 3, 0, 4, 5, 1], np.int32)
W = 1.25 + 0.75 * np.sin(np.arange(21.0) ** 1.3)
FORMS = {"csr": lambda m: m.tocsr(), "csc": lambda m: m.tocsc(), "dense": lambda m: m.toarray()}


def graph(form):
    return lambda w: FORMS[form](sparse.coo_matrix((w, (I, J)), shape=(N, N)))


def finite(lengths):
    return np.where(np.isfinite(lengths), lengths, 0.0)


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("form", FORMS)
def test_shortest_paths(form, directed):
    of = graph(form)
    for name in ("shortest_path", "dijkstra", "bellman_ford", "johnson", "floyd_warshall"):
        f = getattr(csgraph, name)
        agrees(lambda w, f=f: finite(f(of(w), directed=directed)), W, nested=form == "csr" and name == "dijkstra")
        if name != "floyd_warshall":
            agrees(lambda w, f=f: finite(f(of(w), directed=directed, indices=[0, 3])), W, nested=False)
            agrees(lambda w, f=f: f(of(w), directed=directed, indices=2, return_predecessors=True)[0], W, nested=False)


@pytest.mark.parametrize("directed", [True, False])
def test_more_of_dijkstra_and_tools(directed):
    of = graph("csr")
    agrees(lambda w: csgraph.dijkstra(of(w), directed, [0, 3], min_only=True, return_predecessors=True)[0], W, nested=False)
    agrees(lambda w: csgraph.dijkstra(of(w), directed, [0, 3], min_only=True), W, nested=False)
    agrees(lambda w: finite(csgraph.dijkstra(csgraph=of(w), directed=directed, limit=1.5)), W, nested=False)
    p = csgraph.dijkstra(of(W), directed, return_predecessors=True)[1]
    agrees(lambda w: csgraph.construct_dist_matrix(of(w), p, directed, 0.0), W, nested=False)
    agrees(lambda w: csgraph.reconstruct_path(of(w), p[0], directed).toarray(), W, nested=False)
    for f in (csgraph.breadth_first_tree, csgraph.depth_first_tree):
        agrees(lambda w, f=f: f(of(w), 0, directed).toarray(), W, nested=False)
    if hasattr(csgraph, "yen"):
        agrees(lambda w: csgraph.yen(of(w), 0, 5, 3, directed=directed), W, nested=False)


@pytest.mark.parametrize("form", FORMS)
def test_trees_and_forms(form):
    of = graph(form)
    agrees(lambda w: csgraph.minimum_spanning_tree(of(w)).toarray(), W, nested=form == "csr")
    agrees(lambda w: csgraph.csgraph_from_dense(graph("dense")(w)).toarray(), W, nested=False)
    if form != "dense":
        agrees(lambda w: csgraph.csgraph_to_dense(of(w), 7.0), W, nested=False)


def test_negative_weights():
    w = W.copy()
    w[3] = -0.2
    for f in (csgraph.johnson, csgraph.bellman_ford):
        agrees(lambda w, f=f: finite(f(graph("csr")(w))), w, nested=False)


def test_a_chain_counts_every_edge_once_for_each_node_behind_it():
    n = 40

    def total(w):
        return csgraph.dijkstra(sparse.diags([w], [1]).tocsr(), indices=0).sum()

    assert plaingrad.grad(total)(np.ones(n)).tolist() == list(range(n, 0, -1))


def test_a_gradient_of_a_sparse_graph_is_sparse():
    m = graph("csr")(W)
    gradient = plaingrad.grad(lambda m: csgraph.minimum_spanning_tree(m).sum())(m)
    assert gradient.data.shape == W.shape and gradient.data.sum() == N - 1


def test_hops_have_no_derivative_and_matchings_none_either():
    def total(w):
        rows, columns = csgraph.min_weight_full_bipartite_matching(graph("csr")(w))
        return finite(csgraph.dijkstra(graph("csr")(w), unweighted=True)).sum() * w[0] + columns.sum() * w[1]

    plain = csgraph.dijkstra(graph("csr")(W), unweighted=True)
    gradient = plaingrad.grad(total)(W)
    assert gradient[0] == plain.sum() and not gradient[2:].any()


def test_two_numbers_at_one_place_are_refused():
    def total(w):
        m = sparse.csr_matrix((w, np.array([1, 1, 0], np.int32), np.array([0, 2, 3], np.int32)), shape=(2, 2))
        return csgraph.dijkstra(m).sum()

    with pytest.raises(plaingrad.MissingRuleError, match="several numbers at one place"):
        plaingrad.grad(total)(np.array([1.0, 2.0, 3.0]))


def test_a_graph_that_may_be_overwritten_keeps_its_derivatives():
    def total(w):
        a, b = graph("dense")(w), graph("dense")(w)
        lengths = csgraph.floyd_warshall(a, overwrite=True)
        tree = csgraph.minimum_spanning_tree(b, overwrite=True)
        return finite(lengths).sum() + tree.sum() + (a[I, J] * b[I, J]).sum()

    once = csgraph.floyd_warshall(graph("dense")(W))
    expected = plaingrad.grad(lambda w: finite(csgraph.floyd_warshall(graph("dense")(w))).sum())(W)
    expected = expected + plaingrad.grad(lambda w: csgraph.minimum_spanning_tree(graph("dense")(w)).sum())(W) + 2 * W
    assert np.isfinite(once).all()
    np.testing.assert_allclose(plaingrad.grad(total)(W), expected)
