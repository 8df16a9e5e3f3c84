"""The list of rollouts."""

from __future__ import annotations

import pytest

from pilotlight_gateway.dashboard.page_parts.block_markup import blocks_markup
from pilotlight_gateway.dashboard.page_parts.blocks import BarScale, CellBar, DataTable
from pilotlight_gateway.dashboard.pages.own.rollouts_page import evidence_cell, rollouts_blocks, state_cell
from tests.gateway.dashboard.pages.own_scenes import HOSTILE
from tests.gateway.dashboard.pages.rollout_scenes import rollout, rollouts
from tests.gateway.dashboard.pages.scenes import answer_of, table_of
from tests.gateway.dashboard.site import Site


def test_a_row_says_how_far_it_is_and_what_speaks_against_it() -> None:
    blocks = rollouts_blocks(rollouts(rollout(), rollout(app="b", state="promoted", step=0), left=3), "acme")
    assert answer_of(blocks) == ("1 rollout is under way.", "")
    assert table_of(blocks, "rollouts") == [
        ("shop", "ramp", "2 of 4", "5.09 %", "2.71", "undecided", "2026-11-27 07:05:10", "2026-11-27 07:10:10",
         "hello v7 → v8"),
        ("b", "promoted", "–", "100 %", "2.71", "undecided", "2026-11-27 07:05:10", "–", "hello v7 → v8"),
    ]  # fmt: skip
    (table,) = [block for block in blocks if isinstance(block, DataTable)]
    assert table.note == "3 more ended earlier."
    assert table.rows[0].cells[0].href == "/ui/rollouts/shop"
    assert table.rows[0].cells[3].bar == CellBar(part=0.0509)


def test_the_loudest_is_named_and_what_stands_is_counted() -> None:
    told = rollouts(rollout(held="evidence", evidence=43.0), rollout(app="b", paused_by="key1"), rollout(app="c"))
    blocks = rollouts_blocks(told, "acme")
    assert answer_of(blocks) == ("3 rollouts are under way, and 2 of them do not go on. E of shop is 43.", "bad")
    assert answer_of(rollouts_blocks(rollouts(), "acme"))[0] == "No rollout is under way."
    held = answer_of(rollouts_blocks(rollouts(rollout(held="calls")), "acme"))
    assert held == ("1 rollout is under way, and does not go on.", "warn")


@pytest.mark.parametrize(
    ("evidence", "part", "tone"),
    [(0.0, 0.0, ""), (0.5, 0.0, ""), (10.0, 1 / 3, "warn"), (100.0, 2 / 3, "bad"), (1e9, 1.0, "bad")],
)
def test_the_marks_of_e_are_at_thirds_of_its_bar(evidence: float, part: float, tone: str) -> None:
    cell = evidence_cell(evidence)
    assert cell.bar is not None
    assert (round(cell.bar.part, 6), cell.bar.scale, cell.tone) == (round(part, 6), BarScale.EVIDENCE, tone)
    assert evidence_cell(evidence, counts=False).tone == "quiet"


def test_why_it_stands_is_beside_its_state() -> None:
    """A person's word is said before the judge's; what is over stands for nobody."""
    assert state_cell(rollout(held="calls")).text == "ramp, held"
    assert state_cell(rollout(held="frozen", frozen=True, paused_by="key1")).text == "ramp, paused"
    assert state_cell(rollout(state="rolled_back", held="calls")).text == "rolled back"


def test_many_functions_and_long_and_hostile_names_are_bounded() -> None:
    functions = {f"f{n}{HOSTILE * 9}": {"canary": f"a.f@{'v' * 400}"} for n in range(9)}
    told = rollouts(*(rollout(app=f"{HOSTILE}{n}", functions=functions, tenant="rival") for n in range(200)))
    blocks = rollouts_blocks(told, "acme", of_all=True)
    page = blocks_markup(blocks, "")
    assert "<img" not in page
    assert "/ui/rollouts/" not in page  # another tenant's have no page of the viewer's
    assert len(page) < 400_000
    row = table_of(blocks, "rollouts")[0]
    assert row[0] == "rival"
    assert row[9].endswith(" and 6 more")
    assert " none → v" in row[9]


async def test_the_page_asks_for_its_tenants_own(site: Site) -> None:
    async with site.logged_in() as browser:
        answer = await browser.get("/ui/rollouts")
    assert "No app has had a rollout" in answer.text
    assert ("GET", "/v1/rollouts") in site.api.asked
