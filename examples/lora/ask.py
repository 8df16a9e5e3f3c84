"""One question to a model and its adapters at once, by OpenAI's own client: `python -m examples.lora.ask "…"`."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from itertools import pairwise

from openai import AsyncOpenAI

MODELS = ("library", "library:capitals", "library:signatures")


async def ask(client: AsyncOpenAI, model: str, question: str, order: list[str]) -> str:
    """One answer. `order` gets the model's name with each piece, as the pieces come."""
    said = ""
    async for chunk in await client.chat.completions.create(
        model=model, messages=[{"role": "user", "content": question}], stream=True, temperature=0.3, max_tokens=60
    ):
        said += (chunk.choices[0].delta.content or "") if chunk.choices else ""
        order.append(model)
    return said


async def ask_all(url: str, key: str, question: str) -> None:
    """Ask all of them, and print each answer on a line, and how they came."""
    order: list[str] = []
    async with AsyncOpenAI(base_url=f"{url}/v1", api_key=key) as client:
        answers = await asyncio.gather(*(ask(client, model, question, order) for model in MODELS))
    for model, answer in zip(MODELS, answers, strict=True):
        print(f"{model}: {' '.join(answer.split())}")
    turns = sum(one != other for one, other in pairwise(order))
    print(f"({len(order)} pieces; {turns} times the next one was another model's)")


def main() -> None:
    url = os.environ.get("PILOTLIGHT_URL", "http://127.0.0.1:8470")
    key = os.environ.get("PILOTLIGHT_API_KEY") or subprocess.check_output(["pilotlight", "key", "show"], text=True)
    asyncio.run(ask_all(url, key.strip(), " ".join(sys.argv[1:]) or "What does json.dumps do?"))


if __name__ == "__main__":
    main()
