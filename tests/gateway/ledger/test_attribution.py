"""Who pays for what."""

from __future__ import annotations

import pytest

from pilotlight_core.model.messages.usage import CallShare, LeaseState
from pilotlight_core.model.messages.usage_facts import Fault, Purpose
from pilotlight_gateway.ledger.attribution import payer_of, payer_of_line, payer_of_share, payer_of_start
from tests.gateway.ledger.metering import event

OWN = (LeaseState.LOADING, LeaseState.IDLE, LeaseState.DRAINING)


@pytest.mark.parametrize("state", OWN)
@pytest.mark.parametrize("purpose", [Purpose.CALL, Purpose.FLOOR, Purpose.BUFFER, Purpose.WARM, Purpose.TRIAL])
def test_what_a_tenant_asked_for_is_its_own(state: LeaseState, purpose: Purpose) -> None:
    """Its code is loaded, stands ready and drains, used or not: also what it declared."""
    assert payer_of(event(1, 0, 5, state, purpose=purpose)) == "acme"


@pytest.mark.parametrize("purpose", Purpose)
def test_provisioning_is_the_operators(purpose: Purpose) -> None:
    """Whoever holds the slice meanwhile."""
    assert payer_of(event(1, 0, 5, LeaseState.PROVISIONING, purpose=purpose, used=True)) == ""


@pytest.mark.parametrize("state", OWN)
@pytest.mark.parametrize("purpose", [Purpose.PREWARM, Purpose.MOVE])
def test_a_guess_is_the_tenants_once_it_is_used(state: LeaseState, purpose: Purpose) -> None:
    """From its first call on."""
    guess = event(1, 0, 5, state, purpose=purpose)

    assert payer_of(guess) == ""
    assert payer_of(event(1, 0, 5, state, purpose=purpose, used=True)) == "acme"


@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize("state", OWN)
def test_shadow_traffic_is_the_operators(state: LeaseState, used: bool) -> None:
    """Its containers, whether calls came or not, and its calls, in whatever container they ran."""
    shadow = event(1, 0, 5, state, purpose=Purpose.SHADOW, used=used)

    assert (payer_of(shadow), payer_of_start(shadow)) == ("", "")
    assert payer_of_share(CallShare("a", "acme", 5, "ok", shadow=True)) == ""


@pytest.mark.parametrize("state", [LeaseState.FREE, LeaseState.BLANK])
def test_what_nobody_holds_is_the_operators(state: LeaseState) -> None:
    """Free slices and blanks."""
    assert payer_of(event(1, 0, 5, state, tenant="")) == ""


@pytest.mark.parametrize(("fault", "payer"), [(Fault.NONE, "acme"), (Fault.TENANT, "acme"), (Fault.PLATFORM, "")])
def test_a_call_is_who_asked_for_it(fault: Fault, payer: str) -> None:
    """But for one that the platform ended."""
    assert payer_of_share(CallShare("a", "acme", 5, "died", fault=fault)) == payer


@pytest.mark.parametrize(
    ("payers", "payer"),
    [(("acme",), "acme"), (("birch", "birch"), "birch"), (("", ""), ""), (("acme", "birch"), "acme"), ((), "acme")],
)
def test_a_line_is_who_pays_for_all_of_it(payers: tuple[str, ...], payer: str) -> None:
    """Its holder's, if that is several: "" stands for a call that the platform ended."""
    shares = tuple(
        CallShare(f"c{number}", each or "acme", 5, "ok", fault=Fault.NONE if each else Fault.PLATFORM)
        for number, each in enumerate(payers)
    )
    state = LeaseState.BUSY if shares else LeaseState.IDLE
    assert payer_of_line(event(1, 0, 5 * len(shares) or 5, state, shares=shares)) == payer
