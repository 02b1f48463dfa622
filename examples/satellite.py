"""The space station: what the last digits of its orbital elements are worth, through an unmodified package.

Orbits of satellites are published as two lines of numbers, and predicted by a program of 1980, SGP4, of which the
package sgp4 has a form in plain Python: a few hundred lines of scalar arithmetic on one mutable record. It knows
nothing of derivatives. Here the position is differentiated by the seven numbers of an orbit, in forward mode, once
for each time, and seen along the way, outward, and across: how far is the station off if the last digit of a number
is?

Data: two lines of the International Space Station of 9 December 2019 from space-track.org, a service of the United
States' government. The package: `pip install sgp4`.

    python examples/satellite.py
"""

import math
from pathlib import Path

import numpy as np
from sgp4 import model

import plaingrad
from differences import gap

HERE = Path(__file__).resolve().parent
LINES = (
    "1 25544U 98067A   19343.69339541  .00001764  00000-0  38792-4 0  9991",
    "2 25544  51.6439 211.2001 0007417  17.6667  85.6398 15.50103472202482",
)
NAMES = ("drag", "eccentricity", "perigee", "inclination", "anomaly", "motion", "node")
DEGREE = math.pi / 180
TURNS = 2 * math.pi / 1440  # revolutions a day, in radians a minute
#: The last digit of each number, in the units that the program takes.
LAST_DIGIT = np.array([1e-9, 1e-7, 1e-4 * DEGREE, 1e-4 * DEGREE, 1e-4 * DEGREE, 1e-8 * TURNS, 1e-4 * DEGREE])


def elements() -> np.ndarray:
    """The seven numbers of the two lines."""
    first, second = LINES
    angles = {
        name: float(second[a:b]) * DEGREE
        for name, a, b in (("perigee", 34, 42), ("inclination", 8, 16), ("anomaly", 43, 51), ("node", 17, 25))
    }
    found = {
        "drag": float(f"0.{first[54:59]}") * 10 ** int(first[59:61]),
        "eccentricity": float(f"0.{second[26:33]}"),
        "motion": float(second[52:63]) * TURNS,
    }
    return np.array([{**angles, **found}[name] for name in NAMES])


def position(orbit: np.ndarray, minutes: float) -> np.ndarray:
    """In km, from the centre of the Earth, so many minutes later."""
    satellite = model.Satrec()
    drag, eccentricity, perigee, inclination, anomaly, motion, node = orbit
    satellite.sgp4init(
        model.WGS72,
        "i",
        25544,
        25544.69339541,
        drag,
        0.0,
        0.0,
        eccentricity,
        perigee,
        inclination,
        anomaly,
        motion,
        node,
    )
    error, place, _ = satellite.sgp4_tsince(minutes)
    assert error == 0
    return np.array(place)


def of_last_digits(orbit: np.ndarray, minutes: np.ndarray) -> np.ndarray:
    """How far a last digit moves the station: times, then along, outward and across, then elements, in km."""
    slopes = plaingrad.jacobian(position, mode="forward")
    found = []
    for time in minutes:
        place = position(orbit, time)
        ahead = position(orbit, time + 0.01) - place
        outward = place / np.linalg.norm(place)
        across = np.cross(outward, ahead)
        across /= np.linalg.norm(across)
        found.append(
            np.stack([np.cross(across, outward), outward, across]) @ slopes(orbit, time) * LAST_DIGIT
        )
    return np.array(found)


def draw(path: Path, minutes: np.ndarray, moves: np.ndarray) -> None:
    """The distance for a last digit of each element, along the way; and all together, in three directions."""
    from pictures import BROWN, GOLD, GREEN, GREY, PURPLE, TEAL, picture

    days = minutes / 1440
    with picture(path, ncols=2) as (_, (left, right)):
        colours = (BROWN, GREY, GOLD, GREEN, PURPLE, TEAL, "#333333")
        for name, column, colour in zip(NAMES, moves[:, 0].T, colours):
            left.semilogy(days, 1e3 * np.abs(column), color=colour, linewidth=1.6, label=name)
        left.set(
            title="A last digit moves the station along its way", xlabel="days", ylabel="m", ylim=(1e-2, 1e3)
        )
        left.legend(ncols=4, fontsize=8, loc="upper center")
        together = np.sqrt(np.sum(moves**2, axis=2) / 12)
        for name, column, colour in zip(("along", "outward", "across"), together.T, (TEAL, BROWN, PURPLE)):
            right.plot(days, 1e3 * column, color=colour, linewidth=1.6, label=name)
        right.set(title="What rounding the elements is worth, standard deviation", xlabel="days", ylabel="m")
        right.legend(fontsize=9)


def main(path: Path = HERE / "output" / "satellite.png", times: int = 109) -> np.ndarray:
    """Differentiate, print, draw; returns what a last digit does after seven days."""
    orbit = elements()
    minutes = np.arange(times) * 2 * math.pi / orbit[5]  # once in each turn, so that curves are smooth
    slopes = plaingrad.jacobian(position, mode="forward")(orbit, 1440.0)
    steps = np.diag(1e3 * LAST_DIGIT)
    error = gap(lambda x: position(x, 1440.0), orbit, (slopes @ steps).T, steps)
    moves = of_last_digits(orbit, minutes)
    print("The space station: what a last digit is worth, through the package sgp4")
    print(f"  derivatives of the position by seven elements agree with differences to {error:.0e}")
    print(f"  {'after seven days':<20}{'along':>10}{'outward':>10}{'across':>10}   m for a last digit")
    for name, column in zip(NAMES, 1e3 * moves[-1].T):
        print(f"  {name:<20}" + "".join(f"{x:>10.2f}" for x in column))
    draw(path, minutes, moves)
    print(f"  {path}")
    return moves[-1]


if __name__ == "__main__":
    main()
