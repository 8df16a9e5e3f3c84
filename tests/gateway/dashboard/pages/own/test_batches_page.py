"""Batches."""

from __future__ import annotations

from pilotlight_gateway.dashboard.page_parts.blocks import LinkLine
from pilotlight_gateway.dashboard.pages.own.batches_page import batches_blocks
from tests.gateway.dashboard.pages.own_scenes import batch, batches
from tests.gateway.dashboard.pages.scenes import answer_of, table_of
from tests.gateway.dashboard.site import Site


def test_those_that_run_are_counted() -> None:
    """With how their items ended."""
    blocks = batches_blocks(batches(batch(), batch("completed", id="batch_y"), has_more=True))
    assert answer_of(blocks) == ("1 batch runs, of 2 on this page. There are more.", "warn")
    assert table_of(blocks, "batches")[0][3:10] == ("running", "383", "389", "397", "401", "409", "419")
    (pages,) = [block for block in blocks if isinstance(block, LinkLine)]
    assert pages.links == (("Next page", "/ui/batches?after=batch_y", False),)
    assert answer_of(batches_blocks(batches())) == ("There is no batch here.", "")


async def test_a_page_begins_behind_the_one_before(site: Site) -> None:
    """What is not there is said by the API."""
    async with site.logged_in(site.world.key) as browser:
        assert (await browser.get("/ui/batches")).status_code == 200
        assert (await browser.get("/ui/batches?after=batch_none")).status_code == 404
