"""What pip or uv is told, to install a dependency group: `pip install $(python .ci/groups.py test)`.

pip learned `--group` in 25.1, later than the one that CPython 3.11 brings along. Extras of plaingrad itself that a
group names are those of this clone, installed in place.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def requirements(group: str, groups: dict[str, list]) -> Iterator[str]:
    """The requirements of a group and of those that it includes."""
    for entry in groups[group]:
        if isinstance(entry, str):
            yield entry
        else:
            yield from requirements(entry["include-group"], groups)


def arguments(*names: str) -> list[str]:
    """Arguments of `pip install`: the clone in place with the extras that are named, then the other requirements."""
    groups = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["dependency-groups"]
    extras, others = [], []
    for requirement in dict.fromkeys(r for name in names for r in requirements(name, groups)):
        own = re.fullmatch(r"plaingrad\[(.*)\]", requirement)
        if own:
            extras += own[1].split(",")
        else:
            others.append(requirement)
    return ["-e", f".[{','.join(dict.fromkeys(extras))}]" if extras else ".", *others]


if __name__ == "__main__":
    print(*arguments(*sys.argv[1:]))
