"""The build: an extension where a compiler is, a package without one where none is, wheels for every CPython."""

import fnmatch
import importlib.util
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture
def build(monkeypatch, tmp_path):
    """`hatch_build.py` for a tree of its own, with a stand-in where hatchling is not installed."""
    if importlib.util.find_spec("hatchling") is None:
        parts = "hatchling.builders.hooks.plugin.interface".split(".")
        for k in range(len(parts)):
            monkeypatch.setitem(sys.modules, ".".join(parts[: k + 1]), ModuleType(parts[k]))
        sys.modules[".".join(parts)].BuildHookInterface = object
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module.sysconfig, "get_config_var", {"EXT_SUFFIX": ".this.so"}.get)
    monkeypatch.delenv("PLAINGRAD_REQUIRE_COMPILED", raising=False)
    monkeypatch.delenv("PLAINGRAD_COMPILED", raising=False)
    (tmp_path / module.FOLDER).mkdir(parents=True)
    return module


def run(build, target="wheel", version="standard"):
    """What the hook tells hatchling, and what it warns of."""
    warnings, data = [], {"artifacts": []}
    hook = build.CompiledCore.__new__(build.CompiledCore)
    stated = {"target_name": target, "app": SimpleNamespace(display_warning=warnings.append)}
    hook.__class__ = type("Hook", (build.CompiledCore,), stated)  # where hatchling has properties
    hook.initialize(version, data)
    return data, warnings


def test_a_wheel_gets_the_extension_and_its_tag(build, monkeypatch, tmp_path):
    def compiled(folder):
        (folder / "new.so").write_bytes(b"machine code")
        return folder / "new.so"

    monkeypatch.setattr(build, "build", compiled)
    data, warnings = run(build)
    name = f"{build.FOLDER}/_core.this.so"
    assert data == {"artifacts": [name], "pure_python": False, "infer_tag": True}
    assert (tmp_path / name).read_bytes() == b"machine code"
    assert not warnings
    assert [path.name for path in (tmp_path / build.FOLDER).iterdir()] == ["_core.this.so"]


def test_an_editable_install_takes_the_extension_that_was_built_here_from_the_same(
    build, monkeypatch, tmp_path
):
    built = []

    def compiled(folder):
        built.append(folder)
        (folder / "new.so").write_bytes(b"machine code %d" % len(built))
        return folder / "new.so"

    made_from = ["sources"]
    monkeypatch.setattr(build, "build", compiled)
    monkeypatch.setattr(build, "origin", lambda: made_from[0])
    target = tmp_path / build.FOLDER / "_core.this.so"
    for _ in range(2):
        data, _ = run(build, version="editable")
        assert data["artifacts"] == [f"{build.FOLDER}/_core.this.so"]
    assert len(built) == 1
    made_from[0] = "other sources"
    run(build, version="editable")
    assert len(built) == 2 and target.read_bytes() == b"machine code 2"
    target.write_bytes(b"something else")
    run(build, version="editable")
    assert len(built) == 3
    run(build)
    assert len(built) == 4, "a wheel is always built"


def no_compiler(folder):
    raise SystemExit("error: command '/bin/false' failed with exit code 1")


def test_without_a_compiler_the_package_is_pure_python_and_says_so(build, monkeypatch):
    monkeypatch.setattr(build, "build", no_compiler)
    data, warnings = run(build)
    assert data == {"artifacts": []}
    assert len(warnings) == 1 and "slower Python form" in warnings[0] and "/bin/false" in warnings[0]


def test_who_leaves_the_extension_alone_does_not_build_it(build, monkeypatch):
    monkeypatch.setattr(build, "build", lambda folder: pytest.fail("nothing is to be compiled"))
    monkeypatch.setenv("PLAINGRAD_COMPILED", "0")
    assert run(build, version="editable") == ({"artifacts": []}, [])


def test_why_there_is_no_extension_is_kept_for_who_works_on_the_package(build, monkeypatch, tmp_path):
    monkeypatch.setattr(build, "build", no_compiler)
    run(build)
    assert not (tmp_path / "build").exists()
    run(build, version="editable")
    assert "/bin/false" in (tmp_path / "build" / "core.this.so.txt").read_text()


def test_without_a_compiler_there_is_an_error_for_those_who_ask_for_one(build, monkeypatch):
    monkeypatch.setattr(build, "build", no_compiler)
    monkeypatch.setenv("PLAINGRAD_REQUIRE_COMPILED", "1")
    with pytest.raises(SystemExit):
        run(build)


def test_source_distributions_have_no_extension(build, monkeypatch):
    monkeypatch.setattr(build, "build", lambda folder: pytest.fail("nothing is to be compiled"))
    assert run(build, "sdist") == ({"artifacts": []}, [])


def test_a_free_threaded_cpython_gets_the_python_form(build, monkeypatch):
    monkeypatch.setattr(build, "build", lambda folder: pytest.fail("nothing is to be compiled"))
    monkeypatch.setattr(build.sysconfig, "get_config_var", {"Py_GIL_DISABLED": 1}.get)
    assert run(build, version="editable") == ({"artifacts": []}, [])
    monkeypatch.delenv("AUDITWHEEL_PLAT", raising=False)
    assert run(build) == ({"artifacts": [], "pure_python": False, "infer_tag": True}, [])
    monkeypatch.setenv("AUDITWHEEL_PLAT", "manylinux_2_28_x86_64")
    name = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    tag = f"{name}-{name}t-manylinux_2_28_x86_64"
    assert run(build) == ({"artifacts": [], "pure_python": False, "tag": tag}, [])


def test_wheels_are_built_for_every_cpython_that_is_supported():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = project["tool"]["cibuildwheel"]["build"].split()

    def builds(name):
        return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)

    assert builds("cp311-manylinux_x86_64")
    versions = re.findall(r"Python :: 3\.(\d+)", " ".join(project["project"]["classifiers"]))
    assert versions
    for version in versions:
        assert builds(f"cp3{version}-win_amd64")
        assert builds(f"cp3{version}t-win_amd64") == (int(version) >= 13)


def test_the_environment_may_add_to_the_options_of_the_compiler(build, monkeypatch):
    monkeypatch.setitem(sys.modules, "Cython", SimpleNamespace(__version__="3"))
    plain = build.origin()
    monkeypatch.setenv("PLAINGRAD_CORE_FLAGS", "-O1  -g")
    assert build.flags() == ["-O1", "-g"]
    assert build.origin() != plain  # so another core is built


def test_the_sources_are_translated_once_for_all_cpythons(build, monkeypatch, tmp_path):
    translated = []

    def cythonize(sources, build_dir, **options):
        translated.append(sources)
        target = tmp_path / build_dir / build.FOLDER / "_core.c"
        target.parent.mkdir(parents=True)
        target.write_bytes(f"C code {len(translated)}".encode())

    monkeypatch.setitem(sys.modules, "Cython", SimpleNamespace(__version__="3"))
    monkeypatch.setitem(sys.modules, "Cython.Build", SimpleNamespace(cythonize=cythonize))
    assert [build.in_c(tmp_path / place) for place in ("first", "second")] == [b"C code 1"] * 2
    assert translated == [[f"{build.FOLDER}/_core.pyx"]]
    (tmp_path / build.FOLDER / "_core.pyx").write_text("another source")
    assert build.in_c(tmp_path / "third") == b"C code 2"
    assert len([*(tmp_path / "build").glob("core-*.c")]) == 1
