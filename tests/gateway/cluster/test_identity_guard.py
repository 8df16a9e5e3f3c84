"""Whether another process under a gateway's name is gone."""

from __future__ import annotations

import pytest

from pilotlight_core.bus import Bus, LeaseHolder
from pilotlight_core.model import subjects
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.scheduling import CallReply
from pilotlight_gateway.cluster import identity_guard
from pilotlight_gateway.cluster.identity_guard import IdentityGuard, NameTaken


def holder(process: str) -> LeaseHolder:
    return LeaseHolder(name="one", epoch=1, data=process.encode())


@pytest.fixture
def process() -> str:
    return f"one-{token(8)}"


@pytest.fixture
def guard(bus: Bus) -> IdentityGuard:
    return IdentityGuard(bus, region="local", name="one")


async def test_a_process_that_listens_nowhere_is_gone(guard: IdentityGuard, process: str) -> None:
    """The bus itself says so: its lease need not be waited for."""
    assert await guard.is_gone(holder(process))


@pytest.mark.parametrize("data", ["", "a b", "a.>", "*"])
async def test_what_is_no_process_is_gone(guard: IdentityGuard, data: str) -> None:
    """No subject can name it, so no gateway wrote it."""
    assert await guard.is_gone(holder(data))


async def test_a_process_that_answers_keeps_the_name(guard: IdentityGuard, other: Bus, process: str) -> None:
    """The refusal names it, and what to do."""

    def answer(_subject: str, _message: object, reply: str) -> None:
        other.publish_nowait(reply, CallReply())

    await other.subscribe(subjects.ask("local", process), answer)
    await other.flush()
    with pytest.raises(NameTaken, match=rf"'one' runs \(process {process}\).*--name"):
        await guard.is_gone(holder(process))


async def test_a_silent_process_may_live(
    guard: IdentityGuard, other: Bus, process: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It listens and does not answer: frozen, or cut off."""
    monkeypatch.setattr(identity_guard, "ANSWER_S", 0.1)
    await other.subscribe(subjects.ask("local", process), lambda *_: None)
    await other.flush()
    assert not await guard.is_gone(holder(process))
