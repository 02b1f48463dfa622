"""scipy.spatial and scipy.cluster: distances, rotations, trees, clusters."""

import numpy as np
from scipy import spatial
from scipy.cluster import hierarchy, vq
from scipy.spatial import distance, transform
from tests.scipy.sweep.harness import Table

TABLE = Table(spatial, "scipy.spatial")
DISTANCE = Table(distance, "scipy.spatial.distance")
TURNS = Table(transform, "scipy.spatial.transform")
TREES = Table(hierarchy, "scipy.cluster.hierarchy")
CODES = Table(vq, "scipy.cluster.vq")
U = np.array([0.7, -1.2, 2.1, 0.4])
V = np.array([1.1, 0.3, -0.6, 1.9])
P = np.cos(1.0 + np.arange(15.0) ** 1.3).reshape(5, 3)
Q = np.sin(0.4 + np.arange(9.0) ** 1.2).reshape(3, 3)
FORMS = ("strided", "reversed", "float32")

DISTANCE.each("euclidean sqeuclidean cityblock chebyshev canberra braycurtis correlation cosine", lambda f, x: [f(x, V), f(U, x * x)], U, forms=FORMS)
DISTANCE.each("euclidean sqeuclidean cityblock cosine correlation", lambda f, x: f(U, V, w=x * x), U, label="weights", forms=())
DISTANCE.add("minkowski", lambda f, x: f(x, V, 3), U, forms=FORMS)
DISTANCE.add("minkowski", lambda f, x: f(U, V, 2.0 + x[0]), U, label="p", forms=())
DISTANCE.add("mahalanobis", lambda f, x: f(x, V, np.diag(x * x)), U, forms=())
DISTANCE.add("seuclidean", lambda f, x: f(x, V, x * x), U, forms=())
DISTANCE.add("jensenshannon", lambda f, x: f(x * x, V * V), U, forms=())
DISTANCE.add("directed_hausdorff", lambda f, x: f(x, Q)[0], P, forms=())
for metric in "euclidean sqeuclidean cityblock chebyshev canberra braycurtis correlation cosine minkowski mahalanobis seuclidean jensenshannon".split():
    absolute = (lambda x: x * x) if metric == "jensenshannon" else (lambda x: x)
    DISTANCE.add("cdist", lambda f, x, metric=metric, absolute=absolute: f(absolute(x), absolute(Q), metric, **({"VI": np.eye(3)} if metric == "mahalanobis" else {"V": np.ones(3)} if metric == "seuclidean" else {})), P, label=metric, forms=FORMS if metric == "euclidean" else ())
    DISTANCE.add("pdist", lambda f, x, metric=metric, absolute=absolute: f(absolute(x), metric, **({"VI": np.eye(3)} if metric == "mahalanobis" else {})), P, label=metric, forms=())
DISTANCE.add("squareform", lambda f, x: f(x), np.arange(1.0, 7.0), forms=())
DISTANCE.add("squareform", lambda f, x: f((x + x.T) * (1 - np.eye(4))), np.cos(np.arange(16.0)).reshape(4, 4), label="matrix", forms=())
add = TABLE.add
add("distance_matrix", lambda f, x: f(x, Q), P, forms=FORMS)
add("minkowski_distance", lambda f, x: f(x, P[::-1] + 0.3, 3), P, forms=())
add("minkowski_distance_p", lambda f, x: f(x, P[::-1] + 0.3, 3), P, forms=())
add("procrustes", lambda f, x: f(P, x), P[::-1] * 1.3, forms=())
add("geometric_slerp", lambda f, x: f(x[0] / np.linalg.norm(x[0]), x[1] / np.linalg.norm(x[1]), [0.3, 0.8]), P[:2], forms=())
add("ConvexHull", lambda f, x: [f(x).volume, f(x).area], P, forms=())
add("Delaunay", lambda f, x: x[f(x).simplices[0]], P, forms=(), constant=True)
add("Voronoi", lambda f, x: f(x).vertices, P[:, :2], forms=())
add("KDTree", lambda f, x: f(x).query(Q)[0], P, forms=())
add("KDTree", lambda f, x: f(P).query(x)[0], Q, label="queries", forms=())
add("cKDTree", lambda f, x: f(P).query(x)[0], Q, label="queries", forms=())
add("SphericalVoronoi", lambda f, x: f(x / np.linalg.norm(x, axis=1)[:, None]).calculate_areas(), P, forms=())
add("HalfspaceIntersection", lambda f, x: f(np.array([[-1.0, 0, 0], [0, -1, 0], [1, 0.3, -1], [0.2, 1, -1]]) * x[0, 0] ** 2, np.array([0.2, 0.2])).intersections, P, forms=())
add("Rectangle", lambda f, x: f(x[0] + 3, x[1]).min_distance_point(x[2] * 4), P, forms=())
E4 = np.array([[0.3, -0.2, 0.5, 0.8], [0.1, 0.7, -0.3, 0.6]])
R = "Rotation"
VECTORS = P[:2]
for name in "from_quat from_rotvec from_matrix from_mrp".split():
    point = E4 if name == "from_quat" else P[[0, 2, 1]] if name == "from_matrix" else VECTORS * 0.4
    TURNS.add(f"{R}.{name}", lambda f, x, name=name: getattr(f, name)(x).apply(Q[0]) if callable(f) and isinstance(f, type) else f(x).apply(Q[0]), point, forms=())
TURNS.add(f"{R}.from_euler", lambda f, x: f("xyz", x).as_matrix(), VECTORS, forms=())
TURNS.add(f"{R}.from_davenport", lambda f, x: f(np.eye(3), "extrinsic", x[0]).as_matrix(), VECTORS, forms=())
for name in "as_quat as_rotvec as_matrix as_mrp".split():
    TURNS.add(R, lambda f, x, name=name: getattr(f.from_rotvec(x), name)(), VECTORS * 0.4, label=name, forms=())
TURNS.add(R, lambda f, x: f.from_rotvec(x).as_euler("xyz"), VECTORS * 0.4, label="as_euler", forms=())
TURNS.add(R, lambda f, x: f.from_rotvec(x).apply(x * x), VECTORS * 0.4, label="apply", forms=())
TURNS.add(R, lambda f, x: (f.from_rotvec(x) * f.from_rotvec(x * x)).as_rotvec(), VECTORS * 0.4, label="product", forms=())
TURNS.add(R, lambda f, x: f.from_rotvec(x).inv().magnitude(), VECTORS * 0.4, label="magnitude", forms=())
TURNS.add(R, lambda f, x: f.from_rotvec(x).mean().as_quat(), VECTORS * 0.4, label="mean", forms=())
TURNS.add(f"{R}.align_vectors", lambda f, x: f(x, Q)[0].as_matrix(), P[:3], forms=())
TURNS.add("Slerp", lambda f, x: f([0.0, 1.0], transform.Rotation.from_rotvec(x))([0.4]).as_matrix(), VECTORS * 0.4, forms=())
TURNS.add("RotationSpline", lambda f, x: f([0.0, 1.0, 2.0], transform.Rotation.from_rotvec(x))([0.4]).as_matrix(), P[:3] * 0.4, forms=())
for method in "linkage single complete average weighted centroid median ward".split():
    TREES.add(method, lambda f, x: f(x)[:, 2], P, forms=())
TREES.add("cophenet", lambda f, x: f(hierarchy.linkage(x)), P, forms=())
TREES.add("inconsistent", lambda f, x: f(hierarchy.linkage(x)), P, forms=())
for name in "maxdists maxinconsts".split():
    TREES.add(name, lambda f, x: f(hierarchy.linkage(x), *([hierarchy.inconsistent(hierarchy.linkage(x))] if f.__name__ == "maxinconsts" else [])), P, forms=())
TREES.add("fcluster", lambda f, x: f(hierarchy.linkage(x), 1.0) * x[:, 0], P, forms=(), constant=True)
CODES.add("whiten", lambda f, x: f(x), P, forms=FORMS)
CODES.add("vq", lambda f, x: f(x, Q)[1], P, forms=())
CODES.add("vq", lambda f, x: f(P, x)[1], Q, label="codes", forms=())
CODES.add("kmeans", lambda f, x: f(x, P[:2].copy(), iter=1), P, forms=())
CODES.add("kmeans2", lambda f, x: f(x, P[:2].copy(), minit="matrix")[0], P, forms=())
TABLES = (TABLE, DISTANCE, TURNS, TREES, CODES)
