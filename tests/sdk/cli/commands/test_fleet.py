"""`pilotlight fleet`: what is drawn, with and without colours."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from pilotlight.cli.commands.fleet import line, tenant_colour
from pilotlight.cli.main import app
from tests.sdk.cli.shell import on_terminal
from tests.sdk.scripted import ScriptedPlatform, answer


def used(label: str, width: int, tenant: str, container: str) -> dict[str, Any]:
    return {"use": "used", "width": width, "label": label, "tenant": tenant, "container": container}


def part(use: str, width: int) -> dict[str, Any]:
    return {"use": use, "width": width, "label": "", "tenant": "", "container": ""}


def device(id_: str, *segments: dict[str, Any], **more: Any) -> dict[str, Any]:
    made = {
        "node": "n1", "region": "local", "zone": "a", "id": id_, "type": "H100-80GB", "mig": False, "spot": False,
        "draining": False, "withdrawn": "", "software": False,
        "width": sum(each["width"] for each in segments), "segments": segments,
    }  # fmt: skip
    return made | more


CUT = device("GPU-1", used("3g", 4, "acme", "ctr_a"), part("free", 3), part("stranded", 1), mig=True)
ILL = device("GPU-2", part("free", 64), withdrawn="Xid 79", spot=True, software=True)
SLOT = device("cpu-0", used("cpu", 64, "zoo", "ctr_b"), type="CPU")
TOLD = {
    "devices": [CUT, ILL, SLOT],
    "totals": {
        "CPU": {"devices": 1.0, "used": 1.0, "free": 0.0, "stranded": 0.0, "out": 0.0},
        "H100-80GB": {"devices": 2.0, "used": 0.5, "free": 0.375, "stranded": 0.125, "out": 1.0},
    },
}


@pytest.fixture
def fleet(platform: ScriptedPlatform) -> ScriptedPlatform:
    platform.will("GET", "/v1/fleet", answer(TOLD))
    return platform


def test_a_gpu_is_a_row_and_a_nodes_slots_are_a_line(fleet: ScriptedPlatform) -> None:
    """A row draws slices to scale, with free and stranded room, tenants and trouble."""
    done = CliRunner().invoke(app, ["fleet"])

    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines() == [
        "n1  GPU-1  H100-80GB  [3g##############............xxxx] MIG  ctr_a (acme)",
        "n1  GPU-2  H100-80GB  [................................] in software spot takes nothing new: Xid 79",
        "n1  1 CPU slots, 1 used",
        "",
        "H100-80GB: 2 GPUs, of which 0.5 are used, 0.375 free, 0.125 stranded, 1 out of service",
        "# used  . free  x stranded: free, but no instance fits",
    ]


def test_slots_have_rows_of_their_own_if_asked_for(fleet: ScriptedPlatform) -> None:
    """With the option each slot is a row, and --json prints the platform's answer."""
    shown = CliRunner().invoke(app, ["fleet", "--slots"]).stdout

    assert "n1  cpu-0  CPU        [cpu#############################]  ctr_b (zoo)" in shown
    assert json.loads(CliRunner().invoke(app, ["fleet", "--json"]).stdout) == json.loads(json.dumps(TOLD))
    assert fleet.requests[0].path == "/v1/fleet"


def test_tenants_have_colours_of_their_own(fleet: ScriptedPlatform) -> None:
    """A tenant's colour is the same in each drawing, and a legend names it."""
    shown = on_terminal("fleet")

    assert "tenants:" in shown
    assert "acme" in shown
    drawn = line(CUT, [2, 5, 9], colours=True)
    assert tenant_colour("acme") in [str(span.style) for span in drawn.spans]
    assert "red" in [str(span.style) for span in line(ILL, [2, 5, 9], colours=True).spans]


def test_an_empty_fleet_is_a_sentence(platform: ScriptedPlatform) -> None:
    """The sentence goes to stderr."""
    platform.will("GET", "/v1/fleet", answer({"devices": [], "totals": {}}))

    done = CliRunner().invoke(app, ["fleet"])

    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "No node has reported.\n")


def test_what_is_promised_of_each_host_is_a_line(platform: ScriptedPlatform) -> None:
    """Memory and cores, of what there is for containers."""
    host = {"node": "n1", "cores": 8.0, "cores_promised": 2.1, "memory": 24 << 30, "memory_promised": 20 << 30}
    platform.will("GET", "/v1/fleet", answer({**TOLD, "hosts": [host]}))

    done = CliRunner().invoke(app, ["fleet"])

    assert "n1  20.0 of 24.0 GiB of host memory promised, 2.1 of 8 cores\n" in done.stdout
