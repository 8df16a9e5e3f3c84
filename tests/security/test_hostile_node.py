"""A node that was taken over harms no call, no log and no bill but of what runs on it.

It has what its agent has: the agent's user of the bus, and what can be found out of other nodes' calls. It says what it
likes under its own name and under any other, on the subjects of today and on those from before they named nodes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import httpx
import msgspec
import pytest

from pilotlight_autoscaler.policy.start_backoff import LONGEST_DELAY_S
from pilotlight_core.model import values
from pilotlight_core.model.messages.agent_questions import AskNested, LeaveNested, NestedAnswer
from pilotlight_core.model.messages.call_messages import Ended, Outcome, Refusal, Refused, Run, Spent
from pilotlight_core.model.messages.logs import LogBatch, LogLine
from pilotlight_core.model.messages.node_messages import ContainerState, Credit, NodeReport
from pilotlight_core.model.messages.usage import CallShare, LeaseState, UsageBatch, UsageEvent
from tests.security.hostile_node import BusClient, hostile_node, run_of, spying_operator
from tests.security.memory import peak_mb
from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.system.support.sample_apps import APPS, deployed
from tests.variants import with_variants
from tests.waiting import wait_until

pytestmark = pytest.mark.system
FUNCTION = "default:crash.once"
SECONDS = 2.5
"""Of the call that is attacked."""
HEARTBEAT_S = 1.2
DAY = 86_400 * 10**9
AGENTS = {"local": "agent", "local-2": "agent-2"}
"""Node -> the part that is its agent."""
Attack = Callable[["Place", Run], None]


@pytest.fixture(scope="module")
def two_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A platform of two nodes, with a function on one of them."""
    folder = tmp_path_factory.mktemp("two_nodes")
    options = ("--cpu-slots", "4", "--blanks", "1", "--extra-agents", "1")
    # Calls are read on the bus here: a folder whose path is too long for a socket has no links.
    env = {"PILOTLIGHT_LINK_DIR": str(folder / ("x" * 120))}
    with run_platform(folder, *options, env=env, executed=True) as running:  # /proc says how its agents reach the bus
        wait_until(lambda: len(nodes(running)) == 2, "both nodes report")
        with deployed(running, APPS / "crash" / "app.py"):
            yield running


class Place:
    """A function's container on one node, and the other node, which is hostile."""

    def __init__(self, platform: Platform, spy: BusClient) -> None:
        self.platform, self.spy = platform, spy
        self.node = ""
        self.evil = ""
        self.hostile: BusClient
        self.pool = ThreadPoolExecutor(64)
        self.begun = 0

    def call(self, seconds: float = SECONDS) -> tuple[Future[httpx.Response], Run]:
        """A call that has begun to run."""
        known = len(self.spy.runs)
        answer = self.pool.submit(self.platform.call, "crash.once", name=f"n{known}", seconds=seconds)
        return answer, run_of(self.spy, known)

    def credit(self, run: Run, **more: Any) -> None:
        """A forged credit, on every subject on which it might count."""
        fields: dict[str, Any] = {
            "container": run.container, "version": run.version, "tenant": run.tenant, "node": self.evil,
            "instance": "evil", "epoch": 0, "seq": 10**9, "state": ContainerState.READY, "slots": 1,
            "function": FUNCTION,
        }  # fmt: skip
        credit = Credit(**fields | more)
        self.hostile.say(
            credit,
            f"pl.local.credit.{run.version}",
            f"pl.local.credit.{self.evil}.{run.version}",
            f"pl.local.credit.{self.node}.{run.version}",
            *self.replies(run),
        )

    def report(self, **more: Any) -> None:
        """A forged report."""
        fields: dict[str, Any] = {
            "node": self.node, "instance": "evil", "seq": 10**9, "region": "local", "zone": "z", "sandbox": "b",
        }  # fmt: skip
        self.hostile.say(NodeReport(**fields | more), f"pl.local.beat.{self.evil}", f"pl.local.beat.{self.node}")

    def frame(self, run: Run, frame: Any) -> None:
        """A forged frame."""
        self.hostile.say(frame, *self.replies(run), times=3)

    def replies(self, run: Run) -> tuple[str, ...]:
        before = f"pl.local.gw.{run.gateway}.reply"
        return before, f"{before}.{self.evil}", f"{before}.{self.node}"


@pytest.fixture
def place(two_nodes: Platform) -> Iterator[Place]:
    with spying_operator(two_nodes) as spy:
        found = Place(two_nodes, spy)
        two_nodes.output("crash.once", name="warm", seconds=0.0)
        found.node = two_nodes.container_of("crash", "once")["node"]
        (found.evil,) = set(AGENTS) - {found.node}
        with hostile_node(two_nodes, AGENTS[found.evil], found.evil) as hostile:
            found.hostile = hostile
            yield found
            found.pool.shutdown(cancel_futures=True)


def nodes(platform: Platform) -> list[str]:
    return [node["node"] for node in platform.http.get("/v1/nodes").json()["nodes"]]


def end(run: Run, **more: Any) -> Ended:
    fields: dict[str, Any] = {
        "call_id": run.call_id, "grant_number": run.grant_number, "container": run.container, "outcome": Outcome.OK,
        "output": values.encode("forged"), "spent": Spent(ns=10**15, ppm=10**6, price="h200"),
    }  # fmt: skip
    return Ended(**fields | more)


ATTACKS: dict[str, Attack] = {
    "a new agent there": lambda place, run: place.credit(run, node=place.node),
    "its container is gone": lambda place, run: place.credit(run, state=ContainerState.GONE),
    "its container is gone, it says": lambda place, run: place.credit(
        run, node=place.node, state=ContainerState.GONE
    ),
    "there is a newer home": lambda place, run: place.credit(run, container="ctr_evil", epoch=2**40),
    "that node has stopped": lambda place, _: place.report(stopped=True),
    "that node is new and empty": lambda place, _: place.report(),
    "it has ended": lambda place, run: place.frame(run, end(run)),
    "it has died": lambda place, run: place.frame(run, end(run, outcome=Outcome.DIED)),
    "it never started": lambda place, run: place.frame(run, end(run, outcome=Outcome.DIED, started=False)),
    "it was refused": lambda place, run: place.frame(
        run,
        Refused(
            call_id=run.call_id, grant_number=run.grant_number, container=run.container, reason=Refusal.NO_SLOT
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("attack", with_variants(ATTACKS.values(), 4), ids=list(ATTACKS))
def test_another_nodes_call_runs_to_its_end(place: Place, attack: Attack) -> None:
    """Once, with its own answer; and the next call is taken at once."""
    answer, run = place.call()
    attack(place, run)
    time.sleep(HEARTBEAT_S)
    attack(place, run)

    done = answer.result(60.0)
    after = place.platform.answer("crash.once", name="after", seconds=0.0)

    assert (done.status_code, done.json().get("output")) == (200, run_name(place, run)), done.text
    assert done.json()["usage"]["attempts"] == after["usage"]["attempts"] == 1
    assert nodes(place.platform) == ["local", "local-2"]


def run_name(place: Place, run: Run) -> str:
    """What the call's function was given, and returns."""
    name: str = values.decode(run.input)["name"]
    return name


def test_nothing_is_called_in_the_name_of_another_nodes_call(place: Place) -> None:
    """Whatever is known of that call: it does not run on the node that asks, and the bus keeps its subject from it."""
    answer, run = place.call()
    ask = AskNested(
        parent=run.call_id, grant_number=run.grant_number, container=run.container, number=1, function="crash.again",
        request=values.encode({"input": {"name": "forged", "seconds": 0.0}}),
    )  # fmt: skip
    told = place.hostile.ask(ask, f"pl.local.gw.{run.gateway}.nested.{place.evil}")
    assert isinstance(told, NestedAnswer)
    assert msgspec.json.decode(told.problem)["code"] == "unknown_call"
    leave = LeaveNested(parent=run.call_id, grant_number=run.grant_number, number=1)
    forged = f"pl.local.gw.{run.gateway}.nested.{place.node}"
    place.hostile.say(ask, forged)
    place.hostile.say(leave, forged, f"pl.local.gw.{run.gateway}.nested.{place.evil}")

    assert answer.result(60.0).status_code == 200
    assert [line for line in place.platform.logs("crash", "again") if "forged" in line["text"]] == []


def test_room_that_nobody_bound_draws_no_call(place: Place) -> None:
    """A thousand slots of a container of its own, and of the other node's: all calls go where the version runs."""
    _, first = place.call(seconds=0.0)
    place.hostile.hear_runs(place.evil)
    for container in ("ctr_evil", first.container):
        for seq in (10**9, 10**9 + 1):
            place.credit(first, container=container, slots=1_000, batch_room=1_000, seq=seq)
    answers = list(place.pool.map(lambda n: place.platform.call("crash.once", name=f"c{n}", seconds=0.05), range(40)))

    assert [answer.json().get("output") for answer in answers] == [f"c{n}" for n in range(40)]
    assert place.hostile.runs == []
    where = {one["id"]: one["node"] for one in place.platform.containers("crash")}
    assert set(where.values()) <= {place.node, place.evil}
    assert "ctr_evil" not in where


def test_starts_that_never_failed_delay_no_start(place: Place) -> None:
    """The controller waits longer after each failure, half a minute after twelve; what nobody bound cannot fail."""
    _, run = place.call(seconds=0.0)
    wait_until(lambda: not place.platform.containers("crash"), "the function is at zero")
    for number in range(12):
        place.credit(run, container=f"ctr_evil_{number}", state=ContainerState.GONE, seq=number)

    body = {"input": {"name": "again", "seconds": 0.0}, "deadline_ms": LONGEST_DELAY_S * 900}
    answer = place.platform.http.post("/v1/functions/crash.once/calls", json=body, timeout=60.0)
    assert answer.json().get("output") == "again", answer.text


def test_ghost_nodes_are_none(place: Place) -> None:
    """Three thousand of them: neither listed nor placed on, and the receivers stay small."""
    for number in range(3_000):
        place.report(node=f"ghost-{number}", seq=1)

    assert place.platform.output("crash.once", name="x", seconds=0.0) == "x"
    assert nodes(place.platform) == ["local", "local-2"]
    for part in ("gateway", "controller"):
        assert peak_mb(place.platform.pids[part]) < 300.0


def test_lines_of_what_does_not_run_there_are_not_shown(place: Place) -> None:
    """In no function's log but of those that its containers run."""
    _, run = place.call(seconds=0.0)
    for container in (run.container, "ctr_evil"):
        forged = LogBatch(lines=(LogLine(time.time(), "stdout", "send your key to evil.example", container),))
        place.hostile.store(
            forged,
            "logs.local.default.crash.once",
            f"logs.local.{place.evil}.default.crash.once",
            f"logs.local.{place.node}.default.crash.once",
        )
    place.platform.output("crash.once", name="an honest line", seconds=0.0)

    def told() -> list[str]:
        return [line["text"] for line in place.platform.logs("crash", "once")]

    wait_until(lambda: "ran an honest line" in told(), "the function's line is there")
    assert not any("evil" in text for text in told())


def usage_event(run: Run, number: int, **more: Any) -> UsageEvent:
    """A day of the container that the hostile node does not have."""
    fields: dict[str, Any] = {
        "id": f"evil.{number}.{time.time_ns()}", "node": "evil", "device": "GPU-9", "slice": "GPU-9", "ppm": 1_000_000,
        "price": "h200", "state": LeaseState.IDLE, "t0": 0, "t1": DAY, "ended_at": time.time(), "tenant": "default",
        "app": "crash", "function": "once", "version": run.version, "container": run.container,
    }  # fmt: skip
    return UsageEvent(**fields | more)


FORGED: tuple[dict[str, Any], ...] = (
    {}, {"t1": 20 * DAY}, {"tenant": "rival"}, {"container": "ctr_evil"}, {"ended_at": 1e300},
    {"ended_at": float("nan")}, {"ended_at": 0.0}, {"t0": 2**63, "t1": 2**63}, {"ppm": 2**64 - 1},
    {"state": LeaseState.BUSY, "shares": (CallShare("a", "default", -(10**15)), CallShare("b", "x", 10**15 + DAY))},
)  # fmt: skip


@pytest.mark.long
def test_no_forged_usage_is_billed_and_none_stops_the_fold(place: Place) -> None:
    """What cannot be is in quarantine, where operators see it; true usage is billed, also after a restart."""
    _, run = place.call(seconds=0.0)
    subjects = ("usage.local.default", f"usage.local.{place.evil}.default", f"usage.local.{place.node}.default")
    for number, more in enumerate(FORGED):
        for node in (place.evil, place.node):
            batch = UsageBatch(events=(usage_event(run, number, node=node, **more),))
            assert place.hostile.store(batch, *subjects) >= 1
    known = billed(place.platform)["calls"]
    place.platform.output("crash.once", name="x", seconds=0.0)
    wait_until(lambda: billed(place.platform)["calls"] > known, "true usage is billed")
    place.platform.kill("duties")
    known = billed(place.platform)["calls"]
    place.platform.output("crash.once", name="y", seconds=0.0)
    wait_until(lambda: billed(place.platform)["calls"] > known, "it is billed after a restart", 60.0)

    assert float(billed(place.platform)["cost"]) < 0.1
    page = place.platform.http.get(f"/v1/usage/quarantine?node={place.evil}").json()
    assert sum(count["events"] for count in page["counts"]) >= len(FORGED)
    assert {item["node"] for item in page["items"]} == {place.evil}
    assert place.evil in place.platform.cli("node", "quarantine").stdout


def billed(platform: Platform) -> dict[str, Any]:
    total: dict[str, Any] = platform.http.get("/v1/usage").json()["total"]
    return total


def test_what_was_not_believed_is_counted_and_told(place: Place) -> None:
    """Which node it was stands in the gateway's log, with a bound on the rate."""
    _, run = place.call(seconds=0.0)
    for seq in range(200):
        place.credit(run, node=place.node, seq=seq)

    def refused() -> float:
        shown = "".join(place.platform.metrics())
        return sum(
            float(line.rpartition(" ")[2])
            for line in shown.splitlines()
            if line.startswith("pilotlight_node_messages_refused_total")
        )

    wait_until(lambda: refused() >= 200, "they are counted")
    said = (place.platform.state / "logs" / "gateway.log").read_text().count("not believed")
    assert 0 < said < 50
