"""Decides who pays for metered time: a tenant, or the operator. Pure.

Agents state facts alone: who holds a slice, in which state, why the container is there, whether it has begun a call
since, and whose fault the end of a call was. The rules stand in their order, the first that fits decides:

    nobody holds it               the operator: free slices, blanks, parts outside all slices, gaps
    provisioning                  the operator: files and a sandbox are made ready, no code of the tenant runs
    for shadow traffic            the operator, used or not
    a guess that nobody used yet  the operator: a container for a forecast, in place of one elsewhere, or kept
                                  beyond what its function asks for, as each one is that is parked
    what else a container does    its holder: its own code is loaded, it is ready, it drains
    a shadow call                 the operator, whosever call it shadows
    a call                        who asked for it; the operator, if the platform ended it: also what is known already.
                                  So it is with a batch that raised as a whole and is run again item by item: each of
                                  its items is billed for its own run alone. And with what a stream repeats in another
                                  container, which says that the platform is at fault for it

Each line of the ledger has the number of the policy that decided it, so a later one changes no earlier line.
"""

from __future__ import annotations

from pilotlight_core.model.messages.usage import CallShare, LeaseState, UsageEvent
from pilotlight_core.model.messages.usage_facts import Fault, Purpose, is_guess

POLICY = 2
"""The number of these rules. 0: the agent decided, in lines of before there were numbers. 1: without shadows."""
OPERATOR = ""


def payer_of(event: UsageEvent) -> str:
    """Who pays for an interval in which no call ran; "": the operator."""
    is_shadow = event.purpose is Purpose.SHADOW
    if event.state is LeaseState.PROVISIONING or is_shadow or is_guess(event.purpose, used=event.used):
        return OPERATOR
    return event.tenant


def payer_of_line(event: UsageEvent) -> str:
    """Who pays for a whole interval, with its calls; its holder stands for several, whose receipts tell them apart."""
    if not event.shares:
        return payer_of(event)
    payers = {payer_of_share(share) for share in event.shares}
    return payers.pop() if len(payers) == 1 else event.tenant


def payer_of_start(event: UsageEvent) -> str:
    """Who pays for the load of an interval's container; "": the operator."""
    return OPERATOR if event.purpose is Purpose.SHADOW or is_guess(event.purpose, used=False) else event.tenant


def payer_of_share(share: CallShare) -> str:
    """Who pays for a call's part of an interval; "": the operator."""
    return OPERATOR if share.shadow or share.fault is Fault.PLATFORM else share.tenant
