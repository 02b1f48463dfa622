"""The compiled core of the engine, built with the package where there is a C compiler.

Without one, or on a free-threaded CPython, the package is built all the same: the engine's Python forms do the same,
slower. `plaingrad.info()` says which are in use.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).parent
FOLDER = "src/plaingrad/engine/compiled"
NAME = "plaingrad.engine.compiled._core"
# The order of arithmetic is Python's, so nothing is contracted; objects are read through several C types.
# Debug information would be four fifths of the file.
OPTIONS = [] if os.name == "nt" else ["-O2", "-g0", "-ffp-contract=off", "-fno-strict-aliasing"]
if (
    sys.platform == "linux"
):  # one file as large as this one is would be inlined less, which costs up to a sixth
    OPTIONS += ["-falign-loops=32", "-falign-functions=32", "--param", "inline-unit-growth=200"]
    OPTIONS += ["--param", "large-unit-insns=200000"]
    OPTIONS += ["-ftree-vectorize", "-fvect-cost-model=dynamic"]  # loops over arrays, in `arrays.pxi`


def flags() -> list[str]:
    """What the environment adds to the compiler's options, and has the last word."""
    return os.environ.get("PLAINGRAD_CORE_FLAGS", "").split()


def build(place: Path) -> Path:
    """Build the extension in folder `place`; the file."""
    import numpy as np
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    source = place / "core.c"
    source.write_bytes(in_c(place))
    extension = Extension(
        NAME,
        [str(source)],
        extra_compile_args=[*OPTIONS, *flags()],
        include_dirs=[np.get_include()],
    )
    command = build_ext(Distribution({"name": "plaingrad", "ext_modules": [extension]}))
    command.build_lib = command.build_temp = str(place)
    command.ensure_finalized()
    command.run()
    return Path(command.get_ext_fullpath(NAME))


def in_c(place: Path) -> bytes:
    """The sources in C, which are the same for every CPython: translated once, and kept in build/."""
    from Cython.Build import cythonize

    kept = ROOT / "build" / f"core-{sources()[:16]}.c"
    with alone(kept.with_suffix(".lock")):
        try:
            return kept.read_bytes()
        except OSError:
            cythonize([f"{FOLDER}/_core.pyx"], build_dir=str(place / "c"), language_level=3, quiet=True)
        content = (place / "c" / FOLDER / "_core.c").read_bytes()
        for older in kept.parent.glob("core-*.c"):
            older.unlink(missing_ok=True)
        put(content, kept)
    return content


@contextlib.contextmanager
def alone(lock: Path) -> Iterator[None]:
    """A context that one process enters at a time, where the system has such locks."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    lock.parent.mkdir(exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def sources() -> str:
    """A digest of what the C code is made from: sources, this file, Cython, and NumPy, whose declarations are in it."""
    import Cython
    import numpy as np

    digest = hashlib.sha256(repr((Cython.__version__, np.__version__)).encode())
    for file in [Path(__file__), *sorted((ROOT / FOLDER).glob("*.p[yx][xi]"))]:
        digest.update(f"{file.name} {file.stat().st_size}\n".encode() + file.read_bytes())
    return digest.hexdigest()


def origin() -> str:
    """A digest of all that the extension is made from: its sources, CPython, the compiler."""
    of_environment = [os.environ.get(name) for name in ("CC", "CFLAGS", "CPPFLAGS", "LDFLAGS")]
    made_from = (sources(), sys.version, *of_environment, *flags())
    return hashlib.sha256(repr(made_from).encode()).hexdigest()


def is_made(target: Path, record: Path) -> bool:
    """Whether `target` is, byte for byte, what was built here from the same: the next extra need not build it again."""
    try:
        wanted = [origin(), hashlib.sha256(target.read_bytes()).hexdigest()]
        return json.loads(record.read_text()) == wanted
    except (OSError, ValueError, ImportError):
        return False


def put(content: bytes, target: Path) -> None:
    """Write a file that others may be reading."""
    target.parent.mkdir(exist_ok=True)
    draft = target.with_suffix(f".{os.getpid()}.draft")
    draft.write_bytes(content)
    draft.chmod(0o755)
    draft.replace(target)


def tag_of_a_free_threaded_wheel() -> dict[str, Any]:
    """What hatchling needs to give a wheel without an extension a tag of this CPython: a pure one would be everybody's.

    In the containers of `cibuildwheel` the platform is the container's, as such a wheel needs nothing of a platform.
    """
    platform = os.environ.get("AUDITWHEEL_PLAT")
    if not platform:
        return {"pure_python": False, "infer_tag": True}
    name = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    return {"pure_python": False, "tag": f"{name}-{name}t-{platform}"}


class CompiledCore(BuildHookInterface):
    """Puts the extension into wheels, and beside its source for editable installs, which take one that is there."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build it, unless PLAINGRAD_COMPILED=0; say so if that fails, or raise, with PLAINGRAD_REQUIRE_COMPILED."""
        if self.target_name != "wheel" or os.environ.get("PLAINGRAD_COMPILED") == "0":
            return
        if sysconfig.get_config_var("Py_GIL_DISABLED"):
            if version == "standard":
                build_data |= tag_of_a_free_threaded_wheel()
            return
        suffix = sysconfig.get_config_var("EXT_SUFFIX")
        target, record = ROOT / FOLDER / f"_core{suffix}", ROOT / "build" / f"core{suffix}.json"
        if not (version == "editable" and is_made(target, record)):
            before = os.getcwd()
            try:
                os.chdir(ROOT)
                with tempfile.TemporaryDirectory() as folder:
                    content = build(Path(folder)).read_bytes()
            except (Exception, SystemExit) as error:
                if os.environ.get("PLAINGRAD_REQUIRE_COMPILED"):
                    raise
                reason = f"the compiled core could not be built ({type(error).__name__}: {error})"
                self.app.display_warning(f"plaingrad: {reason}; the slower Python form will be used.")
                if version == "editable":  # whoever installs may have hidden the warning
                    put(reason.encode(), record.with_suffix(".txt"))
                return
            finally:
                os.chdir(before)
            put(content, target)
            if version == "editable":
                put(json.dumps([origin(), hashlib.sha256(content).hexdigest()]).encode(), record)
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["artifacts"].append(f"{FOLDER}/{target.name}")
