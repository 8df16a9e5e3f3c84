"""vLLM behind the port: requests go to a child process, and a step takes what has come from it.

vLLM schedules by itself: of weights it knows nothing, priorities it keeps. It draws by a generator with a state, so
only a greedy sequence goes on elsewhere with the tokens that it would have had; `seeded_resume` says so.
"""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Mapping
from collections.abc import Sequence as Seq
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any

from pilotlight_engine.architectures import architecture_name
from pilotlight_engine.engine_port import (
    AdapterSource,
    Capabilities,
    EngineDead,
    EngineEvent,
    EngineRefusal,
    EngineStats,
    Failed,
    Finished,
    FinishReason,
    GenRequest,
    SequenceUsage,
    SleepLevel,
    TokenOut,
)
from pilotlight_engine.model_files import end_ids_in
from pilotlight_engine.scheduling.admission import check_request
from pilotlight_engine.vllm.child_frames import ChildGone, FramePipe

CHILD = Path(__file__).with_name("vllm_child.py")
START_S = 600.0
"""Weights of a hundred gigabytes are read, and kernels compiled."""
STEP_S = 0.05
"""A step waits so long for news: whoever steps sees aborts and new requests at least as often."""
SLEEP_S = 120.0
REASONS: dict[str, FinishReason] = {"stop": "stop", "length": "length"}
STOP_S = 10.0


@dataclass(frozen=True, kw_only=True, slots=True)
class VLLMSettings:
    """What a child is made of."""

    weights: Path
    python: Path
    """The interpreter of the environment that has vllm."""
    dtype: str = "auto"
    quantization: str = ""
    tensor_parallel: int = 1
    kv_bytes: int | None = None
    """For keys and values, whatever else is on the device: on a slice the only size that is right."""
    max_sequence: int | None = None
    max_running: int = 64
    spare: int = 0
    """Sequences beyond `max_running` that run too: calls for which other engines would make room."""
    token_budget: int = 2048
    max_waiting: int = 1024
    prefix_cache: bool = True
    adapters: tuple[AdapterSource, ...] = ()
    max_adapters: int = 8
    """How many are on the device at once."""
    max_rank: int = 64
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def places(self) -> int:
        """How many sequences run at once."""
        return self.max_running + self.spare

    def arguments(self) -> dict[str, Any]:
        """vLLM's engine arguments."""
        named: dict[str, Any] = {
            "model": str(self.weights),
            "dtype": self.dtype,
            "tensor_parallel_size": self.tensor_parallel,
            "max_num_seqs": self.places,
            "max_num_batched_tokens": max(self.token_budget, self.places),  # vLLM refuses a smaller one
            "enable_prefix_caching": self.prefix_cache,
            "scheduling_policy": "priority",
            "enable_sleep_mode": True,
            "skip_tokenizer_init": True,
            "trust_remote_code": False,
            "enable_lora": True,
            "max_loras": self.max_adapters,
            "max_lora_rank": self.max_rank,
            "max_logprobs": 20,
        }
        if self.quantization:
            named["quantization"] = self.quantization
        if self.kv_bytes is not None:
            named["kv_cache_memory_bytes"] = self.kv_bytes
        if self.max_sequence is not None:
            named["max_model_len"] = self.max_sequence
        return named


@dataclass(kw_only=True, slots=True)
class _Live:
    request: GenRequest
    out: list[int]
    wire_id: str = ""
    """Its name at the child: another one each time it begins there."""
    cached: int = 0

    def usage(self, *, was_read: bool = True) -> SequenceUsage:
        prompt = len(self.request.prompt_ids)
        return SequenceUsage(
            prompt_tokens=prompt,
            completion_tokens=len(self.out),
            cached_tokens=self.cached,
            read_tokens=prompt if was_read or self.out else 0,
        )


class VLLMEngine:
    """Made by `VLLMEngine(settings)`, which waits until the child has its weights. `close` ends the child."""

    def __init__(self, settings: VLLMSettings) -> None:
        self._settings = settings
        self._live: dict[str, _Live] = {}
        self._by_wire: dict[str, _Live] = {}
        self._begun = 0
        self._numbers = 0
        """vLLM knows adapters, and the prefixes that they stored, by number: new content, new number."""
        self._events: list[EngineEvent] = []
        self._known: dict[str, AdapterSource] = {}
        self._stats = EngineStats()
        self._asleep = False
        ours, theirs = socket.socketpair()
        with theirs:
            self._child = subprocess.Popen(
                [settings.python, CHILD, str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                env={**os.environ, **settings.environment},
                stdin=subprocess.DEVNULL,
            )
        self._pipe = FramePipe(ours)
        self._send({"arguments": settings.arguments()})
        self._capabilities = self._wait_ready()
        for source in settings.adapters:
            self.load_adapter(source)

    # -- the port ------------------------------------------------------------------------------------------------------

    def capabilities(self) -> Capabilities:
        """What this engine can do."""
        return self._capabilities

    def admit(self, request: GenRequest) -> None:
        """Take a request. Raises `EngineRefusal`."""
        check_request(request, self._capabilities, self._known)
        if request.id in self._live:
            raise EngineRefusal("bad_tokens", f"there is a sequence {request.id!r} already", "id")
        if len(self._live) >= self._settings.places + self._settings.max_waiting:
            raise EngineRefusal("no_room", f"{len(self._live)} sequences are here already; try again later", "")
        live = _Live(request=request, out=[*request.prefix_out])
        if (end := self._end_of(live)) is not None:
            self._events.append(end)
            return
        self._live[request.id] = live
        self._begin(live)

    def has_work(self) -> bool:
        """Whether a step would do anything."""
        return bool(self._events or (self._live and not self._asleep))

    def step(self) -> list[EngineEvent]:
        """What has come from the child; waits a moment if nothing has. Raises `EngineDead`."""
        events, self._events = self._events, []
        if not self._live or self._asleep:
            return events
        started = perf_counter()
        for frame in self._receive(0.0 if events else STEP_S):
            self._on_frame(frame, events)
        tokens = sum(isinstance(event, TokenOut) for event in events)
        self._stats = replace(
            self._stats,
            decode_tokens=self._stats.decode_tokens + tokens,
            step_ms=(perf_counter() - started) * 1000,
            steps=self._stats.steps + 1,
        )
        return events

    def abort(self, request_id: str) -> None:
        """End a sequence. What the child says of it from here on is nobody's.

        How much of a prompt it has read it does not say: of a sequence that has a place there, all of it counts.
        """
        has_place = request_id in islice(self._live, self._settings.places)
        live = self._live.pop(request_id, None)
        if live is not None:
            self._stop(live)
            self._events.append(Finished(id=request_id, reason="aborted", usage=live.usage(was_read=has_place)))

    def checkpoint(self, request_id: str) -> GenRequest | None:
        """The request by which the sequence goes on elsewhere."""
        live = self._live.get(request_id)
        return None if live is None else replace(live.request, prefix_out=tuple(live.out))

    def load_adapter(self, source: AdapterSource) -> None:
        """Make an adapter known; vLLM loads it when a sequence needs it, and keeps what fits."""
        if not (source.folder / "adapter_config.json").is_file():
            text = f"adapter {source.name!r} has no adapter_config.json"
            raise EngineRefusal("no_adapter", text, "adapter")
        self._known[source.name] = source
        self._numbers += 1
        self._send({"verb": "adapter", "name": source.name, "number": self._numbers, "folder": str(source.folder)})

    def unload_adapter(self, name: str) -> None:
        """Forget an adapter."""
        if self._known.pop(name, None) is not None:
            self._send({"verb": "forget", "name": name})

    def adapters(self) -> tuple[str, ...]:
        """The adapters that requests can name."""
        return tuple(self._known)

    def stats(self) -> EngineStats:
        """How the engine is. How full the child's memory is, is estimated by the tokens of its sequences."""
        page = self._capabilities.page
        lengths = [len(live.request.prompt_ids) + len(live.out) for live in self._live.values()]
        running = min(len(self._live), self._settings.places)
        return replace(
            self._stats,
            kv_used=min(self._capabilities.kv_tokens, sum(-(-length // page) * page for length in lengths)),
            kv_total=self._capabilities.kv_tokens,
            running=running,
            waiting=len(self._live) - running,
            adapters=self.adapters(),
            token_budget=self._settings.token_budget,
        )

    def sleep(self, level: SleepLevel) -> None:
        """Give the device's memory back. Sequences are started again by `wake`, from their tokens."""
        for live in self._live.values():
            self._stop(live)
        self._send({"verb": "sleep", "level": level})
        self._wait_for("slept")
        self._asleep = True

    def wake(self) -> None:
        """Be ready for steps again."""
        if not self._asleep:
            return
        self._send({"verb": "wake"})
        self._wait_for("awake")
        self._asleep = False
        for live in self._live.values():
            self._begin(live)

    def embed(self, inputs: Seq[Seq[int]]) -> list[list[float]]:
        """vLLM runs a model for one purpose; this one generates."""
        raise EngineRefusal("no_room", f"vLLM makes no vectors of {len(inputs)} inputs here; use Torch(...)", "input")

    def close(self) -> None:
        """End the child: at its socket's end it shuts down, and if it does not it is killed."""
        self._pipe.close()
        try:
            self._child.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()

    # -- frames --------------------------------------------------------------------------------------------------------

    def _on_frame(self, frame: dict[str, Any], events: list[EngineEvent]) -> None:
        if frame["event"] == "dead":
            raise EngineDead(f"vLLM says that its engine is dead: {frame['text']}")
        live = self._by_wire.get(frame.get("id", ""))
        if live is None:  # of an aborted one
            return
        name = live.request.id
        if frame["event"] != "tokens":
            del self._live[name], self._by_wire[live.wire_id]
        if frame["event"] == "tokens":
            for token, told in zip(frame["ids"], frame["logprobs"], strict=True):
                events.append(_token_out(live, token, told))
                live.out.append(token)
        elif frame["event"] == "end":
            live.cached = min(frame["cached"], len(live.request.prompt_ids))
            reason: FinishReason = REASONS.get(frame["reason"], "aborted")
            stop = live.out[-1] if reason == "stop" and live.out else None
            events.append(Finished(id=name, reason=reason, usage=live.usage(), stop_id=stop))
        elif frame["event"] == "failed":
            events.append(Failed(id=name, kind="engine", text=frame["text"], usage=live.usage()))

    def _end_of(self, live: _Live) -> Finished | None:
        """That of a sequence which came with all its tokens."""
        request, out = live.request, live.out
        ends = request.stop_ids if request.ignore_eos else request.stop_ids | self._capabilities.eos_ids
        if out and len(out) > request.min_new and out[-1] in ends:
            return Finished(id=request.id, reason="stop", usage=live.usage(), stop_id=out[-1])
        if len(out) >= request.max_new:
            return Finished(id=request.id, reason="length", usage=live.usage())
        return None

    def _begin(self, live: _Live) -> None:
        self._begun += 1
        live.wire_id = str(self._begun)
        self._by_wire[live.wire_id] = live
        self._send(_frame_of(replace(live.request, prefix_out=tuple(live.out)), live.wire_id))

    def _stop(self, live: _Live) -> None:
        if self._by_wire.pop(live.wire_id, None) is not None:
            self._send({"verb": "abort", "id": live.wire_id})

    def _wait_ready(self) -> Capabilities:
        ready = self._wait_for("ready", START_S)
        return Capabilities(
            architecture=architecture_name(self._settings.weights),
            vocabulary=ready["vocabulary"],
            max_sequence=ready["max_sequence"],
            max_running=self._settings.places,
            kv_tokens=ready["kv_tokens"],
            page=ready["page"],
            lora=True,
            prefix_cache=self._settings.prefix_cache,
            eos_ids=frozenset(token for token in end_ids_in(self._settings.weights) if token < ready["vocabulary"]),
            seeded_resume=False,
        )

    def _wait_for(self, event: str, within_s: float = SLEEP_S) -> dict[str, Any]:
        """The next frame of a kind. Sequences' frames before it are those of aborted ones."""
        until = perf_counter() + within_s
        while (left := until - perf_counter()) > 0:
            for frame in self._receive(min(left, 1.0)):
                if frame["event"] == event:
                    return frame
        raise EngineDead(f"vLLM's process was not {event} within {within_s:g} s")

    def _receive(self, timeout_s: float) -> list[dict[str, Any]]:
        try:
            return self._pipe.receive(timeout_s)
        except ChildGone as error:
            raise EngineDead(f"vLLM's process ended: {error}") from error

    def _send(self, frame: dict[str, Any]) -> None:
        try:
            self._pipe.send(frame)
        except ChildGone as error:
            raise EngineDead(f"vLLM's process ended: {error}") from error


def _token_out(live: _Live, token: int, told: dict[str, Any] | None) -> TokenOut:
    count = live.request.logprobs or 0
    return TokenOut(
        id=live.request.id,
        index=len(live.out),
        token=token,
        logprob=None if told is None else told["own"],
        top=() if told is None else tuple((int(each), value) for each, value in told["top"][:count]),
    )


def _frame_of(request: GenRequest, wire_id: str) -> dict[str, Any]:
    sampling = request.sampling
    return {
        "verb": "admit",
        "id": wire_id,
        "prompt_ids": list(request.prompt_ids),
        "prefix_out": list(request.prefix_out),
        "max_new": request.max_new,
        "min_new": request.min_new,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "seed": sampling.seed,
        "stop_ids": sorted(request.stop_ids),
        "ignore_eos": request.ignore_eos,
        "logprobs": request.logprobs,
        "adapter": request.adapter,
        "salt": request.salt,
        "priority": request.priority,
    }
