"""Agents as pods: at a small server that answers as a cluster's API does. No real cluster has seen it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from pilotlight_autoscaler.pools.node_pool import LaunchOrder, LaunchRefused, PoolError, PoolMachine
from pilotlight_autoscaler.pools.providers.kubernetes_pool import ClusterAccess, KubernetesPool
from pilotlight_core.model.api.pools.pool_terms import KubernetesTerms, MachineType, PoolProvider, PoolTerms
from pilotlight_core.model.records.pools import LaunchRecord, PoolRecord

SPACE = "/api/v1/namespaces/pilotlight-nodes"
TEMPLATE = {
    "metadata": {"labels": {"app.kubernetes.io/component": "agent"}},
    "spec": {"containers": [{"name": "agent", "image": "pilotlight/agent"}], "volumes": [{"name": "state"}]},
}


@dataclass
class FakeCluster:
    """The objects of a cluster by their paths, and the requests to it. `status` is answered to all, if it is set."""

    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    seen: list[tuple[str, str, str]] = field(default_factory=list)
    status: int = 0
    url: str = ""

    def answer(self, method: str, target: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        url = urlsplit(target)
        if self.status:
            return self.status, {"message": "no"}
        if method == "POST":
            path = f"{url.path}/{body['metadata']['name']}"
            if path in self.objects:
                return 409, {}
            body["metadata"]["uid"] = f"uid-{len(self.objects)}"
            self.objects[path] = body
            return 201, body
        if method == "GET" and url.path.endswith("/pods"):
            wanted = dict(pair.split("=") for pair in parse_qs(url.query)["labelSelector"][0].split(","))
            pods = [each for path, each in self.objects.items() if path.startswith(f"{url.path}/")]
            return 200, {"items": [pod for pod in pods if wanted.items() <= pod["metadata"]["labels"].items()]}
        found = self.objects.pop(url.path, None) if method == "DELETE" else self.objects.get(url.path)
        return (200, found) if found is not None else (404, {})


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    """One with a template of agents."""
    fake = FakeCluster(objects={f"{SPACE}/podtemplates/pilotlight-agent": {"template": TEMPLATE}})

    class Handler(BaseHTTPRequestHandler):
        def _handle(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else {}
            fake.seen.append((self.command, self.path, self.headers.get("Authorization", "")))
            status, answer = fake.answer(self.command, self.path, body)
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_DELETE = _handle  # noqa: N815 - the library's names

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    fake.url = f"http://127.0.0.1:{server.server_port}"
    yield fake
    server.shutdown()
    server.server_close()
    thread.join()


def record(**more: Any) -> PoolRecord:
    types = (MachineType(name="g2-standard-8", gpus="1xL4"),)
    terms = PoolTerms(provider=PoolProvider.KUBERNETES, types=types, kubernetes=KubernetesTerms(), **more)
    return PoolRecord(name="l4", id="l4-of-test", terms=terms)


def order(pool: PoolRecord) -> LaunchOrder:
    launch = LaunchRecord(id="launch1", pool="l4", slot=1, node="l4-launch1", type="g2-standard-8", zone="eu-1")
    return LaunchOrder(pool=pool, launch=launch, types=("g2-standard-8",), join_text="pl_join_x")


async def test_an_agent_is_a_pod_that_is_made_once_listed_and_ended(cluster: FakeCluster, tmp_path: Path) -> None:
    """Of the template, for machines of its type and zone, with the token as a secret that goes with it."""
    (tmp_path / "token").write_text("of-the-account\n")
    access = ClusterAccess(url=cluster.url, token_file=tmp_path / "token")
    pool = KubernetesPool(record(zones=("eu-1",)), access)
    try:
        made = await pool.launch(order(record(zones=("eu-1",))))
        assert await pool.launch(order(record(zones=("eu-1",)))) == made

        pod = cluster.objects[f"{SPACE}/pods/l4-launch1"]
        assert pod["spec"]["nodeSelector"] == {
            "pilotlight.dev/pool": "l4", "topology.kubernetes.io/zone": "eu-1",
        }  # fmt: skip
        assert [volume["name"] for volume in pod["spec"]["volumes"]] == ["state", "join"]
        assert pod["metadata"]["labels"]["app.kubernetes.io/component"] == "agent"
        secret = cluster.objects[f"{SPACE}/secrets/pilotlight-join-l4-launch1"]
        assert secret["stringData"] == {"l4-launch1": "pl_join_x"}
        assert list(await pool.list_machines()) == [made]
        assert {token for _, _, token in cluster.seen} == {"Bearer of-the-account"}

        await pool.terminate(made)
        await pool.terminate(made)  # again
        assert list(await pool.list_machines()) == []
        assert not any("secret" in path for path in cluster.objects)
    finally:
        await pool.aclose()


async def test_the_next_controller_brings_a_token_that_counts(cluster: FakeCluster) -> None:
    """The one before died between secret and pod, and its token went with it."""
    pool = KubernetesPool(record(), ClusterAccess(url=cluster.url))
    await pool.launch(order(record()))
    del cluster.objects[f"{SPACE}/pods/l4-launch1"]
    await pool.launch(replace(order(record()), join_text="pl_join_y"))

    assert cluster.objects[f"{SPACE}/secrets/pilotlight-join-l4-launch1"]["stringData"] == {"l4-launch1": "pl_join_y"}
    await pool.aclose()


async def test_a_pod_that_is_being_deleted_is_on_its_way_out(cluster: FakeCluster) -> None:
    """As one is whose agent has ended."""
    pool = KubernetesPool(record(), ClusterAccess(url=cluster.url))
    await pool.launch(order(record()))
    cluster.objects[f"{SPACE}/pods/l4-launch1"]["metadata"]["deletionTimestamp"] = "2026-11-20T10:00:00Z"

    assert [machine.is_ending for machine in await pool.list_machines()] == [True]
    await pool.aclose()


async def test_what_the_cluster_refuses_is_told(cluster: FakeCluster) -> None:
    """Without a template, without rights, and when it does not answer."""
    pool = KubernetesPool(record(), ClusterAccess(url=cluster.url))
    cluster.objects.clear()
    with pytest.raises(LaunchRefused, match="PodTemplate"):
        await pool.launch(order(record()))
    cluster.status = 403
    with pytest.raises(LaunchRefused, match="403"):
        await pool.list_machines()
    cluster.status = 503
    with pytest.raises(PoolError, match="503"):
        await pool.terminate(PoolMachine(launch="launch1", provider_id="u", node="l4-launch1"))
    await pool.aclose()
