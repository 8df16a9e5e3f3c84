"""Builds what an ended call used."""

from __future__ import annotations

from pilotlight_core.model.messages.usage import CallShare
from pilotlight_core.model.units import NS_PER_S
from pilotlight_runtime.metering.metered_slice import EndedShare, MeteredSlice, SliceOwner

ACME = SliceOwner(tenant="acme", app="shop", function="cut", version="v1", container="c1")


def ended_share(
    call_id: str,
    *,
    ns: int,
    ended_ns: int = 1_000,
    slice: str = "cpu-0",  # noqa: A002
    ppm: int = 500_000,
    owner: SliceOwner = ACME,
    checkpoint_ns: int = 0,
    checkpoint_share_ns: int = 0,
) -> EndedShare:
    """A call on a slice of the device `cpu`; the wall clock is the boot clock."""
    return EndedShare(
        lease=MeteredSlice(instance="i1", node="n", device="cpu", slice=slice, ppm=ppm, price="cpu"),
        owner=owner,
        share=CallShare(call_id, "acme", ns, "ok"),
        checkpoint_ns=checkpoint_ns,
        checkpoint_share_ns=checkpoint_share_ns,
        ended_ns=ended_ns,
        ended_at=ended_ns / NS_PER_S,
    )
