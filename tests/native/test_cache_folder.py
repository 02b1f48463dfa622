"""The folder of the disk cache: what is trusted, where it is, and how it stays small."""

import errno
import logging
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

import plaingrad

pytest.importorskip("numba")

from plaingrad.native.machine import folder as cache_folder  # noqa: E402

needs_owners = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no owners and modes here")


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch):
    """Folders are looked at once a process: here once a test."""
    monkeypatch.setattr(cache_folder, "_trusted", {})
    monkeypatch.setattr(cache_folder, "_written", 0)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PLAINGRAD_CACHE_DIR", str(tmp_path / "above" / "kept"))
    return tmp_path / "above" / "kept"


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def settings(monkeypatch, **given):
    for name in ("PLAINGRAD_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, str(value))
    return cache_folder.place()


# -- where -------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the places of Linux")
def test_the_place_is_that_of_the_platform(monkeypatch, tmp_path):
    assert settings(monkeypatch, HOME=tmp_path) == tmp_path / ".cache" / "plaingrad"
    assert settings(monkeypatch, HOME=tmp_path, XDG_CACHE_HOME=tmp_path / "x") == tmp_path / "x" / "plaingrad"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the places of Linux")
@pytest.mark.parametrize("relative", ["x", "./x", "../x", ""])
def test_a_relative_xdg_path_is_ignored(relative, monkeypatch, tmp_path):
    assert settings(monkeypatch, HOME=tmp_path, XDG_CACHE_HOME=relative) == tmp_path / ".cache" / "plaingrad"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the places of Linux")
@pytest.mark.parametrize("home", ["", "relative/home", "/no/such/home", "."])
def test_without_a_home_there_is_no_cache_and_no_error(home, monkeypatch):
    assert settings(monkeypatch, HOME=home) is None
    assert cache_folder.folder() is None
    assert cache_folder.prune_if_due() is None


def test_a_user_who_is_in_no_list_has_no_home(monkeypatch):
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # what it does then
    assert settings(monkeypatch, HOME=None) is None


def test_a_gradient_without_a_home_is_compiled_and_not_kept(tmp_path):
    env = {k: v for k, v in os.environ.items() if k not in ("PLAINGRAD_CACHE_DIR", "HOME", "XDG_CACHE_HOME")}
    env |= {"HOME": "/no/such/home", "PYTHONPATH": str(Path(plaingrad.__file__).parents[1])}
    (tmp_path / "cubes.py").write_text(
        "import plaingrad\ndef f(x):\n    return x**3\nprint(plaingrad.grad(f, tier='native')(2.0))\n"
    )
    done = subprocess.run(
        [sys.executable, "cubes.py"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300
    )
    assert (done.stdout, done.stderr, done.returncode) == ("12.0\n", "", 0)


# -- trust -------------------------------------------------------------------------------------------------------------


@needs_owners
@pytest.mark.parametrize("mask", [0o000, 0o002, 0o022])
def test_every_folder_that_is_made_is_for_its_owner_alone(mask, folder):
    before = os.umask(mask)
    try:
        cache_folder.write_whole(folder / "helpers_x" / "one.bin", b"1")
    finally:
        os.umask(before)
    for path in (folder.parent, folder, folder / "helpers_x"):
        assert mode(path) == 0o700
    assert mode(folder / "helpers_x" / "one.bin") == 0o600
    assert cache_folder.read(folder / "helpers_x" / "one.bin") == b"1"


@needs_owners
@pytest.mark.parametrize("bits", [0o020, 0o002, 0o022])
def test_a_folder_that_others_may_write_is_neither_read_nor_written_and_that_is_logged_once(bits, folder, caplog):
    cache_folder.write_whole(folder / "one.bin", b"1")
    cache_folder._trusted.clear()
    folder.chmod(0o700 | bits)
    with caplog.at_level(logging.WARNING, "plaingrad"):
        assert cache_folder.folder() is None
        assert cache_folder.read(folder / "one.bin") is None
        with pytest.raises(PermissionError):
            cache_folder.write_whole(folder / "two.bin", b"2")
        assert cache_folder.folder() is None
    assert len(caplog.records) == 1
    assert str(folder) in caplog.text
    assert "others" in caplog.text
    assert sorted(p.name for p in folder.iterdir()) == ["one.bin", cache_folder.PRUNED]


@needs_owners
def test_a_file_or_a_folder_inside_that_others_may_write_is_not_read(folder):
    inside = folder / "helpers_x"
    for path in (folder / "one.bin", inside / "two.bin"):
        cache_folder.write_whole(path, b"1")
    (folder / "one.bin").chmod(0o602)
    assert cache_folder.read(folder / "one.bin") is None
    (folder / "one.bin").chmod(0o600)
    assert cache_folder.read(folder / "one.bin") == b"1"
    cache_folder._trusted.clear()
    inside.chmod(0o770)
    assert cache_folder.read(inside / "two.bin") is None


@needs_owners
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_what_belongs_to_another_user_is_not_read(folder, caplog):
    cache_folder.write_whole(folder / "one.bin", b"1")
    os.chown(folder / "one.bin", 12345, 12345)
    assert cache_folder.read(folder / "one.bin") is None
    os.chown(folder / "one.bin", 0, 0)
    os.chown(folder, 12345, 12345)
    cache_folder._trusted.clear()
    assert cache_folder.read(folder / "one.bin") is None
    assert cache_folder.folder() is None
    assert "12345" in caplog.text


@needs_owners
def test_owners_are_compared_with_the_effective_user(folder, monkeypatch):
    cache_folder.write_whole(folder / "one.bin", b"1")
    cache_folder._trusted.clear()
    owner = folder.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert (cache_folder.folder() is None) == (owner != 0)  # what root has made is trusted


@needs_owners
def test_a_parent_that_everybody_may_write_makes_the_folder_replaceable(folder):
    cache_folder.make(folder)
    folder.parent.chmod(0o777)
    assert "replace" in cache_folder.why_not(folder)
    folder.parent.chmod(0o1777)  # as /tmp: others cannot rename what is not theirs
    assert cache_folder.why_not(folder) is None


@needs_owners
def test_a_link_in_the_place_of_a_file_is_not_followed(folder, tmp_path):
    (tmp_path / "elsewhere").write_bytes(b"1")
    cache_folder.make(folder)
    (folder / "one.bin").symlink_to(tmp_path / "elsewhere")
    assert cache_folder.read(folder / "one.bin") is None
    os.mkfifo(folder / "pipe.bin")  # opening it would wait for ever
    (folder / "sub.bin").mkdir()
    assert cache_folder.read(folder / "pipe.bin") is None
    assert cache_folder.read(folder / "sub.bin") is None


def test_a_folder_reached_through_a_link_of_the_users_is_trusted(folder, tmp_path, monkeypatch):
    cache_folder.write_whole(folder / "one.bin", b"1")
    (tmp_path / "link").symlink_to(folder)
    monkeypatch.setenv("PLAINGRAD_CACHE_DIR", str(tmp_path / "link"))
    assert cache_folder.read(cache_folder.folder() / "one.bin") == b"1"


def test_a_file_in_the_place_of_the_folder_is_said(folder, caplog):
    folder.parent.mkdir()
    folder.write_text("")
    assert cache_folder.folder() is None
    assert "not a folder" in caplog.text


# -- drafts, size, age -------------------------------------------------------------------------------------------------


def test_a_full_disk_leaves_no_draft(folder, monkeypatch):
    cache_folder.write_whole(folder / "one.bin", b"1")

    def full(draft, path):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        cache_folder.write_whole(folder / "two.bin", b"2")
    assert sorted(p.name for p in folder.iterdir()) == ["one.bin", cache_folder.PRUNED]


def test_an_interrupt_while_writing_leaves_no_draft(folder, monkeypatch):
    cache_folder.make(folder)

    def interrupted(draft, path):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cache_folder.write_whole(folder / "two.bin", b"2")
    assert list(folder.iterdir()) == []


def filled(folder, *days, size=1000):
    """Files of programs that were last used so many days ago."""
    cache_folder.make(folder)
    paths = []
    for k, age in enumerate(days):
        path = folder / f"{cache_folder.PREFIX}{k:040x}.py"
        path.write_bytes(b"x" * size)
        os.utime(path, (time.time() - age * cache_folder.DAY,) * 2)
        paths.append(path)
    return paths


def test_what_was_not_used_for_long_is_pruned_at_the_first_write(folder):
    young, old = filled(folder, 80, 91)
    cache_folder.write_whole(folder / f"{cache_folder.PREFIX}{9:040x}.py", b"new")
    assert young.exists()
    assert not old.exists()


def test_the_first_write_of_later_processes_looks_once_a_day(folder, monkeypatch):
    cache_folder.write_whole(folder / "one.bin", b"1")
    (old,) = filled(folder, 91)
    monkeypatch.setattr(cache_folder, "_written", 0)
    cache_folder.write_whole(folder / "one.bin", b"1")
    assert old.exists()
    yesterday = time.time() - 1.1 * cache_folder.DAY
    os.utime(folder / cache_folder.PRUNED, (yesterday, yesterday))
    monkeypatch.setattr(cache_folder, "_written", 0)
    cache_folder.write_whole(folder / "one.bin", b"1")
    assert not old.exists()


def test_a_process_that_writes_without_end_prunes_on_its_way(folder, monkeypatch):
    monkeypatch.setenv("PLAINGRAD_CACHE_SIZE", "10K")
    for k in range(250):
        cache_folder.write_whole(folder / f"{cache_folder.PREFIX}{k:040x}.py", b"x" * 1000)
    assert sum(entry.size for entry in cache_folder.entries(folder)) <= 60_000


def test_the_largest_size_leaves_what_was_used_last(folder):
    paths = filled(folder, 1, 2, 3, 4, 5)
    assert len(cache_folder.prune(folder, 5000, cache_folder.AGE)) == 0
    cache_folder.prune(folder, 4000, cache_folder.AGE)  # to four fifths of it
    assert [p.exists() for p in paths] == [True, True, True, False, False]


def test_use_makes_a_file_young(folder):
    (path,) = filled(folder, 80)
    assert cache_folder.read(path) is not None
    assert time.time() - path.stat().st_mtime < 60


def test_drafts_of_processes_that_were_killed_are_pruned_after_a_day(folder):
    cache_folder.make(folder / "helpers_x")
    drafts = [folder / "plaingrad_draft_1.tmp", folder / "helpers_x" / "plaingrad_draft_2.tmp"]
    for path in drafts:
        path.write_bytes(b"half")
        os.utime(path, (time.time() - 2 * cache_folder.DAY,) * 2)
    (folder / "plaingrad_draft_3.tmp").write_bytes(b"being written")
    cache_folder.prune(folder, cache_folder.SIZE, cache_folder.AGE)
    assert [p.name for p in folder.rglob("*.tmp")] == ["plaingrad_draft_3.tmp"]


def test_only_files_of_the_cache_are_counted_and_deleted(folder):
    filled(folder, 1, 2)
    others = [folder / "notes.txt", folder / "data.bin", folder / "sub" / "plaingrad_native_x.py"]
    (folder / "sub").mkdir()
    for path in others:
        path.write_text("the user's")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / f"{cache_folder.PREFIX}{0:040x}.f-1.py311.nbi").write_bytes(b"")  # of earlier versions
    (folder / "helpers_x").mkdir()
    (folder / "helpers_x" / "sum_1.bin").write_bytes(b"12")
    found = cache_folder.entries(folder)
    assert len(found) == 3
    assert sum(entry.size for entry in found) == 2002
    cache_folder.clear(folder)
    assert sorted(p for p in folder.rglob("*") if p.is_file()) == sorted(others)
    assert not (folder / "helpers_x").exists()


@pytest.mark.parametrize(
    ("text", "size"), [("5", 5), ("1K", 1024), ("2 m", 2 << 20), ("3GB", 3 << 30), ("0", 0)]
)
def test_sizes_are_read(text, size):
    assert cache_folder.bytes_of(text) == size


@pytest.mark.parametrize("text", ["", "K", "-1", "1.5M", "1T", "1" * 5000])
def test_what_is_no_size_leaves_the_usual_limit(text, monkeypatch):
    with pytest.raises(ValueError, match=r".*"):
        cache_folder.bytes_of(text)
    monkeypatch.setenv("PLAINGRAD_CACHE_SIZE", text)
    assert cache_folder.limit() == cache_folder.SIZE
