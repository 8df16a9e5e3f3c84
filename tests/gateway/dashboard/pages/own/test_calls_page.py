"""Kept calls."""

from __future__ import annotations

from pilotlight_gateway.dashboard.page_parts.block_markup import blocks_markup
from pilotlight_gateway.dashboard.page_parts.blocks import LinkLine, Sentence
from pilotlight_gateway.dashboard.pages.own.calls_page import KEPT, MOST_CALLS, calls_blocks, function_link
from tests.gateway.dashboard.pages.own_scenes import HOSTILE, kept_call, kept_calls
from tests.gateway.dashboard.pages.scenes import answer_of, table_of
from tests.gateway.dashboard.site import Site
from tests.gateway.world import function


def test_failed_and_slow_ones_are_counted() -> None:
    """Of those that are kept, which are not all; that a gateway did not answer is said, and not which."""
    listed = kept_calls(kept_call(), kept_call(kept="error", code="function_raised"), unanswered=("g2",))
    blocks = calls_blocks(listed, "shop.hello", "slow")
    assert answer_of(blocks) == ("1 call failed and 1 was slow, of the last 2 calls that are kept.", "warn")
    assert [row[3:5] for row in table_of(blocks, "calls")] == [("slow", "ok"), ("failed", "function_raised")]
    (silent,) = [block for block in blocks if getattr(block, "id", "") == "silent"]
    assert isinstance(silent, Sentence)
    assert "Not known: what 1 gateway keeps" in silent.text
    assert "g2" not in repr(blocks)
    assert answer_of(calls_blocks(kept_calls()))[0] == "0 calls failed and 0 were slow: none is kept."
    (links,) = [block for block in blocks if isinstance(block, LinkLine)]
    assert [present for _, _, present in links.links] == [one == "slow" for one in KEPT]
    assert all("function=shop.hello" in href for _, href, _ in links.links)


def test_only_own_functions_have_a_page() -> None:
    """Another tenant's is a name."""
    assert function_link("shop.hello") == "/ui/functions/shop.hello"
    assert [function_link(name) for name in ("", "friend:shop.hello")] == ["", ""]


def test_hostile_names_stay_text_and_a_page_stays_small() -> None:
    """With as many calls as it has."""
    listed = kept_calls(
        *[kept_call(id=f"call_{n}{HOSTILE}", version=HOSTILE, longest=HOSTILE) for n in range(MOST_CALLS)]
    )
    page = blocks_markup(calls_blocks(listed), "")
    assert "<img" not in page
    assert len(page) < 120_000


async def test_the_page_asks_for_what_its_address_says(site: Site) -> None:
    """An unknown word is none, and what the API refuses is said in its words."""
    site.world.deploy(function())
    async with site.logged_in(site.world.key) as browser:
        answer = await browser.get("/ui/calls", params={"function": "shop.hello", "kept": "slow"})
        assert answer.status_code == 200
        assert ("GET", f"/v1/calls?function=shop.hello&kept=slow&limit={MOST_CALLS}") in site.api.asked
        assert (await browser.get("/ui/calls?kept=nonsense")).status_code == 200
        wrong = await browser.get("/ui/calls", params={"function": HOSTILE})
    assert wrong.status_code == 422
    assert "expected app.function" in wrong.text
    assert "<img" not in wrong.text
