"""Sources that a container's uid could not walk to, bound where it can."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pilotlight_runtime.sandbox.mounts import MountNamespace, closed_at
from pilotlight_runtime.sandbox.sandbox_errors import SandboxNotStarted, SandboxUnavailable


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A folder that every uid can walk to; pytest's own ones are closed."""
    with tempfile.TemporaryDirectory(prefix="pilotlight-test-") as folder:
        path = Path(folder).resolve()
        path.chmod(0o755)
        yield path


@pytest.fixture
def namespace() -> Iterator[MountNamespace]:
    made = MountNamespace()
    yield made
    made.close()


def _read_as_stranger(namespace: MountNamespace, path: Path) -> str:
    command = ["nsenter", f"--mount={namespace.entrance}", "--setgid=54321", "--setuid=54321", "--", "cat", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_bind_is_made_below_the_last_closed_folder(open_path: Path) -> None:
    """So one bind serves all that lie below it."""
    inner = open_path / "a" / "b" / "c"
    inner.mkdir(parents=True)
    assert closed_at(inner) is None

    (open_path / "a").chmod(0o700)
    assert closed_at(inner) == open_path / "a" / "b"

    (open_path / "a" / "b").chmod(0o700)
    assert closed_at(inner) == inner


def test_an_open_path_needs_no_namespace(namespace: MountNamespace, open_path: Path) -> None:
    """None is made."""
    assert namespace.reachable(open_path) == open_path
    assert namespace.entrance is None


def test_a_closed_one_is_reached_by_a_stranger_and_only_there(namespace: MountNamespace, open_path: Path) -> None:
    """What is added later shows too; a second folder next to it needs no second bind; the host sees no mount."""
    state = open_path / "state"
    first = state / "all" / "first"
    first.mkdir(parents=True)
    state.chmod(0o700)
    mounts = Path("/proc/self/mountinfo").read_text()

    reachable = namespace.reachable(first)
    (first / "later.txt").write_text("later")

    assert _read_as_stranger(namespace, reachable / "later.txt") == "later"
    assert not reachable.exists()
    assert Path("/proc/self/mountinfo").read_text() == mounts

    second = state / "all" / "second"
    second.mkdir()
    (second / "it.txt").write_text("it")
    assert namespace.reachable(second).parent == reachable.parent
    assert _read_as_stranger(namespace, namespace.reachable(second) / "it.txt") == "it"
    assert namespace.reachable(first) == reachable


def test_a_folder_made_anew_is_bound_anew(namespace: MountNamespace, open_path: Path) -> None:
    """The old bind would still show the folder that was deleted."""
    closed, source = open_path / "closed", open_path / "closed" / "source"
    source.mkdir(parents=True)
    closed.chmod(0o700)
    namespace.reachable(source)

    source.rename(open_path / "old")
    source.mkdir()
    (source / "new.txt").write_text("new")

    assert _read_as_stranger(namespace, namespace.reachable(source) / "new.txt") == "new"


def test_a_single_file_and_a_link_to_it(namespace: MountNamespace, open_path: Path) -> None:
    """The link leads to the file in the closed folder."""
    closed = open_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / "file").write_text("content")
    (open_path / "link").symlink_to(closed / "file")

    assert _read_as_stranger(namespace, namespace.reachable(open_path / "link")) == "content"


def test_what_is_not_there_or_not_readable_is_refused(namespace: MountNamespace, open_path: Path) -> None:
    """The error names the command that mends it."""
    (open_path / "secret").touch(0o600)

    with pytest.raises(SandboxNotStarted, match="cannot show"):
        namespace.reachable(open_path / "nothing")
    with pytest.raises(SandboxNotStarted, match=r"could not read .*secret: chmod o\+rX it"):
        namespace.reachable(open_path / "secret")


def test_the_mount_root_must_be_reachable_itself(open_path: Path) -> None:
    """And it must be a folder that the agent can write."""
    closed = open_path / "closed"
    (closed / "source").mkdir(parents=True)
    closed.chmod(0o700)

    with pytest.raises(SandboxUnavailable, match="every uid must be able to walk to"):
        MountNamespace(closed / "mounts").reachable(closed / "source")

    (open_path / "file").touch()
    with pytest.raises(SandboxUnavailable, match="needs a writable folder"):
        MountNamespace(open_path / "file" / "mounts").reachable(closed / "source")


def test_where_the_hosts_mounts_are_shared_ours_still_do_not_reach_them(open_path: Path) -> None:
    """Shared is what systemd makes of them; here, in a mount namespace of the test's own."""
    closed = open_path / "closed"
    (closed / "source").mkdir(parents=True)
    closed.chmod(0o700)
    code = f"""from pathlib import Path
from pilotlight_runtime.sandbox.mounts import MountNamespace
before = Path("/proc/self/mountinfo").read_text()
assert " shared:" in before
namespace = MountNamespace()
namespace.reachable(Path({str(closed / "source")!r}))
assert Path("/proc/self/mountinfo").read_text() == before"""
    command = ["unshare", "--mount", "--propagation", "shared", sys.executable, "-c", code]

    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, b"")


def test_closing_ends_the_namespace(open_path: Path) -> None:
    """A second close does nothing."""
    closed = open_path / "closed"
    (closed / "source").mkdir(parents=True)
    closed.chmod(0o700)
    namespace = MountNamespace()
    namespace.reachable(closed / "source")
    entrance = namespace.entrance
    assert entrance
    assert os.stat(entrance).st_ino != os.stat("/proc/self/ns/mnt").st_ino  # noqa: PTH116

    namespace.close()
    namespace.close()

    assert namespace.entrance is None
    assert not entrance.exists()
