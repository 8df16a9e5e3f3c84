"""One call: its waterfall, its attempts, its failure and its receipt."""

from __future__ import annotations

from pilotlight_gateway.dashboard.page_parts.answered_parts import AnsweredPart
from pilotlight_gateway.dashboard.page_parts.block_markup import blocks_markup
from pilotlight_gateway.dashboard.page_parts.blocks import Drawing, LinkLine, TextLines
from pilotlight_gateway.dashboard.pages.own.call_page import call_blocks
from tests.gateway.dashboard.pages.own_scenes import (
    HOSTILE,
    NOT_ALLOWED,
    NOT_THERE,
    call_status,
    explanation,
    receipt,
)
from tests.gateway.dashboard.pages.scenes import answer_of, table_of
from tests.gateway.dashboard.site import Site


def known(value: object) -> AnsweredPart:
    return AnsweredPart(value=value)


def test_its_answer_is_what_happened_and_its_drawing_where_time_went() -> None:
    """With the same in tables."""
    blocks = call_blocks("call_x", known(call_status()), known(explanation()), known(receipt()))
    assert answer_of(blocks) == ("It took long.", "")
    (drawing,) = [block for block in blocks if isinstance(block, Drawing)]
    assert "execute 307 ms" in drawing.inner
    assert table_of(blocks, "parts") == [("start", "", "–", "0", "283 ms"), ("execute", "", "–", "293 ms", "307 ms")]
    assert table_of(blocks, "steps") == [("load", "277 ms")]
    assert table_of(blocks, "attempts") == [("ctr", "ok", "", "yes", "311 ms")]
    assert table_of(blocks, "lines")[0][-2:] == ("349", "33.70 USD")
    (links,) = [block for block in blocks if isinstance(block, LinkLine)]
    assert links.links[1][1] == "/ui/logs?function=shop.hello&call=call_x"


def test_what_is_not_kept_or_may_not_be_seen_is_said() -> None:
    """Its state is shown by itself; each other part says why it is not."""
    blocks = call_blocks("call_x", known(call_status(state="failed")), NOT_THERE, NOT_ALLOWED)
    assert answer_of(blocks) == ("The call call_x is failed.", "bad")
    said = [getattr(block, "text", "") for block in blocks]
    assert "Where its time went: not there. It is not kept." in said
    assert "Its receipt: not allowed. It needs admin." in said
    alone = call_blocks("call_x", NOT_THERE, known(explanation(function="friend:a.b", code="x")), NOT_THERE)
    assert answer_of(alone) == ("It took long.", "bad")
    assert not [block for block in alone if isinstance(block, LinkLine)]


def test_a_failure_is_the_functions_own_text() -> None:
    """Which stays text; a job's last run is another call."""
    error = {"code": "function_raised", "detail": HOSTILE, "traceback": f"Traceback\n{HOSTILE}\n" * 9_000}
    status = call_status(error=error, run="call_run")
    told = explanation(sentences=[HOSTILE], rows=[], cold_start=None, attempts=[])
    nested = receipt(parent="call_p", nested=["call_n"], lines=[])
    blocks = call_blocks("call_x", known(status), known(told), known(nested))
    (lines,) = [block for block in blocks if isinstance(block, TextLines) and block.id == "error"]
    assert lines.lines[0] == f"function_raised: {HOSTILE}"
    names = [name for block in blocks if isinstance(block, LinkLine) for name, _, _ in block.links]
    assert names[-2:] == ["The call that made it", "call_n"]
    assert "The job's last run" in names
    page = blocks_markup(blocks, "")
    assert "<img" not in page
    assert len(page) < 50_000


async def test_a_call_that_nobody_knows_has_no_page(site: Site) -> None:
    """And is told so by the API."""
    async with site.logged_in(site.world.key) as browser:
        answer = await browser.get("/ui/calls/call_local_0_00000000000000000000")
        assert answer.status_code == 404
        assert "call_local_0_00000000000000000000" in answer.text
        hostile = await browser.get("/ui/calls/%3Cimg%20src=x%3E")
    assert hostile.status_code == 404
    assert "<img" not in hostile.text
