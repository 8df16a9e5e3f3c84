"""Names, refs and call ids."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from pilotlight_core.host import config
from pilotlight_core.model.api import call_api, tenancy_api
from pilotlight_core.model.errors import BadInput, UnknownCall
from pilotlight_core.model.ids import (
    CallId,
    Ref,
    base36,
    check_name,
    new_call_id,
    parse_call_id,
    parse_ref,
    tags_fault,
    token,
)


@pytest.mark.parametrize("name", ["", "-a", "a.b", "a b", "a/b", "..", "*", ">", "a" * 64, "é", "a\n"])
def test_a_name_is_one_nats_token_and_one_file_name(name: str) -> None:
    """Anything that could be a separator, a wildcard or a parent folder is refused, and the field is named."""
    with pytest.raises(BadInput) as refused:
        check_name(name, "app")

    assert refused.value.more["field"] == "app"


@pytest.mark.parametrize(
    ("tags", "why"),
    [
        ({}, ""),
        ({"team": "search", "cost-centre_2": "EU/12.4:a@b+c"}, ""),
        ({f"t{n}": "x" for n in range(10)}, ""),
        ({f"t{n}": "x" for n in range(11)}, "11 tags are too many: expected at most 10"),
        ({"a b": "x"}, "'a b' is no name: expected 1 to 32 letters"),
        ({"-a": "x"}, "'-a' is no name"),
        ({"t" * 33: "x"}, "is no name"),
        ({7: "x"}, "7 is no name"),
        ({"team": ""}, "team is '': expected 1 to 64 letters"),
        ({"team": "x" * 65}, "expected 1 to 64 letters"),
        ({"team": "a\n"}, "team is 'a\\n'"),
        ({"team": "a,b"}, "team is 'a,b'"),
        ({"team": 7}, "team is 7"),
        ({f"t{n}": "x" * 62 for n in range(8)}, ""),
        ({f"t{n}": "x" * 63 for n in range(8)}, "too long: expected names and values of at most 512 characters"),
    ],
)
def test_tags_are_few_short_and_plain(tags: Any, why: str) -> None:
    """What is wrong first is named, and what was expected."""
    found = tags_fault(tags)

    assert why in found
    assert bool(why) is bool(found)


@pytest.mark.parametrize(
    ("text", "ref"),
    [
        ("hello.greet", Ref("hello", "greet")),
        ("acme:hello.greet", Ref("hello", "greet", tenant="acme")),
        ("hello.greet@v7", Ref("hello", "greet", pin="v7")),
        ("acme:hello.greet@canary", Ref("hello", "greet", tenant="acme", pin="canary")),
    ],
)
def test_a_ref_is_read_and_written(text: str, ref: Ref) -> None:
    """What is read prints as it was written."""
    assert parse_ref(text) == ref
    assert str(ref) == text


@pytest.mark.parametrize("text", ["greet", "hello.", ".greet", "a.b.c", "a:b:c.d", "hello.greet@", "hello.gr eet"])
def test_what_is_not_a_ref_is_refused(text: str) -> None:
    """The error names what was expected."""
    with pytest.raises(BadInput):
        parse_ref(text)


def test_a_version_pin_is_a_number() -> None:
    """`@v7` is version 7; `@v0` and `@v07` are none."""
    assert parse_ref("a.b@v7").version_number == 7
    assert parse_ref("a.b@v07").version_number is None
    assert parse_ref("a.b@prod").version_number is None


@given(st.integers(min_value=0, max_value=2**63))
def test_a_call_id_tells_its_owners_epoch(epoch: int) -> None:
    """The id has the epoch of the owning gateway, and the region."""
    text = new_call_id("eu-1", epoch, 1_790_000_000.5)
    parsed = parse_call_id(text)

    assert (parsed.region, parsed.epoch) == ("eu-1", epoch)
    assert str(parsed) == text
    assert isinstance(parsed, CallId)


@given(st.integers(0, 36**7 - 2), st.integers(1, 10**6))
def test_call_ids_rise_with_time(second: int, later: int) -> None:
    """From second to second, as text and as a database sorts them, for three thousand years."""
    earlier, next_one = (new_call_id("eu-1", 7, min(at, 36**7 - 1)) for at in (second, second + later))

    assert earlier < next_one
    assert parse_call_id(earlier).token[:7] == f"{base36(second):0>7}"


def test_a_call_id_cannot_be_guessed() -> None:
    """Thirteen of its digits are random: ids of one second have nothing in common but that second."""
    made = [new_call_id("eu-1", 7, 1_790_000_000.0) for _ in range(1_000)]

    endings = {parse_call_id(call).token[7:] for call in made}
    assert len(endings) == 1_000
    assert {len(ending) for ending in endings} == {13}
    assert all(len({ending[digit] for ending in endings}) == 36 for digit in range(13))


@pytest.mark.parametrize("text", ["", "call_", "call_local_1_short", "cid_12345678", "call_LOCAL_1_" + "a" * 20])
def test_what_is_not_a_call_id_is_unknown(text: str) -> None:
    """It is answered like a call that never was."""
    with pytest.raises(UnknownCall):
        parse_call_id(text)


def test_tokens_do_not_repeat() -> None:
    """20 characters of base 36."""
    assert len({token() for _ in range(1000)}) == 1000
    assert len(token()) == 20


@given(st.integers(min_value=0, max_value=2**70))
def test_base36_is_pythons(number: int) -> None:
    """It reads back with int(…, 36)."""
    assert int(base36(number), 36) == number


@pytest.mark.parametrize(
    "kind", [tenancy_api.Name, call_api.Scope, config.SettingName, Annotated[str, Meta(pattern=call_api.LINE_PATTERN)]]
)
def test_no_pattern_lets_a_line_break_follow(kind: Any) -> None:
    """Python's `$` alone would; the patterns work in other languages' validators too."""
    assert msgspec.convert("invoke", kind) == "invoke"
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert("invoke\n", kind)
