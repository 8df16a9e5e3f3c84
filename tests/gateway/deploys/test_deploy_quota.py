"""How much a tenant may have deployed."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.model.errors import QuotaExceeded
from pilotlight_core.model.limits import Limits
from pilotlight_core.model.spec import AppRecord
from pilotlight_gateway.deploys.deploy_quota import check_deploy_quota, check_record_bytes
from tests.builders.specs import function_spec, version_record

VERSION = version_record(function_spec("f"), id="ver_1", tenant="acme", app="shop")


def app(name: str, *functions: str) -> AppRecord:
    return AppRecord(tenant="acme", app=name, revision=1, functions=dict.fromkeys(functions, "ver_1"))


def reached(limits: Limits, after: AppRecord, *present: AppRecord, used: int = 0) -> str | None:
    """The limit that refuses a deploy."""
    try:
        check_deploy_quota(limits, after, present, [VERSION], used)
    except QuotaExceeded as error:
        return str(error.more["limits"][0].limit)
    return None


def test_apps_are_counted_but_for_the_one_that_is_deployed_anew() -> None:
    """Also stopped ones."""
    one, two = app("one", "f"), msgspec.structs.replace(app("two", "f"), stopped=True)

    assert reached(Limits(apps=2), app("three", "f"), one, two) == "apps"
    assert reached(Limits(apps=2), app("two", "f"), one, two) is None
    assert reached(Limits(apps=1), app("two", "f"), one, two) is None
    assert reached(Limits(), app("three", "f"), one, two) is None


def test_functions_are_counted_over_all_apps() -> None:
    """Who has too many already may deploy as many anew, and fewer."""
    one, two = app("one", "a", "b"), app("two", "c")

    assert reached(Limits(functions=3), app("two", "c", "d"), one, two) == "functions"
    assert reached(Limits(functions=4), app("two", "c", "d"), one, two) is None
    assert reached(Limits(functions=2), app("two", "x"), one, two) is None


def test_new_records_must_fit() -> None:
    """Without new versions nothing is refused."""
    size = len(msgspec.msgpack.encode(VERSION)) + len(msgspec.msgpack.encode(app("one", "f")))

    assert reached(Limits(record_bytes=1_000 + size), app("one", "f"), used=1_000) is None
    assert reached(Limits(record_bytes=999 + size), app("one", "f"), used=1_000) == "record_bytes"
    check_record_bytes(Limits(record_bytes=1), [], 10**9, tenant="acme")
    with pytest.raises(QuotaExceeded, match=r"acme may have 1 bytes of records \(the limit record_bytes\)"):
        check_record_bytes(Limits(record_bytes=1), [VERSION], 0, tenant="acme")
