"""What runs in vLLM's environment: requests in, token deltas out. Started by its path, with one socket as its argument.

It imports the standard library and vllm, nothing else. By vLLM 0.33: `AsyncLLM` generates, closing a generator aborts.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from typing import Any


def sampling_of(frame: dict[str, Any], sampling_params: Any, delta: Any) -> Any:
    """vLLM's parameters for a request. Tokens that were generated elsewhere are part of its prompt, so they count no
    more: neither to the most nor to the least.
    """
    had = len(frame["prefix_out"])
    return sampling_params(
        temperature=frame["temperature"],
        top_p=frame["top_p"],
        top_k=frame["top_k"],
        seed=frame["seed"],
        max_tokens=frame["max_new"] - had,
        min_tokens=max(0, frame["min_new"] - had),
        stop_token_ids=frame["stop_ids"],
        ignore_eos=frame["ignore_eos"],
        logprobs=frame["logprobs"],
        detokenize=False,
        output_kind=delta,
    )


def tokens_of(request_id: str, output: Any) -> dict[str, Any]:
    """The frame of a delta."""
    entries = output.logprobs or [None] * len(output.token_ids)
    told = [
        None if entry is None else {"own": entry[token].logprob, "top": _top_of(entry)}
        for token, entry in zip(output.token_ids, entries, strict=True)
    ]
    return {"event": "tokens", "id": request_id, "ids": list(output.token_ids), "logprobs": told}


def _top_of(entry: dict[int, Any]) -> list[list[float]]:
    return [[token, each.logprob] for token, each in sorted(entry.items(), key=lambda pair: -pair[1].logprob)]


class Child:
    """One engine of vLLM, and the socket to whoever started it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._adapters: dict[str, tuple[int, str]] = {}
        """Name -> vLLM's number of it, and its folder."""
        self._llm: Any = None

    async def run(self) -> None:
        """Serve until the other end is closed."""
        start = await self._read()
        if start is None:
            return
        from vllm.engine.arg_utils import AsyncEngineArgs  # the environment's; it takes seconds
        from vllm.v1.engine.async_llm import AsyncLLM

        self._llm = AsyncLLM.from_engine_args(AsyncEngineArgs(**start["arguments"]))
        cache = self._llm.vllm_config.cache_config
        model = self._llm.vllm_config.model_config
        self._send(
            {
                "event": "ready",
                "kv_tokens": cache.num_gpu_blocks * cache.block_size,
                "page": cache.block_size,
                "max_sequence": model.max_model_len,
                "vocabulary": model.get_vocab_size(),
            }
        )
        try:
            while (frame := await self._read()) is not None:
                await self._on_frame(frame)
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
            self._llm.shutdown()

    async def _on_frame(self, frame: dict[str, Any]) -> None:
        verb = frame["verb"]
        if verb == "admit":
            task = asyncio.create_task(self._generate(frame))
            self._tasks[frame["id"]] = task
            task.add_done_callback(lambda _: self._tasks.pop(frame["id"], None))
        elif verb == "abort":
            if (running := self._tasks.get(frame["id"])) is not None:
                running.cancel()
        elif verb == "adapter":
            self._adapters[frame["name"]] = (frame["number"], frame["folder"])
        elif verb == "forget":
            self._adapters.pop(frame["name"], None)
        elif verb == "sleep":
            await self._llm.sleep(frame["level"])
            self._send({"event": "slept"})
        elif verb == "wake":
            await self._llm.wake_up()
            self._send({"event": "awake"})

    async def _generate(self, frame: dict[str, Any]) -> None:
        from vllm import SamplingParams, TokensPrompt
        from vllm.lora.request import LoRARequest
        from vllm.sampling_params import RequestOutputKind

        request_id = frame["id"]
        lora = None
        if frame["adapter"]:
            number, folder = self._adapters[frame["adapter"]]
            lora = LoRARequest(frame["adapter"], number, folder)
        prompt = TokensPrompt(prompt_token_ids=frame["prompt_ids"] + frame["prefix_out"])
        if frame["salt"]:
            prompt["cache_salt"] = frame["salt"]
        outputs = self._llm.generate(
            prompt,
            sampling_of(frame, SamplingParams, RequestOutputKind.DELTA),
            request_id,
            lora_request=lora,
            priority=-frame["priority"],  # vLLM's lower ones go first
        )
        reason, stop, cached = "aborted", None, 0
        try:
            async for made in outputs:
                output = made.outputs[0]
                cached = made.num_cached_tokens or 0
                if output.token_ids:
                    self._send(tokens_of(request_id, output))
                if output.finish_reason is not None:
                    reason = "aborted" if output.finish_reason == "abort" else output.finish_reason
                    stop = output.stop_reason
        except asyncio.CancelledError:
            pass
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this request's end, and perhaps the engine's
            dead = type(error).__name__ == "EngineDeadError"
            self._send({"event": "dead" if dead else "failed", "id": request_id, "text": str(error)})
            return
        self._send({"event": "end", "id": request_id, "reason": reason, "stop": stop, "cached": cached})

    async def _read(self) -> dict[str, Any] | None:
        line = await self._reader.readline()
        return json.loads(line) if line else None

    def _send(self, frame: dict[str, Any]) -> None:
        self._writer.write(json.dumps(frame, separators=(",", ":")).encode() + b"\n")


async def _main(number: int) -> None:
    end = socket.socket(fileno=number)
    reader, writer = await asyncio.open_connection(sock=end, limit=64 << 20)
    await Child(reader, writer).run()


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1])))
