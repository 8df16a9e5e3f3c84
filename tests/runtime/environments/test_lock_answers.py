"""Gateways that ask for a lock have an answer, whatever comes of it."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from pilotlight_core.bus import Bus, BusDown
from pilotlight_core.model.messages.agent_questions import DescribePackages, LockPackages, PackagesLocked
from pilotlight_core.model.packages.package_locks import PackageLock
from pilotlight_runtime.environments import lock_answers
from pilotlight_runtime.environments.build_sandbox import BuildFailed
from pilotlight_runtime.environments.environment_builds import EnvironmentBuilds
from pilotlight_runtime.environments.lock_answers import LockAnswers
from tests.builders.package_locks import BASE_DIGEST, package_lock
from tests.builders.supply import BASE

ASKED = LockPackages(question="q1", gateway="gw-1", tenant="acme", base="default", requirements=("tiny",))


class Builds:
    """In the place of `EnvironmentBuilds`: it locks as `outcome` says."""

    def __init__(self, outcome: Any) -> None:
        self.outcome = outcome
        self.is_full = False

    def has_room(self, tenant: str) -> bool:
        return not self.is_full or tenant != ASKED.tenant

    async def is_base(self, _: str, digest: str, python: str) -> bool:
        return (digest, python) == (BASE_DIGEST, "cp311")

    async def described(self, *_: Any) -> Any:
        if self.outcome is None:
            await asyncio.Event().wait()
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome

    async def lock(self, *_: Any) -> PackageLock:
        if self.outcome is None:
            await asyncio.Event().wait()
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return cast("PackageLock", self.outcome)


class Sent:
    """In the place of a bus."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, PackagesLocked]] = []
        self.is_down = False

    def publish_nowait(self, subject: str, message: PackagesLocked) -> None:
        if self.is_down:
            raise BusDown("away")
        self.messages.append((subject, message))


async def answer_to(outcome: Any, asked: LockPackages = ASKED, *, busy: bool = False) -> PackagesLocked:
    sent, builds = Sent(), Builds(outcome)
    builds.is_full = busy
    async with asyncio.TaskGroup() as group:
        answers = LockAnswers(
            cast("Bus", sent), cast("EnvironmentBuilds", builds), group, region="eu", node="n1"
        )  # fmt: skip
        assert answers.subject == "pl.eu.node.n1.lock"
        answers.on_question(answers.subject, asked, "")
        answers.on_question(answers.subject, "something else", "")
    ((subject, message),) = sent.messages
    assert (subject, message.question) == ("pl.eu.gw.gw-1.locked.n1", "q1")
    return message


async def test_a_lock_goes_to_the_gateway_that_asked() -> None:
    """Under the node's own name."""
    assert (await answer_to(package_lock())).lock == package_lock()


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (BuildFailed("no such package"), "refused"),
        (BuildFailed("no walls", is_tenants=False), "failed"),
        (OSError("disk full"), "failed"),
    ],
)
async def test_a_failure_is_said(outcome: Exception, reason: str) -> None:
    """Whether another node may do better, and in which words."""
    answer = await answer_to(outcome)

    assert (answer.lock, answer.reason, answer.words) == (None, reason, str(outcome))


async def test_what_takes_too_long_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its gateway asks another node by then."""
    monkeypatch.setattr(lock_answers, "WANTED_S", 0.01)

    assert (await answer_to(None)).reason == "failed"


async def test_a_node_with_a_long_line_says_so() -> None:
    """Without a task for it."""
    assert (await answer_to(package_lock(), busy=True)).reason == "busy"


async def test_a_known_lock_of_the_same_base_is_not_resolved_again() -> None:
    """Of another base it is."""
    known = LockPackages(
        question="q1", gateway="gw-1", tenant="acme", base="default", requirements=("tiny",), known_base=BASE_DIGEST,
        known_python="cp311",
    )  # fmt: skip

    assert (await answer_to(AssertionError, known)).reason == "unchanged"
    assert (
        await answer_to(package_lock(), LockPackages(**{**_fields(known), "known_python": "cp399"}))
    ).lock is not None


async def test_a_bus_that_is_away_takes_nothing_along() -> None:
    """The gateway's time passes."""
    sent = Sent()
    sent.is_down = True
    async with asyncio.TaskGroup() as group:
        builds = cast("EnvironmentBuilds", Builds(package_lock()))
        LockAnswers(cast("Bus", sent), builds, group, region="eu", node="n1").on_question("", ASKED, "")

    assert sent.messages == []


@pytest.mark.parametrize("failure", [BuildFailed("no walls"), OSError("disk full"), RuntimeError("a bug"), None])
async def test_packages_are_described_or_it_is_said_why_not(
    failure: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the node's own words; a mistake of the platform's ends no other answer."""
    monkeypatch.setattr(lock_answers, "WANTED_S", 0.01)
    asked = DescribePackages(question="q1", gateway="gw-1", tenant="acme", base="default")
    answer = cast("Any", await answer_to(failure, cast("Any", asked)))
    assert (answer.base, bool(answer.words)) == (None, True)

    answer = cast("Any", await answer_to((BASE, BASE.packages), cast("Any", asked)))
    assert (answer.base, answer.locked, answer.words) == (BASE, BASE.packages, "")


def _fields(message: LockPackages) -> dict[str, Any]:
    return {name: getattr(message, name) for name in message.__struct_fields__}
