"""Agents ask for values until a gateway gives them, or says why not."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.bus import BusTimeout, NoResponders
from pilotlight_core.host.sealed_boxes import seal_box
from pilotlight_core.model.messages.agent_questions import SecretsAnswer, SecretsWanted
from pilotlight_core.model.messages.message import Message
from pilotlight_runtime.containers import secret_requests
from pilotlight_runtime.containers.secret_requests import (
    ASKS,
    LoadedSecrets,
    MemoryLoadSecrets,
    SecretRequests,
    SecretsRefused,
)
from tests.builders.nodes import bind
from tests.builders.specs import function_spec

SPEC = function_spec(secrets={"TOKEN": "token", "/run/secrets/token": "token", "KEY": "key"})
VALUES = {"token": "the value of token", "key": "the value of key"}


class Gateways:
    """Answer as a test says, the last answer for ever; `sealed` stands for the values."""

    def __init__(self, *answers: SecretsAnswer | Exception, values: object = VALUES) -> None:
        self.answers = list(answers)
        self.values = values
        self.asked: list[tuple[str, SecretsWanted]] = []

    async def request(self, subject: str, message: Message, timeout: float) -> object:
        assert isinstance(message, SecretsWanted)
        self.asked.append((subject, message))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        if answer.sealed:
            box = seal_box(message.public_key, msgspec.msgpack.encode(self.values), message.container)
            return msgspec.structs.replace(answer, sealed=box)
        return answer


GIVEN = SecretsAnswer(sealed=b"the values", revision="r1")


async def asked(gateways: Gateways) -> LoadedSecrets:
    return await SecretRequests(gateways, region="local", node="n1").fetch(bind("c1"), SPEC)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_requests, "PAUSE_S", 0.0)


async def test_each_place_gets_its_value() -> None:
    """One question for all."""
    gateways = Gateways(GIVEN)
    loaded = await asked(gateways)

    assert loaded.places == {
        "TOKEN": "the value of token", "/run/secrets/token": "the value of token", "KEY": "the value of key",
    }  # fmt: skip
    assert loaded.revision == "r1"
    assert [subject for subject, _ in gateways.asked] == ["pl.local.node.n1.secrets"]
    assert "the value" not in repr(loaded)


async def test_a_function_without_secrets_asks_nobody() -> None:
    """As most."""
    gateways = Gateways(NoResponders("none"))
    assert await SecretRequests(gateways, region="local", node="n1").fetch(bind(), function_spec()) == LoadedSecrets()
    assert gateways.asked == []


@pytest.mark.parametrize(
    "before",
    [
        NoResponders("none"),
        BusTimeout("slow"),
        *(SecretsAnswer(reason=why) for why in ("not_bound", "busy", "down", "other_key")),
    ],
)
async def test_what_may_be_better_soon_is_asked_again(before: SecretsAnswer | Exception) -> None:
    """A gateway may hear of the binding later, and another may have the key."""
    gateways = Gateways(before, before, GIVEN)
    assert (await asked(gateways)).revision == "r1"
    assert len({wanted.public_key for _, wanted in gateways.asked}) == 1


async def test_it_is_given_up_after_a_while_as_the_platforms_fault() -> None:
    """With the last reason."""
    gateways = Gateways(SecretsAnswer(reason="down"))
    with pytest.raises(SecretsRefused, match="no gateway gave the values of its secrets: down") as refused:
        await asked(gateways)
    assert not refused.value.is_tenants
    assert len(gateways.asked) == ASKS


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("missing", "there is no secret key, token: run `pilotlight secret set key`"),
        ("lost", "the value of key, token was sealed under a key that is gone: run `pilotlight secret set key`"),
    ],
)
async def test_what_its_tenant_can_mend_is_said_at_once(reason: str, said: str) -> None:
    """By the secrets' names."""
    gateways = Gateways(SecretsAnswer(reason=reason, missing=("key", "token")))
    with pytest.raises(SecretsRefused) as refused:
        await asked(gateways)
    assert (str(refused.value), refused.value.is_tenants, len(gateways.asked)) == (said, True, 1)


@pytest.mark.parametrize("values", [{"token": "only one"}, ["none"], {"token": 1, "key": 2}])
async def test_an_answer_that_is_none_is_not_repeated_in_the_error(values: object) -> None:
    """Whatever is in it."""
    with pytest.raises(SecretsRefused, match=r"cannot be read$") as refused:
        await asked(Gateways(GIVEN, values=values))
    assert refused.value.__context__ is None


async def test_in_memory_a_load_gets_what_a_test_says() -> None:
    """Without a bus."""
    loaded = LoadedSecrets(places={"A": "x"}, revision="r")
    assert await MemoryLoadSecrets(loaded=loaded).fetch(bind(), SPEC) == loaded
