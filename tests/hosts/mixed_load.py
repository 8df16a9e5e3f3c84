"""Everything that tenants do at once, through some gateways, and what the platform has promised of it.

Calls, streams and jobs have names that nobody else has, which a host outside of the platform counts.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from tests.hosts.host_fleet import GatewayClient
from tests.hosts.host_world import HostWorld
from tests.system.support import ledger
from tests.waiting import wait_until

CALL_S, JOB_EVERY_S = 0.4, 0.4
BATCH_LINES = 12
PATIENCE_S = 60.0
BROKEN = "connection broken"
"""The outcome of a call whose gateway did not live to its answer."""
ONCE = ("counted.once", "counted.counts")
STARTS_AGAIN = 3
"""Of an idempotent job: its first start, and two after interruptions."""
END_S = 120.0


@dataclass(frozen=True, kw_only=True)
class LiveOutcome:
    """What became of a call. `code` is "ok", a problem's code, or `BROKEN`."""

    ref: str
    name: str
    code: str
    id: str = ""
    ns: int = 0
    """That its answer says are billed; 0: it does not."""
    detail: str = ""


class MixedLoad:
    """Calls, streams, jobs and a batch, from the beginning of the block to its end."""

    def __init__(self, world: HostWorld, prefix: str, through: Sequence[GatewayClient] = ()) -> None:
        self.world, self._prefix, self._clients = world, prefix, tuple(through or world.clients)
        self.outcomes: list[LiveOutcome] = []
        self.jobs: dict[str, str] = {}
        """Those whose 202 was seen: name by id."""
        self.batch = ""
        self._stopping = threading.Event()
        one, other = self._clients[0], self._clients[-1]
        loops: list[tuple[Callable[[GatewayClient, str, str], None], GatewayClient, str]] = [
            (self._call, one, "counted.once"), (self._call, other, "counted.once"),
            (self._call, one, "counted.again"), (self._stream, other, "counted.counts"),
        ]  # fmt: skip
        self._threads = [
            threading.Thread(target=self._repeat, args=(number, *loop)) for number, loop in enumerate(loops)
        ]
        self._threads.append(threading.Thread(target=self._submit))

    def __enter__(self) -> MixedLoad:
        self.batch = self._submit_batch()
        for thread in self._threads:
            thread.start()
        try:
            wait_until(lambda: self.count() > 4 and self.jobs, "calls are answered, and jobs accepted")
        except AssertionError as error:
            self.__exit__()
            raise AssertionError(self.outcomes[-1:]) from error
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def count(self) -> int:
        """Calls that have been answered as they should be."""
        return sum(each.code == "ok" for each in list(self.outcomes))

    def codes(self) -> Counter[str]:
        return Counter(each.code for each in self.outcomes)

    def wait_more(self, more: int = 8, within_s: float = 60.0) -> None:
        """Until so many more calls are answered."""
        before = self.count()
        wait_until(lambda: self.count() >= before + more, f"{more} more calls are answered", within_s)

    def _repeat(
        self, number: int, act: Callable[[GatewayClient, str, str], None], client: GatewayClient, ref: str
    ) -> None:
        turn = 0
        while not self._stopping.is_set():
            name, turn = f"{self._prefix}-{ref}-{number}-{turn}", turn + 1
            try:
                act(client, ref, name)
            except httpx.TransportError:
                self.outcomes.append(LiveOutcome(ref=ref, name=name, code=BROKEN))
                self._stopping.wait(0.2)  # a gateway that is being started again is not hammered

    def _call(self, client: GatewayClient, ref: str, name: str) -> None:
        answer = client.call(ref, name=name, seconds=CALL_S, timeout=PATIENCE_S)
        told = answer.json()
        code = "ok" if answer.status_code == 200 else str(told["code"])
        ns = int((told.get("usage") or {}).get("ns", 0)) if code == "ok" else 0
        self.outcomes.append(
            LiveOutcome(
                ref=ref, name=name, code=code, id=str(told.get("id", "")), ns=ns, detail=str(told.get("detail", ""))
            )
        )

    def _stream(self, client: GatewayClient, ref: str, name: str) -> None:
        body, events = {"input": {"name": name, "seconds": CALL_S}}, {"Accept": "text/event-stream"}
        with client.http.stream(
            "POST", f"/v1/functions/{ref}/calls", json=body, headers=events, timeout=PATIENCE_S
        ) as stream:
            lines = list(stream.iter_lines())
        if stream.status_code != 200:
            code = str(json.loads("".join(lines))["code"])
        elif "event: error" in lines:
            last = next(line for line in reversed(lines) if line.startswith("data: "))
            code = str(json.loads(last.removeprefix("data: "))["code"])
        else:
            code = "ok" if sum(line == "event: chunk" for line in lines) == 10 else "cut short"
        self.outcomes.append(LiveOutcome(ref=ref, name=name, code=code))

    def _submit(self) -> None:
        number = 0
        while not self._stopping.wait(JOB_EVERY_S):
            ref, client = ("once", "again")[number % 2], self._clients[number // 2 % len(self._clients)]
            name, number = f"{self._prefix}-job-{ref}-{number}", number + 1
            body = {"input": {"name": name, "seconds": 0.05}}
            self.jobs[self._accepted(client, f"/v1/functions/counted.{ref}/calls", name, {"json": body})] = name

    def _submit_batch(self) -> str:
        lines = (json.dumps({"custom_id": f"row-{n}", "input": {"value": n}}) for n in range(BATCH_LINES))
        body = {"content": "\n".join(lines), "params": {"function": "counted.steady"}}
        return self._accepted(self._clients[-1], "/v1/batches", f"{self._prefix}-batch", body)

    def _accepted(self, client: GatewayClient, path: str, key: str, body: dict[str, Any]) -> str:
        """Ask again under the same key until it is accepted; its id."""
        headers = {"Idempotency-Key": key, "Prefer": "respond-async"}
        if "content" in body:
            headers["Content-Type"] = "application/x-ndjson"
        end = time.monotonic() + END_S
        while time.monotonic() < end:
            try:
                answer = client.http.post(path, headers=headers, timeout=PATIENCE_S, **body)
            except httpx.TransportError:
                pass
            else:
                if answer.status_code in (201, 202):
                    return str(answer.json()["id"])
                assert answer.status_code in (409, 429, 503), answer.text
            time.sleep(0.2)
        raise AssertionError(f"{key} is not accepted")


def check_promises(load: MixedLoad, *, interrupted: bool = False, unbilled: bool = False) -> None:
    """Nothing has run twice, nothing that was accepted is lost, and each call is billed once.

    Args:
        interrupted: whether jobs may have been, which have begun and must not begin again.
        unbilled: whether an agent has died, with what it had not written down yet.
    """
    _check_calls(load)
    _check_jobs(load, interrupted=interrupted)
    _check_batch(load)
    _check_webhooks(load)
    _check_bills(load, unbilled=unbilled)


def _check_calls(load: MixedLoad) -> None:
    runs = load.world.runs()
    answered = [each for each in load.outcomes if each.code == "ok"]
    assert [each for each in answered if not runs[each.name]] == []
    assert [each for each in load.outcomes if each.ref in ONCE and runs[each.name] > 1] == []


def _check_jobs(load: MixedLoad, *, interrupted: bool) -> None:
    client = load.world.clients[-1]
    ended = {job: client.ended(job, END_S) for job in load.jobs}
    runs = load.world.runs()
    for job, name in load.jobs.items():
        told, idempotent = ended[job], "-again-" in name
        if told["state"] == "succeeded":
            assert (told["output"], runs[name] > 0) == (name, True), told
        else:
            assert interrupted, told
            assert (told["state"], told["reason"]) == ("failed", "interrupted"), told
        assert runs[name] <= told["attempts"] <= (STARTS_AGAIN if idempotent else 1), told


def _check_batch(load: MixedLoad) -> None:
    http = load.world.clients[-1].http

    def is_over() -> bool:
        answer = http.get(f"/v1/batches/{load.batch}")
        return answer.status_code == 200 and answer.json()["state"] == "completed"

    wait_until(is_over, "the batch is over", END_S)
    found = [(line.get("custom_id"), line.get("output")) for line in _results(load)]
    assert found == [(f"row-{n}", n) for n in range(BATCH_LINES)]


def _results(load: MixedLoad) -> list[dict[str, Any]]:
    """The lines of the batch; whoever cannot be asked now says 503."""
    http = load.world.clients[-1].http

    def look() -> str | None:
        answer = http.get(f"/v1/batches/{load.batch}/results")
        return answer.text if answer.status_code == 200 else None

    return [json.loads(line) for line in wait_until(look, "the batch is read").splitlines() if line]


def _check_webhooks(load: MixedLoad) -> None:
    world = load.world
    ended = load.jobs.keys() | {str(line["id"]) for line in _results(load)}

    def told() -> set[str]:
        return {str(json.loads(body)["data"]["id"]) for _, body in list(world.receiver.got)}

    wait_until(lambda: ended <= told(), "webhooks tell of every job", END_S)


def _check_bills(load: MixedLoad, *, unbilled: bool) -> None:
    runs = load.world.runs()
    # One that may run again, and has, since its answer was lost, is billed for its lost run, and for what the next took
    # longer: how long the first was, nobody has told its caller.
    answered = {each.id: each.ns for each in load.outcomes if each.ns and runs[each.name] == 1}
    assert answered

    def wrong() -> dict[str, tuple[int, int]]:
        """What an agent had not written when it was killed is never billed; nothing is billed twice."""
        billed = ledger.receipts(load.world)
        found = {call: (billed.get(call, 0), ns) for call, ns in answered.items()}
        return {call: (had, ns) for call, (had, ns) in found.items() if had > ns or (had < ns and not unbilled)}

    try:
        wait_until(lambda: not wrong(), "each call is billed what its answer says", END_S)
    except AssertionError as error:
        raise AssertionError(wrong()) from error
