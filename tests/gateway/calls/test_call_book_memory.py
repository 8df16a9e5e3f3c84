"""What tenants have remembered is theirs, whatever others bring."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pilotlight_gateway.calls.call_book import FairMemory


def test_a_busy_tenant_evicts_only_itself() -> None:
    """Its rival's few things stay, although they are older than all of its own."""
    memory: FairMemory[int] = FairMemory(10)
    for number in range(3):
        assert memory.keep("quiet", str(number), number) == []
    lost = [thing for number in range(50) for thing in memory.keep("busy", str(number), number)]

    assert {tenant for tenant, _ in lost} == {"busy"}
    assert [memory.get("quiet", str(number)) for number in range(3)] == [0, 1, 2]
    assert [memory.get("busy", str(number)) for number in (42, 43, 49)] == [None, 43, 49]
    assert memory.get("busy", "0") is memory.get("nobody", "0") is None


@given(st.integers(1, 12), st.lists(st.integers(0, 4), max_size=80))
def test_whoever_loses_had_most(room: int, tenants: list[int]) -> None:
    """The oldest of its things goes, and no more go than must."""
    memory: FairMemory[int] = FairMemory(room)
    model: dict[str, list[int]] = {}
    for number, tenant in enumerate(tenants):
        name = f"t{tenant}"
        model.setdefault(name, []).append(number)
        for loser, thing in memory.keep(name, str(number), number):
            assert len(model[loser]) == max(len(things) for things in model.values())
            assert model[loser].pop(0) == thing
        memory.check_integrity()
        assert len(memory) == sum(map(len, model.values())) == min(room, number + 1)
