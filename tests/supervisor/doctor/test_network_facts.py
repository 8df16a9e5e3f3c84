"""What is said of attempts to reach others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pilotlight_supervisor.doctor.finding import Finding, Health
from pilotlight_supervisor.doctor.network_facts import (
    WayOut,
    blob_folder_finding,
    reach_findings,
    read_way_out,
    way_out_findings,
)
from pilotlight_supervisor.doctor.network_probes import BusGreeting, Reach, ReachStep

AT = 1_800_000_000.0
DAY_S = 86_400.0
API = Reach(
    what="API", url="https://gw-1.example.com:8470", step=ReachStep.ANSWER, addresses=("10.0.0.5",), secure=True,
    expires_at=AT + 90 * DAY_S, names=("gw-1.example.com",), status=200,
)  # fmt: skip
GREETING = BusGreeting(version="2.15.1", jetstream=True, auth_required=True, tls_required=True, max_payload=4_194_304)
BUS = Reach(
    what="bus", url="tls://bus-1:4222", step=ReachStep.ANSWER, addresses=("10.0.0.4",), secure=True,
    expires_at=AT + 90 * DAY_S, names=("bus-1",), greeting=GREETING,
)  # fmt: skip


def not_well(reach: Reach, good: Sequence[int] = ()) -> list[Finding]:
    return [each for each in reach_findings(reach, AT, good=good) if each.health is not Health.OK]


def test_what_is_reached_has_nothing_to_do() -> None:
    """Its name, itself, and its certificate each have a line."""
    assert [each.name for each in reach_findings(API, AT, good=(200,))] == [
        "name gw-1.example.com", "API", "certificate of API",
    ]  # fmt: skip
    assert not_well(API, (200,)) == not_well(BUS) == []


@pytest.mark.parametrize(
    ("reach", "name", "health", "todo"),
    [
        (
            replace(API, step=ReachStep.NAME, addresses=(), problem="Name or service not known", expires_at=None),
            "name gw-1.example.com", "fail", "getent hosts gw-1.example.com",
        ),
        (
            replace(API, step=ReachStep.CONNECTION, problem="Connection refused", expires_at=None, status=0),
            "API", "fail", "nc -vz gw-1.example.com 8470",
        ),
        (
            replace(API, step=ReachStep.TLS, problem="its certificate is of another name", expires_at=None, status=0),
            "API", "fail", "openssl s_client -connect gw-1.example.com:8470",
        ),
        (replace(API, status=502), "API", "fail", "curl -sv https://gw-1.example.com:8470"),
        (replace(API, expires_at=AT + 3 * DAY_S), "certificate of API", "warn", "pilotlight ca issue"),
        (replace(BUS, greeting=BusGreeting(version="2.15.1", auth_required=True, max_payload=4_194_304)), "bus server",
         "fail", "infra/nats.conf"),
        (replace(BUS, greeting=BusGreeting(version="2.15.1", jetstream=True, max_payload=4_194_304)), "bus server",
         "fail", "bus_users"),
        (replace(BUS, greeting=BusGreeting(version="2.15.1", jetstream=True, auth_required=True, max_payload=10**6)),
         "bus version", "warn", "max_payload"),
        (replace(BUS, greeting=BusGreeting(version="2.9", jetstream=True, auth_required=True, max_payload=4_194_304)),
         "bus version", "warn", "2.15"),
        (replace(BUS, url="nats://bus-1:4222", secure=False, expires_at=None), "bus in clear", "warn", "nats-tls.conf"),
    ],
)  # fmt: skip
def test_each_fault_fails_its_own_line(reach: Reach, name: str, health: str, todo: str) -> None:
    """With the command that shows more, of this host and port."""
    (bad,) = not_well(reach, (200,) if reach.what == "API" else ())

    assert (bad.name, bad.health) == (name, health)
    assert todo in bad.todo


def test_what_is_to_be_done_can_be_copied_into_a_shell() -> None:
    """Whatever an address says."""
    url = "https://$(reboot);x:8470"
    bad = replace(API, url=url, addresses=(), problem="unknown", step=ReachStep.NAME)
    for step in ReachStep:
        for each in not_well(replace(bad, step=step, addresses=("10.0.0.5",))):
            assert "'$(reboot);x'" in each.todo or f"'{url}'" in each.todo
    assert {each.todo.partition("    #")[0] for each in not_well(bad)} == {"getent hosts '$(reboot);x'"}
    assert all("reboot" not in each.name for each in not_well(replace(bad, url="nats://[x")))


def test_a_version_that_is_none_ends_nothing() -> None:
    """It is a stranger's word."""
    greeting = BusGreeting(version="9" * 5000, jetstream=True, auth_required=True, tls_required=True, max_payload=1)
    (line,) = not_well(replace(BUS, greeting=greeting))

    assert line.found == f"{'9' * 40}; max_payload 1"


def test_a_bus_on_this_host_may_be_in_clear() -> None:
    """Nobody else reads loopback."""
    for host in ("127.0.0.1", "localhost", "[::1]"):
        assert not_well(replace(BUS, url=f"nats://{host}:4222", secure=False, expires_at=None)) == []


def test_a_way_out_is_names_and_a_route() -> None:
    """Either that is missing is named; it is a warning, since functions without network= need neither."""
    good = WayOut(name_servers=("10.0.0.2",), has_route=True)
    (line,) = way_out_findings(good)
    assert line.health is Health.OK
    for bad, why in (
        (replace(good, name_servers=()), "no name server"),
        (replace(good, has_route=False), "no default"),
    ):
        (line,) = way_out_findings(bad)
        assert line.health is Health.WARN
        assert why in line.found


def test_the_way_out_of_a_machine_is_read(tmp_path: Path) -> None:
    """A route of IPv6 alone is one, and what leads to loopback is none."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "proc/net").mkdir(parents=True)
    (tmp_path / "etc/resolv.conf").write_text("# one\nsearch x\nnameserver 10.0.0.2\n")
    nothing = f"{'0' * 32} 00 {'0' * 32} 00 {'0' * 32} ffffffff 00000001 00000000 00200200"
    (tmp_path / "proc/net/ipv6_route").write_text(f"{nothing} lo\n")

    assert read_way_out(tmp_path) == WayOut(name_servers=("10.0.0.2",), has_route=False)
    (tmp_path / "proc/net/ipv6_route").write_text(f"{nothing} eth0\n")
    assert read_way_out(tmp_path).has_route
    (tmp_path / "proc/net/ipv6_route").unlink()
    (tmp_path / "proc/net/route").write_text("Iface\tDestination\tGateway\neth0\t00000000\t0100000A\n")
    assert read_way_out(tmp_path).has_route


def test_a_folder_of_blobs_is_mounted(tmp_path: Path) -> None:
    """Or it says what else there is."""
    assert blob_folder_finding(tmp_path).health is Health.OK
    assert "--blob-url s3://" in blob_folder_finding(tmp_path / "none").todo
