"""The answer of `GET /v1/calls/{id}/receipt`: what a call was billed, from the ledger."""

from __future__ import annotations

import msgspec


class ReceiptLine(msgspec.Struct, frozen=True, kw_only=True):
    """What one price took of a call on one day: a line for each kind of slice that its starts ran on, and lines of
    their own for cores and memory, for the least that a start is billed (`minimum`), and for units that have a price. A
    correction is a line with less than nothing."""

    day: str
    """UTC, on which it is billed."""
    function: str
    version: str
    price: str
    ppm: int
    """Millionths of a device, of a core (`cpu_core`) or of a GiB (`memory_gib`)."""
    usd_per_hour: str
    """Of the whole, when it ran, by the list; of units, of a million."""
    ns: int
    """The call's own share of the time; of `minimum` what was added to it, of units how many."""
    cost: str
    discount: str = "0"
    """What is not paid of each dollar of the list price: 0.2 are 20 %."""
    memory: int = 0
    """Bytes of its device that its container was promised; 0: not known, or no device."""
    outcome: str = ""
    """How it ended; "": it runs on, or another line says so."""
    fault: str = ""
    """none, tenant or platform; "": not known."""
    batch_size: int = 1
    """The most calls that shared its time."""
    units: dict[str, int] = {}
    tags: dict[str, str] = {}
    stage: str = ""
    """preprocess or postprocess: of that hook of the function, whose version is its own; "": of the function itself."""


class CallReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """All that a call was billed. It follows the call by some seconds, and is kept for 100 days."""

    id: str
    lines: tuple[ReceiptLine, ...]
    cost: str
    """Of the lines before they are rounded."""
    gpu_seconds: float
    """Seconds of a whole device; cores and memory of the host do not count."""
    vram_gib_seconds: float
    """GiB of memory of the device, times the call's share of the time."""
    key: str = ""
    """The id of the API key that asked for it."""
    cold_start_ms: float = 0.0
    """How long the starts of containers took for which it waited; 0: it waited for none."""
    cold_start_billed: bool = False
    """Whether its caller pays for the load of the code in them, in the container's own lines; files and a sandbox are
    the operator's, and so is the load of a container that the platform had started by a guess."""
    parent: str = ""
    """The id of the call whose function made this one; "": it came from outside."""
    nested: tuple[str, ...] = ()
    """The ids of the calls that its function made, which have receipts of their own; the first 1,000."""
    currency: str = "USD"
