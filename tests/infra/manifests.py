"""The manifests of `infra/kustomize`, as kubectl renders them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).parents[2]
KUSTOMIZE = ROOT / "infra" / "kustomize"
KUBECTL = Path(sys.executable).parent / "kubectl"
OVERLAYS = ("cpu", "gpu")
COMPONENT = "app.kubernetes.io/component"
STEP = "pilotlight.dev/step"
PLANE, NODES = "pilotlight", "pilotlight-nodes"
SECRET = "pl_s3cret"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DEPENDENT = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")

Manifest = dict[str, Any]


class Workload(NamedTuple):
    """What runs pods."""

    component: str
    manifest: Manifest
    pod: Manifest
    """The specification of its pods."""
    labels: dict[str, str]
    """Of its pods."""

    @property
    def namespace(self) -> str:
        return str(self.manifest["metadata"]["namespace"])

    @property
    def container(self) -> Manifest:
        """The one that is not there for the start alone."""
        (only,) = self.pod["containers"]
        return dict(only)

    @property
    def containers(self) -> tuple[Manifest, ...]:
        return (*self.pod.get("initContainers", ()), *self.pod["containers"])

    @property
    def ports(self) -> dict[str, int]:
        return {port["name"]: port["containerPort"] for port in self.container["ports"]}

    @property
    def ends_within_s(self) -> float:
        return float(self.pod["terminationGracePeriodSeconds"])


@cache
def rendered(folder: Path) -> tuple[Manifest, ...]:
    """The objects that kubectl would send to a cluster."""
    done = subprocess.run([KUBECTL, "kustomize", folder], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return tuple(yaml.load_all(done.stdout, LOADER))


def overlay(name: str) -> tuple[Manifest, ...]:
    return rendered(KUSTOMIZE / "overlays" / name)


def combined(folder: Path, **own: Any) -> tuple[Manifest, ...]:
    """What an operator's kustomization in `folder` renders, of `resources` and `components` of this tree."""
    for name in ("resources", "components"):
        own[name] = [os.path.relpath(KUSTOMIZE / each, folder.resolve()) for each in own.get(name, ())]
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(own))
    return rendered(folder)


def monitored(folder: Path, name: str = "gpu") -> tuple[Manifest, ...]:
    """An overlay with the component for monitoring, from a kustomization in `folder`."""
    return combined(folder, resources=[f"overlays/{name}"], components=["components/monitoring"])


def of_kind(objects: Iterable[Manifest], kind: str) -> list[Manifest]:
    return [each for each in objects if each["kind"] == kind]


def workloads(objects: Iterable[Manifest]) -> dict[str, Workload]:
    """By component."""
    found = {}
    for each in objects:
        if (template := each.get("spec", {}).get("template")) is not None:
            labels = template["metadata"]["labels"]
            found[labels[COMPONENT]] = Workload(labels[COMPONENT], each, template["spec"], labels)
    return found


def config_maps(objects: Iterable[Manifest], namespace: str) -> dict[str, dict[str, str]]:
    """Content by the name as it is rendered."""
    return {
        each["metadata"]["name"]: each["data"]
        for each in of_kind(objects, "ConfigMap")
        if each["metadata"]["namespace"] == namespace
    }


def environment(container: Manifest, given: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """The variables as a container finds them: SECRET in place of each secret, and `given` maps of configuration."""
    found: dict[str, str] = {}
    for variable in container.get("env", ()):
        source = variable.get("valueFrom", {})
        if "value" in variable:
            found[variable["name"]] = expanded(variable["value"], found)
        elif "configMapKeyRef" in source:
            found[variable["name"]] = given[source["configMapKeyRef"]["name"]][source["configMapKeyRef"]["key"]]
        else:
            found[variable["name"]] = SECRET if "secretKeyRef" in source else "pilotlight-0"
    return found


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """`$(NAME)` as Kubernetes reads it: of variables that stand before; one that does not is an error here."""
    return DEPENDENT.sub(lambda found: variables[found[1]], text)


def arguments(container: Manifest, given: Mapping[str, Mapping[str, str]]) -> list[str]:
    found = environment(container, given)
    return [expanded(each, found) for each in container.get("args", ())]


def texts(value: Any) -> Iterator[str]:
    """All strings in an object."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inside in value.values():
            yield from texts(inside)
    elif isinstance(value, list):
        for inside in value:
            yield from texts(inside)
