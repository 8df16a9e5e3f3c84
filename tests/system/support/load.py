"""Callers that call without a pause, and what they were told."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.system.support.platform import Platform

BROKEN = "connection broken"
"""The outcome of a call whose connection did not live to its answer."""
PATIENCE_S = 120.0
"""A call that is only late is not broken off: the machine may be busy."""
TARGETS: dict[str, str | None] = {
    "crash.once": None,
    "crash.again": None,
    "crash.counts": None,
    "crash.Together": "work",
}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one call. `code` is "ok", a problem's code, or `BROKEN`."""

    ref: str
    name: str
    code: str
    at: float
    """Monotonic seconds."""
    url: str = ""
    """The gateway that was called."""
    answer: dict[str, Any] = field(default_factory=dict)


@dataclass(kw_only=True)
class Load:
    """Names of calls are unique within the test run, so that their log lines can be counted.

    The callers of each function are spread over all gateways.
    """

    platform: Platform
    seed: int
    outcomes: list[Outcome] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @contextmanager
    def running(self, each: int = 2) -> Iterator[None]:
        """`each` callers per function, until the block ends and all of them have been answered."""
        with ThreadPoolExecutor(each * len(TARGETS)) as callers:
            urls = self.platform.urls
            loops: list[Future[None]] = [
                callers.submit(self._call, ref, urls[number % len(urls)]) for ref in TARGETS for number in range(each)
            ]
            try:
                yield
            finally:
                self._over.set()
        for loop in loops:
            loop.result()

    def _call(self, ref: str, url: str) -> None:
        name = random.Random(f"{self.seed} {next(self._numbers)}")
        with httpx.Client(base_url=url, headers=self.platform.http.headers, timeout=PATIENCE_S) as http:
            while not self._over.is_set():
                self.outcomes.append(self._one(http, ref, name, url))

    def _one(self, http: httpx.Client, ref: str, chance: random.Random, url: str) -> Outcome:
        name = f"{ref}-{chance.getrandbits(64):x}"
        arguments = {"name": name, "seconds": round(chance.uniform(0.0, 0.6), 3)}
        body = {"input": arguments, "method": TARGETS[ref]}
        try:
            answer = http.post(f"/v1/functions/{ref}/calls", json=body)
        except httpx.TransportError as error:
            self._over.wait(0.1)  # a gateway that is being started again is not hammered
            told = {"error": repr(error)}
            return Outcome(ref=ref, name=name, code=BROKEN, at=time.monotonic(), url=url, answer=told)
        told = answer.json()
        code = "ok" if answer.status_code == 200 else told["code"]
        return Outcome(ref=ref, name=name, code=code, at=time.monotonic(), url=url, answer=told)

    def codes(self, ref: str | None = None) -> Counter[str]:
        """How often each outcome came."""
        return Counter(outcome.code for outcome in self.outcomes if ref in (None, outcome.ref))

    def starts(self) -> Counter[str]:
        """How often each call ran, as the log tells."""
        lines = (line["text"] for line in self.platform.logs("crash"))
        ran = Counter(text.removeprefix("ran ") for text in lines if text.startswith("ran "))
        return Counter({outcome.name: ran[outcome.name] for outcome in self.outcomes})

    def are_logged(self) -> bool:
        """Whether every call that was answered is in the log."""
        ran = self.starts()
        return all(ran[outcome.name] for outcome in self.outcomes if outcome.code == "ok")
