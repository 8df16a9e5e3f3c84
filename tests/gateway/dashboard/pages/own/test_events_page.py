"""Events."""

from __future__ import annotations

from pilotlight_gateway.dashboard.page_parts.block_markup import blocks_markup
from pilotlight_gateway.dashboard.pages.own.events_page import MOST_EVENTS, events_blocks
from tests.gateway.dashboard.pages.own_scenes import HOSTILE, event
from tests.gateway.dashboard.pages.scenes import answer_of, table_of
from tests.gateway.dashboard.site import Site


def test_the_newest_is_first() -> None:
    """Functions have the names that their owner has for them."""
    blocks = events_blocks([event(), event(id=8, kind="breaker.opened", says="It opened.")], "acme")
    assert answer_of(blocks)[0] == "2 events; the last: It opened."
    assert table_of(blocks, "events")[0] == ("2026-11-27 07:05:10", "breaker.opened", "shop.hello", "It opened.")
    assert answer_of(events_blocks([], "acme"))[0] == "Nothing happened lately."
    assert answer_of(events_blocks(None, "acme")) == (
        "Not known: the gateways of this release keep no events.", "quiet",
    )  # fmt: skip


def test_hostile_text_stays_text_and_a_page_stays_small() -> None:
    """The last ones are shown."""
    told = [event(id=n, says=f"{n} {HOSTILE * 99}", function=f"acme:{HOSTILE}") for n in range(MOST_EVENTS * 3)]
    blocks = events_blocks(told, "acme")
    page = blocks_markup(blocks, "")
    assert "<img" not in page
    assert len(page) < 140_000
    assert table_of(blocks, "events")[0][3].startswith(f"{MOST_EVENTS * 3 - 1} ")


async def test_the_page_follows_its_tenants_own(site: Site) -> None:
    """By one stream of what its address asks for, also where the viewer is an operator."""
    site.streams.values["/v1/events"] = [event(tenant="platform", function="platform:a.b")]
    async with site.logged_in() as browser:
        answer = await browser.get("/ui/events-log?kind=function")
    assert "It should have one more." in answer.text
    assert site.streams.asked == [f"/v1/events?kind=function&limit={MOST_EVENTS}"]
