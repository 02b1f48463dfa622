"""A ball thrown through air onto uneven ground, by dataclasses; bounces are events, found by Newton's method."""

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Ball:
    """Place, velocity and spin."""

    x: float
    y: float
    vx: float
    vy: float
    spin: float


@dataclass
class World:
    gravity: float = 9.81
    drag: float = 0.05
    lift: float = 0.02
    bounce: float = 0.8
    friction: float = 0.1

    def ground(self, x: float) -> float:
        return 0.2 * math.sin(1.3 * x) + 0.05 * x

    def slope(self, x: float) -> float:
        return 0.26 * math.cos(1.3 * x) + 0.05

    def acceleration(self, ball: Ball) -> tuple[float, float]:
        speed = math.sqrt(ball.vx * ball.vx + ball.vy * ball.vy)
        ax = -self.drag * speed * ball.vx - self.lift * ball.spin * ball.vy
        ay = -self.gravity - self.drag * speed * ball.vy + self.lift * ball.spin * ball.vx
        return ax, ay

    def step(self, ball: Ball, dt: float) -> Ball:
        """The midpoint rule."""
        ax, ay = self.acceleration(ball)
        half = replace(ball, vx=ball.vx + ax * dt / 2, vy=ball.vy + ay * dt / 2)
        ax, ay = self.acceleration(half)
        return Ball(
            ball.x + dt * half.vx, ball.y + dt * half.vy, ball.vx + dt * ax, ball.vy + dt * ay, ball.spin
        )

    def is_below(self, ball: Ball) -> bool:
        return ball.y < self.ground(ball.x)

    def hit(self, ball: Ball) -> Ball:
        """The ball after a bounce: its velocity mirrored at the ground."""
        slope = self.slope(ball.x)
        length = math.sqrt(1.0 + slope * slope)
        nx, ny = -slope / length, 1.0 / length
        normal = ball.vx * nx + ball.vy * ny
        along = ball.vx * ny - ball.vy * nx
        along = along - self.friction * (along - 0.1 * ball.spin)
        normal = -self.bounce * normal
        return replace(
            ball, vx=normal * nx + along * ny, vy=normal * ny - along * nx, spin=0.9 * ball.spin + 0.5 * along
        )


@dataclass
class Flight:
    """What happened: bounces, and the last state."""

    bounces: int
    ball: Ball
    energy: float


def fly(world: World, ball: Ball, seconds: float, dt: float = 0.02) -> Flight:
    time, bounces, energy = 0.0, 0, 0.0
    while time < seconds:
        dt = min(dt, seconds - time)
        after = world.step(ball, dt)
        if world.is_below(after):
            part = dt / 2
            for _ in range(8):
                touching = world.step(ball, part)
                gap = touching.y - world.ground(touching.x)
                closing = touching.vy - world.slope(touching.x) * touching.vx
                part = part - gap / closing
                if abs(gap) < 1e-12:
                    break
            after = world.hit(world.step(ball, part))
            bounces += 1
        else:
            part = dt
        energy += part * (after.vx**2 + after.vy**2)
        ball, time = after, time + part
    return Flight(bounces, ball, energy)


def main(p):
    angle, speed, spin, drag, bounce = p
    thrown = Ball(0.0, 1.0, speed * math.cos(angle), speed * math.sin(angle), spin)
    flight = fly(World(drag=drag, bounce=bounce), thrown, 3.0)
    return (flight.ball.x - 8.0) ** 2 + 0.1 * flight.ball.y + 0.01 * flight.energy


X = [0.7, 9.0, 2.0, 0.05, 0.75]
