"""How each case of docs/bad-input.md is sent: over plain HTTP, and through the SDK where that lets one do it at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import msgspec

import pilotlight
from pilotlight.client.portal import shared_portal
from pilotlight_core.model.api.call_api import DeployFunction, DeployRequest
from pilotlight_core.model.spec import FileEntry
from pilotlight_gateway.tenancy.api_keys import new_key
from tests.gateway.oidc.token_maker import TokenMaker
from tests.system.support.platform import Platform
from tests.waiting import wait_until

MB_11 = 11 * 10**6
TYPED = "/v1/functions/bad.typed/calls"
NAPS = "/v1/functions/bad.naps/calls"


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What the cases are sent to, and with."""

    platform: Platform
    client: pilotlight.Client
    stranger_key: str

    def post(self, body: Any = None, *, path: str = TYPED, **how: Any) -> httpx.Response:
        """Any request to a call endpoint."""
        return self.platform.http.post(path, json=body, **how) if "content" not in how else self._raw(path, **how)

    def _raw(self, path: str, *, content: Any, kind: str = "application/json") -> httpx.Response:
        return self.platform.http.post(path, content=content, headers={"Content-Type": kind})

    def function(self, ref: str, **options: Any) -> Any:
        """The SDK's function; `ref` may carry a version."""
        name, _, version = ref.partition("@")
        app, _, function = name.rpartition(".")
        found = pilotlight.Function.from_name(app, function, version=version or None)
        return found.options(client=options.pop("client", self.client), **options)

    def new_key(self, **request: Any) -> str:
        """An API key of this tenant."""
        made = self.platform.http.post("/v1/keys", json=request)
        assert made.status_code == 201, made.text
        key: str = made.json()["key"]
        return key


@dataclass(frozen=True, kw_only=True)
class Case:
    """One case; `sdk` is None where only plain HTTP can do it: the SDK then reads that answer."""

    http: Callable[[Bench], httpx.Response]
    sdk: Callable[[Bench], object] | None = None
    field: str | None = None
    """What the document names."""
    function: str = ""
    """`app.function` whose log tells of it."""


def calling(ref: str, *, field: str | None = None, deadline: float = 60.0, **args: Any) -> Case:
    """A plain call, both ways."""
    return Case(
        http=lambda bench: bench.platform.call(ref, **args),
        sdk=lambda bench: bench.function(ref, deadline=deadline).remote(**args),
        field=field,
        function=ref,
    )


def posting(body: Any = None, *, field: str | None = None, **how: Any) -> Case:
    """A request that only plain HTTP can send."""
    return Case(http=lambda bench: bench.post(body, **how), field=field)


def with_key(make: Callable[[Bench], str]) -> Case:
    """A good call with a key that is not."""

    def http(bench: Bench) -> httpx.Response:
        with bench.platform.as_holder_of(make(bench)) as holder:
            return holder.post(TYPED, json={"input": {"count": 1}})

    def sdk(bench: Bench) -> object:
        with pilotlight.Client(url=bench.platform.url, api_key=make(bench)) as client:
            return bench.function("bad.typed", client=client).remote(count=1)

    return Case(http=http, sdk=sdk)


def expired(bench: Bench) -> str:
    """A key that was good for a moment."""
    key = bench.new_key(expires_in_s=0.05)
    with bench.platform.as_holder_of(key) as holder:
        wait_until(lambda: holder.get("/v1/keys").status_code == 401, "the key expires")
    return key


def without_key(bench: Bench) -> httpx.Response:
    return httpx.post(bench.platform.url + TYPED, json={"input": {"count": 1}})


@contextmanager
def busy(bench: Bench) -> Iterator[str]:
    """`bad.naps`, which has one container of one slot, is known to take a while and has just begun."""
    bench.platform.output("bad.naps", seconds=0.3)
    name = pilotlight.call_id()
    with ThreadPoolExecutor(1) as others:
        nap = others.submit(bench.post, {"input": {"seconds": 60.0}, "id": name}, path=NAPS)
        wait_until(lambda: state(bench, name) == "running", "the nap begins")
        try:
            yield name
        finally:
            bench.platform.http.delete(f"/v1/calls/{name}")
        assert nap.result().status_code in (200, 499)


def state(bench: Bench, call: str) -> str:
    """What the platform says of a call; "" while it knows none."""
    status: str = bench.platform.http.get(f"/v1/calls/{call}").json().get("state", "")
    return status


def too_late_http(bench: Bench) -> httpx.Response:
    with busy(bench):
        return bench.post({"input": {"seconds": 0.1}, "deadline_ms": 100}, path=NAPS)


def too_late_sdk(bench: Bench) -> object:
    with busy(bench):
        return bench.function("bad.naps", deadline=0.1).remote(seconds=0.1)


def cancelled_http(bench: Bench) -> httpx.Response:
    name = pilotlight.call_id()
    with ThreadPoolExecutor(1) as others:
        nap = others.submit(bench.post, {"input": {"seconds": 60.0}, "id": name}, path=NAPS)
        wait_until(lambda: state(bench, name), "the call is known")
        assert bench.platform.http.delete(f"/v1/calls/{name}").status_code == 202
        return nap.result()


def cancelled_sdk(bench: Bench) -> object:
    name = pilotlight.call_id()
    with ThreadPoolExecutor(1) as others:
        nap = others.submit(bench.function("bad.naps", id=name).remote, seconds=60.0)
        wait_until(lambda: state(bench, name), "the call is known")
        shared_portal().run(bench.client.platform.cancel_call(name))
        return nap.result()


def too_wide() -> DeployRequest:
    """A deploy of a function that wants eight GPUs."""

    def wide() -> str:
        return "never"

    spec = pilotlight.App("wide").gpu_function(gpu="H100:8")(wide).spec
    return DeployRequest(functions=(DeployFunction(spec=spec),), files=(FileEntry("main.py", "0" * 64, 1),))


def too_wide_http(bench: Bench) -> httpx.Response:
    body = msgspec.to_builtins(too_wide())

    def refused() -> httpx.Response | None:
        # A gateway that has not listened for three seconds yet asks for the file instead.
        answer = bench.platform.http.post("/v1/apps/wide/deploys", json=body)
        return answer if answer.status_code != 200 else None

    return wait_until(refused, "the gateway knows its fleet")


def too_wide_sdk(bench: Bench) -> object:
    return shared_portal().run(bench.client.platform.deploy_app("wide", too_wide()))


def taken_id(bench: Bench) -> str:
    """The id of a call that has just ended."""
    name = pilotlight.call_id()
    assert bench.post({"input": {"count": 1}, "id": name}).status_code == 200
    return name


def unknown_call(bench: Bench) -> httpx.Response:
    return bench.platform.http.get(f"/v1/calls/{pilotlight.call_id()}")


def strangers_call(bench: Bench) -> httpx.Response:
    name = taken_id(bench)
    with bench.platform.as_holder_of(bench.stranger_key) as stranger:
        return stranger.get(f"/v1/calls/{name}")


def strangers_call_sdk(bench: Bench) -> object:
    name = taken_id(bench)
    with pilotlight.Client(url=bench.platform.url, api_key=bench.stranger_key) as stranger:
        return shared_portal().run(stranger.platform.cancel_call(name))


def strangers_function(bench: Bench) -> httpx.Response:
    with bench.platform.as_holder_of(bench.stranger_key) as stranger:
        return stranger.post("/v1/functions/default:bad.typed/calls", json={"input": {"count": 1}})


def strangers_function_sdk(bench: Bench) -> object:
    with pilotlight.Client(url=bench.platform.url, api_key=bench.stranger_key) as stranger:
        return bench.function("default:bad.typed", client=stranger).remote(count=1)


def unasked(bench: Bench) -> httpx.Response:
    return bench.platform.http.post(TYPED, json={"input": {"count": 1}}, headers={"Accept": "image/png"})


def pieces(size: int) -> Iterator[bytes]:
    """A body whose length nobody is told."""
    yield b'{"input": {"count": 1, "label": "'
    for _ in range(size // 10**6):
        yield b"x" * 10**6
    yield b'"}}'


def deep(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


CASES: dict[str, Case] = {
    "no API key": Case(http=without_key),
    "a key that was never made": with_key(lambda _: str(new_key())),
    "an expired key": with_key(expired),
    "a token of an issuer that is not on record": with_key(lambda _: TokenMaker().token().decode()),
    "a key without the scope": with_key(lambda bench: bench.new_key(scopes=["read"])),
    "an address that is none": Case(http=lambda bench: bench.platform.http.get("/v1/nothing")),
    "an HTTP method that is none": Case(http=lambda bench: bench.platform.http.put(TYPED, json={})),
    "malformed JSON": posting(content=b'{"input": {"count": 1'),
    "malformed msgpack": posting(content=b"\xc1", kind="application/msgpack"),
    "a body that is not JSON or msgpack": posting(content=b"count=1", kind="application/x-www-form-urlencoded"),
    "an answer in a format that nobody has": Case(http=unasked),
    "an unknown field in the request": posting({"inputs": {"count": 1}}, field="inputs"),
    "an argument of the wrong type": calling("bad.typed", count="three", field="input.count"),
    "a missing argument": calling("bad.typed", label="x", field="input.count"),
    "an argument nobody knows": calling("bad.typed", count=1, colour="red", field="input.colour"),
    "an argument given twice": posting({"input": {"count": 1}, "parameters": {"count": 2}}, field="parameters.count"),
    "nested a thousand deep": Case(
        http=lambda bench: bench.post(content=b'{"input": {"anything": %s%s}}' % (b"[" * 1000, b"]" * 1000)),
        sdk=lambda bench: bench.function("bad.typed").remote(count=1, anything=deep(1000)),
        field="input",
    ),
    "an 11 MB body": calling("bad.typed", count=1, label="x" * MB_11),
    "an 11 MB body without a length": Case(http=lambda bench: bench.post(content=pieces(MB_11))),
    "an unknown function": calling("bad.nobody", count=1),
    "another tenant's function": Case(http=strangers_function, sdk=strangers_function_sdk),
    "an unknown version": calling("bad.typed@v99", count=1),
    "an unknown method": Case(
        http=lambda bench: bench.platform.call("bad.typed", method="shout", count=1),
        sdk=lambda bench: (
            pilotlight.Function.from_name("bad", "typed", method="shout").options(client=bench.client).remote(count=1)
        ),
        field="method",
    ),
    "an unknown call": Case(
        http=unknown_call,
        sdk=lambda bench: shared_portal().run(bench.client.platform.cancel_call(pilotlight.call_id())),
    ),
    "another tenant's call": Case(http=strangers_call, sdk=strangers_call_sdk),
    "a call id that is none": posting({"input": {"count": 1}, "id": "mine"}, field="id"),
    "a call id that is in use": Case(
        http=lambda bench: bench.post({"input": {"count": 1}, "id": taken_id(bench)}),
        sdk=lambda bench: bench.function("bad.typed", id=taken_id(bench)).remote(count=1),
        field="id",
    ),
    "a deadline that passes": Case(
        http=lambda bench: bench.post({"input": {"seconds": 2.0}, "deadline_ms": 700}, path=NAPS),
        sdk=lambda bench: bench.function("bad.naps", deadline=0.7).remote(seconds=2.0),
    ),
    "a deadline that the queue cannot meet": Case(http=too_late_http, sdk=too_late_sdk),
    "a call that is cancelled": Case(http=cancelled_http, sdk=cancelled_sdk),
    "a function that raises": calling("bad.raises", message="these very words"),
    "a function that returns what cannot travel": calling("bad.untravelable"),
    "a function that returns the wrong type": calling("bad.promises_a_number", field="output"),
    "a function that fails to import": calling("broken.never"),
    "a function that sleeps past its timeout": calling("bad.oversleeps"),
    "a function that exits": calling("bad.exits"),
    "a function that allocates without end": calling("bad.allocates"),
    "a function that forks without end": calling("bad.forks"),
    "a function that prints 100 MB": calling("bad.prints"),
    "a function that no node could ever hold": Case(http=too_wide_http, sdk=too_wide_sdk, field="gpu"),
}
