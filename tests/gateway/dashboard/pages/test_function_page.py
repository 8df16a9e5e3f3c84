"""One function: its calls over time, and where their time goes."""

from __future__ import annotations

from typing import Any

import msgspec

from pilotlight_core.model.api.seeing.tally_api import FunctionStats, HomeStats, Quantiles, SampleStats, StatsPoint
from pilotlight_gateway.dashboard.page_parts.blocks import Drawing, FigureList, LinkLine, TimeChart
from pilotlight_gateway.dashboard.page_parts.gateway_client import ApiAnswer
from pilotlight_gateway.dashboard.pages.function_page import WINDOWS, function_blocks
from tests.gateway.dashboard.pages.scenes import answer_of, table_of
from tests.gateway.dashboard.site import Site
from tests.gateway.world import function

POINTS = [
    StatsPoint(at="2026-11-27T06:00:00Z", seconds=60.0, calls=120, failed=6, p50_ms=5.0, p95_ms=50.0, ready=2.0),
    StatsPoint(at="2026-11-27T06:01:00Z", seconds=60.0),
]


def stats(**more: Any) -> Any:
    """As the route answers."""
    usual = FunctionStats(
        function="shop.hello", since="", until="", window_s=3_600.0, calls=120, per_s=2.0, failed={"raised": 6},
        durations=Quantiles(count=114, p50=5.0, p95=50.0, p99=80.0), stages={"execute": Quantiles(count=60, mean=8.0)},
        home=HomeStats(ready=2.0), slowest=[SampleStats(id="call_1", at="2026-11-27T06:00:30.5Z", total_ms=90.0,
                                                        stages={"queue": 80.0, "execute": 10.0})],
        series=POINTS,
    )  # fmt: skip
    return msgspec.to_builtins(msgspec.structs.replace(usual, **more))


def test_its_answer_is_its_rate_its_latency_and_its_failures() -> None:
    """A stage's mean is over all calls: what half of them waited for counts half."""
    blocks = function_blocks("shop.hello", "1h", stats(silent=["gateway-2"]), None)
    text, tone = answer_of(blocks)
    assert text.startswith("120 calls, 2 a second: half of them took at most 5.0 ms, 95 of 100 at most 50 ms; 6 failed")
    assert tone == ""
    assert any(getattr(block, "id", "") == "silent" for block in blocks)
    (drawing,) = [block for block in blocks if isinstance(block, Drawing)]
    assert "execute 4.0 ms" in drawing.inner
    assert table_of(blocks, "failures") == [("raised", "6")]
    assert table_of(blocks, "slowest") == [
        ("call_1", "2026-11-27 06:00:30", "90 ms", "queue 80 ms", "", "1", "1", "no"),
    ]  # fmt: skip
    assert answer_of(function_blocks("f", "1h", stats(failed={"raised": 60}), None))[1] == "bad"


def test_where_no_call_ended_well_there_is_no_latency() -> None:
    """A nought would say that they were fast."""
    blocks = function_blocks("f", "1h", stats(failed={"raised": 120}, durations=Quantiles()), None)
    assert answer_of(blocks) == ("120 calls, 2 a second: none has ended well; 120 failed.", "bad")
    (figures,) = [block for block in blocks if isinstance(block, FigureList)]
    assert {one.key: one.value for one in figures.figures}["p95"] == "–"
    assert (
        "none has ended yet" in answer_of(function_blocks("f", "1h", stats(failed={}, durations=Quantiles()), None))[0]
    )


def test_its_charts_are_of_the_steps() -> None:
    """As rates where they count."""
    charts = {block.id: block for block in function_blocks("f", "1h", stats(), None) if isinstance(block, TimeChart)}
    assert charts["rates"].values == ((2.0, 0.0), (0.1, 0.0), (0.0, 0.0))
    assert charts["latency"].values == ((5.0, None), (50.0, None))
    assert charts["load"].at[1] - charts["load"].at[0] == 60.0


def test_a_function_that_nobody_called_has_a_page() -> None:
    """With why it has its containers, if the controller says."""
    change = {"at": "2026-11-27T06:00:00Z", "wanted": 2, "there": 1, "rule": "queue", "because": "Nine wait."}
    told = {"lines": ["One is enough."], "changes": [change]}
    idle = stats(calls=0, per_s=0.0, failed={}, stages={}, slowest=[], series=[])
    blocks = function_blocks("f", "10m", idle, told)
    assert answer_of(blocks)[0] == "f was not called in this time."
    assert table_of(blocks, "changes") == [("2026-11-27 06:00:00", "2", "1", "queue", "Nine wait.")]
    (links,) = [block for block in blocks if isinstance(block, LinkLine)]
    assert [(text, present) for text, _, present in links.links] == [(one, one == "10m") for one in WINDOWS]


async def test_the_page_asks_for_its_window_and_no_other(site: Site) -> None:
    """A controller that does not answer takes nothing else away."""
    site.world.deploy(function())
    site.api.answers["/v1/functions/shop.hello/stats"] = ApiAnswer(status=200, body=msgspec.json.encode(stats()))
    site.api.answers["/v1/functions/shop.hello/explanation"] = ApiAnswer(status=503, body=b"{}")
    async with site.logged_in(site.world.key) as browser:
        for window, asked in (("6h", "window=6h&step=10m"), ("9h", "window=30m&step=1m")):
            answer = await browser.get("/ui/functions/shop.hello", params={"window": window})
            assert answer.status_code == 200
            assert "uPlot" in answer.text
            assert ("GET", f"/v1/functions/shop.hello/stats?{asked}") in site.api.asked
        assert (await browser.get("/ui/functions/none.none")).status_code == 404
