"""A plane truss by finite elements: nodes and bars in dicts, stiffness assembled in place, weight and deflection."""

import numpy as np

NODES = {
    "a": (0.0, 0.0), "b": (1.0, 0.0), "c": (2.0, 0.0), "d": (3.0, 0.0),
    "e": (0.5, 0.9), "f": (1.5, 0.9), "g": (2.5, 0.9),
}  # fmt: skip
BARS = ["ab", "bc", "cd", "ae", "be", "bf", "cf", "cg", "dg", "ef", "fg"]
SUPPORTS = {"a": (True, True), "d": (False, True)}
LOADS = {"b": (0.0, -1.0), "c": (0.0, -1.5), "f": (0.3, 0.0)}
MODULUS = 200.0


def number_freedoms(nodes):
    free = {}
    for name in nodes:
        for axis in (0, 1):
            if not SUPPORTS.get(name, (False, False))[axis]:
                free[name, axis] = len(free)
    return free


def bar_stiffness(p, q, area):
    (x1, y1), (x2, y2) = p, q
    dx, dy = x2 - x1, y2 - y1
    length = np.sqrt(dx * dx + dy * dy)
    c, s = dx / length, dy / length
    v = np.array([-c, -s, c, s])
    return MODULUS * area / length * np.outer(v, v), length


def assemble(nodes, areas, free):
    stiffness = np.zeros((len(free), len(free)))
    weight = 0.0
    for bar, area in areas.items():
        ends = bar[0], bar[1]
        local, length = bar_stiffness(nodes[ends[0]], nodes[ends[1]], area)
        weight += area * length
        places = [(end, axis) for end in ends for axis in (0, 1)]
        for i, row in enumerate(places):
            for j, column in enumerate(places):
                if row in free and column in free:
                    stiffness[free[row], free[column]] += local[i, j]
    return stiffness, weight


def main(p):
    areas = dict(zip(BARS, p[: len(BARS)]))
    heights = p[len(BARS) :]
    nodes = dict(NODES)
    for name, height in zip("efg", heights):
        nodes[name] = (NODES[name][0], height)
    free = number_freedoms(nodes)
    stiffness, weight = assemble(nodes, areas, free)
    load = np.zeros(len(free))
    for name, force in LOADS.items():
        for axis in (0, 1):
            if (name, axis) in free:
                load[free[name, axis]] += force[axis]
    moved = np.linalg.solve(stiffness, load)
    return load @ moved + 0.01 * weight + np.max(np.abs(moved))


X = np.array([1.0, 1.1, 0.9, 0.8, 0.7, 0.75, 0.65, 0.7, 0.85, 1.2, 1.15, 0.9, 1.05, 0.95])
