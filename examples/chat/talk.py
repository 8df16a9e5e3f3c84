"""A chat in the terminal, by OpenAI's own client: `python -m examples.chat.talk "What does json.dumps do?"`."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from openai import OpenAI


def ask(client: OpenAI, messages: list[Any]) -> str:
    """Print the answer as it comes, and return it."""
    said = ""
    for chunk in client.chat.completions.create(
        model="docs", messages=messages, stream=True, temperature=0.3, max_tokens=100
    ):
        piece = (chunk.choices[0].delta.content or "") if chunk.choices else ""
        print(piece, end="", flush=True)
        said += piece
    print()
    return said


def main() -> None:
    url = os.environ.get("PILOTLIGHT_URL", "http://127.0.0.1:8470")
    key = os.environ.get("PILOTLIGHT_API_KEY") or subprocess.check_output(["pilotlight", "key", "show"], text=True)
    client = OpenAI(base_url=f"{url}/v1", api_key=key.strip())
    if questions := sys.argv[1:]:
        for question in questions:
            ask(client, [{"role": "user", "content": question}])
        return
    while question := input("> ").strip():  # each by itself: the model has read no longer chats
        ask(client, [{"role": "user", "content": question}])


if __name__ == "__main__":
    main()
