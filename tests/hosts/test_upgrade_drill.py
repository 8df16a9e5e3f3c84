"""The processes of an earlier release are replaced by those of this one, in the order of docs/upgrading.md and back,
under load: no call fails but for what runs in a container that is killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.hosts.release_fleet import GATEWAYS, NODES, ReleaseFleet, release_fleet, source_of
from tests.releases.old_tree import old_python
from tests.releases.stored_release import RELEASES
from tests.system.support.steady_load import SteadyLoad
from tests.waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.drill, pytest.mark.system, pytest.mark.timeout(900)]
BEFORE = Path(__file__).parents[1] / "releases" / "before.txt"
"""A commit whose processes run beside those of the present one."""


def commit_before() -> str:
    return BEFORE.read_text().split()[0]


class Former(NamedTuple):
    """An earlier release."""

    python: Path
    is_kept: bool
    """Whether its source is kept, and not a commit's."""


@pytest.fixture(params=[*RELEASES, None], ids=lambda release: release.folder.name if release else "commit")
def former(request: pytest.FixtureRequest, tmp_path: Path) -> Former:
    """With an interpreter of its own."""
    tree, release = tmp_path / "tree", request.param
    if release is None:
        source_of(commit_before(), tree)
    else:
        release.unpack("source", tree)
    python = old_python(tree, tmp_path / "venv")
    imported = [str(python), "-c", "import pilotlight_gateway; print(pilotlight_gateway.__file__)"]
    found = subprocess.run(imported, check=True, capture_output=True, text=True, cwd=tmp_path, env={})
    assert found.stdout.startswith(str(tree)), found.stdout
    return Former(python, release is not None)


def replace(fleet: ReleaseFleet, load: SteadyLoad, name: str, python: Path | str) -> None:
    """Replace one process; gateways are taken out of the load balancer before."""
    number = GATEWAYS.index(name) if name in GATEWAYS else -1
    with load.without(number):
        fleet.end(name)
        load.wait_for_more()
        fleet.start(name, python)
    load.wait_for_more()


def test_each_process_is_replaced_and_no_call_fails(former: Former, tmp_path: Path) -> None:
    """All the way to this release, and all the way back."""
    (tmp_path / "fleet").mkdir()
    with release_fleet(tmp_path / "fleet") as fleet:
        fleet.start_all(former.python)
        fleet.deploy()
        before = fleet.copy_ledger()
        with fleet.load() as load:
            load.wait_for_more()
            for name in ("duties", *NODES, "controller", *GATEWAYS):
                replace(fleet, load, name, sys.executable)
            fleet.ledger_url = before
            for name in (*GATEWAYS, "controller", *NODES, "duties"):
                replace(fleet, load, name, former.python)
        load.check()
        if not former.is_kept:  # 0.1 puts into quarantine what newer agents tell of starts
            wait_until(lambda: {*load.ids} <= fleet.billed_calls(before), "the copy of the ledger has all calls", 60.0)
