"""A photograph of a clock, blurred by a moving camera: image and motion are found together.

Light adds up while the shutter is open, so each line of the photograph is the line of a still image convolved with the
time that the camera spent at each place. Unknown are the 41,000 pixels of that image, and the length of an even motion.
`fftconvolve` blurs; L-BFGS makes the squares of what is missed small,
with a penalty on the variation of the image that lets edges stay; plaingrad differentiates all of it, through the
transforms. The unknowns are a dictionary.

The problem has a worthless solution: no motion at all, and an image as blurred as the photograph. So the motion is
held at a first guess until there are edges; from there on it is free, and finds a minimum near it.

Data: `data/clock.npy`, 155 lines of 205 grey levels cut out of "clock_motion.png", a photograph by Stefan van der Walt
that he released into the public domain; scikit-image has it (skimage.data.clock).

    python examples/deblurring.py
"""

import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.signal import fftconvolve
from scipy.special import expit

import plaingrad
from differences import gap_of_gradient
from plaingrad.optimize import minimize, packed, unpacker

HERE = Path(__file__).resolve().parent
REACH = 30  # pixels that the camera moved at most, either way
PENALTY = 1e-3
EDGE = 5e-3  # differences of neighbours beyond which the penalty is linear
SOFT = 0.4  # pixels that it took to start and to stop
GAMMA = 2.2  # grey levels are light to the power 1 / 2.2
Unknowns = dict[str, Any]


def motion(length: float) -> np.ndarray:
    """How much of the time the camera spent at each place: a box with soft ends."""
    place = np.arange(-REACH, REACH + 1)
    times = expit((place + length / 2) / SOFT) * expit((length / 2 - place) / SOFT)
    return times / times.sum()


def blurred(image: np.ndarray, times: np.ndarray) -> np.ndarray:
    """What a photograph shows of an image that moved along its lines."""
    return fftconvolve(image, times[None, :], mode="valid", axes=1)


def variation(image: np.ndarray) -> float:
    """The sum of the lengths of all steps between neighbours, rounded near 0."""
    across, down = np.diff(image, axis=1)[:-1], np.diff(image, axis=0)[:, :-1]
    return np.sum(np.sqrt(across**2 + down**2 + EDGE**2) - EDGE)


def misfit(u: Unknowns, photograph: np.ndarray) -> float:
    """Half the squares of what the blurred image misses, and the penalty."""
    misses = blurred(u["image"], motion(u["length"])) - photograph
    return 0.5 * np.sum(misses**2) + PENALTY * variation(u["image"])


def guess(photograph: np.ndarray, length: float = 36.0) -> Unknowns:
    """The photograph itself, wider by what the camera moved."""
    image = np.pad(photograph, ((0, 0), (REACH, REACH)), mode="edge")
    return {"image": image, "length": length}


def restore(photograph: np.ndarray, still: int = 150, free: int = 300) -> tuple[Unknowns, list[Any]]:
    """The unknowns, and SciPy's results: of so many steps with the motion held, then of so many with all free."""
    start = guess(photograph)

    def held(u: Unknowns, photograph: np.ndarray) -> float:
        return misfit({**start, "image": u["image"]}, photograph)

    first = minimize(held, {"image": start["image"]}, photograph, "L-BFGS-B", options={"maxiter": still})
    second = minimize(misfit, {**start, **first.x}, photograph, "L-BFGS-B", options={"maxiter": free})
    return second.x, [first, second]


def draw(path: Path, photograph: np.ndarray, found: Unknowns) -> None:
    """The photograph, the image, and the motion."""
    from pictures import GREY, TEAL, picture

    with picture(path, ncols=3, width=12.5, height=3.5, dpi=85, colours=48, width_ratios=(1.25, 1.25, 1)) as (
        _,
        (before, after, times),
    ):
        low, high = photograph.min() ** (1 / GAMMA), photograph.max() ** (1 / GAMMA)
        for axes, light in ((before, photograph), (after, found["image"][:, REACH:-REACH])):
            axes.imshow(np.clip(light, 0.0, 1.0) ** (1 / GAMMA), cmap="gray", vmin=low - 0.1, vmax=high)
        before.set_title("The photograph")
        after.set_title("The image that was found")
        for axes in (before, after):
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
        place, start = np.arange(-REACH, REACH + 1), guess(photograph)
        for u, style, colour, label in ((start, "--", GREY, "first guess"), (found, "-", TEAL, "found")):
            of = motion(u["length"])
            times.plot(place, of, style, color=colour, linewidth=1.8, drawstyle="steps-mid", label=label)
        times.fill_between(place, motion(found["length"]), step="mid", color=TEAL, alpha=0.15, linewidth=0)
        times.set(
            title="The motion of the camera", xlabel="pixels", ylabel="share of the time", ylim=(0, 0.042)
        )
        times.legend(fontsize=9, loc="upper left")


def main(path: Path = HERE / "output" / "deblurring.png", still: int = 150, free: int = 300) -> Unknowns:
    """Restore, print, draw; returns the unknowns. The last two arguments are those of `restore`."""
    photograph = (np.load(HERE / "data" / "clock.npy") / 255.0) ** GAMMA
    start = guess(photograph)
    unpack = unpacker(start)
    slope = packed(plaingrad.grad(misfit)(start, photograph))
    error = gap_of_gradient(lambda x: misfit(unpack(x), photograph), packed(start), slope)
    seconds = []
    for call in (misfit, plaingrad.grad(misfit)):
        begun = time.perf_counter()
        call(start, photograph)
        seconds.append(time.perf_counter() - begun)
    found, results = restore(photograph, still, free)
    misses = blurred(found["image"], motion(found["length"])) - photograph
    print(f"A clock, photographed by a moving camera: {len(slope):,} unknowns")
    print(
        f"  the gradient agrees with differences to {error:.0e};"
        f" it takes {1e3 * seconds[1]:.0f} ms, a plain call {1e3 * seconds[0]:.0f} ms"
    )
    for what, result in zip(("motion held", "motion free"), results):
        print(f"  {what}: misfit {result.fun:.3f} after {result.nfev} gradients")
    print(
        f"  the camera moved by {found['length']:.1f} pixels;"
        f" {np.sqrt(np.mean(misses**2)):.2%} of white is left unexplained"
    )
    draw(path, photograph, found)
    print(f"  {path}")
    return found


if __name__ == "__main__":
    main()
