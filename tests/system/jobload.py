"""Submitters of durable calls, each of which is submitted until it is accepted, and what became of them."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.system.platform import Platform

REFS: dict[str, str | None] = {"crash.once": None, "crash.again": None, "crash.Together": "work"}
PATIENCE_S = 20.0
ACCEPT_WITHIN_S = 90.0
OPEN = ("queued", "running")


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """A job whose 202 was seen."""

    id: str
    ref: str
    name: str


@dataclass(kw_only=True)
class JobLoad:
    """Names are unique, so that a job's starts can be counted in the log."""

    platform: Platform
    seed: int
    count: int
    longest: float = 0.05
    """Seconds that a job takes at most."""
    accepted: list[Accepted] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    """Set once all were accepted."""

    def submit_all(self, submitters: int = 8) -> None:
        """Submit every job at one gateway or another, again under its key until it is accepted."""
        parts = [range(first, self.count, submitters) for first in range(submitters)]
        with ThreadPoolExecutor(submitters) as threads:
            done, _ = wait([threads.submit(self._submit, part) for part in parts])
        for one in done:
            one.result()
        self.over.set()

    def _submit(self, numbers: range) -> None:
        urls = self.platform.urls
        with httpx.Client(headers=self.platform.http.headers, timeout=PATIENCE_S) as http:
            for number in numbers:
                chance = random.Random(f"{self.seed} {number}")
                self.accepted.append(self._one(http, urls, number, chance))

    def _one(self, http: httpx.Client, urls: list[str], number: int, chance: random.Random) -> Accepted:
        ref = list(REFS)[number % len(REFS)]
        name = f"{ref}-job-{chance.getrandbits(64):x}"
        seconds = round(chance.uniform(0.0, self.longest), 3)
        body = {"input": {"name": name, "seconds": seconds}, "method": REFS[ref]}
        headers = {"Prefer": "respond-async", "Idempotency-Key": name}
        end = time.monotonic() + ACCEPT_WITHIN_S
        while time.monotonic() < end:
            try:
                answer = http.post(f"{chance.choice(urls)}/v1/functions/{ref}/calls", json=body, headers=headers)
            except httpx.TransportError:
                time.sleep(0.1)  # a gateway that is being started again is not hammered
                continue
            if answer.status_code == 202:
                return Accepted(id=answer.json()["id"], ref=ref, name=name)
            assert answer.status_code in (429, 503), answer.text
            time.sleep(0.1)
        raise AssertionError(f"{name} was not accepted within {ACCEPT_WITHIN_S:g} s")

    def records(self) -> dict[str, dict[str, Any]]:
        """Every job of the tenant as it is now, by id; each is listed once."""
        found: dict[str, dict[str, Any]] = {}
        cursor: dict[str, str] = {}
        while True:
            page = self.platform.http.get("/v1/jobs", params={"limit": "1000", **cursor})
            assert page.status_code == 200, page.text
            found |= {job["id"]: job for job in page.json()["jobs"]}
            if page.json()["next"] is None:
                return found
            cursor = {"cursor": page.json()["next"]}

    def open(self) -> int:
        """How many have not ended, as far as the platform can say; all, if it cannot."""
        asked = {"state": ",".join(OPEN), "limit": "1000"}
        count = 0
        while True:
            try:
                answer = self.platform.http.get("/v1/jobs", params=asked)
            except httpx.TransportError:
                return self.count
            if answer.status_code != 200:
                return self.count
            count += len(answer.json()["jobs"])
            if answer.json()["next"] is None:
                return count
            asked["cursor"] = answer.json()["next"]

    def starts(self) -> Counter[str]:
        """How often each job ran, as the log tells."""
        lines = (line["text"] for line in self.platform.logs("crash"))
        return Counter(text.removeprefix("ran ") for text in lines if text.startswith("ran "))
