"""MIG mode of idle GPUs, switched where that needs no reset."""

from __future__ import annotations

import pytest

from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.plan.plan import DesiredState, plan
from tests.placement.executor import carry_out
from tests.placement.makers import ask, gpu, kinds, node, want


def test_an_idle_hopper_is_cut_rather_than_given_whole_for_little() -> None:
    """On Ampere the mode would need a reset, so there a whole device is given."""
    expected_of = {"H100-80GB": ["SwitchMig", "Cut", "PlannedStart"], "A100-80GB": ["PlannedStart"]}
    for kind, expected in expected_of.items():
        fleet = Fleet([node("n", gpu("g", kind))])

        made = plan(fleet, DesiredState(wants=(want("f", 1, ask("ANY", gib=5)),)), 0.0)

        assert kinds(made) == expected
        carry_out(fleet, made)


def test_idle_devices_leave_mig_mode_for_who_needs_several_whole_ones() -> None:
    """As many as are missing, on one node."""
    fleet = Fleet([node("n", gpu("a"), gpu("b", mig=True), gpu("c", mig=True))])

    made = plan(fleet, DesiredState(wants=(want("f", 1, ask("H100:2", gib=120)),)), 0.0)

    assert kinds(made) == ["SwitchMig", "PlannedStart"]
    carry_out(fleet, made)


@pytest.mark.parametrize(
    ("mig", "only", "commands"),
    [
        (False, "1g", ["SwitchMig", "Cut", "PlannedStart"]),
        (True, "whole", ["SwitchMig", "PlannedStart"]),
    ],
)
def test_an_idle_device_changes_its_mode_for_who_takes_one_kind_of_slice(
    mig: bool, only: str, commands: list[str]
) -> None:
    """As a trial does; in both directions, and only one of the idle ones."""
    fleet = Fleet([node("n", gpu("a", mig=mig), gpu("b", mig=mig))])
    wanted = ask("H100", gib=8, slice=f"H100-80GB/{only}")

    made = plan(fleet, DesiredState(wants=(want("f", 1, wanted),)), 0.0)

    assert kinds(made) == commands
    assert made.short == ()
    assert not fleet.held
