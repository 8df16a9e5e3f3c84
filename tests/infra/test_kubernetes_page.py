"""docs/kubernetes.md: what it has operators run makes all that manifests refer to, and its tables are true."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from pilotlight_core.host import config
from pilotlight_gateway.nodes.node_issuer import load_issuer
from pilotlight_gateway.settings import ServeSettings
from tests.infra.manifests import (
    KUBECTL,
    KUSTOMIZE,
    NODES,
    PLANE,
    ROOT,
    STEP,
    Manifest,
    arguments,
    config_maps,
    environment,
    of_kind,
    overlay,
    rendered,
    texts,
    workloads,
)
from tests.infra.pages import block, run_script

NAME = "kubernetes.md"
PAGE = (ROOT / "docs" / NAME).read_text()
Keys = dict[tuple[str, str, str], set[str]]
"""Of each secret and map that is not generated, by kind, namespace and name."""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which somebody has done as the page says."""
    folder = tmp_path_factory.mktemp("operator")
    (folder / "printed").write_text(run_script(folder, block(NAME, "files.sh")))
    (folder / "ledger.env").write_text("url=postgresql://pilotlight:x@10.9.8.7/pilotlight\n")
    (folder / "blobs.env").write_text("AWS_ACCESS_KEY_ID=x\nAWS_SECRET_ACCESS_KEY=y\n")
    return folder


def made(prepared: Path) -> list[Manifest]:
    """The secrets and maps that the page makes."""
    (prepared / "tokens").mkdir(exist_ok=True)
    (prepared / "tokens" / "gpu-1").write_text("pl_join_x")
    joined = "\n".join(line for line in block(NAME, "join.sh").splitlines() if line.startswith("kubectl create"))
    said = run_script(prepared, block(NAME, "secrets.sh") + joined)
    return [each for each in yaml.safe_load_all(said) if each]


def referred(objects: tuple[Manifest, ...]) -> Keys:
    """What pods refer to, and the keys of it that they name, by variables or as files that flags and scripts name."""
    found: Keys = {}
    generated = {name for place in (PLANE, NODES) for name in config_maps(objects, place)}
    for each in workloads(objects).values():
        mounts = {m["name"]: m["mountPath"] for container in each.containers for m in container["volumeMounts"]}
        named = " ".join([*texts(each.pod), *generated_texts(objects)])
        for container in each.containers:
            for variable in container.get("env", ()):
                if (secret := variable.get("valueFrom", {}).get("secretKeyRef")) is not None:
                    found.setdefault(("Secret", each.namespace, secret["name"]), set()).add(secret["key"])
        for volume in each.pod["volumes"]:
            kind, name = volume_source(volume)
            if kind and name not in generated:
                files = re.findall(rf"{re.escape(mounts[volume['name']])}/([\w.]+)", named)
                found.setdefault((kind, each.namespace, name), set()).update(files)
    return found


def generated_texts(objects: tuple[Manifest, ...]) -> list[str]:
    return [text for each in of_kind(objects, "ConfigMap") for text in each["data"].values()]


def volume_source(volume: Manifest) -> tuple[str, str]:
    if "secret" in volume:
        return "Secret", volume["secret"]["secretName"]
    return ("ConfigMap", volume["configMap"]["name"]) if "configMap" in volume else ("", "")


def test_the_page_makes_all_that_manifests_refer_to(prepared: Path) -> None:
    """Secrets and maps of the right names, with the right keys, where they are read."""
    wanted = referred(overlay("gpu"))
    keys: Keys = {
        (each["kind"], each["metadata"]["namespace"], each["metadata"]["name"]): set(each["data"])
        for each in made(prepared)
    }
    # What a gateway finds by itself in its folder, and what is under a node's name.
    wanted["Secret", PLANE, "pilotlight-manifest-key"] = {"manifest_ed25519", "manifest_ed25519.pub"}
    wanted["Secret", NODES, "pilotlight-join"] = {"gpu-1"}
    # For who has a collector of traces that wants a key.
    assert wanted.pop(("Secret", PLANE, "pilotlight-collector")) == {"headers"}

    assert keys == wanted


def test_certificates_are_of_the_names_by_which_others_reach_them() -> None:
    """Of the bus by its routes and clients, of gateways by agents."""
    objects = overlay("gpu")
    hosts = {
        name: set(re.findall(r"--host '?([^\s']+)", rest))
        for name, rest in re.findall(r"pilotlight ca issue (\w+) ((?:.*\\\n)*.*)", block(NAME, "files.sh"))
    }
    told = {host for each in workloads(objects).values() for host in re.findall(r"([\w.-]+\.svc):", str(each.pod))}
    gateways = {f"*.{workloads(objects)['gateway'].manifest['spec']['serviceName']}.{PLANE}.svc"}

    assert hosts["bus"] == {host for host in told if host.startswith("pilotlight-bus-")}
    assert hosts["gateway"] == {"pilotlight.example.com", f"pilotlight-gateway.{PLANE}.svc", *gateways}


def test_an_operators_kustomization_is_taken(prepared: Path, tmp_path: Path) -> None:
    """Its values arrive at the processes, and its images take the place of the release's names."""
    text = block(NAME, "kustomization.yaml")
    keys = load_issuer(prepared / "issuer.json").public
    assert (prepared / "printed").read_text().startswith(f"--issuer {keys.issuer} --keeper {keys.keeper}")
    assert re.search(r"issuer=A\w+, keeper=U\w+", text)
    (tmp_path / "kustomization.yaml").write_text(
        text.replace("pilotlight/infra/kustomize", os.path.relpath(KUSTOMIZE, tmp_path.resolve()))
    )
    objects = rendered(tmp_path)
    found = workloads(objects)
    given = config_maps(objects, PLANE)
    gateway = found["gateway"].container
    settings = config.parse(ServeSettings, "", arguments(gateway, given), environment(gateway, given))
    bus = environment(found["bus"].container, given)

    assert (settings.region, settings.public_url) == ("eu", "https://pilotlight.example.com")
    assert (
        settings.blob_url == environment(found["agent"].container, config_maps(objects, NODES))["PILOTLIGHT_BLOB_URL"]
    )
    assert (bus["NODE_ISSUER"], bus["NODE_KEEPER"]) == ("ABXKR3", "UCNEYF")
    assert gateway["image"].startswith("registry.example.com/pilotlight/server:")
    assert len(of_kind(objects, "ServiceMonitor")) == 1
    (ledger,) = [each for each in of_kind(objects, "NetworkPolicy") if each["metadata"]["name"] == "ledger"]
    assert ledger["spec"]["egress"][0]["to"] == [{"ipBlock": {"cidr": "10.9.8.7/32"}}]


def test_an_upgrade_waits_for_each_step() -> None:
    """For the workload that has its label, in its namespace; and applies everything, each object once."""
    objects = overlay("gpu")
    rows = re.findall(r"^(\d) (\S+) (\w+)/(\S+)$", block(NAME, "upgrade.sh"), re.MULTILINE)
    labelled = [
        (labels[STEP], each["metadata"]["namespace"], each["kind"].lower(), each["metadata"]["name"])
        for each in objects
        if STEP in (labels := each["metadata"].get("labels", {}))
    ]

    assert rows == sorted(labelled)
    assert f"-l '!{STEP}'" in block(NAME, "upgrade.sh")
    assert f'-l "{STEP}=$step"' in block(NAME, "upgrade.sh")


def test_the_script_of_the_upgrade_is_one() -> None:
    done = subprocess.run(["bash", "-n", "-c", block(NAME, "upgrade.sh")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert KUBECTL.exists()


def test_ports_of_the_page_are_those_of_the_processes() -> None:
    """Each that a process has is in its table, and no other."""
    table = PAGE.partition("## Who speaks to whom")[2].partition("\n## ")[0]
    said = {
        int(number)
        for row in table.splitlines()
        if row.startswith("|")
        for number in re.findall(r"\d{4}", row.rpartition(" | ")[2])
    }
    ports = {
        port for each in workloads(overlay("gpu")).values() for name, port in each.ports.items() if name != "health"
    }
    assert said | {8472, 8473} == ports | {5432}


def test_folders_of_the_page_are_those_of_the_agent() -> None:
    """Whatever of the host it has is in the table that says why."""
    table = PAGE.partition("**What an agent may do.**")[2].partition("Before a node goes")[0]
    paths = {
        each["hostPath"]["path"] for each in workloads(overlay("gpu"))["agent"].pod["volumes"] if "hostPath" in each
    }
    assert set(re.findall(r"`(/\w[\w/]+)`", table)) == paths | {"/dev"}
    assert "SYS_ADMIN" in (ROOT / "infra" / "compose.yaml").read_text()


def test_a_token_is_made_as_the_page_says() -> None:
    """The command has each option that it is given."""
    (said,) = re.findall(r"^pilotlight node token (.*) > ", block(NAME, "join.sh"), re.MULTILINE)
    program = Path(sys.executable).parent / "pilotlight"
    shown = subprocess.run([program, "node", "token", "--help"], capture_output=True, text=True, check=True)
    assert set(re.findall(r"--\w+", said)) <= set(re.findall(r"--\w+", shown.stdout))
