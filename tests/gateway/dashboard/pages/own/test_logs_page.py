"""Logs."""

from __future__ import annotations

from pilotlight_gateway.dashboard.page_parts.block_markup import blocks_markup
from pilotlight_gateway.dashboard.page_parts.blocks import LinkLine, TextLines
from pilotlight_gateway.dashboard.pages.own.logs_page import MOST_CHOICES, TAIL, loggable, logs_blocks
from tests.gateway.dashboard.pages.own_scenes import HOSTILE, app, log_line
from tests.gateway.dashboard.pages.scenes import answer_of
from tests.gateway.dashboard.site import Site
from tests.gateway.world import function

KNOWN = ["shop", "shop.hello"]


def lines_of(blocks: list[object]) -> tuple[str, ...]:
    (found,) = [block for block in blocks if isinstance(block, TextLines)]
    return found.lines


def test_the_newest_line_is_the_last() -> None:
    """Of an app with whose it is; what is no plain output says what it is."""
    told = [log_line("a"), log_line("b", stream="stderr")]
    blocks = logs_blocks(KNOWN, "shop", "", told)
    assert answer_of(blocks)[0] == "The last 2 lines of shop."
    assert lines_of([*blocks]) == ("11-27 07:05:10.500 hello a", "11-27 07:05:10.500 hello stderr: b")
    one = logs_blocks(KNOWN, "shop.hello", "call_x", told)
    assert answer_of(one)[0] == "The last 2 lines of shop.hello in the call call_x."
    assert lines_of([*one])[0] == "11-27 07:05:10.500 a"
    (links,) = [block for block in one if isinstance(block, LinkLine)]
    assert [href for _, href, _ in links.links] == [
        "/ui/functions/shop.hello", "/ui/calls/call_x", "/ui/logs?function=shop.hello",
    ]  # fmt: skip
    assert answer_of(logs_blocks(KNOWN, "shop", "", [])) == ("shop has printed nothing.", "quiet")
    assert answer_of(logs_blocks([], "", "", []))[0] == "Nothing is deployed, so nothing prints."


def test_lines_that_were_dropped_leave_a_mark() -> None:
    """Which only the platform makes: a function that prints the same sentence makes none."""
    text = "17 lines (0.1 MB) were dropped: a container may log 1000 lines or 1 MB per second"
    told = [log_line(text), log_line("b")]
    assert not [block for block in logs_blocks(KNOWN, "shop", "", told) if getattr(block, "id", "") == "dropped"]
    blocks = logs_blocks(KNOWN, "shop", "", [log_line("a"), log_line(text, stream="platform"), log_line("b")])
    (mark,) = [block for block in blocks if getattr(block, "id", "") == "dropped"]
    assert getattr(mark, "text", "").startswith("Lines are missing here: 11-27 07:05:10.500 of hello, 17 lines")
    assert lines_of([*blocks])[1].startswith("11-27 07:05:10.500 hello ── 17 lines")
    stored = log_line("9 lines were dropped: the log could not be stored", stream="platform")
    assert any(getattr(block, "id", "") == "dropped" for block in logs_blocks(KNOWN, "shop", "", [stored]))


def test_hostile_lines_stay_text_and_a_page_stays_small() -> None:
    """The newest are shown, whatever becomes of them as HTML."""
    told = [log_line(f"{n} {HOSTILE * 200}") for n in range(TAIL)]
    names = [f"shop.{'f' * 60}{n}" for n in range(5_000)]
    blocks = logs_blocks(names, names[-1], "", told)
    page = blocks_markup(blocks, "")
    assert "<img" not in page
    assert len(page) < 150_000
    assert lines_of([*blocks])[-1].partition(" ")[2].partition(" ")[2].startswith(f"{TAIL - 1} <img")
    assert page.count("<option") == MOST_CHOICES + 1


def test_each_app_and_each_function_has_lines() -> None:
    """In the order of their names."""
    assert loggable({"apps": [app()]}) == KNOWN


async def test_the_page_follows_one_stream(site: Site) -> None:
    """Of what its address names, if that is the viewer's."""
    site.world.deploy(function())
    site.streams.values["/v1/apps/shop/logs"] = [log_line("a line")]
    async with site.logged_in(site.world.key) as browser:
        for address, asked in (
            ("/ui/logs", f"follow=true&tail={TAIL}"),
            ("/ui/logs?function=shop.hello&call=call_x", f"follow=true&function=hello&call=call_x&tail={TAIL}"),
        ):
            answer = await browser.get(address)
            assert "a line" in answer.text
            assert site.streams.asked[-1] == f"/v1/apps/shop/logs?{asked}"
        assert (await browser.get("/ui/logs?function=none.none")).status_code == 404
    async with site.logged_in(site.world.add_key("rival", "read")) as browser:
        answer = await browser.get("/ui/logs?function=shop.hello")
        assert answer.status_code == 404
        assert "a line" not in answer.text


async def test_a_dashboard_that_follows_nothing_says_so(site: Site) -> None:
    """As the API's refusals are said."""
    site.world.deploy(function())
    site.answers.followed = None
    async with site.logged_in(site.world.key) as browser:
        answer = await browser.get("/ui/logs")
    assert answer.status_code == 503
    assert "follows no streams" in answer.text
