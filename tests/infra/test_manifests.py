"""The manifests are what Kubernetes takes, hang together, and give each process no more than it needs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.infra.manifests import (
    COMPONENT,
    NODES,
    OVERLAYS,
    PLANE,
    ROOT,
    STEP,
    Manifest,
    config_maps,
    monitored,
    of_kind,
    overlay,
    texts,
    workloads,
)

INFRA = ROOT / "infra"
VERSIONS = ("1.31", "1.37")
"""Of Kubernetes, the oldest and the newest that docs/kubernetes.md names."""
SERVERS = ("bus", "gateway", "duties", "controller", "dashboard")
pytestmark = pytest.mark.parametrize("objects", [overlay(name) for name in OVERLAYS], ids=OVERLAYS)
Objects = tuple[Manifest, ...]


@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_knows_each_field(objects: Objects, version: str) -> None:
    """Strictly: a field that a schema does not have is none."""
    for each in objects:
        kubernetes_validate.validate(each, version, strict=True)


def test_each_object_is_there_once_and_has_its_place(objects: Objects) -> None:
    """What is in no namespace is of the whole cluster by its kind."""
    names = [(each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"]) for each in objects]

    assert len(names) == len(set(names))
    assert {kind for kind, namespace, _ in names if namespace is None} == {"Namespace", "PriorityClass"}
    assert {namespace for _, namespace, _ in names} == {None, PLANE, NODES}


def test_selectors_choose_the_pods_that_are_meant(objects: Objects) -> None:
    """Of workloads, services, budgets and policies; none chooses nobody."""
    pods = {(each.namespace, component): each.labels for component, each in workloads(objects).items()}
    for each in objects:
        selector = each.get("spec", {}).get("selector") or {}
        wanted = selector if each["kind"] == "Service" else selector.get("matchLabels", {})
        if wanted:
            place = (each["metadata"]["namespace"], wanted[COMPONENT])
            assert wanted.items() <= pods[place].items(), each["metadata"]


def test_ports_of_services_are_those_of_containers(objects: Objects) -> None:
    found = workloads(objects)
    for service in of_kind(objects, "Service"):
        ports = found[service["spec"]["selector"][COMPONENT]].ports
        for port in service["spec"]["ports"]:
            target = port.get("targetPort", port["port"])
            assert target in (ports if isinstance(target, str) else ports.values()), service["metadata"]
            assert ports[port["name"]] == port["port"]


def test_probes_ask_ports_that_exist(objects: Objects) -> None:
    """Three for each process; what they ask is held against the product elsewhere."""
    for workload in workloads(objects).values():
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            assert workload.container[probe]["httpGet"]["port"] in workload.ports, (workload.component, probe)


def test_images_are_those_that_the_dockerfile_makes(objects: Objects) -> None:
    """Of this release, by the names that its head and compose use; the bus is compose's."""
    said = set(re.findall(r"-t (pilotlight/\w+)", (INFRA / "Dockerfile").read_text()))
    release = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    bus = yaml.safe_load((INFRA / "compose.yaml").read_text())["services"]["nats"]["image"]
    images = {container["image"] for each in workloads(objects).values() for container in each.containers}

    assert images == {f"{name}:{release}" for name in said} | {bus}


def test_every_mount_has_its_volume(objects: Objects) -> None:
    """And each volume is mounted: what nobody reads, nobody is given."""
    for each in workloads(objects).values():
        claims = {claim["metadata"]["name"] for claim in each.manifest["spec"].get("volumeClaimTemplates", ())}
        mounted = {mount["name"] for container in each.containers for mount in container["volumeMounts"]}
        assert mounted == {volume["name"] for volume in each.pod["volumes"]} | claims, each.component


def test_secrets_are_named_and_never_said(objects: Objects) -> None:
    """No manifest is a secret, and no variable has one as text: a password in an address is a reference."""
    assert of_kind(objects, "Secret") == []
    for each in workloads(objects).values():
        for text in texts(each.pod):
            assert re.search(r"://[^/@]*:(?!\$\([A-Z_]+\)@)[^/@]*@", text) is None, text


def test_no_process_has_the_key_of_another(objects: Objects) -> None:
    """What each component refers to; the servers of the bus check the passwords of all."""
    named = {component: secrets_of(each.pod) for component, each in workloads(objects).items()}

    assert named["bus"].pop("pilotlight-bus") == {
        f"PILOTLIGHT_BUS_{who}" for who in ("OPERATOR", "GATEWAY", "CONTROLLER", "DUTIES", "ROUTE")
    }
    assert named["bus"].keys() == {"pilotlight-bus-tls"}
    blobs = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
    both: dict[str, set[str]] = {"pilotlight-ledger": {"url"}, "pilotlight-blobs": blobs}
    files: set[str] = set()
    assert named["gateway"] == both | {
        "pilotlight-bus": {"PILOTLIGHT_BUS_GATEWAY"},
        "pilotlight-gateway-tls": files,
        "pilotlight-manifest-key": files,
        "pilotlight-node-issuer": files,
        "pilotlight-secrets-key": files,
    }
    own = {"pilotlight-bus": {"PILOTLIGHT_BUS_DUTIES"}, "pilotlight-collector": {"headers"}}
    assert named["duties"] == both | own
    assert named["controller"] == {"pilotlight-bus": {"PILOTLIGHT_BUS_CONTROLLER"}}
    assert named["agent"] == {"pilotlight-join": files}
    assert named["dashboard"] == {"pilotlight-dashboard-tls": files}


def secrets_of(pod: Manifest) -> dict[str, set[str]]:
    """The secrets that a pod is given, and which keys as variables."""
    found: dict[str, set[str]] = {}
    for container in (*pod.get("initContainers", ()), *pod["containers"]):
        for variable in container.get("env", ()):
            if (reference := variable.get("valueFrom", {}).get("secretKeyRef")) is not None:
                found.setdefault(reference["name"], set()).add(reference["key"])
    for volume in pod["volumes"]:
        if (secret := volume.get("secret")) is not None:
            found.setdefault(secret["secretName"], set())
    return found


@pytest.mark.parametrize("component", SERVERS)
def test_the_control_plane_needs_nothing_of_its_nodes(objects: Objects, component: str) -> None:
    """What the namespace enforces ("restricted"), and a root file system that is read-only."""
    pod = workloads(objects)[component].pod
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["runAsUser"] == 10001
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not any(volume.keys() & {"hostPath"} for volume in pod["volumes"])
    for container in pod["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
        }  # fmt: skip
    assert f"--uid {pod['securityContext']['runAsUser']} " in (INFRA / "Dockerfile").read_text()


def test_agents_have_what_they_need_of_their_node_and_no_more(objects: Objects) -> None:
    """Privileged is the agent alone, not what joins; the host's network, processes and other folders are not its."""
    agent = workloads(objects)["agent"]
    paths = {volume["hostPath"]["path"] for volume in agent.pod["volumes"] if "hostPath" in volume}

    assert paths == {"/var/lib/pilotlight", "/run/pilotlight", "/sys/fs/cgroup"}
    assert not agent.pod.keys() & {"hostNetwork", "hostPID", "hostIPC"}
    assert agent.container["securityContext"] == {"privileged": True, "runAsUser": 0}
    (join,) = agent.pod["initContainers"]
    assert join["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert not join["securityContext"]["allowPrivilegeEscalation"]
    namespaces = {each["metadata"]["name"]: each["metadata"]["labels"] for each in of_kind(objects, "Namespace")}
    enforced = {name: labels["pod-security.kubernetes.io/enforce"] for name, labels in namespaces.items()}
    assert enforced == {PLANE: "restricted", NODES: "privileged"}


def test_nothing_of_the_cluster_is_in_the_environment(objects: Objects) -> None:
    """A service called `pilotlight-x` would be PILOTLIGHT_X_PORT there; and no pod may ask the cluster's API."""
    for each in workloads(objects).values():
        assert each.pod["enableServiceLinks"] is False
        assert each.pod["automountServiceAccountToken"] is False
    assert all(each["automountServiceAccountToken"] is False for each in of_kind(objects, "ServiceAccount"))
    assert not any(each["kind"].endswith(("Role", "RoleBinding")) for each in objects)


def test_every_container_asks_for_what_it_needs(objects: Objects) -> None:
    """And has a bound of memory; an agent has none, since its containers are in its control group."""
    for each in workloads(objects).values():
        for container in each.containers:
            assert container["resources"]["requests"].keys() == {"cpu", "memory"}
            assert ("limits" in container["resources"]) is (container["name"] != "agent")


def test_one_of_each_stays_while_nodes_are_emptied(objects: Objects) -> None:
    """Each of the control plane has a budget, of which a majority of the bus is left; an agent goes with its node."""
    budgets = {
        each["spec"]["selector"]["matchLabels"][COMPONENT]: each for each in of_kind(objects, "PodDisruptionBudget")
    }
    found = workloads(objects)

    assert budgets.keys() == set(SERVERS)
    for component, budget in budgets.items():
        assert budget["spec"]["maxUnavailable"] == 1
        assert found[component].manifest["spec"]["replicas"] >= (3 if component == "bus" else 2)


def test_an_upgrade_is_applied_in_the_order_of_its_page(objects: Objects) -> None:
    """The steps that workloads are labelled with are those of docs/upgrading.md."""
    rows = re.findall(r"^\| (\d) \| (\S+)", (ROOT / "docs" / "upgrading.md").read_text(), re.MULTILINE)
    told = {
        "nats-server,": "bus",
        "duties": "duties",
        "agents,": "agent",
        "controllers,": "controller",
        "gateways": "gateway",
        "dashboards": "dashboard",
    }
    by_page = {told[word]: step for step, word in rows if word in told}
    labelled = {component: each.manifest["metadata"]["labels"][STEP] for component, each in workloads(objects).items()}

    assert labelled == by_page
    assert sum(STEP in each["metadata"].get("labels", {}) for each in objects) == len(labelled)
    assert "pilotlight.dev/step" not in str([each.labels for each in workloads(objects).values()])


def test_agents_are_replaced_node_by_node(objects: Objects) -> None:
    strategy = workloads(objects)["agent"].manifest["spec"]["updateStrategy"]
    assert strategy == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}


def test_what_is_configured_is_what_is_referred_to(objects: Objects) -> None:
    """Generated maps have a hash in their name: a change is a new map, which a step takes when it is applied."""
    given = {name for place in (PLANE, NODES) for name in config_maps(objects, place)}
    referred = {text for each in workloads(objects).values() for text in texts(each.pod) if text in given}
    assert given == referred
    assert all(re.search(r"-[a-z0-9]{10}$", name) for name in given)


def test_only_the_gpu_overlay_asks_for_gpus(objects: Objects) -> None:
    """By the container runtime, and by no request: the agent owns all GPUs of its node."""
    pod = workloads(objects)["agent"].pod
    names = {variable["name"] for variable in pod["containers"][0]["env"]}
    is_gpu = objects == overlay("gpu")

    assert (pod.get("runtimeClassName") == "nvidia") is is_gpu
    assert (pod["nodeSelector"].get("nvidia.com/gpu.present") == "true") is is_gpu
    assert ({"NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_MIG_CONFIG_DEVICES"} <= names) is is_gpu
    assert pod["nodeSelector"]["pilotlight.dev/agent"] == "true"
    assert "nvidia.com/gpu" not in str(pod["containers"][0]["resources"])


def test_monitors_find_every_port_of_metrics(objects: Objects, tmp_path: Path) -> None:
    """The component's ServiceMonitor chooses a service of each process, whose port of that name is its metrics'."""
    (monitor,) = of_kind(monitored(tmp_path), "ServiceMonitor")
    spec: dict[str, Any] = monitor["spec"]
    (expression,) = spec["selector"]["matchExpressions"]
    chosen = [
        service
        for service in of_kind(objects, "Service")
        if spec["selector"]["matchLabels"].items() <= service["metadata"].get("labels", {}).items()
        and service["metadata"]["labels"][COMPONENT] in expression["values"]
        and service["metadata"]["namespace"] in spec["namespaceSelector"]["matchNames"]
    ]

    assert [endpoint["port"] for endpoint in spec["endpoints"]] == ["metrics"]
    assert sorted(each["metadata"]["labels"][COMPONENT] for each in chosen) == [
        "agent",
        "controller",
        "dashboard",
        "duties",
        "gateway",
    ]
    assert all("metrics" in {port["name"] for port in each["spec"]["ports"]} for each in chosen)
