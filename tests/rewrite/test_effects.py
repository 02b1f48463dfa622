"""What code changes is told from its instructions."""

import numpy as np
from plaingrad.rewrite.effects import has_effects

LOG, TOTAL = [], 0.0


def around():
    count, log = 0, []

    def nonlocal_store(x):
        nonlocal count
        count += x

    def extends(x):
        log.append(x)

    def reads(x):
        own = [x, count]
        f = lambda y: y + own[0]
        return f(x)

    return nonlocal_store, extends, reads


def global_store(x):
    global TOTAL
    TOTAL += x


def item(x):
    LOG[0] = x


def attribute(x):
    LOG.last = x


def alias(x):
    log = LOG
    log += [x]


def inside(x):
    return [LOG.append(y) for y in (x,)]


def harmless(x, p=1.0):
    s = 0.0
    for k in range(3):
        s += np.exp(-p * x) * k if x > k else 0.0
    return s


def test_stores_that_outlive_a_call_are_seen():
    nonlocal_store, extends, reads = around()
    for f in (nonlocal_store, extends, global_store, item, attribute, alias, inside):
        assert has_effects(f.__code__), f.__name__
    for f in (reads, harmless):
        assert not has_effects(f.__code__), f.__name__
