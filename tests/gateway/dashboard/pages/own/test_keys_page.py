"""Keys and limits."""

from __future__ import annotations

from pilotlight_gateway.dashboard.page_parts.answered_parts import AnsweredPart
from pilotlight_gateway.dashboard.page_parts.block_markup import blocks_markup
from pilotlight_gateway.dashboard.pages.own.keys_page import MOST_KEYS, held_of, keys_blocks
from tests.gateway.dashboard.pages.own_scenes import (
    HOSTILE,
    NOT_ALLOWED,
    api_key,
    app,
    kept_call,
    kept_calls,
    limits,
    usage_line,
    usage_report,
)
from tests.gateway.dashboard.pages.scenes import answer_of, container, table_of
from tests.gateway.dashboard.site import Site

AT = 1_795_763_110.0
REFUSED = AnsweredPart(value=kept_calls(kept_call(code="rate_limited"), kept_call(code="function_raised")))
CALM = AnsweredPart(value=kept_calls())
USED = AnsweredPart(
    value=usage_report(usage_line(), usage_line(day="2026-11-26", calls=7), usage_line(key="o", calls=0))
)


def keys(*listed: object) -> AnsweredPart:
    return AnsweredPart(value={"keys": list(listed)})


def known(**effective: object) -> AnsweredPart:
    return AnsweredPart(value=limits(**effective))


def test_keys_say_when_they_were_used_last() -> None:
    """By the day, as the ledger has it."""
    told = keys(
        api_key(), api_key(id="o", revoked=True), api_key(id="p", expires_at=AT - 1), api_key(id="q", replaced_by="k"),
        api_key(id="r", break_glass=True, expires_at=AT + 60),
    )  # fmt: skip
    blocks = keys_blocks(told, USED, known(), {}, CALM, AT)
    assert answer_of(blocks) == ("3 keys are valid. No limit stands in the way now.", "")
    assert [row[3:6] for row in table_of(blocks, "keys")] == [
        ("valid", "2026-11-27", "450"), ("revoked", "none", "0"), ("expired", "none", "0"),
        ("replaced by k", "none", "0"), ("valid, for emergencies", "none", "0"),
    ]  # fmt: skip


def test_limits_that_are_reached_are_named() -> None:
    """Those of which nobody tells how much there is say so."""
    blocks = keys_blocks(keys(api_key()), USED, known(keys=1, apps=5, requests_per_s=0.5, blob_bytes=2**20),
                         {"keys": 1, "apps": 3}, CALM, AT)  # fmt: skip
    assert answer_of(blocks) == ("1 key is valid. Reached is the limit of valid keys.", "warn")
    assert table_of(blocks, "limits") == [
        ("valid keys", "1", "1", "reached", "your own"), ("apps", "5", "3", "open", "the tier paid"),
        ("calls a second", "0.5", "–", "not told here", "the tier paid"),
        ("bytes of files", "1.0 MiB", "–", "not told here", "the tier paid"),
    ]  # fmt: skip
    single = AnsweredPart(value=limits() | {"functions": {"acme:shop.hello": {"concurrency": 3}}})
    found = table_of(keys_blocks(keys(), USED, single, {}, CALM, AT), "function-limits")
    assert found == [("acme:shop.hello", "calls at a time", "3")]


def test_what_limits_refused_is_counted() -> None:
    """Of the failed calls that are kept."""
    blocks = keys_blocks(keys(), USED, known(), {}, REFUSED, AT)
    assert answer_of(blocks) == ("0 keys are valid. Limits refused 1 call lately.", "warn")
    assert table_of(blocks, "refusals") == [("rate_limited", "1", "calls")]


def test_a_key_that_may_not_see_keys_is_told_so() -> None:
    """Its tenant's limits are shown all the same."""
    blocks = keys_blocks(NOT_ALLOWED, NOT_ALLOWED, known(apps=5), {"apps": 1}, NOT_ALLOWED, AT)
    said = [getattr(block, "text", "") for block in blocks]
    assert "Keys: not allowed. It needs admin." in said
    assert "What limits refused: not allowed. It needs admin." in said
    assert table_of(blocks, "limits")
    assert "not known" in blocks_markup(keys_blocks(keys(api_key()), NOT_ALLOWED, known(), {}, CALM, AT), "")


def test_what_there_is_is_counted_as_far_as_lists_say() -> None:
    """What may not be seen is no nought."""
    held = held_of(
        keys(api_key(), api_key(revoked=True)), AnsweredPart(value={"apps": [app(), app()]}),
        AnsweredPart(value={"containers": [container()]}), AT,
    )  # fmt: skip
    assert held == {"keys": 1, "apps": 2, "functions": 2, "containers": 1}
    assert held_of(NOT_ALLOWED, NOT_ALLOWED, NOT_ALLOWED, AT) == {}


def test_hostile_labels_stay_text_and_a_page_stays_small() -> None:
    """With more keys than are shown."""
    many = keys(*[api_key(id=f"k{n}", label=HOSTILE) for n in range(MOST_KEYS * 2)])
    page = blocks_markup(keys_blocks(many, USED, known(), {}, CALM, AT), "")
    assert "<img" not in page
    assert len(page) < 140_000
    assert f"{MOST_KEYS * 2} in all." in page


async def test_a_key_that_reads_sees_limits_and_no_keys(site: Site) -> None:
    """As the API has it; one that manages keys sees them."""
    async with site.logged_in(site.world.add_key("acme", "read")) as browser:
        answer = await browser.get("/ui/keys")
        assert answer.status_code == 200
        assert "Keys: not allowed." in answer.text
        assert "Limits of all that is yours" in answer.text
    async with site.logged_in(site.world.add_key("acme", "admin")) as browser:
        assert "API keys" in (await browser.get("/ui/keys")).text
