"""Agents on a cluster of Kubernetes: one pod each, for which the cluster's own provisioner finds or makes a machine.

A pod is made of a `PodTemplate` that operators keep beside it, with the node's name as its own and its pool as a label
and a node selector. The token by which it joins is a `Secret` of its name, which goes with the pod, and is worth
nothing once the node has joined. A pod's name says that it is the one: made again it is there already.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from pilotlight_autoscaler.pools.node_pool import (
    MOST_LISTED,
    LaunchOrder,
    LaunchRefused,
    PoolError,
    PoolMachine,
    PoolNotice,
)
from pilotlight_core.model.records.pools import LaunchRecord, PoolRecord

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
ADDRESS = "https://kubernetes.default.svc"
POOL_LABEL, LAUNCH_LABEL, OWNER_LABEL = "pilotlight.dev/pool", "pilotlight.dev/launch", "pilotlight.dev/owner"
ZONE_LABEL, TYPE_LABEL = "topology.kubernetes.io/zone", "node.kubernetes.io/instance-type"
JOIN_VOLUME = "join"
TIMEOUT_S = 20.0
PAGE = 500
OVER = ("Succeeded", "Failed")
REFUSALS = (httpx.codes.BAD_REQUEST, httpx.codes.FORBIDDEN, httpx.codes.UNPROCESSABLE_ENTITY)
"""Asked again the cluster would say the same."""


@dataclass(frozen=True, kw_only=True)
class ClusterAccess:
    """How a cluster's API is reached. The token is read anew for each request: kubelets renew it."""

    url: str
    token_file: Path | None = None
    ca_file: Path | None = None

    def headers(self) -> dict[str, str]:
        if self.token_file is None:
            return {}
        try:
            return {"Authorization": f"Bearer {self.token_file.read_text().strip()}"}
        except OSError as error:
            raise PoolError(f"there is no token of a service account: {error}") from None


def cluster_access() -> ClusterAccess:
    """That of the pod that this process runs in."""
    return ClusterAccess(url=ADDRESS, token_file=ACCOUNT / "token", ca_file=ACCOUNT / "ca.crt")


class KubernetesPool:
    """The agents of one pool: those with its id as a label."""

    def __init__(self, record: PoolRecord, access: ClusterAccess) -> None:
        terms = record.terms.kubernetes
        if terms is None or not record.id:
            raise ValueError(f"the pool {record.name} does not say how its agents are made on a cluster")
        self._pool, self._owner, self._terms, self._access = record.name, record.id, terms, access
        try:
            verified: ssl.SSLContext | bool = (
                ssl.create_default_context(cafile=str(access.ca_file)) if access.ca_file is not None else True
            )
        except OSError as error:
            raise ValueError(f"this process is in no pod of a cluster: {error}") from None
        self._http = httpx.AsyncClient(base_url=access.url, timeout=TIMEOUT_S, verify=verified)
        self._space = f"/api/v1/namespaces/{terms.namespace}"

    async def list_machines(self) -> Sequence[PoolMachine]:
        found: list[PoolMachine] = []
        query = {"labelSelector": f"{OWNER_LABEL}={self._owner}", "limit": str(PAGE)}
        while len(found) < MOST_LISTED:
            answer = await self._ask("GET", f"{self._space}/pods", query=query)
            found += [_machine(pod) for pod in answer.get("items", ())]
            if not (goes_on := answer.get("metadata", {}).get("continue")):
                break
            query["continue"] = goes_on
        return found

    async def launch(self, order: LaunchOrder) -> PoolMachine:
        template = await self._ask("GET", f"{self._space}/podtemplates/{self._terms.template}", missing={})
        if not template:
            raise LaunchRefused(f"there is no PodTemplate {self._terms.template} in {self._terms.namespace}")
        await self._put_secret(_secret(order, self._labels(order.launch)))
        try:
            pod = await self._make("pods", _pod(order, template["template"], self._labels(order.launch)))
        except LaunchRefused:
            await self._ask("DELETE", f"{self._space}/secrets/{_secret_name(order.launch.node)}", missing={})
            raise
        return _machine(pod)

    async def terminate(self, machine: PoolMachine) -> None:
        name = machine.node or machine.provider_id
        await self._ask("DELETE", f"{self._space}/pods/{name}", missing={})
        await self._ask("DELETE", f"{self._space}/secrets/{_secret_name(name)}", missing={})

    async def notices(self) -> Sequence[PoolNotice]:
        return ()

    async def aclose(self) -> None:
        await self._http.aclose()

    def _labels(self, launch: LaunchRecord) -> dict[str, str]:
        return {POOL_LABEL: self._pool, LAUNCH_LABEL: launch.id, OWNER_LABEL: self._owner}

    async def _make(self, kind: str, made: Mapping[str, Any]) -> dict[str, Any]:
        """Create it, or find the one that an earlier try has made."""
        answer = await self._ask("POST", f"{self._space}/{kind}", body=made, conflict={})
        return answer or await self._ask("GET", f"{self._space}/{kind}/{made['metadata']['name']}")

    async def _put_secret(self, secret: Mapping[str, Any]) -> None:
        """The one of an earlier try has a token that counts no more, if another controller made it."""
        if not await self._ask("POST", f"{self._space}/secrets", body=secret, conflict={}):
            await self._ask("DELETE", f"{self._space}/secrets/{secret['metadata']['name']}", missing={})
            await self._ask("POST", f"{self._space}/secrets", body=secret)

    async def _ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        missing: dict[str, Any] | None = None,
        conflict: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The answer; `missing` for one that there is not, `conflict` for one that is there already."""
        try:
            answer = await self._http.request(method, path, params=query, json=body, headers=self._access.headers())
            if answer.status_code == httpx.codes.NOT_FOUND and missing is not None:
                return missing
            if answer.status_code == httpx.codes.CONFLICT and conflict is not None:
                return conflict
            if answer.is_success:
                found: dict[str, Any] = answer.json()
                return found
        except (httpx.HTTPError, ValueError) as error:
            raise PoolError(f"the cluster's API does not answer: {error!r}") from None
        told = f"the cluster's API answers {answer.status_code} to {method} {path}: {answer.text[:300]}"
        raise LaunchRefused(told) if answer.status_code in REFUSALS else PoolError(told)


def _secret_name(node: str) -> str:
    return f"pilotlight-join-{node}"


def _secret(order: LaunchOrder, labels: Mapping[str, str]) -> dict[str, Any]:
    name = _secret_name(order.launch.node)
    return {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": dict(labels)},
        "stringData": {order.launch.node: order.join_text},
    }  # fmt: skip


def _pod(order: LaunchOrder, template: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, Any]:
    """The pod of a template, under the node's name, for machines of one of the types and in the zone."""
    spec, given = dict(template.get("spec", {})), template.get("metadata", {})
    selector = {**spec.get("nodeSelector", {}), POOL_LABEL: order.pool.name}
    if order.pool.terms.zones:
        selector[ZONE_LABEL] = order.launch.zone
    wanted = [{"key": TYPE_LABEL, "operator": "In", "values": list(order.types)}]
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": wanted}]}
        },
        # An agent has its machine for itself.
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "labelSelector": {"matchExpressions": [{"key": LAUNCH_LABEL, "operator": "Exists"}]},
                    "topologyKey": "kubernetes.io/hostname",
                }
            ]
        },
    }
    join = {"name": JOIN_VOLUME, "secret": {"secretName": _secret_name(order.launch.node), "defaultMode": 0o400}}
    volumes = [volume for volume in spec.get("volumes", ()) if volume.get("name") != JOIN_VOLUME]
    spec.update({"nodeSelector": selector, "affinity": affinity, "volumes": [*volumes, join]})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": order.launch.node,
            "labels": {**given.get("labels", {}), **labels},
            "annotations": dict(given.get("annotations", {})),
        },
        "spec": spec,
    }


def _machine(pod: Mapping[str, Any]) -> PoolMachine:
    labels = pod["metadata"].get("labels", {})
    over = pod.get("status", {}).get("phase") in OVER
    return PoolMachine(
        launch=labels.get(LAUNCH_LABEL, ""),
        provider_id=pod["metadata"].get("uid", pod["metadata"]["name"]),
        node=pod["metadata"]["name"],
        is_ending=over or bool(pod["metadata"].get("deletionTimestamp")),
    )
