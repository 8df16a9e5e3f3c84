"""Trains a model of a million parameters in minutes, on a CPU: `python -m examples.chat.train FOLDER`.

The folder is then as any model's: config.json, model.safetensors, tokenizer.json, and a chat template.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM

from examples.chat.docstrings import pairs

USER, ASSISTANT, END = "<|user|>", "<|assistant|>", "<|end|>"
TEMPLATE = (
    "{% for message in messages %}{% if message.role != 'system' %}<|{{ message.role }}|>{{ message.content }}<|end|>"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
VOCABULARY = 2048
CONTEXT = 256
ROW, BATCH = 128, 8
"""Tokens of one sequence, and sequences of one step: many small steps teach more in a minute than few large ones."""
RATE = 2e-3
WARM_UP = 0.05
"""Of the time, in which the rate rises."""
SEED = 7


def train_tokenizer(texts: list[str]) -> Tokenizer:
    """Merges of bytes that come together often: any text has tokens, also one that was never seen."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=[END, USER, ASSISTANT], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def as_text(pairs: Iterable[tuple[str, str]]) -> str:
    """Questions and answers as the chat template has them."""
    return "".join(f"{USER}{question}{END}{ASSISTANT}{answer}{END}" for question, answer in pairs)


def new_model(vocabulary: int) -> LlamaForCausalLM:
    """An untrained one."""
    torch.manual_seed(SEED)
    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=128, intermediate_size=384, num_hidden_layers=4, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=CONTEXT, tie_word_embeddings=True, bos_token_id=None,
        eos_token_id=0, pad_token_id=0,
    )  # fmt: skip
    return LlamaForCausalLM(config)


def progress_of(seconds: float, steps: int | None) -> Callable[[], float]:
    """How much of a training is done, each time that a step begins: of its seconds, or, if there are, of its steps."""
    if steps is not None:
        numbers = itertools.count()
        return lambda: next(numbers) / steps
    began = time.monotonic()
    return lambda: (time.monotonic() - began) / seconds


def train(model: LlamaForCausalLM, tokens: torch.Tensor, progress: Callable[[], float]) -> float:
    """Have the model foresee each next token, as long as `progress` says less than 1; returns the last loss."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.95), weight_decay=0.1)
    rows = tokens[: len(tokens) // ROW * ROW].view(-1, ROW)
    loss, told = math.inf, -1.0
    random.seed(SEED)
    for step in itertools.count():
        if (done := progress()) >= 1:
            return loss
        rate = RATE * (done / WARM_UP if done < WARM_UP else 0.5 * (1 + math.cos(math.pi * done)))
        for group in optimizer.param_groups:
            group["lr"] = rate
        batch = rows[torch.tensor(random.sample(range(len(rows)), min(BATCH, len(rows))))]
        out = model(input_ids=batch, labels=batch)
        out.loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss = float(out.loss.detach())
        if done - told > 0.05:
            told = done
            print(f"{done:4.0%}  step {step}  loss {loss:.2f}", flush=True)
    return loss


def save(model: LlamaForCausalLM, tokenizer: Tokenizer, folder: Path) -> None:
    """Write what an engine reads."""
    model.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    config: dict[str, Any] = {"eos_token": END, "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the model is written")
    parser.add_argument("--seconds", type=float, default=240, help="how long it is trained")
    parser.add_argument("--steps", type=int, help="how many steps instead: the same model on any machine")
    asked = parser.parse_args()
    known = list(pairs())
    tokenizer = train_tokenizer([text for pair in known for text in pair])
    random.seed(SEED)
    random.shuffle(known)
    tokens = torch.tensor(tokenizer.encode(as_text(known)).ids)
    model = new_model(tokenizer.get_vocab_size())
    print(f"{len(known)} questions, {len(tokens)} tokens, {model.num_parameters():,} parameters")
    loss = train(model, tokens, progress_of(asked.seconds, asked.steps))
    asked.folder.mkdir(parents=True, exist_ok=True)
    save(model, tokenizer, asked.folder)
    print(f"A model with a loss of {loss:.2f}. Push it: pilotlight weights push tiny-docs {asked.folder}")


if __name__ == "__main__":
    main()
