"""Each part is killed in the middle of load, and stopped and continued at random instants. SEED=n repeats a run."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from pilotlight_gateway.cluster.node_incarnations import LOST_AFTER_S
from pilotlight_runtime.calls.waiting_calls import notes_in
from pilotlight_runtime.metering.usage_metering import boot_id
from tests.system.apps.crash.app import MARK
from tests.system.support.ledger import (
    check_devices_are_accounted_whole,
    check_no_instant_is_sold_twice,
    check_nothing_is_in_quarantine,
    receipts,
)
from tests.system.support.load import BROKEN, Load, Outcome
from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.system.support.processes import descendants, is_alive, sandboxes_of
from tests.system.support.sample_apps import APPS, EXAMPLES
from tests.variants import with_variants
from tests.waiting import wait_until

pytestmark = [pytest.mark.crash, pytest.mark.timeout(150)]
SLOTS = 8
PARTS = ("agent", "gateway", "guest", "controller", "duties", "nats")
"""The first is killed here in CI. In other files gateways die (`test_crash_gateways.py`), jobs, schedules, streams and
what is parked survive the others, and calls and their bills the bus (`tests/hosts/test_fleet.py`); all are killed here
by `make test-crash`."""
OTHERS = ("controller", "duties", "gateway", "nats")
ALLOWED = {
    "guest": {"container_died"},
    "agent": {"container_died"},
    "controller": set[str](),
    "duties": set[str](),
    "gateway": {BROKEN},
    "nats": {"container_died"},
}
"""What callers may be told besides an answer, when this part dies."""
HELLO_WITHIN_S = 5.0
MODEL_WITHIN_S = 15.0
LEASE_S = 3.0
RERUNS = 2


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A platform of its own, since its parts are killed."""
    with run_platform(tmp_path_factory.mktemp("crash"), "--cpu-slots", str(SLOTS), "--blanks", "1") as running:
        running.deploy(APPS / "crash" / "app.py")
        running.deploy(EXAMPLES / "hello" / "app.py")
        yield running


@pytest.mark.parametrize("part", with_variants(PARTS, 1))
def test_a_killed_part_is_survived(platform: Platform, chance: random.Random, part: str) -> None:
    """Five seconds later all is well again; nothing is run twice that must not be, billed twice, or left over."""
    load = Load(platform=platform, seed=chance.randrange(10**9))
    with load.running():
        wait_until(lambda: load.codes()["ok"] > 40, "the load runs", 30.0)
        time.sleep(chance.uniform(0.0, 1.0))
        below = below_agent(platform)
        killed = kill(platform, part)
        wait_until(lambda: time.monotonic() > killed + HELLO_WITHIN_S, "five seconds have passed")
        hello = platform.call("hello.greet", name="again", timeout=20.0)

    assert hello.status_code == 200, hello.text
    assert set(load.codes()) - {"ok"} <= ALLOWED[part], load.codes()
    assert set(load.codes("crash.again")) - {"ok", BROKEN} == set()
    check_starts(load, part)
    check_nothing_is_left(platform, below, part)
    check_receipts(platform, load)


@pytest.mark.long
@pytest.mark.timeout(400)
def test_death_after_death_is_survived(platform: Platform, chance: random.Random) -> None:
    """Thirty times one part or another is killed, sometimes before the last one is back."""
    load = Load(platform=platform, seed=chance.randrange(10**9))
    below: set[int] = set()
    with load.running():
        for part in [chance.choice(PARTS) for _ in range(30)]:
            print(part)
            wait_until(partial(is_there, platform, part), f"{part} is there", 30.0)
            below |= below_agent(platform)
            kill(platform, part)
            time.sleep(chance.choice((chance.uniform(0.0, 0.5), chance.uniform(1.0, 8.0))))
        wait_until(platform.is_ready, "it is ready", 30.0)

    assert set(load.codes()) - {"ok"} <= {"container_died", BROKEN}, load.codes()
    check_starts(load, "agent")
    check_nothing_is_left(platform, below, "last")
    assert platform.call("hello.greet").status_code == 200
    check_receipts(platform, load)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_what_is_answered_is_billed_though_agents_are_killed(platform: Platform, chance: random.Random) -> None:
    """Fifty times, under load: answered = receipted = billed, to the nanosecond."""
    load = Load(platform=platform, seed=chance.randrange(10**9))
    with load.running():
        for _ in range(50):
            wait_until(partial(is_there, platform, "agent"), "the agent is there", 30.0)
            before = load.codes()["ok"]
            wait_until(partial(more_than, load, before + 20), "calls are answered", 60.0)
            time.sleep(chance.uniform(0.0, 1.5))
            kill(platform, "agent")
        wait_until(platform.is_ready, "it is ready", 30.0)

    assert set(load.codes()) - {"ok"} <= ALLOWED["agent"], load.codes()
    check_starts(load, "agent")
    check_receipts(platform, load)


def more_than(load: Load, count: int) -> bool:
    """Whether more than so many calls were answered."""
    return load.codes()["ok"] > count


def first_time(outcome: Outcome) -> bool:
    """Whether it was answered by the first container that it was sent to."""
    return outcome.code == "ok" and outcome.answer["usage"]["attempts"] == 1


def below_agent(platform: Platform) -> set[int]:
    """The agent and all that it has started, if there is one at the moment."""
    agent = platform.pids.get("agent")
    return {agent, *descendants(agent)} if agent else set()


def is_there(platform: Platform, part: str) -> bool:
    """Whether a part runs, and can be killed."""
    pids = platform.pids
    if part == "guest":
        return "agent" in pids and any(is_working_guest(pid) for pid in descendants(pids["agent"]))
    return part in pids and is_alive(pids[part])


@pytest.mark.long
@pytest.mark.parametrize("part", ["agent", *OTHERS])
def test_a_model_is_back_in_fifteen_seconds(platform: Platform, part: str) -> None:
    """MiniLM, whose container was running, answers within 15 s of the death of a part."""
    platform.deploy(EXAMPLES / "embeddings" / "app.py")
    before = platform.output("embeddings.MiniLM", "embed", text="a small flame")
    killed = kill(platform, part)
    wait_until(lambda: time.monotonic() > killed + HELLO_WITHIN_S, "five seconds have passed")

    after = platform.output("embeddings.MiniLM", "embed", text="a small flame")

    assert time.monotonic() - killed < MODEL_WITHIN_S
    assert max(abs(a - b) for a, b in zip(before, after, strict=True)) < 1e-5


@pytest.mark.variant
def test_calls_in_a_batch_that_forms_survive_their_agent(platform: Platform) -> None:
    """They had not started: each runs elsewhere, once, though the function is not idempotent."""
    notes, names = platform.state / "node" / "local" / "waiting", [f"patient {number}" for number in range(6)]
    with ThreadPoolExecutor(len(names)) as callers:
        answers = callers.map(lambda name: platform.call("crash.Patient", 30.0, "work", name=name), names)
        wait_until(lambda: len(notes_in(notes, boot_id())) == len(names), "the batch forms", 30.0)
        killed = platform.pids["agent"]
        platform.kill("agent")
        told = list(answers)

    assert [answer.json()["output"] for answer in told] == names
    assert {answer.json()["usage"]["attempts"] for answer in told} == {1}
    assert platform.pids["agent"] != killed
    lines = [f"ran {name}" for name in names]
    wait_until(lambda: ran(platform, "Patient", lines) == Counter(lines), "each has run once, and says so")


def ran(platform: Platform, function: str, lines: list[str]) -> Counter[str]:
    """How often each of these lines was logged."""
    return Counter(line["text"] for line in platform.logs("crash", function) if line["text"] in lines)


STILL = ("gateway", "agent")


@pytest.mark.parametrize(
    ("parts", "count"), [(STILL, 14), *(pytest.param((part,), 50, marks=pytest.mark.long) for part in STILL)]
)
def test_nothing_starts_twice_when_a_part_stands_still(
    platform: Platform, chance: random.Random, parts: tuple[str, ...], count: int
) -> None:
    """Again and again one of the parts is stopped and goes on, a few times for longer than its lease lives."""
    load = Load(platform=platform, seed=chance.randrange(10**9))
    with load.running():
        wait_until(lambda: load.codes()["ok"] > 20, "the load runs", 30.0)
        for seconds in pauses(chance, count):
            part = chance.choice(parts)
            time.sleep(chance.uniform(0.0, 0.3))
            platform.signal(part, signal.SIGSTOP)
            time.sleep(seconds)
            platform.signal(part, signal.SIGCONT)

    assert set(load.codes()) == {"ok"}, load.codes()
    wait_until(load.are_logged, "all lines are logged")
    assert {name: count for name, count in load.starts().items() if count > 1} == {}
    check_receipts(platform, load)


@pytest.mark.long
@pytest.mark.parametrize("part", ["gateway", "agent", "controller", "duties", "nats"])
def test_a_part_that_stood_still_for_long_does_no_harm(platform: Platform, chance: random.Random, part: str) -> None:
    """So long that it was given up; what it then still says is fenced.

    Chunks that the bus held for a gateway are lost with its connection: such a stream is told so.
    """
    load = Load(platform=platform, seed=chance.randrange(10**9))
    with load.running():
        wait_until(lambda: load.codes()["ok"] > 20, "the load runs", 30.0)
        platform.signal(part, signal.SIGSTOP)
        time.sleep(LOST_AFTER_S + 2.0)
        platform.signal(part, signal.SIGCONT)
        before = load.codes()["ok"]
        wait_until(lambda: load.codes()["ok"] > before + 40, "the load runs again", 30.0)

    failed = [one for one in load.outcomes if one.code != "ok"]
    may_fail = ("crash.counts",) if part == "gateway" else () if part in ("controller", "duties") else None
    assert {one.code for one in failed} <= {"container_died"}, failed
    assert may_fail is None or {one.ref for one in failed} <= set(may_fail), failed
    check_starts(load, part)
    check_receipts(platform, load)


def pauses(chance: random.Random, count: int) -> list[float]:
    """Mostly short ones; some of up to two seconds, and a few beyond a lease's life."""
    found = [chance.uniform(0.05, 0.4) for _ in range(count - 8)]
    found += [chance.uniform(0.4, 2.0) for _ in range(5)] + [LEASE_S + chance.uniform(0.2, 1.2) for _ in range(3)]
    return chance.sample(found, count)


def kill(platform: Platform, part: str) -> float:
    """kill -9; the instant at which it was dead."""
    if part != "guest":
        platform.kill(part)
        return time.monotonic()
    guests = [pid for pid in descendants(platform.pids["agent"]) if is_working_guest(pid)]
    os.kill(guests[0], signal.SIGKILL)
    wait_until(lambda: not is_alive(guests[0]), "the guest dies")
    return time.monotonic()


def is_working_guest(pid: int) -> bool:
    """Whether it is the guest of a function that has been called, seen from the host."""
    process = Path(f"/proc/{pid}")
    try:
        return b"bwrap" not in (process / "cmdline").read_bytes() and (process / f"root{MARK}").exists()
    except OSError:
        return False


def check_starts(load: Load, part: str) -> None:
    """A call runs once; where the container died under it, and only where it may, at most twice more."""
    if part != "agent":  # which takes the lines with it that it has not handed in yet
        wait_until(load.are_logged, "all lines are logged")
    for name, count in load.starts().items():
        assert count <= (1 + RERUNS if name.startswith("crash.again") else 1), f"{name} ran {count} times"


def check_nothing_is_left(platform: Platform, before: set[int], part: str) -> None:
    """Neither `container list` nor the process table nor the control groups show more than the blank, and hello."""
    node = platform.state / "node" / "local"

    def clean() -> bool:
        agent = platform.pids["agent"]
        stayed = before - descendants(agent) - {agent}
        apps = {container["app"] for container in platform.containers()}
        return (
            not any(is_alive(pid) for pid in stayed)
            and apps <= {"hello", "embeddings"}
            and sandboxes_of(agent, node).count == len(platform.containers()) + platform.blanks()
        )

    wait_until(clean, f"nothing is left after the death of the {part}")


def check_receipts(platform: Platform, load: Load) -> None:
    """What callers were told they used is what the ledger has for the call, once; no instant is sold twice."""
    told = {o.answer["id"]: o.answer["usage"]["ns"] for o in load.outcomes if o.code == "ok"}
    wait_until(
        lambda: all(receipts(platform)[call] >= ns for call, ns in told.items()), "every answered call is in the ledger"
    )
    check_nothing_is_in_quarantine(platform)
    found, once = receipts(platform), {o.answer["id"] for o in load.outcomes if first_time(o)}
    assert {call: found[call] for call in once} == {call: told[call] for call in once}
    check_no_instant_is_sold_twice(platform)
    check_devices_are_accounted_whole(platform)
