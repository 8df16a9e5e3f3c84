"""Jobs."""

from __future__ import annotations

from pilotlight_gateway.dashboard.page_parts.block_markup import blocks_markup
from pilotlight_gateway.dashboard.page_parts.blocks import LinkLine
from pilotlight_gateway.dashboard.pages.own.jobs_page import LONGEST_DETAIL, ON_A_PAGE, jobs_blocks
from tests.gateway.dashboard.pages.own_scenes import HOSTILE, job
from tests.gateway.dashboard.pages.scenes import answer_of, table_of
from tests.gateway.dashboard.site import Site


def test_they_are_counted_by_state_and_say_why() -> None:
    """They wait, or failed."""
    error = {"code": "function_raised", "detail": "x" * 999}
    jobs = [
        job(error=error), job("queued", position=3, starts_in_s=2.0), job("queued", waits_for="Budget month."),
        job("queued", position=0), job("expired", reason="expired"),
    ]  # fmt: skip
    blocks = jobs_blocks({"jobs": jobs, "next": None})
    assert answer_of(blocks) == ("5 jobs on this page: 3 queued, 1 failed, 1 expired.", "warn")
    assert [row[-1] for row in table_of(blocks, "jobs")] == [
        f"function_raised: {'x' * 999}"[:LONGEST_DETAIL] + " …", "3 before it, begins in 2.00 s", "Budget month.",
        "0 before it", "expired",
    ]  # fmt: skip
    assert answer_of(jobs_blocks({"jobs": [], "next": None})) == ("There is no job here.", "")


def test_pages_follow_one_another() -> None:
    """With what was asked for."""
    blocks = jobs_blocks({"jobs": [job()], "next": "c2"}, "failed", "shop.hello", "c1")
    (pages,) = [block for block in blocks if isinstance(block, LinkLine) and block.id == "pages"]
    assert pages.links == (
        ("First page", "/ui/jobs?state=failed&function=shop.hello", False),
        ("Next page", "/ui/jobs?state=failed&function=shop.hello&cursor=c2", False),
    )
    assert answer_of(blocks)[0].endswith("There are more.")


def test_hostile_errors_stay_text_and_a_page_stays_small() -> None:
    """With as many jobs as it has."""
    error = {"code": "function_raised", "detail": HOSTILE * 99}
    page = blocks_markup(
        jobs_blocks({"jobs": [job(id=f"call_{n}", error=error) for n in range(ON_A_PAGE)], "next": None}), ""
    )
    assert "<img" not in page
    assert len(page) < 120_000


async def test_the_page_asks_for_a_state(site: Site) -> None:
    """Which is one of those that there are."""
    async with site.logged_in(site.world.key) as browser:
        assert (await browser.get("/ui/jobs?state=failed")).status_code == 200
        assert ("GET", f"/v1/jobs?state=failed&limit={ON_A_PAGE}") in site.api.asked
        assert (await browser.get("/ui/jobs?state=nonsense")).status_code == 200
