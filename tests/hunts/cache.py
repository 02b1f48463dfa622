"""Bit flips in the disk cache: is a damaged file ever run?

    python -m tests.hunts.cache --count 10000 --whole 100 --seed 0

Every kept file is damaged in turn (a bit flipped, a stretch zeroed, the end cut off, the content of another file put in its
place) and asked for as the native tier asks for it: it must be as good as none. Then whole gradients are taken with
several damaged files at once, in a process of their own, since what is looked for may kill it.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import multiprocessing
import os
import random
import sys
import tempfile
from pathlib import Path

MODEL = """
import math
import numpy as np

def decay(x, n):
    s = x
    for _ in range(n):
        s = math.sin(s) * 0.9 + x * math.exp(-s * s)
    return s

def norm(a):
    return np.sqrt((a * a).sum()) + a[::2].mean()

def product(a, b):
    return (a @ b).sum() * np.log(1.0 + (b * b).sum())

def steps(a, n):
    u = a.copy()
    for _ in range(n):
        u[1:-1] = u[1:-1] + 0.1 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
    return (u * u).sum()
"""


def calls(model, np):
    """(function, arguments) of every program."""
    a = np.linspace(0.1, 2.0, 6)
    m = np.outer(a, a + 0.3)
    return [(model.decay, (0.7, 4)), (model.norm, (a,)), (model.product, (m, m.T.copy())), (model.steps, (a, 3))]


def damaged(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    """The content of a file with something wrong in it."""
    kind = chance.choices(("bit", "zeros", "cut", "other", "empty"), (90, 4, 3, 2, 1))[0]
    if kind == "bit":
        new = bytearray(content)
        new[chance.randrange(len(new))] ^= 1 << chance.randrange(8)
        return bytes(new)
    if kind == "zeros":
        start = chance.randrange(len(content))
        return content[:start] + bytes(min(64, len(content) - start)) + content[start + 64 :]
    if kind == "cut":
        return content[: chance.randrange(len(content))]
    return chance.choice(others) if kind == "other" else b""


def prepared(place: str):
    """The modules, with a cache that holds what all the programs need, and the gradients."""
    os.environ["PLAINGRAD_CACHE_DIR"] = str(Path(place, "kept"))
    Path(place, "hunted_model.py").write_text(MODEL)
    sys.path.insert(0, place)
    import numpy as np

    import plaingrad
    from plaingrad.native.compile import build, cache

    model = importlib.import_module("hunted_model")

    def gradients():
        build._built.clear()
        for name in [name for name in sys.modules if name.startswith(cache.PREFIX)]:
            del sys.modules[name]
        return [plaingrad.grad(f, tier="native")(*args) for f, args in calls(model, np)]

    return np, cache, gradients


def loads(place: str, count: int, seed: int) -> collections.Counter:
    """Every kept file damaged and asked for."""
    _, cache, gradients = prepared(place)
    from plaingrad.native.machine.machine_code import KeptCode

    gradients()
    asked = {}
    load = KeptCode.load_overload

    def recorded(self, sig, context):
        path = self.path(self.key(sig, context.codegen()))
        asked[path] = lambda: load(self, sig, context)
        return load(self, sig, context)

    KeptCode.load_overload = recorded
    gradients()
    KeptCode.load_overload = load
    for path in Path(os.environ["PLAINGRAD_CACHE_DIR"]).glob("*.py"):
        asked[path] = lambda key=path.stem.removeprefix(cache.PREFIX): cache.load(key)
    whole = {path: path.read_bytes() for path in asked if path.exists()}
    contents = list(whole.values())
    chance = random.Random(seed)
    found = collections.Counter()
    for _ in range(count):
        path = chance.choice(list(whole))
        content = damaged(whole[path], contents, chance)
        if content == whole[path]:
            continue
        for name in [name for name in sys.modules if name.startswith(cache.PREFIX)]:
            del sys.modules[name]
        path.write_bytes(content)
        found["RUN" if asked[path]() is not None else "refused", path.suffix] += 1
        path.write_bytes(whole[path])
    return found


def wholes(place: str, count: int, seed: int, answers) -> None:
    """Gradients with damaged files."""
    np, _, gradients = prepared(place)
    expected = gradients()
    chance = random.Random(seed)
    kept = Path(os.environ["PLAINGRAD_CACHE_DIR"])
    for _ in range(count):
        files = [p for p in kept.rglob("*") if p.suffix in (".py", ".bin")]
        contents = [p.read_bytes() for p in files]
        for path in chance.sample(files, min(len(files), chance.randint(1, 4))):
            path.write_bytes(damaged(path.read_bytes() or b"x", contents, chance))
        same = all(np.array_equal(a, b) for a, b in zip(gradients(), expected))
        answers.put("right" if same else "WRONG")


def main() -> None:
    """Run the hunt and print what came of it."""
    options = argparse.ArgumentParser()
    options.add_argument("--count", type=int, default=10_000)
    options.add_argument("--whole", type=int, default=100)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    context = multiprocessing.get_context("spawn")
    found: collections.Counter = collections.Counter()
    with tempfile.TemporaryDirectory() as place:
        for (outcome, suffix), number in loads(place, given.count, given.seed).items():
            found[f"{outcome} {suffix}"] += number
    for begin in range(0, given.whole, 20):
        with tempfile.TemporaryDirectory() as place:
            answers = context.SimpleQueue()
            process = context.Process(target=wholes, args=(place, min(20, given.whole - begin), begin, answers))
            process.start()
            process.join()
            while not answers.empty():
                found[f"whole: {answers.get()}"] += 1
            if process.exitcode:
                found[f"whole: DEAD {process.exitcode}"] += 1
    for outcome, number in sorted(found.items()):
        print(f"{number:7} {outcome}")


if __name__ == "__main__":
    main()
