"""The compose files agree with each other, and give each process no more than it needs."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from pilotlight_core.host import config
from pilotlight_gateway.settings import DutyProcessSettings, ServeSettings
from tests.infra.compose_hosts import VARIABLE, compose_file, interpolated
from tests.infra.manifests import ROOT

FILES = ("compose.yaml", "compose.two-hosts.yaml")
NEEDS = ("cap_add", "security_opt", "cgroup", "stop_grace_period")


def _read(name: str, more: dict[str, str]) -> dict[str, Any]:
    """A file as Compose reads it, with something for each variable that has to be there."""
    text = compose_file(name).read_text()
    needed = {name: "x" for name, operator, _ in VARIABLE.findall(text) if operator in ("", ":?", "?")}
    found: dict[str, Any] = interpolated(yaml.safe_load(text), needed | more)
    return found


def services(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(compose_file(name).read_text())["services"]
    return found


@pytest.mark.parametrize("agent", ["agent-cpu", "agent-gpu"])
def test_agents_need_the_same_of_either_host(agent: str) -> None:
    one, two = (services(name)[agent] for name in FILES)
    assert {need: one[need] for need in NEEDS} == {need: two[need] for need in NEEDS}
    assert one.get("deploy") == two.get("deploy")
    assert "/sys/fs/cgroup:/sys/fs/cgroup:rw" in two["volumes"]


@pytest.mark.parametrize("name", FILES)
def test_the_control_plane_is_denied_what_it_does_not_need(name: str) -> None:
    for service in ("gateway", "controller", "duties"):
        each = services(name)[service]
        assert (each["read_only"], each["cap_drop"], each["security_opt"]) == (
            True,
            ["ALL"],
            ["no-new-privileges:true"],
        )


@pytest.mark.parametrize(
    ("name", "variables", "file", "mount"),
    [
        ("compose.yaml", {"FOLDER": "/srv/osv", "FILE": "/var/lib/osv/all.zip"}, "all.zip", "/srv/osv:/var/lib/osv:ro"),
        (
            "compose.two-hosts.yaml", {"FILE": "/etc/pilotlight/osv/all.zip"}, "osv/all.zip",
            "/etc/pilotlight:/etc/pilotlight:ro",
        ),
    ],
)  # fmt: skip
def test_known_vulnerabilities_are_read_from_a_folder_of_the_operators(
    name: str, variables: dict[str, str], file: str, mount: str
) -> None:
    """By gateway and duties alone, and not at all until it is named."""
    given = {f"PILOTLIGHT_OSV_{key}": value for key, value in variables.items()}
    plain, told = (_read(name, more) for more in ({}, given))
    named = {each for each, one in told["services"].items() if "PILOTLIGHT_OSV_FILE" in one.get("environment", {})}

    assert named == {"gateway", "duties"}
    for service in named:
        settings = ServeSettings if service == "gateway" else DutyProcessSettings
        for whole, expected in ((plain, ""), (told, variables["FILE"])):
            environment = {key: str(value) for key, value in whole["services"][service]["environment"].items()}
            assert config.parse(settings, "", [], environment).osv_file == expected
        assert mount in told["services"][service]["volumes"]
        assert expected == f"{mount.split(':')[1]}/{file}"
    if "FOLDER" in variables:
        assert "osv:/var/lib/osv:ro" in plain["services"]["gateway"]["volumes"]
        assert "osv" in plain["volumes"]


def test_the_dashboard_has_nothing_of_the_platform() -> None:
    """But an address of its gateway: anybody may reach it."""
    found = services("compose.yaml")["dashboard"]
    assert found["volumes"] == []
    assert set(found["environment"]) == {
        "PILOTLIGHT_GATEWAYS", "PILOTLIGHT_DASHBOARD_PORT", "PILOTLIGHT_METRICS_PORT",
    }  # fmt: skip
    assert (found["read_only"], found["cap_drop"]) == (True, ["ALL"])


@pytest.mark.parametrize("name", FILES)
def test_each_process_has_the_password_of_its_user_alone(name: str) -> None:
    """Of the bus's, in the address; the bus has all, and who joins none."""
    for service, each in services(name).items():
        named = {
            found for found in re.findall(r"PILOTLIGHT_BUS_\w+", str(each)) if not found.endswith(("_CERT", "_KEY"))
        }
        if service == "nats":
            configuration = "nats.conf" if name == "compose.yaml" else "kustomize/base/bus/users.conf"
            text = (ROOT / "infra" / configuration).read_text()
            assert named == set(re.findall(r"PILOTLIGHT_BUS_\w+", text))
        elif service.startswith("agent") or service == "join":
            assert named == ({"PILOTLIGHT_BUS_AGENT_LOCAL"} if name == "compose.yaml" else set())
        else:
            of_platform = service not in ("prometheus", "alertmanager", "grafana", "dashboard")
            assert named == ({f"PILOTLIGHT_BUS_{service.upper()}"} if of_platform else set())


def test_a_node_needs_no_variable_that_it_does_not_have() -> None:
    """Compose reads the whole file on each host: what is a password may be unset on a node, and nothing else."""
    page = (ROOT / "docs" / "compose.md").read_text().partition("cat > node-1/.env")[2].partition("END\n```")[0]
    node = dict(re.findall(r"^(\w+)=(.+)$", page, re.MULTILINE))
    text = compose_file("compose.two-hosts.yaml").read_text()
    unset = {name for name, _, _ in VARIABLE.findall(text)} - node.keys()

    assert interpolated(yaml.safe_load(text), node)["name"] == "pilotlight"
    assert all(name.startswith(("PILOTLIGHT_BUS_", "PILOTLIGHT_OSV_", "NODE_", "AWS_")) for name in unset)


def test_the_bus_of_two_hosts_is_as_that_of_one() -> None:
    """But for who reaches it, TLS, and nodes that join: line by line."""
    one, two = (
        {line.strip() for line in path.read_text().partition("authorization")[0].splitlines() if line[:1] != "#"}
        for path in (ROOT / "infra" / "nats.conf", ROOT / "infra" / "nats-two-hosts.conf")
    )
    assert one - two == {'listen: "127.0.0.1:4222"'}
    assert two - one == {'listen: "0.0.0.0:4222"', "include ./nats-tls.conf", "include ./users.conf"}
