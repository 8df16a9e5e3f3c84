"""Keys of manifests and of secrets, with two gateways that each have their own: what counts, and how it is replaced."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pilotlight_core.host.signing import PUBLIC, Signer
from pilotlight_gateway.secrets.key_files import KEY_FILE
from tests.hosts.host_world import GATEWAYS, STRAY, HostWorld
from tests.system.support.sample_apps import APPS
from tests.waiting import wait_until

pytestmark = [pytest.mark.system, pytest.mark.timeout(240)]
SECRET_APP = """
import os
from pilotlight import App
app = App("{app}")
@app.gpu_function(secrets={{"TOKEN": "hosts-token"}}, scaledown_window=0.0, forecast=False)
def length() -> int:
    return len(os.environ["TOKEN"])
"""


def test_an_agent_without_a_key_that_counts_does_not_join(world: HostWorld) -> None:
    """It ends at once, and says which key is missing and how to give it."""
    stray = world.fleet.network.add(STRAY)
    Signer.load_or_create(stray.folder / "state" / "keys")
    with pytest.raises(AssertionError, match="Give this agent the operator's public key: --trusted-keys"):
        world.fleet.start_agent(STRAY)


def test_a_secret_reaches_nodes_although_one_gateway_lacks_its_key(world: HostWorld, tmp_path: Path) -> None:
    """Agents ask on until the other answers; the one without sets none, until the file is copied to it."""
    one, other = world.clients
    value = {"value": "a value that nobody sees"}
    one.http.put("/v1/secrets/hosts-token", json=value).raise_for_status()
    refused = other.http.put("/v1/secrets/hosts-token", json=value)
    assert (refused.status_code, refused.json()["code"]) == (503, "misconfigured"), refused.text

    for number in range(4):  # each load asks anew, and either gateway may hear it
        (folder := tmp_path / f"held{number}").mkdir()
        (folder / "app.py").write_text(SECRET_APP.format(app=f"held{number}"))
        other.deploy(folder / "app.py")
        assert one.output(f"held{number}.length") == len(value["value"])

    keys = [world.public_key(gateway).parent for gateway in GATEWAYS]
    shutil.copy(keys[0] / KEY_FILE, keys[1] / KEY_FILE)
    again = other.http.put("/v1/secrets/hosts-token", json=value)
    assert again.json()["number"] == 2, again.text


@pytest.mark.long
def test_a_gateways_key_is_replaced_while_agents_run(world: HostWorld) -> None:
    """Both count while both are in the set; then what nobody has deployed since starts no more, and all else does."""
    one, other = world.clients
    other.deploy(APPS / "crash" / "app.py")
    other.deploy(APPS / "sold" / "app.py")
    folder = world.public_key("gateway-2").parent
    old, new = world.operator / "old.pub", folder / PUBLIC
    shutil.copy(new, old)
    world.host("gateway-2").kill("gateway")
    shutil.rmtree(folder)
    Signer.load_or_create(folder)

    def restart_with(*keys: Path) -> None:
        world.host("gateway-1").kill("gateway")
        world.start_gateway("gateway-1", "--key-set", world.vouch(*keys))

    restart_with(world.public_key("gateway-1"), old, new)
    world.start_gateway("gateway-2")
    assert one.output("crash.again", name="before", seconds=0.0) == "before"
    assert "unchanged" in other.deploy(APPS / "crash" / "app.py")  # and signed anew
    assert one.output("sold.waits", seconds=0.0) is None
    wait_until(lambda: not one.containers("sold") and not one.containers("crash"), "no container is left")

    restart_with(world.public_key("gateway-1"), new)
    refused = one.call("sold.waits", seconds=0.0)
    assert (refused.status_code, refused.json()["code"]) == (503, "misconfigured"), refused.text
    assert other.output("crash.again", name="after", seconds=0.0) == "after"
