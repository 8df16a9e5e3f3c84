"""The subjects of the bus."""

from __future__ import annotations

import re

import pytest

from pilotlight_core.model import subjects

LONGEST = "x" * 63


def test_every_subject_names_the_region() -> None:
    """Regions may share a bus one day."""
    made = [
        subjects.run("eu", "n", "i"), subjects.control("eu", "n"), subjects.command("eu", "n"), subjects.beat("eu"),
        subjects.ran("eu"), subjects.credit("eu"), subjects.reply("eu", "g"), subjects.to_home("eu", "g"),
        subjects.to_origin("eu", "g"), subjects.ask("eu", "g"), subjects.limits("eu", "g"), subjects.allowed("eu", "g"),
        subjects.holdings_wanted("eu"), subjects.credits_wanted("eu"), subjects.jobs_asked("eu", "g"),
        subjects.job_flow("eu", "t:a.f", "t", "batch"), subjects.jobs_of_shard("eu", 3), subjects.unheard("eu", "g"),
        subjects.demand("eu"), subjects.demands("eu"), subjects.breakers("eu"), subjects.shortage("eu"),
        subjects.shortages("eu"),
        subjects.explain("eu"), subjects.loads("eu"), subjects.kept("eu", "g"), subjects.traces("eu"),
        subjects.usage("eu", "n", "t"), subjects.logs("eu", "n", "t", "a", "f"), subjects.bindings("eu", "n"),
        subjects.logs_before_nodes("eu", "t", "a", "f"),
    ]  # fmt: skip
    assert all("eu" in subject.split(".")[:2] for subject in made)
    assert len(set(made)) == len(made)


def test_a_subject_of_one_is_matched_by_that_of_all() -> None:
    """What agents publish each for itself, others subscribe for all of them."""
    for of in (subjects.beat, subjects.ran, subjects.credit, subjects.demand, subjects.shortage):
        pattern = re.escape(of("eu")).replace(r"\*", "[^.]+")
        assert re.fullmatch(pattern, of("eu", "one"))


def test_a_flow_belongs_to_the_shard_of_its_function() -> None:
    """So the home of a shard reads its work queues and no others."""
    flow = subjects.job_flow("eu", "acme:shop.rank", "caller", "batch")
    prefix = subjects.jobs_of_shard("eu", subjects.shard_of("acme:shop.rank")).removesuffix(">")

    assert flow.startswith(prefix)
    assert flow.endswith(".caller.batch")


def test_flows_of_the_longest_names_fit_a_subject() -> None:
    """Function, tenant and class together would be longer than the bus allows."""
    flow = subjects.job_flow("eu", f"{LONGEST}:{LONGEST}.{LONGEST}", LONGEST, "interactive")

    assert len(flow) < 150
    assert flow != subjects.job_flow("eu", f"{LONGEST}:{LONGEST}.y", LONGEST, "interactive")


@pytest.mark.parametrize("key", ["acme", "acme:shop.rank", "ü"])
def test_a_shard_is_one_of_a_fixed_number(key: str) -> None:
    """Records are kept under its number, so it never changes."""
    assert 0 <= subjects.shard_of(key) < subjects.SHARDS
    assert subjects.shard_of("acme:shop.rank") == 42


AGENTS = [
    subjects.credit("eu", "n7", "ver"), subjects.reply("eu", "gw", "n7"), subjects.beat("eu", "n7"),
    subjects.ran("eu", "n7"), subjects.usage("eu", "n7", "acme"), subjects.logs("eu", "n7", "acme", "app", "fn"),
]  # fmt: skip


@pytest.mark.parametrize("subject", AGENTS)
def test_what_an_agent_publishes_names_its_node(subject: str) -> None:
    """The bus lets it publish under no other name, so receivers go by that."""
    assert subjects.node_of(subject) == "n7"


@pytest.mark.parametrize(
    "subject",
    [
        subjects.bindings("eu", "n7"), subjects.logs_before_nodes("eu", "acme", "app", "fn"), "usage.eu.acme",
        subjects.to_home("eu", "n7"), subjects.demand("eu", "n7"), subjects.command("eu", "n7"), "", "pl",
    ],
)  # fmt: skip
def test_what_others_publish_is_of_no_node(subject: str) -> None:
    """Neither do subjects from before they named nodes."""
    assert subjects.node_of(subject) == ""
