"""Invoices: as a page of lines for people, as JSON for others."""

from __future__ import annotations

import msgspec

from tests.sdk.cli.every_command import INVOICE, INVOICES
from tests.sdk.cli.shell import cells, invoke, run
from tests.sdk.scripted import ScriptedPlatform, answer, problem

PATH = "/v1/billing/invoices/2026-11"


def test_an_invoice_has_lines_and_what_is_to_be_paid(platform: ScriptedPlatform) -> None:
    """In few digits, and says what of it is of before; JSON has all of them."""
    platform.will("GET", PATH, answer(INVOICE), answer(INVOICE))
    done = invoke("billing", "invoice", "2026-11", "--tenant", "acme")
    lines = done.stdout.splitlines()
    assert lines[0] == (
        "Invoice acme-2026-11 of acme, 2026-11: not final yet: late usage is added until 2026-12-06"
    )  # fmt: skip
    assert cells(done.stdout)[2] == ["search.embed", "busy", "h100", "4.679", "1094", "18.48"]
    assert lines[-1] == "To pay: 54.85 USD"
    assert done.stderr == "Of 2026-10-31, platform fault: -0.12 USD\n"
    assert platform.requests[0].query == "tenant=acme"
    assert msgspec.json.decode(run("billing", "invoice", "2026-11", "--json")) == INVOICE


def test_without_a_month_they_are_listed(platform: ScriptedPlatform) -> None:
    """The newest first; nothing used is a sentence."""
    platform.will("GET", "/v1/billing/invoices", answer(INVOICES), answer(INVOICES), answer({"invoices": []}))
    assert cells(run("billing", "invoice"))[1] == ["acme-2026-11", "2026-11", "grace", "54.85 USD"]
    assert msgspec.json.decode(run("billing", "invoice", "--json")) == INVOICES
    assert invoke("billing", "invoice").stderr == "Nothing was used.\n"


def test_what_is_no_month_is_refused(platform: ScriptedPlatform) -> None:
    """By the platform, in a sentence."""
    platform.will("GET", "/v1/billing/invoices/soon", problem("bad_input", "month: expected a month such as 2026-11."))
    done = invoke("billing", "invoice", "soon")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("error: month: expected")
