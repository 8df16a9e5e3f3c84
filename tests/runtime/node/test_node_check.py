"""What a node says of itself, run for real and judged from made-up findings."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pilotlight_runtime.devices.device_port import DeviceAccess
from pilotlight_runtime.node import node_check
from pilotlight_runtime.node.guarantee_check import GuaranteeCheck
from pilotlight_runtime.node.node_check import LIMITS, check, judge, main, table
from pilotlight_runtime.sandbox.exec_chain import ENV
from pilotlight_runtime.sandbox.launchers import launcher
from pilotlight_runtime.sandbox.sandbox_spec import Mount

NAMES = [
    *("no network", "read-only root", "other processes invisible", "devices of others invisible"),
    *("clean environment", "own host uid", "no privileges to gain", "system calls filtered"),
    *("memory limit", "process limit", "cpu limit", "capped /tmp"),
]
GOOD: dict[str, Any] = {
    "status": {"Seccomp": "2", "NoNewPrivs": "1", "CapEff": "0" * 16, "CapPrm": "0" * 16, "CapBnd": "0" * 16},
    "environment": ["HOME", "PATH", "PL_APP", "PL_FD"],
    "interfaces": ["lo"],
    "connect": "ECONNREFUSED",
    "vsock": "EAFNOSUPPORT",
    "writes": {"/": "EROFS", "/app": "EROFS"},
    "tmp_bytes": LIMITS.tmp_bytes,
    "processes": [1, 2],
    "devices": ["null", "zero"],
    "unshare": "EPERM",
    "children": 15,
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def test_this_node_is_well_and_its_table_readable(capsys: pytest.CaptureFixture[str]) -> None:
    """Every default guarantee has an aligned line, and the exit code is 0."""
    assert main([]) == 0

    lines = capsys.readouterr().out.splitlines()
    names = [line[6:].split("  ")[0] for line in lines]
    assert names[: len(NAMES)] == NAMES
    assert "gpus" in names[len(NAMES) :]
    assert {line[:4] for line in lines} == {"ok  "}
    assert len({line.index(line[6:].lstrip()) for line in lines}) == 1


def test_a_plain_process_misses_nearly_everything(capsys: pytest.CaptureFixture[str]) -> None:
    """Each gap has a consequence, and the exit code is 1."""
    assert main(["--json", "--sandbox", "process"]) == 1

    checks = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in checks if one["ok"] and one["name"] in NAMES] == ["clean environment"]
    assert all(one["detail"] and (one["ok"] or one["consequence"]) for one in checks)


CUDA_LIBRARY = """
#include <stdlib.h>
#include <stdio.h>
int cuInit(unsigned flags) { FILE *name = fopen("/proc/self/comm", "w"); return name && !fclose(name) ? 0 : 304; }
int cuDeviceGetCount(int *count) { *count = getenv("SEEN") ? atoi(getenv("SEEN")) : 0; return 0; }
"""
"""A driver's library that names a thread, as NVIDIA's does."""


@pytest.fixture
def cuda_folder(tmp_path: Path) -> Path:
    """A folder with that library."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    tmp_path.chmod(0o755)
    (tmp_path / "cuda.c").write_text(CUDA_LIBRARY)
    library = str(tmp_path / "libcuda.so.1")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, str(tmp_path / "cuda.c")], check=True)
    return tmp_path


async def test_a_gpu_is_opened_in_a_sandbox(cuda_folder: Path) -> None:
    """As a container on it would: one device, its nodes and its libraries; else the line says what CUDA answered."""
    folder = (Mount(source=cuda_folder, target=cuda_folder),)

    async def told(seen: str, *nodes: Path, read_only: tuple[Mount, ...] = folder) -> GuaranteeCheck:
        env = {"LD_LIBRARY_PATH": str(cuda_folder), "SEEN": seen}
        chosen = launcher("bubblewrap")
        try:
            checks = await check(chosen, gpu=DeviceAccess(nodes=nodes, read_only=read_only, env=env))
        finally:
            chosen.close()
        return next(one for one in checks if one.name == "gpu in a sandbox")

    null = Path("/dev/null")
    well, shut, many = await told("1", null), await told("1"), await told("2", null)
    assert (well.ok, well.detail) == (True, "opened, alone")
    assert (shut.ok, shut.detail) == (False, "CUDA's error 304; 0 devices seen")
    assert (many.ok, many.detail) == (False, "CUDA's error 0; 2 devices seen")
    none = await told("1", null, read_only=())
    assert not none.ok
    assert "libcuda.so.1: cannot open shared object file" in none.detail
    assert none.consequence in table([none])


def test_a_probe_leaves_nothing_behind_on_the_host() -> None:
    """It also runs in the sandbox that is none, as root."""
    left = [folder for folder in ("/", "/etc", "/usr", "/dev", "/tmp") if list(Path(folder).glob(".pilotlight-probe*"))]

    assert left == []


def test_without_bubblewrap_it_names_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The operator reads how to install it."""
    monkeypatch.setitem(ENV, "PATH", str(tmp_path))

    assert main([]) == 1
    assert "apt-get install -y bubblewrap" in capsys.readouterr().out


@pytest.fixture
def broken_python(tmp_path: Path) -> Path:
    """A virtual environment whose interpreter is there but cannot run."""
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text("#!/nowhere\n")
    python.chmod(0o755)
    tmp_path.chmod(0o755)
    (tmp_path / "pyvenv.cfg").touch()
    return python


async def test_a_sandbox_that_cannot_start_is_a_failed_check(broken_python: Path) -> None:
    """With the words of whoever failed, and beside the checks of others."""
    made = launcher("bubblewrap")
    gpu = GuaranteeCheck(name="driver", ok=True, detail="600", consequence="")

    first, second = await check(made, python=broken_python, extra=[gpu])

    assert (first.name, first.ok, second) == ("sandbox starts", False, gpu)
    assert "No such file" in first.detail
    made.close()


def test_all_is_well() -> None:
    """The findings of a full sandbox pass every check."""
    checks = judge(GOOD, frozenset({300_000}), "memory", cpu=True)

    assert [one.name for one in checks] == NAMES
    assert all(one.ok for one in checks)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"interfaces": ["eth0", "lo"]}, "no network"),
        ({"connect": ""}, "no network"),
        ({"vsock": ""}, "no network"),
        ({"writes": {"/": "", "/app": "EROFS"}}, "read-only root"),
        ({"tmp_bytes": LIMITS.tmp_bytes + 1}, "capped /tmp"),
        ({"processes": [1, 2, 4711]}, "other processes invisible"),
        ({"devices": ["null", "nvidia0"]}, "devices of others invisible"),
        ({"environment": ["AWS_SECRET_ACCESS_KEY"]}, "clean environment"),
        ({"unshare": ""}, "system calls filtered"),
        ({"status": GOOD["status"] | {"Seccomp": "0"}}, "system calls filtered"),
        ({"status": GOOD["status"] | {"CapBnd": "000001ffffffffff"}}, "no privileges to gain"),
        ({"status": GOOD["status"] | {"NoNewPrivs": "0"}}, "no privileges to gain"),
        ({"children": 64}, "process limit"),
    ],
)
def test_each_gap_fails_its_own_check(change: dict[str, Any], name: str) -> None:
    """One wrong finding fails one check, and no other."""
    checks = judge(GOOD | change, frozenset({300_000}), "memory", cpu=True)

    assert [one.name for one in checks if not one.ok] == [name]


@pytest.mark.parametrize("uids", [frozenset[int](), frozenset({0}), frozenset({300_000, 0})])
def test_root_on_the_host_is_a_gap(uids: frozenset[int]) -> None:
    """So are a memory hog that was not killed, and no cgroup for processors."""
    checks = judge(GOOD, uids, "exited", cpu=False)

    assert [one.name for one in checks if not one.ok] == ["own host uid", "memory limit", "cpu limit"]


def test_a_table_tells_the_consequence_where_there_is_one() -> None:
    """Only below a failed check."""
    checks = [
        GuaranteeCheck(name="short", ok=True, detail="fine", consequence="never seen"),
        GuaranteeCheck(name="a longer one", ok=False, detail="open", consequence="trouble"),
    ]

    assert table(checks).splitlines() == [
        "ok    short         fine",
        "FAIL  a longer one  open",
        "                    -> trouble",
    ]


def test_a_node_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe beyond its time is a failed check."""
    monkeypatch.setattr(node_check, "PROBE_S", 0.001)

    assert main([]) == 1
