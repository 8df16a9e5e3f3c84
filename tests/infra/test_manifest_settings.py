"""What manifests tell processes is what the product takes: flags, variables, ports, paths, files and times."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
import yaml

from pilotlight_core.bus import bus_users
from pilotlight_core.host import config, signing
from pilotlight_core.host.metrics.metrics_listener import answer
from pilotlight_gateway.dashboard.dashboard_settings import DashboardSettings
from pilotlight_gateway.http.routes import OPERATIONS
from pilotlight_gateway.secrets.key_files import KEY_FILE, FilePlatformKey
from pilotlight_gateway.secrets.key_opening import open_platform_key
from pilotlight_gateway.settings import DutyProcessSettings, ServeSettings
from pilotlight_runtime.node import agent
from tests.builders.certificates import an_authority
from tests.infra.manifests import (
    NODES,
    OVERLAYS,
    PLANE,
    ROOT,
    SECRET,
    Manifest,
    Workload,
    arguments,
    config_maps,
    environment,
    overlay,
    workloads,
)

PROCESSES: dict[str, type[Any]] = {
    "gateway": ServeSettings,
    "duties": DutyProcessSettings,
    "controller": config.ControllerSettings,
    "agent": config.AgentSettings,
    "dashboard": DashboardSettings,
}
pytestmark = pytest.mark.parametrize("objects", [overlay(name) for name in OVERLAYS], ids=OVERLAYS)
each_process = pytest.mark.parametrize("component", PROCESSES)
Objects = tuple[Manifest, ...]


def settings_of(objects: Objects, component: str) -> Any:
    """What the product makes of a manifest."""
    workload = workloads(objects)[component]
    given = config_maps(objects, workload.namespace)
    container = workload.container
    return config.parse(PROCESSES[component], "", arguments(container, given), environment(container, given))


@each_process
def test_the_product_takes_what_it_is_told(objects: Objects, component: str) -> None:
    """All flags exist, and all values are within bounds; else this raises BadSetting and names the flag."""
    assert isinstance(settings_of(objects, component), PROCESSES[component])


@each_process
def test_a_flag_that_the_product_lacks_is_found(objects: Objects, component: str) -> None:
    """As it is when one is renamed, and the manifest is not."""
    workload = workloads(objects)[component]
    told = [*arguments(workload.container, config_maps(objects, workload.namespace)), "--renamed=1"]
    with pytest.raises(config.BadSetting, match="--renamed"):
        config.parse(PROCESSES[component], "", told, {})


@each_process
def test_every_variable_is_a_setting(objects: Objects, component: str) -> None:
    """Or a password that another variable has in it; of an unknown one the product would say nothing."""
    container = workloads(objects)[component].container
    known = {f"{config.PREFIX}{field.name.upper()}" for field in msgspec.structs.fields(PROCESSES[component])}
    told = {variable["name"] for variable in container["env"] if variable["name"].startswith(config.PREFIX)}
    within = {name for name in told if f"$({name})" in str(container["env"])}

    assert told - within <= known
    assert within - known <= {user.variable for user in bus_users.everybody(())}


@each_process
def test_every_process_can_be_started(objects: Objects, component: str) -> None:
    """Its module exists, and does something when it is run."""
    python, flag, module = workloads(objects)[component].container["command"]
    assert (python, flag) == ("python", "-m")
    found = importlib.util.find_spec(module)
    assert found is not None
    assert not found.submodule_search_locations or importlib.util.find_spec(f"{module}.__main__") is not None


@each_process
def test_ports_are_those_that_the_process_listens_on(objects: Objects, component: str) -> None:
    """On all addresses; no two processes have one port for different things."""
    settings, ports = settings_of(objects, component), workloads(objects)[component].ports

    assert (settings.metrics_host, settings.metrics_port) == ("0.0.0.0", ports["metrics"])  # noqa: S104 - a pod's own
    if component == "gateway":
        assert (settings.host, settings.port) == ("0.0.0.0", ports["api"])  # noqa: S104
        assert (settings.internal_host, settings.internal_port) == ("0.0.0.0", ports["bodies"])  # noqa: S104
        assert (settings.grpc_host, settings.grpc_port) == ("0.0.0.0", 0)  # noqa: S104 - nobody has asked for it
        assert ports.keys() == {"metrics", "api", "grpc", "bodies"}
    elif component == "dashboard":
        assert (settings.dashboard_host, settings.dashboard_port) == ("0.0.0.0", ports["pages"])  # noqa: S104
        assert ports.keys() == {"metrics", "pages"}
    else:
        assert ports.keys() == {"metrics"}


def test_grpc_is_served_where_an_operator_says_so(objects: Objects) -> None:
    """By the map that the gateway reads, at the port of its container and of the service."""
    gateway = workloads(objects)["gateway"]
    told = {"grpc-port": str(gateway.ports["grpc"])}
    given = {
        name: {key: told.get(key, value) for key, value in values.items()}
        for name, values in config_maps(objects, gateway.namespace).items()
    }
    container = gateway.container
    settings = config.parse(ServeSettings, "", arguments(container, given), environment(container, given))
    (service,) = [
        each for each in objects if each["kind"] == "Service" and each["metadata"]["name"] == "pilotlight-gateway"
    ]
    served = {port["name"]: port for port in service["spec"]["ports"]}

    assert settings.grpc_port == gateway.ports["grpc"] == served["grpc"]["port"]
    assert served["grpc"]["targetPort"] == "grpc"
    assert settings.tls_cert


@pytest.mark.parametrize("component", ["gateway", "duties"])
def test_known_vulnerabilities_are_read_where_an_operator_mounts_them(objects: Objects, component: str) -> None:
    """By the file that the map names, in a folder that is mounted and empty until then; without it there are none."""
    workload = workloads(objects)[component]
    assert settings_of(objects, component).osv_file == ""
    patched = yaml.safe_load((ROOT / "infra/kustomize/components/vulnerabilities/kustomization.yaml").read_text())
    (said,) = patched["configMapGenerator"][0]["literals"]
    key, _, value = said.partition("=")
    given = {
        name: {each: value if each == key else text for each, text in values.items()}
        for name, values in config_maps(objects, workload.namespace).items()
    }
    container = workload.container
    settings = config.parse(PROCESSES[component], "", arguments(container, given), environment(container, given))
    mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}

    assert settings.osv_file == value
    assert mounts[str(Path(value).parent)] == {"name": "osv", "mountPath": "/var/lib/osv", "readOnly": True}


@each_process
def test_probes_are_answered(objects: Objects, component: str) -> None:
    """With 200 by what listens there: operations of the API, and the port of metrics."""
    workload = workloads(objects)[component]
    operations = {operation.path for operation in OPERATIONS if operation.method == "GET"}
    for name in ("startupProbe", "readinessProbe", "livenessProbe"):
        asked = workload.container[name]["httpGet"]
        if asked["port"] == "api":
            assert asked["path"] in operations
            assert asked["scheme"] == "HTTPS"
            assert settings_of(objects, component).tls_cert
        elif asked["port"] == "pages":
            assert (asked["path"], asked["scheme"]) == ("/healthz", "HTTPS")
            assert settings_of(objects, component).dashboard_tls_cert
        else:
            assert asked.get("scheme", "HTTP") == "HTTP"
            assert answer(f"GET {asked['path']} HTTP/1.1\r\n\r\n".encode(), lambda _: (b"", "")).startswith(
                b"HTTP/1.1 200 "
            )
    assert workload.container["readinessProbe"]["httpGet"]["path"] == (
        "/readyz" if component == "gateway" else "/healthz"
    )


@each_process
def test_every_file_that_is_named_is_mounted(objects: Objects, component: str) -> None:
    """Each path of a flag or a variable lies in a volume; what is configuration there is read-only."""
    workload = workloads(objects)[component]
    given = config_maps(objects, workload.namespace)
    told = [*arguments(workload.container, given), *environment(workload.container, given).values()]
    paths = {Path(found[1]) for text in told if (found := re.fullmatch(r"(?:--[a-z-]+=|file://)?(/\S+)", text))}
    mounts = {Path(mount["mountPath"]): mount for mount in workload.container["volumeMounts"]}

    assert paths
    for path in paths:
        (near, *_) = [folder for folder in (path, *path.parents) if folder in mounts]
        assert mounts[near].get("readOnly", False) is near.is_relative_to("/etc"), path
    unused = {near for near in mounts if near.is_relative_to("/etc") and not any(p.is_relative_to(near) for p in paths)}
    assert unused == set()


@each_process
def test_everybody_knows_the_bus_by_its_own_user(objects: Objects, component: str) -> None:
    """Three servers, over TLS, by the names of the StatefulSet's pods; an agent is told when it joins."""
    found = workloads(objects)
    bus = [f"pilotlight-bus-{number}.pilotlight-bus.pilotlight.svc" for number in range(3)]
    if component == "agent":
        told = settings_of(objects, "gateway").node_bus_url
        assert told.split(",") == [f"tls://{host}:4222" for host in bus]
        return
    if component == "dashboard":
        assert "nats" not in str(found[component].pod), "it has no user of the bus"
        return
    settings = settings_of(objects, component)
    assert settings.nats_url.split(",") == [f"tls://{component}:{SECRET}@{host}:4222" for host in bus]
    assert component in {user.name for user in bus_users.everybody(())}
    stateful = found["bus"].manifest
    assert (stateful["metadata"]["name"], stateful["spec"]["serviceName"]) == ("pilotlight-bus", "pilotlight-bus")
    assert stateful["spec"]["replicas"] == len(bus) == settings_of(objects, "gateway").replicas
    assert found["bus"].ports["clients"] == 4222
    assert settings.ca_file


def test_gateways_are_reached_for_bodies_by_a_name_of_their_own(objects: Objects) -> None:
    """By the one that its service gives a pod, since agents verify it; and so do nodes that join."""
    gateway = workloads(objects)["gateway"]
    settings, service = settings_of(objects, "gateway"), gateway.manifest["spec"]["serviceName"]

    assert settings.internal_url == f"https://pilotlight-0.{service}.{PLANE}.svc:{gateway.ports['bodies']}"
    assert settings.internal_tls_cert == settings.tls_cert
    assert not settings.internal_plain
    urls = re.findall(r"https://\S+", str(workloads(objects)["agent"].pod["initContainers"]))
    assert urls == [f"https://pilotlight-gateway.{PLANE}.svc:{gateway.ports['api']}"]


def test_the_key_of_manifests_is_where_a_gateway_looks_for_it(objects: Objects) -> None:
    """All gateways have one, so that no set of keys is needed."""
    gateway, settings = workloads(objects)["gateway"], settings_of(objects, "gateway")
    mounts = {mount["mountPath"]: mount["name"] for mount in gateway.container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in gateway.pod["volumes"]}

    assert volumes[mounts[str(settings.keys_dir)]]["secret"]["secretName"] == "pilotlight-manifest-key"
    assert settings.keys_dir.name == "keys"


def test_gateways_have_one_key_of_secrets(objects: Objects, tmp_path: Path) -> None:
    """It is in a folder of its own, since that of other keys may not be written to; with KMS it need not be there."""
    gateway, settings = workloads(objects)["gateway"], settings_of(objects, "gateway")
    path = Path(urlsplit(settings.secrets_key).path)
    mounts = {mount["mountPath"]: mount for mount in gateway.container["volumeMounts"]}
    (volume,) = [each for each in gateway.pod["volumes"] if each["name"] == mounts[str(path.parent)]["name"]]

    assert volume["secret"] == {"secretName": "pilotlight-secrets-key", "optional": True, "defaultMode": 0o440}
    assert path.name == KEY_FILE
    assert mounts[str(path.parent)]["readOnly"]
    assert isinstance(open_platform_key(settings.secrets_key, tmp_path), FilePlatformKey)


def test_a_key_that_may_not_be_written_is_a_key(objects: Objects, tmp_path: Path) -> None:
    """Of a folder of links, as a secret's volume is, which nothing writes to."""
    made = signing.Signer.load_or_create(tmp_path / "made", create=True)
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    for name in (signing.PRIVATE, signing.PUBLIC):
        (mounted / name).symlink_to(tmp_path / "made" / name)
    before = sorted(mounted.iterdir())

    assert signing.Signer.load_or_create(mounted).key_id == made.key_id
    assert sorted(mounted.iterdir()) == before


def test_processes_are_given_the_time_that_they_take_to_end(objects: Objects) -> None:
    """Each has some to spare; the agent's is for its last usage and logs."""
    found, settings = workloads(objects), settings_of(objects, "gateway")
    drain_s = settings_of(objects, "agent").drain_seconds

    assert settings.notice_seconds >= 5
    assert settings.notice_seconds + settings.drain_seconds + 10 <= found["gateway"].ends_within_s
    assert found["agent"].ends_within_s >= drain_s + 10 * agent.END_S


def test_an_agent_is_who_its_file_says(objects: Objects) -> None:
    """Its name, place and bus are those of its credentials; what joins writes them where the agent reads them."""
    settings = settings_of(objects, "agent")
    told = {variable["name"] for variable in workloads(objects)["agent"].container["env"]}

    assert not told & {"PILOTLIGHT_NATS_URL", "PILOTLIGHT_NODE", "PILOTLIGHT_REGION", "PILOTLIGHT_ZONE"}
    assert f"file={settings.credentials}" in workloads(objects)["agent"].pod["initContainers"][0]["command"][-1]
    assert Path(settings.credentials).parent == settings.state_dir
    assert settings.blob_url == settings_of(objects, "gateway").blob_url == settings_of(objects, "duties").blob_url
    assert config_maps(objects, NODES)


def joining(agent: Workload, folder: Path) -> subprocess.CompletedProcess[str]:
    """What the container that joins does, with `folder` in place of the node's root, and nobody to answer it."""
    *shell, script = agent.pod["initContainers"][0]["command"]
    script = re.sub(r"(?<![\w.:/])/(var|etc)/", rf"{folder}/\1/", script).replace(
        "pilotlight-gateway.pilotlight.svc:8470", "127.0.0.1:9"
    )
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        [*shell, script], capture_output=True, text=True, check=False, timeout=60,
        env={"PATH": path, "NODE_NAME": "node-1.example.com"},
    )  # fmt: skip


def test_a_node_joins_by_the_token_of_its_name(objects: Objects, tmp_path: Path) -> None:
    """As far as the gateway, which is not there: the command takes all that it is told."""
    for part in ("var/lib/pilotlight", "etc/pilotlight/join", "etc/pilotlight/ca"):
        (tmp_path / part).mkdir(parents=True)
    (tmp_path / "etc/pilotlight/join/node-1-example-com").write_text("pl_join_token")
    (tmp_path / "etc/pilotlight/ca/ca.crt").write_text(an_authority(tmp_path / "ca").read_text())

    done = joining(workloads(objects)["agent"], tmp_path)

    assert done.stderr.startswith("error: There is no answer from https://127.0.0.1:9"), done
    assert done.returncode == 1


def test_a_node_that_has_joined_does_not_again(objects: Objects, tmp_path: Path) -> None:
    (tmp_path / "var/lib/pilotlight").mkdir(parents=True)
    (tmp_path / "var/lib/pilotlight/node.json").write_text("{}")
    done = joining(workloads(objects)["agent"], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
