"""Where the time of a gradient goes. Search: time memory line. Page: docs/how-to/where-time-goes.md."""

import math

from plaingrad import profile


def model(x):
    for _ in range(200):
        x = x + 0.01 * math.sin(x)
    return math.exp(x)


found = profile(model, 0.5)
most = max(found.rows, key=lambda row: row.cost.entries)
assert most.source == "x = x + 0.01 * math.sin(x)"
