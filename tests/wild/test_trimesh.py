"""trimesh: transformations, triangles, and meshes, which keep a hash of their bytes."""

import numpy as np
import pytest

trimesh = pytest.importorskip("trimesh")
from trimesh import transformations, triangles, util  # noqa: E402

BOX = trimesh.creation.box()
CORNERS = np.asarray(BOX.vertices) * 1.1


def test_transformations(agrees):
    agrees(lambda a: transformations.rotation_matrix(a, [1.0, 0.2, 0.3]).sum(), 0.4)
    agrees(lambda a: transformations.euler_matrix(a, 0.2, 0.3).sum(), 0.4)
    agrees(lambda q: transformations.quaternion_matrix(q).sum(), np.array([0.9, 0.1, 0.2, 0.3]))


def test_areas_and_directions(agrees):
    agrees(lambda v: triangles.area(v[BOX.faces]).sum(), CORNERS)
    agrees(lambda v: util.unitize(v).sum(), np.array([1.0, 2.0, 3.5]))


def test_a_mesh_of_active_corners(agrees):
    agrees(lambda v: trimesh.Trimesh(v, BOX.faces, process=False).volume, CORNERS)
    agrees(lambda v: trimesh.Trimesh(v, BOX.faces, process=False).area, CORNERS)
