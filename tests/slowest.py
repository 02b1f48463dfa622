"""The slowest tests of the last run of `make test`, from the files that it leaves: for `make slow`."""

import os
import sys
from xml.etree import ElementTree

COUNT = 50


def main(paths):
    """Print the time of all tests in these files, and the slowest ones."""
    there = [path for path in paths if os.path.exists(path)]
    cases = [case for path in there for case in ElementTree.parse(path).iter("testcase")]
    timed = [(float(case.get("time")), f"{case.get('classname')}::{case.get('name')}") for case in cases]
    total, slowest = sum(seconds for seconds, _ in timed), sorted(timed, reverse=True)[:COUNT]
    shown = sum(seconds for seconds, _ in slowest)
    print(f"{len(timed)} tests took {total:.0f} s in all workers, the slowest {len(slowest)} of them {shown:.0f} s:")
    for seconds, name in slowest:
        print(f"{seconds:8.1f}  {name}")


if __name__ == "__main__":
    main(sys.argv[1:])
