"""What a call was billed."""

from __future__ import annotations

import msgspec

from tests.sdk.cli.shell import cells, run
from tests.sdk.scripted import ScriptedPlatform, answer

LINE = {
    "day": "2026-11-26", "function": "shop.hello", "version": "shop.hello@v1", "price": "cpu", "ppm": 250_000,
    "usd_per_hour": "0.1", "ns": 1_000_000, "cost": "0.000000007", "outcome": "ok",
}  # fmt: skip
RECEIPT = {"id": "call_b", "lines": [LINE], "cost": "0.000000007", "gpu_seconds": 0.1, "vram_gib_seconds": 0.0}


def test_a_receipt_has_a_line_for_each_price(platform: ScriptedPlatform) -> None:
    """With what ended it, and the whole in JSON."""
    told = RECEIPT | {"parent": "call_a", "nested": ["call_c"]}
    platform.will("GET", "/v1/calls/call_b/receipt", answer(told), answer(told))

    assert cells(run("billing", "receipt", "call_b"))[1] == [
        "2026-11-26", "shop.hello", "shop.hello@v1", "cpu", "25 %", "1000000", "0.000000007", "ok",
    ]  # fmt: skip
    shown = msgspec.json.decode(run("billing", "receipt", "call_b", "--json"))
    assert (shown["parent"], shown["nested"]) == ("call_a", ["call_c"])
