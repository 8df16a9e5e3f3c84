"""The page of a rollout."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_gateway.dashboard.page_parts.answered_parts import AnsweredPart
from pilotlight_gateway.dashboard.page_parts.block_markup import blocks_markup
from pilotlight_gateway.dashboard.page_parts.blocks import Block, Drawing, PageForm, TextLines
from pilotlight_gateway.dashboard.page_parts.gateway_client import ApiAnswer
from pilotlight_gateway.dashboard.pages.own.rollout_page import (
    ROLLOUT_ACTIONS,
    RolloutNotes,
    rollout_blocks,
)
from tests.gateway.dashboard.pages.own_scenes import HOSTILE, NOT_ALLOWED
from tests.gateway.dashboard.pages.rollout_scenes import guard_seen, rollout, told_event
from tests.gateway.dashboard.pages.scenes import answer_of, table_of
from tests.gateway.dashboard.site import OWN_PAGE, Site, csrf_of

NOTES = RolloutNotes()


def words_of(blocks: list[Block]) -> list[str]:
    return [block.id for block in blocks if isinstance(block, PageForm)]


def line_of(blocks: list[Block]) -> str:
    return next(block.label for block in blocks if isinstance(block, Drawing)).rpartition("; ")[2]


def test_each_guard_says_what_it_has_seen_of_both_sides() -> None:
    """Below E itself: amounts by an effect with its interval, events by how many of how many."""
    seen = [*rollout()["seen"], guard_seen(guard="crash", effect=12.0, low=None, high=None, weight=0.0)]
    rows = table_of(rollout_blocks(rollout(seen=seen), NOTES), "guards")
    assert rows[0][:6] == ("E", "the mean of all guards", "hello", "2.71", "1,321", "1,327")
    assert rows[1] == (
        "latency",
        "time to run",
        "hello",
        "3.11",
        "1,301",
        "1,303",
        "+30.7 %",
        "+21.1 % to +40.9 %",
        "–",
    )
    assert rows[2][4:6] == ("13 of 1,307", "11 of 1,319")
    assert rows[2][8] == "50 %"
    assert rows[3][6:8] == ("×13", "–")


@pytest.mark.parametrize(
    ("more", "said", "tone", "where"),
    [
        ({}, "Rollout 701 of shop (ramp): 5.09 % of calls go to the new version; E is 2.71.", "", "at 5 %"),
        ({"held": "calls"}, "does not go on: too few calls of the new version were compared", "warn", "at 5 %, held"),
        ({"paused_by": "key1: Monday"}, "paused by key1: Monday", "warn", "at 5 %, held"),
        ({"evidence": 12.0}, "E is 12", "bad", "at 5 %"),
        ({"state": "planned", "step": 0}, "(planned)", "", "before the first"),
        ({"state": "baking"}, "(baking)", "", "at baking"),
        ({"state": "promoted", "reason": "verified"}, "promoted: verified", "good", "at promoted"),
        ({"state": "rolling_back", "reason": "It is worse."}, "Because: It is worse.", "bad", "at 5 %, back"),
        ({"state": "rolled_back", "reason": "It is worse."}, "rolled back: It is worse.", "bad", "at 5 %, back"),
        ({"state": "superseded"}, "ended at 2026-11-27 07:05:10: superseded", "quiet", "at 5 %, back"),
    ],
)
def test_the_first_line_says_how_it_is(more: dict[str, Any], said: str, tone: str, where: str) -> None:
    blocks = rollout_blocks(rollout(**more), NOTES)
    answer = answer_of(blocks)
    assert said in answer[0]
    assert answer[1] == tone
    assert line_of(blocks) == where


def test_the_judge_is_quoted_as_it_speaks() -> None:
    """The same sentences as of `pilotlight rollout status`."""
    (said,) = [block for block in rollout_blocks(rollout(), NOTES) if isinstance(block, TextLines)]
    assert said.lines == ("E is low.", "Nothing is known of GPU time yet.")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, ["pause", "freeze", "promote", "abort"]),
        ({"held": "evidence"}, ["pause", "resume", "freeze", "promote", "abort"]),
        ({"paused_by": "key1", "frozen": True}, ["resume", "promote", "abort"]),
        ({"state": "rolling_back"}, []),
        ({"state": "promoted"}, []),
    ],
)
def test_what_may_be_said_depends_on_how_it_is(more: dict[str, Any], words: list[str]) -> None:
    assert words_of(rollout_blocks(rollout(**more), NOTES, may_tell=True)) == words


def test_who_may_not_tell_it_is_told_the_command() -> None:
    """With no form; each form is of an action that there is."""
    assert words_of(rollout_blocks(rollout(), NOTES)) == []
    assert "pilotlight rollout pause shop" in blocks_markup(rollout_blocks(rollout(), NOTES), "")
    forms = [one for one in rollout_blocks(rollout(held="calls"), NOTES, may_tell=True) if isinstance(one, PageForm)]
    assert {form.action for form in forms} == {action.path.format(app="shop") for action in ROLLOUT_ACTIONS}
    assert all(form.method == "post" and form.confirm for form in forms)


def test_events_are_those_of_the_app_and_earlier_ones_are_listed() -> None:
    """What nobody says is said to be so."""
    told = (
        told_event(),
        told_event(id=8, facts={"app": "other"}),
        told_event(id=9, kind="rollout.held", says="It holds."),
    )
    past = AnsweredPart(
        value={"rollouts": [rollout(), rollout(id="rol_w", number=700, state="rolled_back", reason="R.")]}
    )
    blocks = rollout_blocks(rollout(), RolloutNotes(events=told, past=past))
    assert [row[2] for row in table_of(blocks, "events")] == ["It holds.", "Rollout of shop: a step."]
    assert [(row[0], row[2], row[6]) for row in table_of(blocks, "past")] == [("700", "rolled back", "R.")]
    page = blocks_markup(rollout_blocks(rollout(), RolloutNotes(events=None, past=NOT_ALLOWED)), "")
    assert "Its events: not known." in page
    assert "Earlier rollouts: not allowed." in page


def test_hostile_text_stays_text_and_a_page_stays_small() -> None:
    seen = [guard_seen(function=f"f{n}{HOSTILE}", guard=HOSTILE) for n in range(200)]
    told = tuple(told_event(id=n, says=HOSTILE * 99) for n in range(400))
    page = blocks_markup(rollout_blocks(rollout(seen=seen, reason=HOSTILE), RolloutNotes(events=told)), "")
    assert "<img" not in page
    assert len(page) < 200_000


async def test_a_word_is_sent_with_its_reason(site: Site) -> None:
    """By a form of the page, for who may deploy, and of the rollout that it shows; the page is what comes next."""
    answered = ApiAnswer(status=200, body=msgspec.json.encode(rollout()))
    site.api.answers["/v1/apps/shop/rollout"] = answered
    site.api.answers["/v1/apps/shop/rollout/abort"] = answered
    sent: list[Any] = []
    ask = site.api.ask

    async def asked(method: str, path: str, token: str = "", body: Any = None) -> ApiAnswer:
        if method == "POST" and path.startswith("/v1/apps"):
            sent.append((path, body))
        return await ask(method, path, token, body)

    site.api.ask = asked  # type: ignore[method-assign]
    async with site.logged_in(site.world.add_key("acme", "read", "deploy")) as browser:
        page = await browser.get("/ui/rollouts/shop")
        assert f'name="rollout" value="{rollout()["id"]}"' in page.text
        form = {"csrf": csrf_of(page.text), "reason": "wrong weights", "rollout": "rol_seen"}
        done = await browser.post("/ui/do/rollouts/shop/abort", data=form, headers=OWN_PAGE)
    assert page.status_code == 200
    assert (done.status_code, done.headers["location"]) == (303, "/ui/rollouts/shop")
    assert sent == [("/v1/apps/shop/rollout/abort", {"reason": "wrong weights", "rollout": "rol_seen"})]
    async with site.logged_in(site.world.add_key("acme", "read")) as browser:
        page = await browser.get("/ui/rollouts/shop")
        assert "/ui/do/rollouts" not in page.text


async def test_an_app_without_one_says_how_to_begin(site: Site) -> None:
    async with site.logged_in() as browser:
        answer = await browser.get("/ui/rollouts/shop")
    assert (answer.status_code, "pilotlight rollout start shop" in answer.text) == (200, True)
