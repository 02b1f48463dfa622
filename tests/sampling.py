"""Which of many cases of one law `make test` tries: a stated sample, the same in every run.

With PLAINGRAD_TEST_ALL=1 all are tried.
"""

import os
import zlib

ALL = bool(os.environ.get("PLAINGRAD_TEST_ALL"))


def number_of(name):
    """A number for a name, as if by chance, the same in every run."""
    return zlib.crc32(str(name).encode())


def is_in_sample(name, n):
    """Whether the case of this name is one of the n-th part that is tried."""
    return ALL or number_of(name) % n == 0


def sample_of(cases, name, n):
    """The first of the cases of what has this name, and one in n of the others: other ones for other names."""
    shift = number_of(name)
    return [case for k, case in enumerate(cases) if ALL or k == 0 or (k + shift) % n == 0]


def count(few, all_of_them):
    """How many random cases are tried."""
    return all_of_them if ALL else few


def some(chosen, others):
    """The cases that are `chosen` because others take long and are like them; or all."""
    return [*chosen, *others] if ALL else list(chosen)
