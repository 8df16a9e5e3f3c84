"""Which GPUs a node looks for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from pilotlight_core.host.config import AgentSettings
from pilotlight_core.model.devices import MigMode
from pilotlight_core.model.errors import BadInput
from pilotlight_runtime.node.node_gpus import DRIVER, open_gpus


def settings(**more: Any) -> AgentSettings:
    return AgentSettings(node="n1", **more)


async def test_without_a_driver_there_are_none(tmp_path: Path) -> None:
    """Which is said."""
    with capture_logs() as logs:
        async with open_gpus(settings(), tmp_path / "gpus.json", [tmp_path / "version"], tmp_path) as gpus:
            assert gpus == ()
    assert [(log["log_level"], log["event"]) for log in logs] == [("info", "this node offers no GPUs")]


async def test_with_a_driver_it_is_asked(tmp_path: Path) -> None:
    """Whatever it answers: here there is none, or it has the machine's."""
    (tmp_path / "version").touch()
    async with open_gpus(settings(), tmp_path / "gpus.json", [tmp_path / "version"]) as (gpus,):
        assert bool(gpus.inventory()) == bool(gpus.reports({}))


async def test_with_a_device_its_driver_is_asked_for(tmp_path: Path) -> None:
    """Which may be loaded by the first who asks; another maker's device is none."""
    for name, vendor in (("0000:00:01.0", "0x8086"), ("0000:00:02.0", "0x10de")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "vendor").write_text(f"{vendor}\n")
        async with open_gpus(settings(), tmp_path / "gpus.json", (), tmp_path) as gpus:
            assert len(gpus) == (vendor == "0x10de")


async def test_gpus_in_software_need_no_driver(tmp_path: Path) -> None:
    """They are those that the settings ask for; a wrong spec is refused."""
    async with open_gpus(settings(fake_gpus="2xT4"), tmp_path / "gpus.json", ()) as (gpus,):
        assert len(gpus.reports({})) == 2
    with pytest.raises(BadInput, match="fake"):
        async with open_gpus(settings(fake_gpus="2xNonsense"), tmp_path / "gpus.json", ()):
            pass


async def test_gpus_can_be_kept_as_they_are(tmp_path: Path) -> None:
    """Then none is reported as one that could be cut."""
    modes = []
    for number, cut in enumerate((True, False)):
        chosen = settings(fake_gpus="1xH100", cut_gpus=cut)
        async with open_gpus(chosen, tmp_path / f"{number}.json", ()) as (gpus,):
            modes += [report.mig for report in gpus.reports({})]
    assert modes == [MigMode.OFF, MigMode.NONE]


async def test_a_setting_of_gpus_is_checked_where_there_are_none(tmp_path: Path) -> None:
    """A service that is not there bounds nothing."""
    with pytest.raises(BadInput, match="mps"):
        async with open_gpus(settings(mps_pipes=str(tmp_path / "none")), tmp_path / "gpus.json", ()):
            pass


def test_a_loaded_driver_shows_itself() -> None:
    """In folders of the kernel, not of libraries: these are there without a driver too."""
    assert all(str(path).startswith(("/proc/", "/dev/")) for path in DRIVER)
