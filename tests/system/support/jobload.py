"""Submitters of durable calls, each of which is submitted until it is accepted, and what became of them.

Half of them come under a key, so that a repetition is the same job. The others are new jobs when they are repeated.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httpx

from tests.system.support.ledger import billed, check_no_instant_is_sold_twice
from tests.system.support.load import Load
from tests.system.support.platform import Platform
from tests.waiting import wait_until

REFS: dict[str, str | None] = {"crash.once": None, "crash.again": None, "crash.Together": "work"}
STARTS_AGAIN = 3
"""Of an idempotent job: its first start, and two after interruptions."""
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
    unsure: list[str] = field(default_factory=list)
    """Submissions without a key of which nobody said what became of them: they may be jobs as well."""
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
        end = time.monotonic() + ACCEPT_WITHIN_S
        name, keyed = self._name(ref, chance), bool(number % 2)
        seconds = round(chance.uniform(0.0, self.longest), 3)
        while time.monotonic() < end:
            body = {"input": {"name": name, "seconds": seconds}, "method": REFS[ref]}
            headers = {"Prefer": "respond-async"} | ({"Idempotency-Key": name} if keyed else {})
            try:
                answer = http.post(f"{chance.choice(urls)}/v1/functions/{ref}/calls", json=body, headers=headers)
            except httpx.TransportError:
                pass  # a gateway that is being started again is not hammered
            else:
                if answer.status_code == 202:
                    return Accepted(id=answer.json()["id"], ref=ref, name=name)
                assert answer.status_code in (429, 503), answer.text
            if not keyed:
                self.unsure.append(name)
                name = self._name(ref, chance)
            time.sleep(0.1)
        raise AssertionError(f"{name} was not accepted within {ACCEPT_WITHIN_S:g} s")

    @staticmethod
    def _name(ref: str, chance: random.Random) -> str:
        return f"{ref}-job-{chance.getrandbits(64):x}"

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

    def ended(self, jobs: set[str]) -> dict[str, dict[str, Any]] | None:
        """Every job of the tenant, if these are among them and have ended."""
        records = self.records()
        return records if all(job in records and records[job]["state"] not in OPEN for job in jobs) else None

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

    def all_ended(self) -> bool:
        """Whether every job has, as far as the platform can say."""
        return self.open() == 0

    def starts(self) -> Counter[str]:
        """How often each job ran, as the log tells."""
        lines = (line["text"] for line in self.platform.logs("crash"))
        return Counter(text.removeprefix("ran ") for text in lines if text.startswith("ran "))


def survive(
    platform: Platform,
    chance: random.Random,
    parts: Sequence[str],
    *,
    jobs: int,
    kills: int,
    within: float,
    longest: float = 0.05,
) -> None:
    """Submit, call and kill; then every promise is checked."""
    load = JobLoad(platform=platform, seed=chance.randrange(10**9), count=jobs, longest=longest)
    live = Load(platform=platform, seed=chance.randrange(10**9))
    before = set(load.records())
    submitting = threading.Thread(target=load.submit_all)
    with live.running(each=1):
        submitting.start()
        for part in [chance.choice(parts) for _ in range(kills)]:
            time.sleep(chance.uniform(0.1, 2.0))
            print(part)
            wait_until(partial(platform.runs, part), f"{part} is there", 30.0)
            platform.kill(part)
        submitting.join()
    wait_until(platform.is_ready, "it is ready", 30.0)
    wait_until(load.all_ended, "every job has ended", within)
    check(platform, load, before)


def check(platform: Platform, load: JobLoad, before: set[str]) -> None:
    """Each accepted job has ended, once; nothing was started or billed that must not have been."""
    accepted = {one.id for one in load.accepted}
    assert len(accepted) == load.count
    # Lists are read from whichever server answers first, and one that was killed may be behind for a moment.
    records = wait_until(lambda: load.ended(accepted), "every accepted job is listed, and has ended")
    mine = set(records) - before
    assert len(mine - accepted) <= len(load.unsure)
    starts = load.starts()
    for one in load.accepted:
        job = records[one.id]
        idempotent = one.ref == "crash.again"
        if job["state"] == "succeeded":
            assert platform.http.get(f"/v1/calls/{one.id}").json()["output"] == one.name
        else:
            assert (job["state"], job["reason"]) == ("failed", "interrupted"), job
        assert 1 <= job["attempts"] <= (STARTS_AGAIN if idempotent else 1), job
        assert starts[one.name] <= job["attempts"], job
    check_no_instant_is_sold_twice(platform)
    paid = billed(platform)
    for one in load.accepted:
        job = records[one.id]
        if job["state"] == "succeeded":
            # What an agent had not written when it was killed is never billed; nothing is billed twice.
            assert paid.get(job["run"], 0) <= job["usage"]["ns"], job
