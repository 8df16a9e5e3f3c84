"""Pods without a cluster: each is a host of a network, and its containers are processes with what manifests say."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx

from tests.hosts.host_network import DIES_WITH_US, HostNetwork, TestHost, inside
from tests.infra.container_roots import PATH, Confinement, confined
from tests.infra.manifests import Manifest, Workload, expanded, workloads
from tests.waiting import wait_until

START_S = 120.0


class PodHosts:
    """The pods of manifests, in a network of their own.

    Args:
        objects: all manifests, and the secrets and maps that an operator makes.
    """

    def __init__(self, network: HostNetwork, folder: Path, objects: Iterable[Manifest]) -> None:
        self._network, self._folder, known = network, folder, list(objects)
        self._workloads = workloads(known)
        self._data = {
            (each["kind"], each["metadata"]["namespace"], each["metadata"]["name"]): dict(_texts_of(each))
            for each in known
            if each["kind"] in ("ConfigMap", "Secret")
        }
        self._pods: dict[str, tuple[TestHost, Workload]] = {}
        self._names: dict[str, str] = {}

    def add(self, component: str, pod: str, *services: str) -> TestHost:
        """A pod, which is not started yet; others find it by its own name below its service, and by these services."""
        workload = self._workloads[component]
        host = self._network.hosts.get(pod) or self._network.add(pod)
        own = workload.manifest["spec"].get("serviceName")
        for name in (*services, *([f"{pod}.{own}"] if own else ())):
            self._names[f"{name}.{workload.namespace}.svc"] = host.address
        self._pods[pod] = (host, workload)
        return host

    def put(self, kind: str, namespace: str, name: str, **texts: str) -> None:
        """A secret or a map that is made later."""
        self._data[kind, namespace, name] = texts

    def start(self, pod: str) -> None:
        """What it does at its start, to its end, and then its container."""
        host, workload = self._pods[pod]
        for container in workload.pod.get("initContainers", ()):
            command = [*inside(host.namespace), *DIES_WITH_US, *self._command(pod, container)]
            env = {**self._environment(pod, container), "PATH": PATH}
            done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=START_S)
            assert done.returncode == 0, done.stderr
        container = workload.container
        env = {**self._environment(pod, container), "PATH": PATH}
        host.start(container["name"], self._command(pod, container), env)

    def until_ready(self, pod: str) -> None:
        """By the probe of its readiness."""
        host, workload = self._pods[pod]
        asked = workload.container["readinessProbe"]["httpGet"]
        url = f"{asked.get('scheme', 'HTTP').lower()}://{host.address}:{workload.ports[asked['port']]}{asked['path']}"
        name = workload.container["name"]

        def is_ready() -> bool:
            assert host.running[name].poll() is None, host.log(name)
            try:
                return httpx.get(url, verify=False, trust_env=False).status_code == 200  # noqa: S501 - as the kubelet
            except httpx.TransportError:
                return False

        wait_until(is_ready, f"{pod} is ready", START_S)

    def place(self, pod: str, volume: str) -> Path:
        """Where what is in a volume of a pod is on this machine."""
        return self._folder / pod / volume

    def empty(self, pod: str, volume: str) -> None:
        """What goes with a pod has gone."""
        shutil.rmtree(self.place(pod, volume))

    def _command(self, pod: str, container: Manifest) -> list[str]:
        _, workload = self._pods[pod]
        names = self._folder / pod / "names"
        names.parent.mkdir(parents=True, exist_ok=True)
        names.write_text("".join(f"{address} {name}\n" for name, address in self._names.items()))
        security = {**workload.pod.get("securityContext", {}), **container.get("securityContext", {})}
        confinement = Confinement(
            user=security.get("runAsUser", 0),
            read_only=security.get("readOnlyRootFilesystem", False),
            no_capabilities=security.get("capabilities", {}).get("drop") == ["ALL"],
        )
        mounts = [*self._mounts(pod, container, confinement.user), (names, Path("/etc/hosts"))]
        env = self._environment(pod, container)
        told = [expanded(each, env) for each in container.get("args", ())]
        return [*confined(self._folder / pod / container["name"], mounts, confinement), *container["command"], *told]

    def _mounts(self, pod: str, container: Manifest, user: int) -> Iterator[tuple[Path, Path]]:
        _, workload = self._pods[pod]
        volumes = {each["name"]: each for each in workload.pod["volumes"]}
        for mount in container["volumeMounts"]:
            volume = volumes.get(mount["name"], {})
            path = volume.get("hostPath", {}).get("path", "")
            if path.startswith("/sys/"):
                continue  # this machine's, as it is
            place = self.place(pod, mount["name"])
            place.mkdir(parents=True, exist_ok=True)
            self._fill(place, workload.namespace, volume, user)
            yield place / mount.get("subPath", ""), Path(mount["mountPath"])

    def _fill(self, place: Path, namespace: str, volume: Manifest, user: int) -> None:
        """As the kubelet does: a secret is root's, and of the pod's group; what is empty may be written by it."""
        secret, configured = volume.get("secret"), volume.get("configMap")
        if secret is None and configured is None:
            os.chown(place, 0, user)
            place.chmod(0o2775)
            return
        kind, name = ("Secret", secret["secretName"]) if secret else ("ConfigMap", volume["configMap"]["name"])
        for key, text in self._data.get((kind, namespace, name), {}).items():
            (place / key).write_text(text)
            os.chown(place / key, 0, user)
            (place / key).chmod(secret["defaultMode"] if secret else 0o644)

    def _environment(self, pod: str, container: Manifest) -> dict[str, str]:
        found: dict[str, str] = {}
        namespace = self._pods[pod][1].namespace
        for variable in container.get("env", ()):
            source: dict[str, Any] = variable.get("valueFrom", {})
            if "value" in variable:
                found[variable["name"]] = expanded(variable["value"], found)
            elif "fieldRef" in source:
                found[variable["name"]] = pod
            else:
                (kind,) = source
                of = {"secretKeyRef": "Secret", "configMapKeyRef": "ConfigMap"}[kind]
                data = self._data[of, namespace, source[kind]["name"]]
                if source[kind]["key"] in data or not source[kind].get("optional"):
                    found[variable["name"]] = data[source[kind]["key"]]
        return found


def _texts_of(each: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, text in each.get("data", {}).items():
        yield key, base64.b64decode(text).decode() if each["kind"] == "Secret" else text
