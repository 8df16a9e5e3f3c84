"""Records that stand beside an app's deploys."""

import pytest
from msgspec.structs import replace

from pilotlight_core.bus import Bus
from pilotlight_core.host.records.named_records import rollout_key, scale_key
from pilotlight_core.host.registry import Registry
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.rollouts.rollout_record import RolloutRecord

FIRST = RolloutRecord(tenant="acme", app="one", revision=1, aliases={"f": {"prod": "ver_1"}})


def test_keys_are_made_of_names_alone() -> None:
    assert rollout_key("acme", "one") == "rollout.acme.one"
    assert scale_key("acme", "one", "f") == "scale.acme.one.f"
    for names in (("acme", "o.ne"), ("*", "one")):
        with pytest.raises(BadInput):
            rollout_key(*names)


async def test_a_rollout_record_is_changed_from_what_it_is(bus: Bus) -> None:
    async with Registry(bus) as registry:
        assert await registry.change_rollout("acme", "one", lambda held: held or FIRST) == FIRST
        second = await registry.change_rollout("acme", "one", lambda held: replace(held or FIRST, revision=2))
        assert second is not None
        assert second.revision == 2
        assert await registry.rollout("acme", "one") == second
