"""What a gateway says of calls to engines, and of no others."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.engines.engine_spec import EngineKind, EngineSpec
from pilotlight_core.model.messages.call_affinity import CallAffinity
from pilotlight_core.model.spec import Priority
from pilotlight_gateway.calls.engines.engine_calls import RANKS, engine_affinity, engine_facts
from tests.builders.calls import grant, prepared_call
from tests.builders.specs import function_spec, version_record

ENGINE = version_record(function_spec("chat", engine=EngineSpec(kind=EngineKind.SIM)))
PROMPT = msgspec.msgpack.encode({"prompt": "once upon a time " * 100})


def test_other_functions_pay_nothing() -> None:
    """Neither their homes nor their guests are told anything."""
    plain = version_record()
    assert engine_affinity(plain, "acme", PROMPT) is None
    assert engine_facts(plain, "acme", 1.0, Priority.STANDARD) is None


def test_callers_are_told_apart_without_their_names() -> None:
    """The same caller is another one to another owner's engine."""
    first, again = (engine_facts(ENGINE, "guest", 2.0, Priority.BATCH) for _ in range(2))
    assert first is not None
    assert first == again
    assert (first.weight, first.priority) == (2.0, 0)
    assert "guest" not in f"{first}"
    other = engine_facts(ENGINE, "another", 2.0, Priority.BATCH)
    elsewhere = engine_facts(msgspec.structs.replace(ENGINE, tenant="owner2"), "guest", 2.0, Priority.BATCH)
    assert other is not None
    assert elsewhere is not None
    assert len({first.salt, other.salt, elsewhere.salt}) == 3


def test_homes_hear_of_adapters_of_the_engine_alone() -> None:
    """They are a caller's words, of any length, until its container refuses them."""
    able = EngineSpec(kind=EngineKind.SIM, weights="tiny", adapters=("legal",))
    version = version_record(function_spec("chat", engine=able))
    asked = {name: msgspec.msgpack.encode({"prompt": "x", "adapter": name}) for name in ("legal", "y" * 10**6)}
    found = [engine_affinity(version, "acme", arguments) for arguments in asked.values()]

    assert found[0] is not None
    assert found == [CallAffinity("legal"), None]


@pytest.mark.parametrize("priority", Priority)
def test_each_class_has_a_rank(priority: Priority) -> None:
    """A new class must have one."""
    assert priority in RANKS


def test_a_call_carries_both() -> None:
    """Its descriptor the one, its run the other."""
    call = prepared_call("a", version=ENGINE, input=PROMPT, tenant="guest")
    described = call.descriptor(0.0, "g1", grant_number=0, admitted=False)
    assert described.affinity is not None
    assert len(described.affinity.prefix) == 3
    facts = call.run(grant(), 0.0, "g1").facts
    assert facts is not None
    assert facts.salt
