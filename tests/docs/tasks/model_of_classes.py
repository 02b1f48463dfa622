"""A model of classes that somebody else wrote, trained as it is. Search: objects. Page: docs/how-to/train-a-model.md."""

from plaingrad import value_and_grad


class Spring:
    def __init__(self, stiffness):
        self.stiffness = stiffness

    def force(self, x):
        return -self.stiffness * x


class System:
    def __init__(self, springs, mass):
        self.springs, self.mass = springs, mass

    def position_after(self, steps):
        x, v = 1.0, 0.0
        for _ in range(steps):
            v += 0.05 * sum(spring.force(x) for spring in self.springs) / self.mass
            x += 0.05 * v
        return x


def misfit(system):
    return (system.position_after(20) - 0.2) ** 2


system = System([Spring(1.0), Spring(0.5)], 2.0)
first = misfit(system)
for _ in range(30):
    value, gradient = value_and_grad(misfit)(system)
    system = system - 0.5 * gradient
assert value < 1e-3 * first and type(system.springs[0]) is Spring
