"""networkx: algorithms on graphs of dicts whose weights are active, behind a dispatching decorator."""

import warnings

import pytest

import plaingrad

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    nx = pytest.importorskip("networkx")

EDGES = [("a", "b"), ("b", "c"), ("a", "c"), ("c", "d"), ("b", "d")]


def graph(weights, kind=nx.Graph):
    g = kind()
    for (u, v), weight in zip(EDGES, weights):
        g.add_edge(u, v, weight=weight)
    return g


def test_the_length_of_a_shortest_path_counts_its_edges():
    def length(weights):
        return nx.shortest_path_length(graph(weights), "a", "d", weight="weight")

    value, gradient = plaingrad.value_and_grad(length)([1.0, 1.0, 3.0, 1.0, 2.5])
    assert value == 3.0
    assert gradient == [1.0, 1.0, 0.0, 1.0, 0.0]


def test_all_pairs_by_floyd_and_warshall(agrees):
    def total(weights):
        table = nx.floyd_warshall(graph(weights))
        return sum(d * d for row in table.values() for d in row.values())

    agrees(total, [1.0, 1.1, 3.0, 1.2, 2.6])


def test_a_spanning_tree_weighs_what_its_edges_weigh():
    def weight(weights):
        return nx.minimum_spanning_tree(graph(weights)).size(weight="weight")

    assert plaingrad.grad(weight)([1.0, 2.0, 3.0, 1.5, 5.0]) == [1.0, 1.0, 0.0, 1.0, 0.0]


def test_a_flow_grows_with_the_capacities_of_the_cut():
    def flow(capacities):
        g = nx.DiGraph()
        for (u, v), capacity in zip(EDGES, capacities):
            g.add_edge(u, v, capacity=capacity)
        return nx.maximum_flow_value(g, "a", "d")

    # the cut is {a -> c, b -> d, b -> c}, or what of it limits
    assert plaingrad.grad(flow)([3.0, 0.5, 1.0, 5.0, 1.0]) == [0.0, 1.0, 1.0, 0.0, 1.0]


def test_page_rank_by_power_iteration(agrees):
    from networkx.algorithms.link_analysis.pagerank_alg import _pagerank_python

    def rank(weights, alpha):
        return _pagerank_python(graph(weights, nx.DiGraph), alpha=alpha, tol=1e-12, max_iter=500)["d"]

    agrees(rank, [1.0, 2.0, 3.0, 1.5, 5.0], 0.85, rtol=1e-5)


def test_closeness_through_generators_and_heaps(agrees):
    def closeness(weights):
        return sum(nx.closeness_centrality(graph(weights), distance="weight").values())

    agrees(closeness, [1.0, 1.1, 3.0, 1.2, 2.6])
