"""The judge is killed again and again on a real platform, and finds what one finds that nobody kills."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
import time
from functools import partial
from pathlib import Path

import httpx
import pytest

from pilotlight_core.bus import connect
from pilotlight_core.host.registry import Registry
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.logs import ComparedCalls
from pilotlight_gateway.judging.evidence import encode_evidence, fold, start
from pilotlight_gateway.rollouts.evidence_store import BusEvidence
from tests.system.support.platform import Platform
from tests.system.test_rollouts import WORKS, WORKS_TOO, rollout_of, write_app
from tests.waiting import wait_until

KILLS = 50
TENANT, APP = "default", "shop"
PARTS = ("gateway", "gateway-2")


async def stored_and_folded(nats_url: str) -> tuple[bytes, bytes, int]:
    """What is stored as evidence, what one fold of the whole stream comes to, and how many calls that are."""
    async with connect(nats_url, name="test", makes_streams=False) as bus, Registry(bus) as registry:
        record = registry.rollout_nowait(TENANT, APP)
        assert record is not None
        assert record.rollout is not None
        kept = await BusEvidence(bus, region="local").read(TENANT, APP)
        assert kept.evidence is not None
        evidence = start(record.rollout, shadowed=["price"])
        subject = subjects.compared("local", TENANT, APP)
        async for each in bus.read_stream(subjects.COMPARED_STREAM, subject):
            if each.seq <= kept.evidence.seq and isinstance(each.message, ComparedCalls):
                fold(evidence, each.seq, each.message.calls)
        return encode_evidence(kept.evidence), encode_evidence(evidence), evidence.calls


def _is_back(pair: Platform, part: str, before: int) -> bool:
    return pair.pids.get(part, before) != before


@pytest.mark.long
@pytest.mark.timeout(900)
def test_fifty_kills_of_the_judge_change_no_bit(pair: Platform, tmp_path: Path) -> None:
    """Whichever gateway keeps the rollout."""
    pair.deploy(Path(write_app(tmp_path, WORKS)))
    over = threading.Event()

    def call() -> None:
        with httpx.Client(headers={"Authorization": f"Bearer {pair.key}"}, timeout=10.0) as client:
            for number in range(10**9):
                if over.is_set():
                    return
                try:
                    client.post(f"{pair.urls[number % 2]}/v1/functions/shop.price/calls", json={"input": {}})
                except (httpx.HTTPError, json.JSONDecodeError):
                    time.sleep(0.05)

    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    try:
        words = ("--steps", "50,100", "--every", "10h", "--pairs", "0")
        pair.cli("deploy", write_app(tmp_path, WORKS_TOO), "--rollout", *words)
        wait_until(lambda: rollout_of(pair)["state"] == "ramp", "it is on its ramp", 60.0)
        for number in range(KILLS):
            part = PARTS[number % 2]
            before = pair.kill(part)
            wait_until(partial(_is_back, pair, part, before), "it is back", 30.0)
    finally:
        over.set()
        for caller in callers:
            caller.join()

    def at_rest() -> bool:
        stored, folded, calls = asyncio.run(stored_and_folded(pair.nats_url))
        return calls > KILLS and stored == folded

    wait_until(at_rest, "the evidence is that of one fold", 30.0)


WORDS = ("pause", "resume", "pause", "freeze", "abort")
SAID = ["is started by", "Paused by", "Paused by", "Frozen by", "Aborted by"]
"""What is told of them, and of the start; going on is no news."""


@pytest.mark.long
@pytest.mark.timeout(300)
def test_what_becomes_of_a_rollout_is_told_once_though_each_gateway_that_wrote_it_dies(
    pair: Platform, tmp_path: Path
) -> None:
    """Both are killed as soon as a person has the answer: the news stand in the record, and the next keeper tells
    them.
    """
    pair.deploy(Path(write_app(tmp_path, WORKS)))
    words = ("--steps", "50,100", "--every", "10h", "--pairs", "0")
    pair.cli("deploy", write_app(tmp_path, "return 2 - 1"), "--rollout", *words)
    began = rollout_of(pair)["id"]
    for word in WORDS:
        answer = wait_until(partial(_said, pair, word), f"{word} is taken", 60.0)
        assert answer.status_code == 200, (word, answer.text, rollout_of(pair))
        before = {part: pair.signal(part, signal.SIGKILL) for part in PARTS}
        for part, pid in before.items():
            wait_until(partial(_is_back, pair, part, pid), "it is back", 30.0)

    def told() -> list[str]:
        shown = json.loads(pair.cli("events", "--kind", "rollout", "--json").stdout)["events"]
        return [event["says"] for event in shown if event["facts"]["rollout"] == began]

    wait_until(lambda: all(any(each in says for says in told()) for each in SAID), "all is told", 60.0)
    time.sleep(1.0)  # and nothing twice
    of_people = [says for says in told() if " by " in says]
    assert len(of_people) == len(SAID), of_people
    assert all(says.count(each) == 1 for says, each in zip(of_people, SAID, strict=True))
    pair.cli("app", "stop", "shop")


def _said(pair: Platform, word: str) -> httpx.Response | None:
    try:
        answer = pair.http.post(f"/v1/apps/shop/rollout/{word}", json={})
    except httpx.TransportError:
        return None
    return answer if answer.status_code != 503 else None
