"""An arm of six joints in NumPy: 4x4 transforms by Denavit-Hartenberg, a path to follow, joint limits, balance."""

import numpy as np

#                a (m)   alpha        d (m)  mass
LINKS = [
    dict(a=0.0, alpha=np.pi / 2, d=0.4, mass=4.0),
    dict(a=0.45, alpha=0.0, d=0.0, mass=3.0),
    dict(a=0.05, alpha=np.pi / 2, d=0.0, mass=2.0),
    dict(a=0.0, alpha=-np.pi / 2, d=0.42, mass=1.0),
    dict(a=0.0, alpha=np.pi / 2, d=0.0, mass=0.5),
    dict(a=0.0, alpha=0.0, d=0.08, mass=0.2),
]
LIMITS = np.array([2.9, 2.0, 2.5, 3.0, 2.1, 3.1])
POINTS = [np.array([0.4 + 0.02 * k, 0.1 * np.sin(k), 0.5]) for k in range(6)]


def transform(angle, link):
    c, s = np.cos(angle), np.sin(angle)
    ca, sa = np.cos(link["alpha"]), np.sin(link["alpha"])
    return np.array(
        [
            [c, -s * ca, s * sa, link["a"] * c],
            [s, c * ca, -c * sa, link["a"] * s],
            [0.0, sa, ca, link["d"]],
            [0.0, 0.0, 0.0, 1.0],
        ]
    )


class Arm:
    def __init__(self, links):
        self.links = links
        self.frames = []

    def move(self, angles):
        """Bring all frames up to date; the last one."""
        frame = np.eye(4)
        self.frames = []
        for angle, link in zip(angles, self.links):
            frame = frame @ transform(angle, link)
            self.frames.append(frame)
        return frame

    @property
    def hand(self):
        return self.frames[-1][:3, 3]

    def tilt(self):
        return 1.0 - self.frames[-1][2, 2]

    def centre_of_mass(self):
        total = sum(link["mass"] for link in self.links)
        return sum(link["mass"] * frame[:3, 3] for link, frame in zip(self.links, self.frames)) / total


def main(theta):
    arm = Arm(LINKS)
    start, speed = theta[:6], theta[6:]
    cost = 0.0
    for k, point in enumerate(POINTS):
        angles = start + 0.1 * k * speed
        arm.move(angles)
        miss = arm.hand - point
        over = np.maximum(np.abs(angles) - LIMITS, 0.0)
        cost = cost + miss @ miss + 0.1 * arm.tilt() ** 2 + np.sum(over**2)
        cost = cost + 0.01 * np.sum(arm.centre_of_mass()[:2] ** 2)
    return cost


X = np.array([0.2, 0.6, -0.7, 0.1, 0.5, 0.2, 0.3, -0.1, 0.2, 0.1, -0.2, 0.1])
