"""Policies let through what the processes need, as their settings say it, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv4Network, ip_address, ip_network
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pilotlight_core.host.outbound.address_policy import GLOBAL_IPV6, REFUSED
from tests.infra.manifests import (
    COMPONENT,
    NODES,
    PLANE,
    Manifest,
    monitored,
    of_kind,
    overlay,
    workloads,
)

PLACE = "kubernetes.io/metadata.name"
LEDGER = "192.0.2.10"
"""Where the base says that the database is."""
ANYBODY = "93.184.215.14"
CLIENTS = ("api", "grpc", "pages")
"""Ports at which anybody may ask; who it is a key says."""
INSIDE = ("10.0.0.1", "172.16.3.4", "192.168.1.1", "169.254.169.254", "100.100.100.200", "fd00::1", "fe80::1")
Objects = tuple[Manifest, ...]


class Pod(NamedTuple):
    namespace: str
    labels: tuple[tuple[str, str], ...]


class Flow(NamedTuple):
    speaker: str
    hearer: str
    port: int


def pod(namespace: str, **labels: str) -> Pod:
    return Pod(namespace, tuple(labels.items()))


def chosen(selector: Manifest, labels: dict[str, str]) -> bool:
    """Whether a selector of labels chooses who has these."""
    assert selector.keys() <= {"matchLabels", "matchExpressions"}
    for expression in selector.get("matchExpressions", ()):
        assert expression["operator"] == "In"
        if labels.get(expression["key"]) not in expression["values"]:
            return False
    return bool(selector.get("matchLabels", {}).items() <= labels.items())


def matches(peer: Manifest, other: Pod | str, own: str) -> bool:
    """Whether a policy's peer is that pod, or has that address; `own` is the policy's namespace."""
    if isinstance(other, str):
        block = peer.get("ipBlock")
        address = ip_address(other)
        return (
            block is not None
            and address in ip_network(block["cidr"])
            and not any(address in ip_network(each) for each in block.get("except", ()))
        )
    if "ipBlock" in peer:
        return False
    where = peer.get("namespaceSelector")
    is_there = other.namespace == own if where is None else chosen(where, {PLACE: other.namespace})
    return is_there and chosen(peer.get("podSelector", {}), dict(other.labels))


def lets_through(objects: Objects, subject: Pod, other: Pod | str, port: int, way: str) -> bool:
    """Whether policies let the subject speak ("Egress") to the other, or hear it ("Ingress"), over TCP."""
    concerned = [
        policy
        for policy in of_kind(objects, "NetworkPolicy")
        if policy["metadata"]["namespace"] == subject.namespace
        and way in policy["spec"]["policyTypes"]
        and chosen(policy["spec"]["podSelector"], dict(subject.labels))
    ]
    key, peers = ("egress", "to") if way == "Egress" else ("ingress", "from")
    return not concerned or any(
        any(each["port"] <= port <= each.get("endPort", each["port"]) for each in rule["ports"] if is_tcp(each))
        and (peers not in rule or any(matches(peer, other, subject.namespace) for peer in rule[peers]))
        for policy in concerned
        for rule in policy["spec"].get(key, ())
    )


def is_tcp(port: Manifest) -> bool:
    return bool(port.get("protocol", "TCP") == "TCP")


def pods(objects: Objects) -> dict[str, Pod]:
    return {name: Pod(each.namespace, tuple(each.labels.items())) for name, each in workloads(objects).items()}


def flows(objects: Objects) -> Iterator[Flow]:
    """All that gets through between components, at any port that one of them has."""
    known = pods(objects)
    ports = {port for each in workloads(objects).values() for port in each.ports.values()}
    for (speaker, own), (hearer, other), port in product(known.items(), known.items(), sorted(ports)):
        if lets_through(objects, own, other, port, "Egress") and lets_through(objects, other, own, port, "Ingress"):
            yield Flow(speaker, hearer, port)


def needed(objects: Objects) -> set[Flow]:
    """What the components are told to connect to, by the names of services in their variables, flags and scripts."""
    services = {each["metadata"]["name"]: each["spec"]["selector"][COMPONENT] for each in of_kind(objects, "Service")}
    found = set()
    for speaker, workload in workloads(objects).items():
        for text, service, port in re.findall(
            rf"((?:[\w-]+\.)?(pilotlight-[\w-]+)\.{PLANE}\.svc):(\d+)", str(workload.pod)
        ):
            assert text
            found.add(Flow(speaker, services[service], int(port)))
    # A gateway tells agents and others of its kind where its port for bodies and links is, and nodes where the bus is.
    told = {flow for flow in found if flow.speaker == flow.hearer == "gateway"}
    bus = {Flow("agent", flow.hearer, flow.port) for flow in found if (flow.speaker, flow.hearer) == ("gateway", "bus")}
    return found | {Flow("agent", flow.hearer, flow.port) for flow in told} | bus


def test_components_reach_what_they_are_told_of_and_nothing_else() -> None:
    """Every pair, at every port that anybody has."""
    objects = overlay("gpu")
    assert set(flows(objects)) == needed(objects)
    assert needed(objects) == {
        *(Flow(who, "bus", 4222) for who in ("gateway", "duties", "controller", "agent")),
        Flow("bus", "bus", 6222),
        Flow("agent", "gateway", 8470),
        Flow("agent", "gateway", 8475),
        Flow("gateway", "gateway", 8475),
        Flow("dashboard", "gateway", 8470),
    }


def test_the_monitor_hears_metrics_alone(tmp_path: Path) -> None:
    """From its namespace; with its component nothing else changes."""
    objects = monitored(tmp_path)
    assert set(flows(objects)) == set(flows(overlay("gpu")))
    prometheus, other = pod("monitoring", app="prometheus"), pod("default", app="prometheus")
    for component, each in pods(objects).items():
        for name, port in workloads(objects)[component].ports.items():
            heard = name in ("metrics", *CLIENTS)
            assert lets_through(objects, each, prometheus, port, "Ingress") is heard, (component, name)
            assert lets_through(objects, each, other, port, "Ingress") is (name in CLIENTS), (component, name)


def test_clients_reach_the_api_alone() -> None:
    objects = overlay("gpu")
    for component, each in pods(objects).items():
        for name, port in workloads(objects)[component].ports.items():
            assert lets_through(objects, each, ANYBODY, port, "Ingress") is (name in CLIENTS), (component, name)


def test_other_pods_of_a_namespace_are_shut_in() -> None:
    """A pod that no policy knows resolves names, and no more."""
    objects = overlay("gpu")
    for place, port in product((PLANE, NODES), (80, 443, 4222, 8470)):
        stranger, others = pod(place, app="other"), list[Pod | str](pods(objects).values())
        for other in (*others, ANYBODY):
            assert not lets_through(objects, stranger, other, port, "Egress")
            assert not lets_through(objects, stranger, other, port, "Ingress")


@pytest.mark.parametrize(
    ("component", "ports"),
    [
        ("bus", ()),
        ("controller", ()),
        ("dashboard", (443,)),
        ("gateway", (443,)),
        ("duties", (443, 8443)),
        ("agent", (443, 8443)),
    ],
)
def test_the_public_network_is_for_who_needs_it(component: str, ports: tuple[int, ...]) -> None:
    """The blob store and issuers; receivers of webhooks and what functions reach have ports of their own."""
    objects = overlay("gpu")
    own = pods(objects)[component]
    found = {
        port: lets_through(objects, own, address, port, "Egress")
        for port in (443, 8443)
        for address in (ANYBODY, "2606:2800:21f:cb07:6820:80da:af6b:8b2c")
    }
    assert found == {port: port in ports for port in (443, 8443)}


@pytest.mark.parametrize("component", ["bus", "gateway", "duties", "controller", "agent", "dashboard"])
def test_no_address_inside_is_reached(component: str) -> None:
    """Neither the cloud's metadata, nor what else is private, whatever a tenant's webhook or function names."""
    objects = overlay("gpu")
    for address, port in product(INSIDE, (80, 443, 5432)):
        assert not lets_through(objects, pods(objects)[component], address, port, "Egress"), address


def test_what_is_left_out_is_what_the_platform_refuses() -> None:
    """All of it that lies within, so that the second fence is as high as the first."""
    blocks: list[dict[str, Any]] = [
        peer["ipBlock"]
        for policy in of_kind(overlay("gpu"), "NetworkPolicy")
        for rule in policy["spec"].get("egress", ())
        for peer in rule["to"]
        if "ipBlock" in peer and peer["ipBlock"]["cidr"] != f"{LEDGER}/32"
    ]
    older = {str(network) for network, _ in REFUSED if isinstance(network, IPv4Network)}
    newer = {str(each) for each, _ in REFUSED if not isinstance(each, IPv4Network) and each.subnet_of(GLOBAL_IPV6)}

    assert len(blocks) == 8
    for block in blocks:
        assert block["cidr"] in ("0.0.0.0/0", str(GLOBAL_IPV6))
        assert set(block["except"]) == (older if block["cidr"] == "0.0.0.0/0" else newer)


def test_the_ledger_is_for_gateways_and_duties() -> None:
    objects = overlay("gpu")
    reach = {name for name, each in pods(objects).items() if lets_through(objects, each, LEDGER, 5432, "Egress")}
    assert reach == {"gateway", "duties"}


def test_everybody_resolves_names() -> None:
    """At the cluster's own servers, over UDP and TCP."""
    objects = overlay("gpu")
    dns = pod("kube-system", **{"k8s-app": "kube-dns"})
    assert all(lets_through(objects, each, dns, 53, "Egress") for each in pods(objects).values())
    rules = [rule for each in of_kind(objects, "NetworkPolicy") for rule in each["spec"].get("egress", ())]
    over = [{port.get("protocol") for port in rule["ports"]} for rule in rules if rule["ports"][0]["port"] == 53]
    assert over == [{"UDP", "TCP"}] * 2
