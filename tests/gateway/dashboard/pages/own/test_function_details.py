"""What stands beside a function's numbers."""

from __future__ import annotations

from pilotlight_gateway.dashboard.page_parts.answered_parts import AnsweredPart
from pilotlight_gateway.dashboard.page_parts.blocks import LinkLine, Sentence
from pilotlight_gateway.dashboard.pages.own.function_details import (
    MOST_CONTAINERS,
    bound_blocks,
    cause_blocks,
    container_blocks,
    version_blocks,
)
from tests.gateway.dashboard.pages.own_scenes import HISTORY, NOT_ALLOWED, NOT_THERE, diagnosis, own_container
from tests.gateway.dashboard.pages.scenes import table_of
from tests.gateway.dashboard.site import Site
from tests.gateway.world import function


def test_what_bounds_it_is_a_sentence() -> None:
    """In another tone where nothing does; evidence and cures are below."""
    bound = AnsweredPart(value=diagnosis())
    links, sentence = bound_blocks("shop.hello", bound)
    assert isinstance(links, LinkLine)
    assert ("Logs", "/ui/logs?function=shop.hello", False) in links.links
    assert isinstance(sentence, Sentence)
    assert (sentence.text, sentence.tone) == ("It starts cold.", "bad")
    assert table_of(cause_blocks(bound), "cures") == [("Raise it.", "setting", "pilotlight scale", "56.9 %")]
    own = diagnosis(cures=[diagnosis()["cures"][0] | {"gain": None}])
    assert table_of(cause_blocks(AnsweredPart(value=own)), "cures")[0][-1] == "57.1 %"
    few = AnsweredPart(value=diagnosis(name="few", trouble=""))
    assert getattr(bound_blocks("f", few)[1], "tone", None) == "quiet"
    assert cause_blocks(few) == cause_blocks(NOT_THERE) == []
    assert getattr(bound_blocks("f", NOT_THERE)[1], "text", "") == "What bounds it: not there. It is not kept."


def test_versions_are_those_of_the_deploys_that_changed_it() -> None:
    """The newest first."""
    blocks = version_blocks("hello", AnsweredPart(value=HISTORY))
    assert [row[:2] for row in table_of(blocks, "versions")] == [("v2", "593"), ("v1", "577")]
    counted = [{"version": "ver_v2", "calls": 5, "failed": 2, "durations": {"count": 3, "p95": 8.0}}]
    again = version_blocks("hello", AnsweredPart(value=HISTORY), counted)
    assert [row[-3:] for row in table_of(again, "versions")] == [("5", "2", "8.0 ms"), ("0", "0", "–")]
    assert getattr(version_blocks("hello", NOT_ALLOWED)[0], "tone", None) == "warn"


def test_its_containers_are_its_own() -> None:
    """Those of others are not shown; of very many the first are, and all are counted."""
    listed = [own_container(), own_container(function="other"), own_container(state="loading", timeline=None)]
    blocks = container_blocks("shop", "hello", AnsweredPart(value={"containers": listed}))
    assert [row[1:8] for row in table_of(blocks, "containers")] == [
        ("ready", "7g@x", "599", "601", "607", "10 min 13 s", "617 ms"),
        ("loading", "7g@x", "599", "601", "607", "10 min 13 s", "–"),
    ]
    many = AnsweredPart(value={"containers": [own_container()] * (MOST_CONTAINERS + 1)})
    (table,) = container_blocks("shop", "hello", many)
    assert getattr(table, "note", "") == f"{MOST_CONTAINERS + 1} in all."
    assert getattr(container_blocks("shop", "hello", NOT_ALLOWED)[0], "tone", None) == "warn"


async def test_a_function_has_a_page_with_all_of_it(site: Site) -> None:
    """Also where a part is not answered."""
    site.world.deploy(function())
    async with site.logged_in(site.world.key) as browser:
        answer = await browser.get("/ui/functions/shop.hello")
    assert answer.status_code == 200
    assert "Versions, the newest first" in answer.text
    assert "It has none: the next call starts one." in answer.text
    assert "What bounds it" in answer.text or "says nothing" in answer.text
