"""A ray tracer with a vector class and operators: spheres over a floor, shadows, reflections, a picture to match."""

import math


class Vec:
    __slots__ = ("x", "y", "z")

    def __init__(self, x, y, z):
        self.x, self.y, self.z = x, y, z

    def __add__(self, other):
        return Vec(self.x + other.x, self.y + other.y, self.z + other.z)

    def __sub__(self, other):
        return Vec(self.x - other.x, self.y - other.y, self.z - other.z)

    def __mul__(self, k):
        return Vec(self.x * k, self.y * k, self.z * k)

    __rmul__ = __mul__

    def __neg__(self):
        return Vec(-self.x, -self.y, -self.z)

    def __matmul__(self, other):
        return self.x * other.x + self.y * other.y + self.z * other.z

    def unit(self):
        return self * (1.0 / math.sqrt(self @ self))

    def mirrored(self, normal):
        return self - 2.0 * (self @ normal) * normal


class Sphere:
    def __init__(self, centre, radius, shade, shine):
        self.centre, self.radius, self.shade, self.shine = centre, radius, shade, shine

    def hit(self, origin, ray):
        """The distance, or None."""
        to = origin - self.centre
        b = to @ ray
        d = b * b - (to @ to) + self.radius * self.radius
        if d <= 0.0:
            return None
        t = -b - math.sqrt(d)
        return t if t > 1e-4 else None

    def normal(self, place):
        return (place - self.centre) * (1.0 / self.radius)


class Floor:
    shine = 0.1
    shade = 0.8

    def hit(self, origin, ray):
        if ray.y >= 0.0:
            return None
        return -origin.y / ray.y

    def normal(self, place):
        return Vec(0.0, 1.0, 0.0)


class Scene:
    def __init__(self, things, light):
        self.things, self.light = things, light

    def nearest(self, origin, ray):
        best = None
        for thing in self.things:
            t = thing.hit(origin, ray)
            if t is not None and (best is None or t < best[0]):
                best = t, thing
        return best

    def brightness(self, origin, ray, depth=2):
        found = self.nearest(origin, ray)
        if found is None:
            return 0.3 + 0.2 * ray.y
        t, thing = found
        place = origin + ray * t
        normal = thing.normal(place)
        to_light = (self.light - place).unit()
        seen = 0.1
        if self.nearest(place + 1e-3 * normal, to_light) is None:
            seen += 0.9 * max(normal @ to_light, 0.0)
        shade = thing.shade * seen
        if depth and thing.shine:
            out = ray.mirrored(normal)
            shade = (1 - thing.shine) * shade + thing.shine * self.brightness(
                place + 1e-3 * normal, out, depth - 1
            )
        return shade


def main(p):
    light = Vec(p[0], p[1], p[2])
    things = [
        Floor(),
        Sphere(Vec(p[3], 1.0, 4.0), p[4], 0.9, p[5]),
        Sphere(Vec(1.2, p[6], 3.0), 0.5, p[7], 0.2),
    ]
    scene = Scene(things, light)
    eye = Vec(0.0, 1.2, -2.0)
    error = 0.0
    for row in range(8):
        for column in range(8):
            ray = Vec((column - 3.6) / 6, (3.3 - row) / 7, 1.0).unit()
            error += (scene.brightness(eye, ray) - 0.1 * ((row + column) % 5)) ** 2
    return error


X = [-3.0, 5.0, -1.0, -0.4, 1.0, 0.3, 0.6, 0.7]
