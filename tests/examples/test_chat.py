"""The chat example: it learns from docstrings, and its folder is a model's."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import torch

from examples.chat.docstrings import LONGEST, pairs
from examples.chat.train import new_model, save, train, train_tokenizer
from pilotlight_engine.serving.generation_reader import GenerationDocument, GenerationReader
from pilotlight_engine.text.chat_template import template_of
from pilotlight_engine.text.text_tokenizer import tokenizer_of
from pilotlight_engine.transformer.torch_engine import TorchEngine, TorchSettings


def test_what_it_trains_is_served(tmp_path: Path) -> None:
    """A few questions, one step of training, and a chat that its template makes a prompt of."""
    known = list(islice(pairs(), 50))
    assert all(question.endswith((" do?", "?", ".")) and len(answer) <= LONGEST for question, answer in known)
    tokenizer = train_tokenizer([f"{question} {answer}" for question, answer in known])
    model = new_model(tokenizer.get_vocab_size())
    tokens = torch.tensor(tokenizer.encode("<|user|>What is a?<|end|><|assistant|>A letter.<|end|>" * 20).ids)
    assert 0 < train(model, tokens, iter([0.01, 1.0]).__next__) < 20
    save(model, tokenizer, tmp_path)

    engine = TorchEngine(TorchSettings(weights=tmp_path))
    reader = GenerationReader(
        tokenizer=tokenizer_of(tmp_path), template=template_of(tmp_path), capabilities=engine.capabilities()
    )
    asked = reader.read(GenerationDocument(messages=[{"role": "user", "content": "What is a?"}]))
    assert reader.tokenizer.token_text(asked.prompt_ids[-1]) == "<|assistant|>"
    assert engine.capabilities().eos_ids == {asked.prompt_ids[-2]}
