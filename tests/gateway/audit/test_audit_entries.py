"""Changes are put together from what was written before and after them."""

from __future__ import annotations

from typing import Any

import msgspec

from pilotlight_core.model.api.audit_api import UNKNOWN, AuditEntry
from pilotlight_core.model.limits import Limits
from pilotlight_gateway.audit.audit_entries import EVERY, MOST_TOLD, AuditQuery, merged_entries, repeated_fields


def entry(number: int, status: int = UNKNOWN, **more: Any) -> AuditEntry:
    """The record of a change that began in this second."""
    fields: dict[str, Any] = {"tenant": "acme", "by": "acme", "key": "k1", "operation": "setLimits"}
    return AuditEntry(id=f"req_{number}", at=float(number), status=status, **fields | more)


def test_a_change_is_one_entry_with_what_came_of_it() -> None:
    """In the order in which they began, whichever ended first; one whose end was not written is unknown."""
    records = [entry(1), entry(2), entry(2, 204), entry(3), entry(1, 409, code="conflict")]

    found = merged_entries(records, AuditQuery()).entries

    assert [(one.id, one.status, one.code) for one in found] == [
        ("req_1", 409, "conflict"), ("req_2", 204, ""), ("req_3", UNKNOWN, ""),
    ]  # fmt: skip


def test_an_end_that_comes_twice_changes_nothing() -> None:
    """Whatever it says."""
    assert merged_entries([entry(1), entry(1, 200), entry(1)], AuditQuery()).entries == [entry(1, 200)]


def test_an_end_brings_nothing_back_that_was_left_out() -> None:
    """A change that began before those that are shown may end after them."""
    records = [entry(1), entry(2, 200), entry(3, 200), entry(1, 200)]

    found = merged_entries(records, AuditQuery(limit=2))

    assert ([one.id for one in found.entries], found.more) == (["req_2", "req_3"], True)


def test_it_is_asked_by_time_tenant_operation_and_key() -> None:
    """And the last ones are shown, with a word that there are more."""
    records = [
        entry(1, 200), entry(2, 200, tenant="beta"), entry(3, 200, operation="revokeKey"), entry(4, 200, key="k2"),
    ]  # fmt: skip
    asked = {
        "since": AuditQuery(since=3.0), "tenant": AuditQuery(tenant="beta"), "key": AuditQuery(key="k2"),
        "operation": AuditQuery(operation="revokeKey"), "last": AuditQuery(limit=2),
    }  # fmt: skip

    found = {name: merged_entries(records, query) for name, query in asked.items()}

    assert {name: [one.id for one in each.entries] for name, each in found.items()} == {
        "since": ["req_3", "req_4"], "tenant": ["req_2"], "key": ["req_4"], "operation": ["req_3"],
        "last": ["req_3", "req_4"],
    }  # fmt: skip
    assert [name for name, each in found.items() if each.more] == ["last"]


class Asked(msgspec.Struct):
    name: str
    secret: str
    note: str | None = ""


def test_of_a_body_only_the_named_fields_are_repeated() -> None:
    """Those that say something; of a long one the names."""
    assert repeated_fields(Asked(name="a", secret="hidden"), ("name", "note")) == {"name": "a"}
    assert repeated_fields(Asked(name="a", secret="", note=None), ("note",)) == {"note": None}
    assert repeated_fields(Limits(concurrency=3), EVERY) == {"concurrency": 3}
    assert repeated_fields(Asked(name="a" * MOST_TOLD, secret=""), ("name",)) == {"name": "…"}
    assert repeated_fields(None, EVERY) == {}
    assert repeated_fields(Asked(name="a", secret="hidden"), ()) == {}
