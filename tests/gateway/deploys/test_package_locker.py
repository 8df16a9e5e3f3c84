"""Requirements are locked by a node, over a real bus: which one, and what is believed of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pilotlight_core.bus import Bus
from pilotlight_core.model import subjects
from pilotlight_core.model.errors import BadInput, Unavailable
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.agent_questions import LockPackages, PackagesLocked
from pilotlight_core.model.messages.node_messages import NodeReport
from pilotlight_core.model.packages.package_locks import PackageLock
from pilotlight_core.model.records.nodes import NodeLabels, NodeRecord
from pilotlight_core.model.versions.manifest_codec import REQUIREMENTS
from pilotlight_gateway.deploys.package_locker import BusLocker, MemoryLocker, nodes_for, printable
from pilotlight_gateway.supply.package_questions import PackageQuestions
from tests.builders.nodes import node_report
from tests.builders.package_locks import BASE_DIGEST, package_lock

Reply = Callable[[LockPackages], PackagesLocked | None]
ASKED = ("tiny",)
LABELS = NodeLabels(region="r", zone="z")


def node(name: str = "n1", **more: Any) -> NodeReport:
    return node_report(name, **{"features": (REQUIREMENTS,)} | more)


def locked(lock: PackageLock | None = None, **more: Any) -> Reply:
    return lambda asked: PackagesLocked(question=asked.question, lock=lock, **more)


class World:
    """A gateway's locker, and nodes that answer as `replies` say; `heard` is what they were asked."""

    def __init__(self, bus: Bus, other: Bus, reports: list[NodeReport]) -> None:
        self.region = f"r{token(8)}"
        self.replies: dict[str, Reply] = {}
        self.heard: list[tuple[str, LockPackages]] = []
        self.now = 0.0
        self.joined = set[str]()
        self.told = reports
        self._other = other
        self.questions = PackageQuestions(bus, region=self.region, gateway="gw-1")
        self.locker = BusLocker(self.questions, self, self, lock_s=5.0, clock=lambda: self.now)

    def reports(self, _: float) -> list[NodeReport]:
        return self.told

    def node_nowait(self, node: str) -> NodeRecord | None:
        return NodeRecord(node=node, labels=LABELS) if node in self.joined else None

    def on_question(self, subject: str, message: Any, _: str) -> None:
        name = subject.split(".")[3]
        self.heard.append((name, message))
        if (reply := self.replies.get(name)) is not None and (answer := reply(message)) is not None:
            self._other.publish_nowait(subjects.packages_locked(self.region, message.gateway, name), answer)


@asynccontextmanager
async def world_of(bus: Bus, other: Bus, *reports: NodeReport) -> AsyncIterator[World]:
    world = World(bus, other, list(reports) or [node()])
    heard = {subjects.lock_packages(world.region, "*"): world.on_question}
    async with world.questions.running(), other.listening(heard):
        await bus.flush()
        await other.flush()
        yield world


async def test_right_after_a_start_a_deploy_waits_for_the_first_node(bus: Bus, other: Bus) -> None:
    """It has not reported yet: that is no reason to say that there is none."""
    async with world_of(bus, other) as world:
        world.replies = {"n1": locked(package_lock())}
        world.told.clear()
        locking = asyncio.create_task(world.locker.lock("acme", "default", ASKED))
        await asyncio.sleep(0)
        world.told.append(node())

        assert await locking == package_lock()


async def test_a_node_that_has_an_index_locks(bus: Bus, other: Bus) -> None:
    """What it says is kept for the second request of the deploy, and for no other tenant or base environment."""
    async with world_of(bus, other, node("plain", features=()), node("n1")) as world:
        world.replies = {"n1": locked(package_lock())}
        assert await world.locker.lock("acme", "default", ASKED) == package_lock()
        assert await world.locker.lock("acme", "default", ASKED) == package_lock()
        ((name, question),) = world.heard
        assert name == "n1"
        assert (question.gateway, question.tenant, question.base, question.requirements) == (
            "gw-1", "acme", "default", ASKED,
        )  # fmt: skip
        await world.locker.lock("rival", "default", ASKED)
        world.now = 601.0
        await world.locker.lock("acme", "default", ASKED)
        assert len(world.heard) == 3


async def test_a_known_lock_stays_over_the_same_base(bus: Bus, other: Bus) -> None:
    """The node compares; nothing is resolved."""
    known = package_lock(python="cp312")
    async with world_of(bus, other) as world:
        world.replies = {"n1": locked(reason="unchanged")}
        assert await world.locker.lock("acme", "default", ASKED, known) == known
        assert (world.heard[0][1].known_base, world.heard[0][1].known_python) == (BASE_DIGEST, "cp312")


async def test_a_refusal_has_the_resolvers_words(bus: Bus, other: Bus) -> None:
    """Without what would act on the deployer's terminal."""
    async with world_of(bus, other) as world:
        world.replies = {"n1": locked(reason="refused", words="no such\npackage \x1b[2J")}
        with pytest.raises(BadInput, match=r"cannot be met:\nno such\npackage \?\[2J") as refused:
            await world.locker.lock("acme", "default", ASKED)

    assert refused.value.more["field"] == "requirements"
    assert printable("a\rb\u202ec") == "a?b?c"


async def test_another_node_is_asked_where_one_cannot(bus: Bus, other: Bus) -> None:
    """It is busy, has failed, or says what no node can: a lock of other requirements, or none that could be."""
    bad = [
        locked(reason="busy"), locked(reason="failed", words="disk"), locked(package_lock("other")),
        locked(package_lock(base_digest="x")), locked(reason="unchanged"), locked(),
    ]  # fmt: skip
    for reply in bad:
        async with world_of(bus, other, node("n1"), node("n2")) as world:
            world.replies = {"n1": reply, "n2": locked(package_lock())}
            assert await world.locker.lock("acme", "default", ASKED) == package_lock()
        async with world_of(bus, other) as world:
            world.replies = {"n1": reply}
            with pytest.raises(Unavailable, match="cannot be locked now"):
                await world.locker.lock("acme", "default", ASKED)


async def test_only_the_node_that_was_asked_is_believed(bus: Bus, other: Bus) -> None:
    """Not another one that has guessed the question, nor an answer to another question."""
    async with world_of(bus, other) as world:

        def forge(asked: LockPackages) -> PackagesLocked | None:
            forged = PackagesLocked(question=asked.question, lock=package_lock(python="cp399"))
            other.publish_nowait(subjects.packages_locked(world.region, "gw-1", "n2"), forged)
            late = PackagesLocked(question="another", lock=package_lock(python="cp398"))
            other.publish_nowait(subjects.packages_locked(world.region, "gw-1", "n1"), late)
            return locked(package_lock())(asked)

        world.replies = {"n1": forge}
        assert await world.locker.lock("acme", "default", ASKED) == package_lock()


async def test_who_gives_up_leaves_nothing(bus: Bus, other: Bus) -> None:
    """An answer that comes later meets nobody."""
    async with world_of(bus, other) as world:
        waiting = asyncio.ensure_future(world.locker.lock("acme", "default", ASKED))
        while not world.heard:
            await other.flush()
            await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        answer = locked(package_lock())(world.heard[0][1])
        world.questions.on_answer(subjects.packages_locked(world.region, "gw-1", "n1"), answer, "")
        world.replies = {"n1": locked(package_lock())}
        assert await world.locker.lock("acme", "default", ASKED) == package_lock()


def test_who_knows_no_node_yet_has_the_deploy_come_again() -> None:
    """A gateway that has just started, or whose nodes are late, knows nothing of an index."""
    with pytest.raises(Unavailable, match="no node has told") as refused:
        nodes_for([], "default")
    assert refused.value.retry_after


@pytest.mark.parametrize("reports", [[node(features=())], [node(bases=("default",))], [node(stopped=True)]])
def test_without_an_index_a_deploy_says_what_an_operator_does(reports: list[NodeReport]) -> None:
    """And of which base environment there is no node that has one."""
    with pytest.raises(BadInput, match=r"--package-index URL.*No node with the base environment 'torch' has one now"):
        nodes_for(reports, "torch")


async def test_requirements_are_looked_at_before_anybody_is_asked() -> None:
    """And a locker in memory refuses what it does not have."""
    locker = MemoryLocker(locks={ASKED: package_lock()}, words="no such package")
    assert await locker.lock("acme", "default", ASKED) == package_lock()
    with pytest.raises(BadInput, match="no such package"):
        await locker.lock("acme", "default", ("other",))
    assert locker.asked == [("acme", "default", ASKED), ("acme", "default", ("other",))]


async def test_an_option_of_an_installer_is_no_requirement(bus: Bus, other: Bus) -> None:
    """No node hears of it."""
    async with world_of(bus, other) as world:
        with pytest.raises(BadInput, match="options of installers"):
            await world.locker.lock("acme", "default", ("--index-url=http://other",))
        assert world.heard == []


async def test_nodes_that_joined_by_a_token_are_not_asked_where_there_is_another(bus: Bus, other: Bus) -> None:
    """One that is not the operator's could choose packages that the resolver does not."""
    async with world_of(bus, other, node("theirs"), node("own"), node("theirs-too")) as world:
        world.joined = {"theirs", "theirs-too"}
        evil = locked(package_lock(python="cp39"))
        world.replies = {"own": locked(package_lock()), "theirs": evil, "theirs-too": evil}
        for tenant in "abcdef":
            assert await world.locker.lock(tenant, "default", ASKED) == package_lock()
        assert {name for name, _ in world.heard} == {"own"}


@pytest.mark.parametrize("known", [None, package_lock(python="cp312")])
async def test_of_nodes_that_joined_two_have_to_say_the_same(bus: Bus, other: Bus, known: PackageLock | None) -> None:
    """One that lies is outvoted; where nobody agrees there is no lock, and nothing is refused for good."""
    honest = locked(package_lock()) if known is None else locked(reason="unchanged")
    async with world_of(bus, other, node("a"), node("b"), node("c")) as world:
        world.joined = {"a", "b", "c"}
        for liar in "abc":
            for lie in (locked(package_lock(python="cp39")), locked(reason="refused", words="no such package")):
                world.replies = {**dict.fromkeys("abc", honest), liar: lie}
                world.now += 1_000.0
                assert await world.locker.lock("acme", "default", ASKED, known) == (known or package_lock())
        world.now += 1_000.0
        world.replies = {
            "a": honest, "b": locked(package_lock(python="cp39")), "c": locked(reason="refused", words="no"),
        }  # fmt: skip
        with pytest.raises(Unavailable, match="do not say the same"):
            await world.locker.lock("acme", "default", ASKED, known)
        world.replies = dict.fromkeys("abc", locked(reason="refused", words="no such package"))
        with pytest.raises(BadInput, match="no such package"):
            await world.locker.lock("acme", "default", ASKED, known)


async def test_a_node_that_joined_locks_where_it_is_the_only_one(bus: Bus, other: Bus) -> None:
    """It runs all functions there are, too."""
    async with world_of(bus, other, node("a")) as world:
        world.joined, world.replies = {"a"}, {"a": locked(package_lock())}
        assert await world.locker.lock("acme", "default", ASKED) == package_lock()
