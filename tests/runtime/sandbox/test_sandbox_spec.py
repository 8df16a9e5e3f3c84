"""The options of bubblewrap, as a function of the specification."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from pilotlight_runtime.sandbox.sandbox_spec import (
    FILES,
    Inherited,
    Mount,
    ResourceLimits,
    SandboxSpec,
    SystemEntry,
    bubblewrap_options,
    environment,
)

FDS = Inherited(socket=7, seccomp=8, status=9, files=tuple(range(20, 20 + len(FILES))))
SYSTEM = (SystemEntry(path=Path("/usr"), link_to=None), SystemEntry(path=Path("/lib"), link_to="usr/lib"))
SPEC = SandboxSpec(
    name="c-1",
    python=Path("/env/bin/python"),
    argv=("-I", "-m", "guest"),
    code_dir=Path("/state/c-1/code"),
    read_only=(
        Mount(source=Path("/store/deep"), target=Path("/env/lib/deep")),
        Mount(source=Path("/store/env"), target=Path("/env")),
    ),
    device_nodes=(Path("/dev/nvidia0"),),
    env={"GREETING": "hello"},
    limits=ResourceLimits(
        memory_bytes=1, pids=1, cpu_millis=1, tmp_bytes=4096, shm_bytes=8192, open_files=1, file_bytes=1
    ),
    uid=None,
)


def _options(spec: SandboxSpec = SPEC, **more: Any) -> str:
    return f" {' '.join(bubblewrap_options(spec, fds=FDS, system=SYSTEM, **more))} "


def test_every_namespace_is_left_and_every_privilege_dropped() -> None:
    """The filter and the report are passed by descriptor."""
    options = _options()

    for name in ("user", "pid", "net", "ipc", "uts", "cgroup-try"):
        assert f" --unshare-{name} " in options
    for option in ("--cap-drop ALL", "--disable-userns", "--die-with-parent", "--new-session", "--clearenv"):
        assert f" {option} " in options
    assert " --seccomp 8 " in options
    assert " --json-status-fd 9 " in options


def test_a_mount_comes_after_what_would_hide_it() -> None:
    """/tmp before what may lie in it, outer targets before inner ones, and all before the root is closed."""
    options = _options()
    order = [
        "--dev /dev",
        "--tmpfs /dev/shm",
        "--tmpfs /tmp",
        "--ro-bind /store/env /env",
        "--ro-bind /store/deep /env/lib/deep",
        "--dev-bind /dev/nvidia0 /dev/nvidia0",
        "--ro-bind /state/c-1/code /app",
        "--remount-ro /dev",
        "--remount-ro / ",
    ]

    assert sorted(order, key=options.index) == order
    assert options.endswith(" --remount-ro / ")


def test_who_has_a_device_may_name_its_threads() -> None:
    """NVIDIA's driver must; what /proc shows of the kernel stays closed, and all of it for whoever has none."""
    assert " --remount-ro /proc " not in _options()
    assert " --proc /proc --ro-bind-try /proc/acpi /proc/acpi " in _options()
    assert " --ro-bind-try /proc/sys /proc/sys " in _options()

    bare = _options(dataclasses.replace(SPEC, device_nodes=()))
    assert " --remount-ro /proc " in bare
    assert " --ro-bind-try /proc" not in bare


def test_writable_places_are_capped() -> None:
    """/tmp, /dev/shm and the folder of secrets, which nobody else may read; no other place is writable."""
    assert " --size 4096 --tmpfs /tmp " in _options()
    assert " --size 8192 --tmpfs /dev/shm " in _options()
    assert f" --perms 0700 --size {2**20} --tmpfs /run/secrets " in _options()
    assert _options().count(" --tmpfs ") == 3
    assert " --bind " not in _options()


def test_the_operating_system_is_shown_as_it_is() -> None:
    """Folders as folders, links as links."""
    assert " --ro-bind /usr /usr --symlink usr/lib /lib " in _options()


def test_sources_are_named_as_the_containers_uid_can_reach_them_and_targets_stay() -> None:
    """Only bwrap sees the other name."""
    options = _options(source_of=lambda path: Path("/reach") / path.relative_to("/"))

    assert " --ro-bind /reach/store/env /env " in options
    assert " --ro-bind /reach/state/c-1/code /app " in options


def test_the_environment_cannot_hide_the_socket() -> None:
    """The platform's variables win over the tenant's."""
    assert environment({"PL_FD": "1", "HOME": "/x"}, socket=7, app=Path("/app"))["PL_FD"] == "7"
    assert environment({"PL_FD": "1", "HOME": "/x"}, socket=7, app=Path("/app"))["HOME"] == "/x"
    assert " --setenv GREETING hello " in _options()


def test_models_have_a_folder_of_their_own() -> None:
    """Read-only at /models, and named by a variable; a sandbox without one has neither."""
    options = _options(dataclasses.replace(SPEC, models_dir=Path("/state/c-1/models")))

    assert " --ro-bind /state/c-1/models /models " in options
    assert " --setenv PILOTLIGHT_MODELS /models " in options
    assert options.index(" /models ") < options.index(" --remount-ro / ")
    assert "/models" not in _options()
    assert "PILOTLIGHT_MODELS" not in _options()


def test_the_socket_of_a_proxy_has_a_folder_of_its_own() -> None:
    """Read-only; the sandbox has no other network with it than without."""
    options = _options(dataclasses.replace(SPEC, network_dir=Path("/state/c-1/network")))

    assert " --ro-bind /state/c-1/network /run/network " in options
    assert " --unshare-net " in options
    assert options.index(" /run/network ") < options.index(" --remount-ro / ")
    assert "/run/network" not in _options()


@pytest.mark.parametrize("env", [{"A": "x\0--bind\0/\0/host"}, {"A\0--bind\0/\0/host": "x"}])
def test_the_environment_cannot_add_options(env: dict[str, str]) -> None:
    """bwrap reads its options separated by NUL."""
    with pytest.raises(ValueError, match="NUL"):
        _options(dataclasses.replace(SPEC, env=env))


@pytest.mark.parametrize("name", ["", "A=B"])
def test_a_variable_needs_a_name(name: str) -> None:
    """One without an equals sign."""
    with pytest.raises(ValueError, match="no environment variable can be called"):
        dataclasses.replace(SPEC, env={name: "x"})


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden", "x" * 65, "a b", "ü"])
def test_a_name_that_is_no_folder_name_is_refused(name: str) -> None:
    """The cgroup's folder is called so."""
    with pytest.raises(ValueError, match="name is 1-64"):
        dataclasses.replace(SPEC, name=name)


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(ResourceLimits)])
def test_a_limit_of_nothing_is_refused(field: str) -> None:
    """It would be read as no limit."""
    with pytest.raises(ValueError, match=f"needs {field} >= 1"):
        dataclasses.replace(SPEC.limits, **{field: 0})


def test_root_and_relative_paths_are_refused() -> None:
    """When the spec is made, before anything is started."""
    with pytest.raises(ValueError, match="must not be root's"):
        dataclasses.replace(SPEC, uid=0)
    with pytest.raises(ValueError, match="absolute"):
        dataclasses.replace(SPEC, code_dir=Path("code"))
    with pytest.raises(ValueError, match="absolute"):
        dataclasses.replace(SPEC, models_dir=Path("models"))
    with pytest.raises(ValueError, match="absolute"):
        dataclasses.replace(SPEC, network_dir=Path("network"))
    with pytest.raises(ValueError, match="absolute"):
        Mount(source=Path("/a"), target=Path("b"))
