"""Tokens to chunks."""

from __future__ import annotations

from pilotlight_engine.engine_port import Sampling, TokenOut
from pilotlight_engine.serving.answer import GeneratedAnswer
from pilotlight_engine.serving.generation_reader import GenerationRead
from pilotlight_engine.text.text_tokenizer import END, SimTokenizer

TOKENIZER = SimTokenizer()


def answer(**changes: object) -> GeneratedAnswer:
    asked: dict[str, object] = {
        "prompt_ids": (1, 2), "max_new": 9, "min_new": 0, "sampling": Sampling(), "seed": 1, "stops": (),
        "ignore_eos": False, "logprobs": None, "adapter": "", "tools": False,
    }  # fmt: skip
    return GeneratedAnswer(GenerationRead(**{**asked, **changes}), TOKENIZER, frozenset({END}), "call_1")  # type: ignore[arg-type]


def tokens(*ids: int) -> list[TokenOut]:
    return [TokenOut(id="a", index=at, token=token) for at, token in enumerate(ids)]


def test_the_token_that_ends_it_has_no_text() -> None:
    one = answer()

    assert one.chunk(tokens(5, END)) == {"text": TOKENIZER.token_text(5), "token_ids": [5, END]}
    last = one.ended({"text": "", "token_ids": []}, is_cut=False, cached=1)
    assert (last["finish_reason"], last["usage"]["completion_tokens"]) == ("stop", 2)


def test_nothing_comes_behind_a_stop() -> None:
    one = answer(stops=(TOKENIZER.token_text(5),))

    assert one.chunk(tokens(4, 5, 6)) == {"text": TOKENIZER.token_text(4), "token_ids": [4, 5]}
    assert one.has_stopped
    assert one.tokens == [4, 5]


def test_logprobs_name_the_tokens() -> None:
    said = answer().chunk([TokenOut(id="a", index=0, token=5, logprob=-0.5, top=((5, -0.5), (7, -2.0)))])

    assert said["logprobs"][0]["top"][1] == {"token": TOKENIZER.token_text(7), "id": 7, "logprob": -2.0}


def test_one_is_complete_at_its_end_and_at_its_bound() -> None:
    def told(max_new: int, *ids: int, **changes: object) -> bool:
        one = answer(max_new=max_new, **changes)
        one.repeat(ids)
        return one.is_complete

    assert not told(3, 4)
    assert told(3, 4, END)
    assert not told(2, END, ignore_eos=True)
    assert told(2, END, 4, ignore_eos=True)


def test_an_answer_that_was_cut_says_so() -> None:
    assert answer().ended({"text": "", "token_ids": []}, is_cut=True, cached=0)["finish_reason"] == "length"
