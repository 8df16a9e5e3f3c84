"""A free tenant that fills what all share is refused with the limit named, and nobody else notices."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import httpx
import pytest

from tests.security.memory import forget_peak, peak_mb
from tests.system.support.platform import Platform, make_tenant

pytestmark = pytest.mark.system
SERVER_MB = 300.0
FILE = b"def f(): pass\n"
SHA = hashlib.sha256(FILE).hexdigest()


def free_tenant(platform: Platform, name: str) -> httpx.Client:
    return platform.as_holder_of(make_tenant(platform, name, tier="free"))


def spec(name: str, variable: str) -> dict[str, Any]:
    """A function with a variable, which is in its record."""
    method = {"name": "", "attribute": name}
    return {"name": name, "module": "main", "qualname": name, "methods": [method], "env": {"A": variable}}


def typed_spec(name: str, described: str) -> dict[str, Any]:
    """A class whose types fill its manifest."""
    schema = {"type": "object", "description": described}
    made = [{"name": f"m{number}", "attribute": f"m{number}", "input_schema": schema} for number in range(4)]
    return {"name": name, "module": "main", "qualname": "F", "is_class": True, "methods": made}


def deploy(client: httpx.Client, app: str, *specs: dict[str, Any]) -> httpx.Response:
    files = [{"path": "main.py", "sha256": SHA, "size": len(FILE)}]
    body = {"functions": [{"spec": one} for one in specs], "files": files}
    return client.post(
        f"/v1/apps/{app}/deploys", content=json.dumps(body), headers={"content-type": "application/json"}
    )


def refusals(answers: list[httpx.Response]) -> set[tuple[int, str]]:
    """The status and the limit of each refusal."""
    return {(answer.status_code, answer.json()["limits"][0]["limit"]) for answer in answers if answer.is_error}


def test_who_fills_the_registry_is_refused(platform: Platform) -> None:
    """By its records' size, its apps, and how often it deploys; everybody else makes tenants, keys and limits on."""
    with free_tenant(platform, "wide") as free:
        servers = [platform.pids[name] for name in ("gateway", "controller")]
        for pid in servers:
            forget_peak(pid)
        assert free.put(f"/v1/blobs/{SHA}", content=FILE).is_success

        wide = [deploy(free, "wide", *(spec(f"f{n}", f"{again}" * 30_000) for n in range(40))) for again in range(5)]
        answers = wide + [deploy(free, f"narrow{number}", spec("f", "")) for number in range(30)]

        assert [answer.status_code for answer in wide] == [200, 200, 200, 403, 403]
        assert (403, "record_bytes") in refusals(wide)
        assert (429, "deploys_per_hour") in refusals(answers)
        assert not [answer.text for answer in answers if answer.status_code >= 500]
        stored = free.get("/v1/apps").json()["apps"]
        assert 1 <= len(stored) <= 10
        assert max(map(peak_mb, servers)) < SERVER_MB
        make_tenant(platform, "late")
        platform.cli("quota", "set", "late", "concurrency=7")
        assert json.loads(platform.cli("quota", "show", "late", "--json").stdout)["limits"] == {"concurrency": 7}
        for app in stored:
            assert free.delete(f"/v1/apps/{app['app']}").is_success


def test_who_fills_the_disk_is_refused(platform: Platform) -> None:
    """What is over the limit leaves nothing; another tenant's upload goes on."""
    with free_tenant(platform, "deep") as free:
        platform.cli("quota", "set", "deep", "blob_bytes=5000000")
        contents = [bytes([number]) * 2_000_000 for number in range(4)]

        answers = [free.put(f"/v1/blobs/{hashlib.sha256(one).hexdigest()}", content=one) for one in contents]

        assert [answer.status_code for answer in answers] == [201, 201, 403, 403]
        assert refusals(answers) == {(403, "blob_bytes")}
        many = [free.put(f"/v1/blobs/{hashlib.sha256(b'%d' % n).hexdigest()}", content=b"%d" % n) for n in range(300)]
        assert sum(answer.is_success for answer in many) < 250
        assert platform.http.put(f"/v1/blobs/{SHA}", content=FILE).is_success


def test_who_fills_the_disk_with_types_is_refused(platform: Platform) -> None:
    """They are in manifests, which count as the files that are uploaded; deploying the same again takes nothing."""
    with free_tenant(platform, "typed") as free:
        platform.cli("quota", "set", "typed", "blob_bytes=600000")
        assert free.put(f"/v1/blobs/{SHA}", content=FILE).is_success

        specs = [typed_spec("f", f"{again}" * 60_000) for again in (1, 2, 3, 1)]
        answers = [deploy(free, "typed", one) for one in specs]

        assert [answer.status_code for answer in answers] == [200, 200, 403, 200], [one.text[:500] for one in answers]
        assert refusals(answers) == {(403, "blob_bytes")}
