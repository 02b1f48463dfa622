"""Graphs: `scipy.sparse.csgraph`. Which edges a path or a tree takes is constant, and the weights of these have derivatives.

The length of a shortest path to a node is that to its predecessor, plus one weight. With all predecessors known, lengths
are sums towards the roots, and these are taken by doubling: after k steps each node has the sum of 2^k edges.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csgraph as graphs
from scipy.sparse import issparse

from plaingrad.rules.scipy.compiled import constant, definitions
from plaingrad.rules.scipy.forms import keep
from plaingrad.rules.scipy.implicit import Rules, called, carrying, fresh, is_active, outside, refuse

defined = definitions(graphs)
KEPT = False  # graphs that SciPy may overwrite, but need not
CLOSE = 1e-6  # the most that a sum of weights may differ from what was found, of its size


# -- weights -----------------------------------------------------------------------------------------------------------


def numbers_of(graph: Any) -> tuple[Any, Any]:
    """(the numbers that a graph has, how to find those of edges among them): None for those of an array."""
    if not issparse(graph):
        return np.asarray(np.ma.getdata(graph)) * 1.0, None
    rows = graph.tocsr()
    return rows.data * 1.0, (rows.indices, rows.indptr, rows.shape[1])


@outside
def places_of(order: int, function: Any, numbers: Any, layout: Any, i: Any, j: Any) -> tuple[Any, Any]:
    """(where the weights of edges from i to j are among the numbers, flattened; which of these edges there are)."""
    if layout is None:
        places = i * numbers.shape[1] + j
        weights = numbers.reshape(-1)[places]
        return places, np.isfinite(weights) & (weights != 0)
    indices, indptr, width = layout
    keys = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)) * width + indices
    by_key = np.argsort(keys, kind="stable")
    ordered = keys[by_key]
    if np.any(ordered[1:] == ordered[:-1]):
        refuse(function, "the matrix has several numbers at one place")
    if not len(ordered):
        return np.zeros_like(i), np.zeros(np.shape(i), bool)
    wanted = i * width + j
    at = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    return by_key[at], ordered[at] == wanted


@outside
def lighter(order: int, there: Any, back: Any, numbers: Any) -> Any:
    """Where edges that may be taken both ways have their weight: the smaller one counts."""
    flat = numbers.reshape(-1)
    (places, exist), (others, exist_too) = there, back
    both, less = exist & exist_too, flat[others] < flat[places]
    return np.where(exist_too & (~exist | both & less), others, places)


def weights(function: Any, graph: Any, i: Any, j: Any, directed: Any) -> Any:
    """Those of the edges from i to j."""
    numbers, layout = numbers_of(graph)
    there = places_of(function, numbers, layout, i, j)
    places = there[0] if directed else lighter(there, places_of(function, numbers, layout, j, i), numbers)
    return numbers.reshape(-1)[places]


def is_weighted(graph: Any) -> Any:
    """Whether its weights depend on the inputs."""
    return is_active(graph.tocsr().data if issparse(graph) else graph)


@outside
def check(order: int, function: Any, value: Any, formula: Any) -> None:
    """Refuse where the edges do not give what was found."""
    found = np.isfinite(value)
    off = np.abs(np.where(found, value, 0.0) - formula)
    if not np.all(off <= CLOSE * (1.0 + np.abs(np.where(found, value, 0.0)))):
        refuse(function, "what was found is not the sum of the weights on its paths")


# -- paths -------------------------------------------------------------------------------------------------------------


@outside
def tree_of(order: int, predecessors: Any, value: Any) -> tuple[Any, Any, Any]:
    """(which nodes have a predecessor and a length, row by row; their predecessors; for each doubling where it looks).

    Places count from 1; at 0 is a sum of nothing.
    """
    p = np.atleast_2d(predecessors)
    has = (p >= 0) & np.isfinite(np.atleast_2d(value))
    row, node = np.nonzero(has)
    number = np.zeros(p.shape, int)
    number[row, node] = np.arange(1, len(row) + 1)
    parent = p[row, node]
    jump = np.concatenate([[0], number[row, parent]])
    jumps = []
    while np.any(jump):
        jumps.append(jump)
        jump = jump[jump]
        if len(jumps) > p.shape[1].bit_length() + 1:
            refuse(graphs.shortest_path, "its predecessors form a cycle")
    return number, (parent, node), jumps


def lengths(function: Any, graph: Any, value: Any, predecessors: Any, directed: Any) -> Any:
    """The lengths that were found, with their derivatives."""
    number, (parent, node), jumps = tree_of(predecessors, value)
    sums = np.concatenate([np.zeros(1), weights(function, graph, parent, node, directed)])
    for jump in jumps:
        sums = sums + sums[jump]
    formula = np.reshape(sums[number], np.shape(value))
    check(function, value, formula)
    return carrying(fresh(value), formula)


def paths(function: Any, graph: Any, options: dict[str, Any], more: bool = False) -> Any:
    """The definition of a function that gives lengths, and predecessors and more if it is asked to."""
    if options.get("unweighted", False) or not is_weighted(graph):
        return called(function, ((graph,), options))
    value, predecessors, *others = called(function, ((graph,), {**options, "return_predecessors": True}))
    found = lengths(function, graph, value, predecessors, options.get("directed", True))
    wanted = [predecessors] if options.get("return_predecessors", False) else []
    result = (found, *wanted, *(others if more else ()))
    return result if len(result) > 1 else found


@defined("shortest_path")
def shortest_path(csgraph, method="auto", directed=True, return_predecessors=False, unweighted=False, overwrite=False, indices=None):
    options = {"method": method, "directed": directed, "return_predecessors": return_predecessors, "unweighted": unweighted}
    return paths(graphs.shortest_path, csgraph, {**options, "overwrite": KEPT, "indices": indices})


@defined("floyd_warshall")
def floyd_warshall(csgraph, directed=True, return_predecessors=False, unweighted=False, overwrite=False):
    options = {"directed": directed, "return_predecessors": return_predecessors, "unweighted": unweighted}
    return paths(graphs.floyd_warshall, csgraph, {**options, "overwrite": KEPT})


@defined("dijkstra")
def dijkstra(csgraph, directed=True, indices=None, return_predecessors=False, unweighted=False, limit=np.inf, min_only=False):
    options = {"directed": directed, "return_predecessors": return_predecessors, "unweighted": unweighted}
    return paths(graphs.dijkstra, csgraph, {**options, "indices": indices, "limit": limit, "min_only": min_only})


@defined("bellman_ford")
def bellman_ford(csgraph, directed=True, indices=None, return_predecessors=False, unweighted=False):
    options = {"directed": directed, "return_predecessors": return_predecessors, "unweighted": unweighted}
    return paths(graphs.bellman_ford, csgraph, {**options, "indices": indices})


@defined("johnson")
def johnson(csgraph, directed=True, indices=None, return_predecessors=False, unweighted=False):
    options = {"directed": directed, "return_predecessors": return_predecessors, "unweighted": unweighted}
    return paths(graphs.johnson, csgraph, {**options, "indices": indices})


@outside
def ways(order: int, predecessors: Any, source: int, sink: int) -> tuple[Any, ...]:
    """For several paths from source to sink: (which edge is whose, from where, to where)."""
    edges = []
    for k, p in enumerate(np.atleast_2d(predecessors)):
        node = sink
        while node != source and p[node] >= 0:
            edges.append((k, p[node], node))
            node = p[node]
    return tuple(np.array(edges, int).reshape(-1, 3).T)


@defined("yen")
def yen(csgraph, source, sink, K, *, directed=True, return_predecessors=False, unweighted=False):
    options = {"directed": directed, "return_predecessors": return_predecessors, "unweighted": unweighted}
    call = ((csgraph, source, sink, K), options)
    if unweighted or not is_weighted(csgraph):
        return called(graphs.yen, call)
    value, predecessors = called(graphs.yen, (call[0], {**options, "return_predecessors": True}))
    whose, parent, node = ways(predecessors, source, sink)
    w = weights(graphs.yen, csgraph, parent, node, directed)
    formula = np.zeros(len(value)) if not len(w) else np.stack([w[whose == k].sum() for k in range(len(value))])
    check(graphs.yen, value, formula)
    found = carrying(fresh(value), formula)
    return (found, predecessors) if return_predecessors else found


@defined("construct_dist_matrix")
def construct_dist_matrix(graph, predecessors, directed=True, null_value=np.inf):
    value = called(graphs.construct_dist_matrix, ((graph, predecessors, directed, null_value), {}))
    if not is_weighted(graph):
        return value
    return lengths(graphs.construct_dist_matrix, graph, value, predecessors, directed)


# -- trees, and other forms of a graph ---------------------------------------------------------------------------------


@outside
def edges_of(order: int, tree: Any) -> tuple[Any, Any]:
    """From where, to where."""
    return np.repeat(np.arange(tree.shape[0]), np.diff(tree.indptr)).astype(int), tree.indices.astype(int)


def with_weights(function: Any, graph: Any, tree: Any, directed: Any) -> Any:
    """A matrix of some of a graph's edges, with their derivatives."""
    if not is_weighted(graph):
        return tree
    i, j = edges_of(tree)
    formula = weights(function, graph, i, j, directed)
    check(function, tree.data, formula)
    return type(tree)((carrying(fresh(tree.data), formula), tree.indices, tree.indptr), shape=tree.shape)


@defined("minimum_spanning_tree")
def minimum_spanning_tree(csgraph, overwrite=False):
    f = graphs.minimum_spanning_tree
    return with_weights(f, csgraph, called(f, ((csgraph,), {"overwrite": KEPT})), True)


@defined("breadth_first_tree")
def breadth_first_tree(csgraph, i_start, directed=True):
    f = graphs.breadth_first_tree
    return with_weights(f, csgraph, called(f, ((csgraph, i_start, directed), {})), directed)


@defined("depth_first_tree")
def depth_first_tree(csgraph, i_start, directed=True):
    f = graphs.depth_first_tree
    return with_weights(f, csgraph, called(f, ((csgraph, i_start, directed), {})), directed)


@defined("reconstruct_path")
def reconstruct_path(csgraph, predecessors, directed=True):
    f = graphs.reconstruct_path
    return with_weights(f, csgraph, called(f, ((csgraph, predecessors, directed), {})), directed)


@defined("csgraph_from_dense")
def csgraph_from_dense(graph, null_value=0, nan_null=True, infinity_null=True):
    f = graphs.csgraph_from_dense
    return with_weights(f, graph, called(f, ((graph, null_value, nan_null, infinity_null), {})), True)


@defined("csgraph_to_dense")
def csgraph_to_dense(csgraph, null_value=0):
    f = graphs.csgraph_to_dense
    value = called(f, ((csgraph, null_value), {}))
    if not is_weighted(csgraph):
        return value
    rows = csgraph.tocsr()
    i, j = edges_of(rows)
    formula = np.zeros(value.shape)
    formula[i, j] = weights(f, csgraph, i, j, True)
    return carrying(fresh(value), formula)


for name in (
    "breadth_first_order", "connected_components", "depth_first_order", "maximum_bipartite_matching", "maximum_flow",
    "min_weight_full_bipartite_matching", "reverse_cuthill_mckee", "structural_rank",
):  # fmt: skip
    constant(getattr(graphs, name, None))

for rule in Rules():
    keep(rule)


