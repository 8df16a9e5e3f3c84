"""The gateway's ends, as far as `test_agent_links` does not have them."""

from __future__ import annotations

from tests.gateway.cluster.test_agent_links import Site


def test_every_end_ticks_and_ends_with_the_gateway() -> None:
    """Greeted or not."""
    site = Site()
    first, (second, _) = site.linked(), site.begin("l2")
    site.ends.tick()
    assert (first.ticks, second.ticks) == (1, 1)

    site.ends.close_all("the gateway ends")
    assert first.closed
    assert second.closed
    assert not len(site.ends)
    assert not len(site.links)


def test_an_end_that_was_never_greeted_leaves_nothing_behind() -> None:
    """Its agent is dialled again."""
    site = Site()
    link, _ = site.begin()
    assert list(site.ends.agents()) == [("n1", "i1")]
    link.close("it broke")
    assert not list(site.ends.agents())
