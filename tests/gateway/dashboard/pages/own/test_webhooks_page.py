"""Webhooks, and deliveries that have not arrived."""

from __future__ import annotations

from pilotlight_gateway.dashboard.page_parts.answered_parts import AnsweredPart
from pilotlight_gateway.dashboard.page_parts.block_markup import blocks_markup
from pilotlight_gateway.dashboard.pages.own.webhooks_page import (
    MOST_DELIVERIES,
    MOST_ROWS,
    MOST_WEBHOOKS,
    webhooks_blocks,
)
from tests.gateway.dashboard.pages.own_scenes import ATTEMPT, HOSTILE, NOT_THERE, delivery, webhook
from tests.gateway.dashboard.pages.scenes import answer_of, table_of
from tests.gateway.dashboard.site import Site


def sent(*deliveries: object) -> AnsweredPart:
    return AnsweredPart(value={"deliveries": list(deliveries)})


def test_what_has_not_arrived_is_listed() -> None:
    """What waits for its first attempt, or has arrived, is not."""
    found = sent(
        delivery(), delivery("delivered", ATTEMPT), delivery("pending", ATTEMPT), delivery("failed", next_at=None)
    )
    blocks = webhooks_blocks({"webhooks": [webhook(failing_since=1.0), webhook()]}, [found, sent()])
    assert answer_of(blocks) == ("1 webhook of 2 cannot be reached, or nothing is sent to it.", "bad")
    assert [row[4:] for row in table_of(blocks, "deliveries")] == [
        ("pending", "1", "2026-11-27 07:05:10", "563", "It answered so.", "557 ms", "2026-11-27 07:05:10"),
        ("failed", "0", "–", "–", "", "–", "–"),
    ]
    assert [row[4] for row in table_of(blocks, "webhooks")] == ["failing", "in use"]


def test_unusual_states_look_different() -> None:
    """None, one that is disabled, and one whose deliveries nobody knows."""
    assert answer_of(webhooks_blocks({"webhooks": []}, [])) == ("There is no webhook.", "")
    assert (
        answer_of(webhooks_blocks({"webhooks": [webhook()]}, [sent()]))[0] == "1 webhook: what is sent to them arrives."
    )
    blocks = webhooks_blocks({"webhooks": [webhook(disabled=True, disabled_because="It failed.")]}, [NOT_THERE])
    assert table_of(blocks, "webhooks")[0][4] == "disabled: It failed."
    assert "Deliveries of some: not there. It is not kept." in [getattr(block, "text", "") for block in blocks]


def test_hostile_text_stays_text_and_a_page_stays_small() -> None:
    """With as many deliveries as are asked for."""
    failing = delivery("failed", ATTEMPT | {"error": HOSTILE * 99})
    listed = [webhook(id=f"wh_{n}", label=HOSTILE, url=f"https://x/{HOSTILE * 99}") for n in range(MOST_WEBHOOKS)]
    blocks = webhooks_blocks({"webhooks": listed}, [sent(*[failing] * MOST_DELIVERIES)] * MOST_WEBHOOKS)
    page = blocks_markup(blocks, "")
    assert "<img" not in page
    assert len(page) < 140_000
    assert len(table_of(blocks, "deliveries")) == MOST_ROWS
    assert f"{MOST_DELIVERIES * MOST_WEBHOOKS} in all." in page


async def test_a_tenant_sees_its_own(site: Site) -> None:
    """With a key that may read or deploy."""
    async with site.logged_in(site.world.add_key("acme", "deploy")) as browser:
        assert "There is no webhook." in (await browser.get("/ui/webhooks")).text
    async with site.logged_in(site.world.add_key("acme", "invoke")) as browser:
        assert (await browser.get("/ui/webhooks")).status_code == 403
