"""Random ways of a number through text: is one of them lost, or one refused that was not differentiated?

    python -m tests.hunts.text --count 3000 --seed 0

A way is a format, some edits, and a reader. Taken by a differentiated number it must be refused, or have the derivative
that finite differences have. Taken by a constant, while a differentiated number is logged, it must be right.
"""

from __future__ import annotations

import argparse
import ast
import base64
import collections
import csv
import decimal
import fractions
import io
import json
import pickle
import random
import re
import sqlite3
import string
import textwrap
import urllib.parse
import warnings
import zlib

import numpy as np

import plaingrad

FORMATS = {
    "str": str,
    "repr": repr,
    "f-string": lambda v: f"{v}",
    "f-string !r": lambda v: f"{v!r}",
    ".9f": lambda v: f"{v:.9f}",
    ".12e": lambda v: f"{v:.12e}",
    ".10g": lambda v: f"{v:.10g}",
    "+.11f": lambda v: f"{v:+.11f}",
    "30.9f": lambda v: f"{v:30.9f}",
    "%": lambda v: "%.10f" % v,
    "%s": lambda v: "%s" % (v,),
    "%(name)r": lambda v: "%(v)r" % {"v": v},
    "format": lambda v: "{:.11f}".format(v),
    "format by name": lambda v: "{v:.8e}".format(v=v),
    "format_map": lambda v: "{v}".format_map({"v": v}),
    "template": lambda v: string.Template("$v").substitute(v=v),
    "list": lambda v: str([v])[1:-1],
    "tuple": lambda v: repr((v,))[1:-2],
    "dict": lambda v: str({"v": v})[6:-1],
    "json": lambda v: json.dumps(v),
    "json in a list": lambda v: json.dumps([v, 1])[1:].split(",")[0],
    "decimal": lambda v: str(decimal.Decimal(repr(v))) if type(v) is str else str(v),
    "array": lambda v: np.array2string(np.array([v]), precision=12)[1:-1],
    "array of text": lambda v: np.array([v]).astype(str)[0],
    "numpy": lambda v: str(np.float64(v)),
    "numpy format": lambda v: f"{np.float64(v):.11f}",
    "positional": lambda v: np.format_float_positional(v),
    "scientific": lambda v: np.format_float_scientific(v),
    "printed": lambda v: printed(v),
    "csv": lambda v: written_row(v),
    "complex": lambda v: str(complex(v, 1.0))[1:].split("+1j")[0],
    "exception": lambda v: str(ValueError(v)),
    "scaled": lambda v: f"{v * 100.0!r}",
    "shifted": lambda v: f"{v + 1.0:.12f}",
    "percent": lambda v: f"{v:.9%}".rstrip("%"),
}


def printed(v):
    page = io.StringIO()
    print(v, file=page)
    return page.getvalue()


def written_row(v):
    page = io.StringIO()
    csv.writer(page).writerow(iter([v]))
    return page.getvalue()


EDITS = {
    "strip": lambda t: t.strip(),
    "minus": lambda t: "-" + t.strip().lstrip("+"),
    "plus": lambda t: "+" + t.strip().lstrip("+"),
    "exponent": lambda t: t.strip() + "e2" if "e" not in t.lower() else t,
    "other exponent": lambda t: t.strip().lower().partition("e")[0] + "E-1",
    "upper": lambda t: t.upper(),
    "bytes": lambda t: t.encode().decode(),
    "comma": lambda t: t.replace(".", ",").replace(",", "."),
    "no point": lambda t: t.strip().lstrip("+-").lower().partition("e")[0].replace(".", ""),
    "fraction": lambda t: "0." + t.strip().lower().partition("e")[0].partition(".")[2],
    "digits of the fraction": lambda t: t.strip().lower().partition("e")[0].partition(".")[2],
    "padded": lambda t: t.strip().lstrip("+").zfill(30),
    "centred": lambda t: f"{t:^40}",
    "cut": lambda t: t.strip()[:11],
    "base64": lambda t: base64.b64decode(base64.b64encode(t.encode())).decode(),
    "packed": lambda t: zlib.decompress(zlib.compress(t.encode())).decode(),
    "json": lambda t: json.loads(json.dumps(t)),
    "pickled": lambda t: pickle.loads(pickle.dumps([t]))[0],
    "letters": lambda t: "".join(list(t)),
    "turned twice": lambda t: "".join(reversed(t[::-1])),
    "wrapped": lambda t: " ".join(textwrap.wrap(t, 60)),
    "found": lambda t: re.search(r"[-+.\deE]+", t).group(),
    "substituted": lambda t: re.sub(r"\s", "", t),
    "quoted": lambda t: urllib.parse.unquote(urllib.parse.quote(t)),
    "in words": lambda t: f"v = {t};"[4:-1],
    "stream": lambda t: io.StringIO(t).read(),
    "lines": lambda t: f"{t}\n{t}".splitlines()[-1],
    "hex": lambda t: bytes.fromhex(t.encode().hex()).decode(),
    "table": lambda t: t.translate({ord(" "): None}),
    "array": lambda t: np.array([t])[0].item(),
    "object array": lambda t: np.array([t, None], object)[0],
}
READERS = {
    "float": float,
    "float of bytes": lambda t: float(t.encode()),
    "complex": lambda t: complex(t.strip()).real,
    "int": lambda t: int(t) * 10.0 ** -len(t),
    "decimal": lambda t: float(decimal.Decimal(t.strip())),
    "fraction": lambda t: float(fractions.Fraction(t.strip())),
    "json": lambda t: float(json.loads(t)),
    "json in a dict": lambda t: json.loads('{"v": [%s]}' % t)["v"][0],
    "eval": lambda t: float(eval(t.strip())),
    "literal": lambda t: ast.literal_eval(f"[{t.strip()}]")[0],
    "compiled": lambda t: eval(compile(f"2.0 * {t.strip()}", "text", "eval")),
    "array": lambda t: np.array([t], float)[0],
    "astype": lambda t: np.array([t.strip()]).astype(np.float64)[0],
    "object astype": lambda t: np.array([t, "1"], object).astype(float)[0],
    "asarray": lambda t: np.asarray([[t]], dtype=float)[0, 0],
    "full": lambda t: np.full(1, t, float)[0],
    "written into": lambda t: stored(t),
    "record": lambda t: np.array([(t,)], [("v", float)])["v"][0],
    "fromstring": lambda t: np.fromstring(f"1 {t.strip()}", sep=" ")[1],
    "loadtxt": lambda t: float(np.loadtxt(io.StringIO(t))),
    "loadtxt of lines": lambda t: float(np.loadtxt([t])),
    "genfromtxt": lambda t: float(np.genfromtxt(io.StringIO(t))),
    "float64": lambda t: np.float64(t.strip()),
    "float32": lambda t: float(np.float32(t.strip())),
    "csv": lambda t: float(next(csv.reader([f"{t},1"]))[0]),
    "csv numbers": lambda t: next(csv.reader([t.strip()], quoting=csv.QUOTE_NONNUMERIC))[0],
    "sql": lambda t: sqlite3.connect(":memory:").execute("SELECT CAST(? AS REAL)", (t,)).fetchone()[0],
    "sql text": lambda t: sqlite3.connect(":memory:").execute(f"SELECT 1.0 * {t}").fetchone()[0],
    "map": lambda t: sum(map(float, [t, t])),
    "generated": lambda t: sum(float(part) for part in (t, "1")),
    "tolerant": lambda t: tolerant(t),
}


def stored(text):
    a = np.zeros(2)
    a[1] = text
    return a[1]


def tolerant(text):
    try:
        return float(text)
    except Exception:
        return 0.5


def take(way, v):
    """The number `v` through a format, edits and a reader."""
    made, edits, read = way
    text = FORMATS[made](v)
    for name in edits:
        text = EDITS[name](text)
    return READERS[read](text)


def main() -> None:
    """Take random ways, and count what comes of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    outcomes: collections.Counter[str] = collections.Counter()
    warnings.simplefilter("ignore")
    while sum(outcomes.values()) < 2 * options.count:
        edits = chance.choices(list(EDITS), k=chance.choice((0, 1, 1, 2, 2, 3)))
        way = (chance.choice(list(FORMATS)), edits, chance.choice(list(READERS)))
        x = chance.uniform(0.1, 9.0) * 10.0 ** chance.choice((0, 0, 0, -3, 4))
        constant = chance.uniform(0.1, 9.0)
        step = 1e-4 * x
        try:
            with np.errstate(all="ignore"):
                slope = (take(way, x + step) - take(way, x - step)) / (2.0 * step)
                held, here = take(way, constant), take(way, x)
        except Exception:  # no number comes of this way
            continue
        mode = chance.choice((plaingrad.grad, plaingrad.derivative))
        truth = here + x * slope
        outcomes[judge(lambda: mode(lambda v: v * take(way, v))(x), truth, 1e-2, ("active", way, x))] += 1

        def beside(v, way=way, constant=constant):
            printed(f"{v:.12f} {v}")
            return v * take(way, constant)

        outcome = judge(lambda: mode(beside)(x), held, 1e-12, ("constant", way, x))
        if outcome == "refused":
            print("refused for nothing:", way, x, constant)
        outcomes[f"{outcome}, constant"] += 1
    print(dict(outcomes))


def judge(take_slope, truth, tolerance, what):
    """right, refused, wrong or crashed."""
    try:
        slope = take_slope()
    except plaingrad.PlaingradError:
        return "refused"
    except Exception as error:
        print("crashed:", what, repr(error)[:200])
        return "crashed"
    if abs(slope - truth) <= tolerance * max(abs(truth), 1e-12):
        return "right"
    print("wrong:", what, slope, truth)
    return "wrong"


if __name__ == "__main__":
    main()
