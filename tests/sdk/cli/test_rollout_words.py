"""What people say of a rollout."""

from __future__ import annotations

import pytest
import typer

from pilotlight.cli.rollout_words import (
    read_answer_tolerance,
    read_guards,
    read_headers,
    read_steps,
    read_tolerance,
    read_weights,
)


def test_steps_are_percent_that_rise() -> None:
    assert read_steps("0.5,5,100") == (0.5, 5.0, 100.0)


@pytest.mark.parametrize("text", ["", "5,5", "10,5", "0", "101", "nan", "a,b"])
def test_what_does_not_rise_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="rise"):
        read_steps(text)


def test_headers_and_tolerances() -> None:
    """Names of headers are the same in either case."""
    assert read_headers(["X-Beta=a=b"]) == {"x-beta": "a=b"}
    assert (read_tolerance(None), read_tolerance("5%")) == (None, 0.05)
    assert (read_answer_tolerance(None), read_answer_tolerance("1%")) == (1e-6, 0.01)


def test_weights_and_guards_of_ones_own() -> None:
    assert read_weights(["cost=4", "slow=0"]) == {"cost": 4.0, "slow": 0.0}
    (guard,) = read_guards(["loss=amount:score.loss"])
    assert (guard.name, guard.kind, guard.field, guard.weight) == ("loss", "amount", "score.loss", 1.0)


@pytest.mark.parametrize("word", ["cost", "cost=", "=4", "cost=x", "cost=-1", "cost=101", "cost=nan"])
def test_what_is_no_weight_is_refused(word: str) -> None:
    with pytest.raises(typer.BadParameter, match="--weight"):
        read_weights([word])


@pytest.mark.parametrize("word", ["loss", "loss=amount", "loss=amount:", "loss=sum:x", "=event:x"])
def test_what_is_no_guard_is_refused(word: str) -> None:
    with pytest.raises(typer.BadParameter, match="--guard"):
        read_guards([word])
