"""Clients that never pause, as those behind a load balancer: each calls the gateway that it likes best of those that
say they are ready, over connections that are kept, and repeats nothing.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.waiting import wait_until

CHECK_S = 0.25
"""Between two looks at whether a gateway is ready, as a load balancer's."""
CALL_S, STREAM_S, JOB_S = 0.2, 0.8, 0.1
PIECES = 10
PATIENCE_S = 60.0
STREAM = {"Accept": "text/event-stream"}


@dataclass(kw_only=True)
class SteadyLoad:
    """Two callers, a stream and a submitter of jobs for each gateway, from the beginning of the block to its end."""

    urls: Sequence[str]
    """Of all gateways."""
    key: str
    failures: list[str] = field(default_factory=list)
    """What went wrong, in words."""
    calls: Counter[str] = field(default_factory=Counter)
    """How many of each kind have succeeded."""
    names: list[str] = field(default_factory=list)
    """Of all that have succeeded, jobs as well once they have ended."""
    ids: list[str] = field(default_factory=list)
    """Of calls that were answered."""
    jobs: dict[str, str] = field(default_factory=dict)
    """Accepted ones: id -> name."""

    def __post_init__(self) -> None:
        self._over = threading.Event()
        self._ready = [True] * len(self.urls)
        self._taken_out: set[int] = set()
        self._numbers, self._lock = itertools.count(), threading.Lock()
        self._busy: Counter[int] = Counter()
        """Requests that are open, by gateway."""
        self._later = self.submit_at(time.time() + 3600.0, "later")
        self._threads = ThreadPoolExecutor(6 * len(self.urls))
        self._running: list[Future[None]] = []

    def __enter__(self) -> SteadyLoad:
        for best in range(len(self.urls)):
            for act in (self._call, self._call, self._stream, self._submit, self._wait):
                self._running.append(self._threads.submit(self._repeat, best, act))
            self._running.append(self._threads.submit(self._check, best))
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._threads.shutdown()
        for each in self._running:
            each.result()

    @contextmanager
    def without(self, number: int) -> Iterator[None]:
        """Call the others in the block: an operator has taken this gateway out of the load balancer."""
        self._taken_out.add(number)
        try:
            wait_until(lambda: not self._busy[number], "nobody calls it any more", PATIENCE_S)
            yield
        finally:
            self._taken_out.discard(number)

    def wait_for_more(self, calls: int = 12) -> None:
        """Until so many more calls and a stream have succeeded, or something has failed."""
        goal, streams, failed = self.calls["call"] + calls, self.calls["stream"], len(self.failures)
        wait_until(
            lambda: (self.calls["call"] >= goal and self.calls["stream"] > streams) or len(self.failures) > failed,
            "calls are answered",
            PATIENCE_S,
        )

    def check(self, *, but: Callable[[str], bool] = lambda _: False) -> None:
        """Nothing has failed that was not to be expected, every job has ended well, and nothing has run twice."""
        with self._http(0, PATIENCE_S) as http:
            for job, name in self.jobs.items():
                self._note_end(job, name, http)
        wrong = [failure for failure in self.failures if not but(failure)]
        assert not wrong, "\n".join(wrong)
        expected = set(self.names)
        wait_until(lambda: expected <= self._runs().keys(), "all lines are logged", PATIENCE_S)
        found = self._runs()
        assert {name: found[name] for name in expected if found[name] > 1} == {}

    def _note_end(self, job: str, name: str, http: httpx.Client) -> None:
        def ended() -> dict[str, Any] | None:
            found: dict[str, Any] = http.get(f"/v1/calls/{job}", headers={"Prefer": "wait=5"}).json()
            return found if found.get("state") not in ("queued", "running", None) else None

        end = wait_until(ended, f"{job} ends", PATIENCE_S)
        if end["state"] == "succeeded":
            self.names.append(name)
        else:
            self.failures.append(f"job {name}: {end}")

    def _runs(self) -> Counter[str]:
        with self._http(0, PATIENCE_S) as http:
            lines = [json.loads(line)["text"] for line in http.get("/v1/apps/crash/logs").text.splitlines() if line]
        return Counter(line.removeprefix("ran ") for line in lines if line.startswith("ran "))

    @contextmanager
    def _called(self, best: int) -> Iterator[int]:
        """The gateway to call, counted as busy."""
        with self._lock:
            order = sorted(range(len(self.urls)), key=lambda number: (number in self._taken_out, number != best))
            chosen = next((number for number in order if self._ready[number]), order[0])
            self._busy[chosen] += 1
        try:
            yield chosen
        finally:
            with self._lock:
                self._busy[chosen] -= 1

    # -- one caller ----------------------------------------------------------------------------------------------

    def _check(self, number: int) -> None:
        with self._http(number, 2.0) as http:
            while not self._over.wait(CHECK_S):
                try:
                    self._ready[number] = http.get("/readyz").status_code == 200
                except httpx.TransportError:
                    self._ready[number] = False

    def _repeat(self, best: int, act: Callable[[httpx.Client, str], str]) -> None:
        """Act again and again at the gateway with this number, or at another one while that is not ready."""
        clients = [self._http(number, PATIENCE_S) for number in range(len(self.urls))]
        try:
            while not self._over.is_set():
                name = f"load-{best}-{next(self._numbers)}"
                with self._called(best) as chosen:
                    try:
                        self.calls[act(clients[chosen], name)] += 1
                    except (httpx.HTTPError, AssertionError) as error:
                        at = time.strftime("%H:%M:%S")
                        self.failures.append(f"{at} {act.__name__} at gateway {chosen + 1}: {error!r}"[:600])
                        self._over.wait(CHECK_S)
        finally:
            for client in clients:
                client.close()

    def _http(self, number: int, timeout: float) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.key}"}
        return httpx.Client(base_url=self.urls[number], headers=headers, timeout=timeout, trust_env=False)

    def _call(self, http: httpx.Client, name: str) -> str:
        body = {"input": {"name": name, "seconds": CALL_S}}
        answer = http.post("/v1/functions/crash.once/calls", json=body)
        assert answer.status_code == 200, f"{answer.status_code} {answer.text}"
        assert answer.json()["output"] == name
        self.ids.append(answer.json()["id"])
        self.names.append(name)
        return "call"

    def _stream(self, http: httpx.Client, name: str) -> str:
        body = {"input": {"name": name, "seconds": STREAM_S}}
        with http.stream("POST", "/v1/functions/crash.counts/calls", json=body, headers=STREAM) as answer:
            lines = list(answer.iter_lines())
        assert answer.status_code == 200, f"{answer.status_code} {lines}"
        assert lines.count("event: chunk") == PIECES, lines
        self.names.append(name)
        return "stream"

    def submit_at(self, at: float, name: str) -> str:
        """The id of a job that does not begin before the unix second `at`."""
        body = {"input": {"name": name, "seconds": 0.0}, "run_at": at}
        with self._http(0, PATIENCE_S) as http:
            answer = http.post("/v1/functions/crash.again/calls", json=body, headers={"Prefer": "respond-async"})
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    def _wait(self, http: httpx.Client, _: str) -> str:
        """For a job that does not end meanwhile: such a wait is open whenever a gateway ends."""
        answer = http.get(f"/v1/calls/{self._later}", headers={"Prefer": "wait=3"})
        assert (answer.status_code, answer.json().get("state")) == (200, "queued"), answer.text
        self._over.wait(CHECK_S)
        return "wait"

    def _submit(self, http: httpx.Client, name: str) -> str:
        body = {"input": {"name": name, "seconds": JOB_S}}
        answer = http.post("/v1/functions/crash.again/calls", json=body, headers={"Prefer": "respond-async"})
        assert answer.status_code == 202, f"{answer.status_code} {answer.text}"
        self.jobs[answer.json()["id"]] = name
        self._over.wait(5 * JOB_S)
        return "job"
