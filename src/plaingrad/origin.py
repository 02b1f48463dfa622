"""Whose code it is: the program's, an installed package's or the standard library's.

A name alone does not tell: a program may have modules `test.py`, `numpy_helpers.py` or `scipy_models.py` of its own.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Collection
from typing import Any

#: Parts of the paths of installed packages.
INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


def package_of(module: Any) -> str:
    """The outermost package of a module, given by name; "" for what is no name."""
    return module.partition(".")[0] if isinstance(module, str) else ""


def is_of(module: Any, packages: Collection[str]) -> bool:
    """Whether a module, given by name, is one of these modules or lies in one of them."""
    if not isinstance(module, str):
        return False
    return any(module == package or module.startswith(package + ".") for package in packages)


def is_standard(module: Any) -> bool:
    """Whether a module, given by name, is of the standard library, and none of the program that is called like one."""
    package = package_of(module)
    return package in sys.stdlib_module_names and package != "__main__" and _is_there(package)


def is_of_package(module: Any) -> bool:
    """Whether a module, given by name, is of an installed package or of the standard library."""
    return is_standard(module) or _is_installed(module)


def _is_there(package: str) -> bool:
    """Whether the module that goes by a name of the standard library lies where that does."""
    file = getattr(sys.modules.get(package), "__file__", None)
    return file is None or is_standard_file(file)


def _is_installed(module: Any) -> bool:
    file = getattr(sys.modules.get(module), "__file__", None) if isinstance(module, str) else None
    return isinstance(file, str) and is_installed_file(file)


@functools.lru_cache(1024)
def is_standard_file(file: str) -> bool:
    """Whether a file belongs to the standard library."""
    return file.startswith(standard_folders()) and not is_installed_file(file)


@functools.lru_cache(1024)
def is_installed_file(file: str) -> bool:
    """Whether a file belongs to an installed package."""
    return any(mark in file for mark in INSTALLED) or file.startswith(_folders("purelib", "platlib"))


@functools.lru_cache(1)
def standard_folders() -> tuple[str, ...]:
    """Where the standard library lies."""
    return (*_folders("stdlib", "platstdlib"), os.path.join(os.path.dirname(os.__file__), ""))


@functools.lru_cache(4)
def _folders(*names: str) -> tuple[str, ...]:
    import sysconfig

    paths = sysconfig.get_paths()
    return tuple({os.path.join(paths[name], "") for name in names if paths.get(name)})
