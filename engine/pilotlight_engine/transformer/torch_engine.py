"""The engine on torch: one model of transformers, whose attention is ours, and the shared scheduler around it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Sequence as Seq
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import torch

from pilotlight_engine.engine_port import AdapterSource, Capabilities, EngineDead, EngineRefusal, SleepLevel
from pilotlight_engine.scheduling.adapter_shelf import KnownAdapter
from pilotlight_engine.scheduling.admission import check_ids
from pilotlight_engine.scheduling.scheduled_engine import NoMemoryForStep, ScheduledEngine, TokenPick
from pilotlight_engine.scheduling.step_scheduler import SchedulerLimits
from pilotlight_engine.scheduling.token_sequence import StepPlan, StepSpan, TokenSequence
from pilotlight_engine.transformer.decode_rows import DecodeRows
from pilotlight_engine.transformer.kv_pool import KvPool
from pilotlight_engine.transformer.lean_decoder import LeanDecoder, lean_decoder
from pilotlight_engine.transformer.lora_files import LoraWeights, known_adapter, read_adapter
from pilotlight_engine.transformer.lora_layers import LoraLayers, LoraSegment
from pilotlight_engine.transformer.model_folder import ModelFolder, read_model_folder
from pilotlight_engine.transformer.paged_attention import KEYWORD
from pilotlight_engine.transformer.step_batch import StepBatch, batch_of, batch_of_whole
from pilotlight_engine.transformer.token_picks import LEAST_HEAT, PickRule, pick_likeliest, pick_tokens

Computed = TypeVar("Computed")

KV_BYTES = 1 << 30
"""For keys and values where nothing is said: the memory is taken only as it is used, on a CPU."""
STEP_BYTES = 31 << 20
"""On a CPU, of a tensor of a step whose memory is kept for the next one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TorchSettings:
    """What a torch engine is made of."""

    weights: Path
    """The model's folder."""
    dtype: str = "auto"
    """`auto` is the one of `config.json`."""
    device: str = "auto"
    """`auto` is a GPU where there is one."""
    kv_bytes: int | None = None
    """Memory for keys and values; rows of decoding sequences take as much again."""
    page: int = 16
    max_sequence: int | None = None
    """Less than what the model allows."""
    limits: SchedulerLimits = field(default_factory=SchedulerLimits)
    adapters: tuple[AdapterSource, ...] = ()
    max_adapter_bytes: int = 1 << 30


class TorchEngine(ScheduledEngine[LoraWeights]):
    """Made by `TorchEngine(settings)`, which reads the weights: seconds to minutes."""

    def __init__(self, settings: TorchSettings) -> None:
        self._settings = settings
        self._device = _device_of(settings.device)
        self._folder = read_model_folder(settings.weights, settings.dtype)
        self._model: Any = None
        """transformers' own class; None while its weights are dropped."""
        self._lean: LeanDecoder | None = None
        self._pool: KvPool
        self._rows: DecodeRows
        self._lora: LoraLayers
        super().__init__(
            _capabilities(settings, self._folder),
            _limits(settings, self._folder),
            model_version=self._folder.version,
            max_adapter_bytes=settings.max_adapter_bytes,
        )
        for source in settings.adapters:
            self._shelf.add(known_adapter(source))
        self._load()

    # -- steps ---------------------------------------------------------------------------------------------------------

    def _compute(self, plan: StepPlan) -> Seq[TokenPick]:
        started = perf_counter()
        picks = self._guarded(lambda: self._forward(plan))
        if picks is None:  # outside the frame that held the tensors of the step
            self._give_back()
            raise NoMemoryForStep
        self._step_ms = (perf_counter() - started) * 1000
        return picks

    def _guarded(self, compute: Callable[[], Computed]) -> Computed | None:
        """What is computed; None where the memory was not enough. Any other failure is the engine's end."""
        try:
            return compute()
        except torch.OutOfMemoryError:
            return None
        except Exception as error:
            if "can't allocate memory" in str(error):  # what torch's allocator says on a CPU
                return None
            raise EngineDead(f"a step failed, and nothing on the device can be trusted: {error}") from error

    def _give_back(self) -> None:
        """Memory that can be had again."""
        self._rows.drop_all()
        if self._device.type == "cuda":
            torch.cuda.empty_cache()

    @torch.inference_mode()
    def _forward(self, plan: StepPlan) -> list[TokenPick]:
        batch = batch_of(plan, self._pool, self._rows, self._capabilities.page, self._device)
        self._use_adapters(batch)
        keep, drawing = batch.drawing()
        if self._lean is not None and not self._lora.in_use:
            logits = self._lean.logits(batch, keep)
        elif not keep:
            # The last layer is the widest: a step that ends within its prompts needs none of it.
            self._model.base_model(batch.ids, position_ids=batch.positions, use_cache=False, **{KEYWORD: batch})
            return []
        else:
            logits = self._model(
                batch.ids,
                position_ids=batch.positions,
                use_cache=False,
                logits_to_keep=torch.tensor(keep, device=self._device),
                **{KEYWORD: batch},
            ).logits[0]
        picks = [] if logits is None else self._picked(logits, drawing)
        by_sequence = {}
        for span, pick in zip(drawing, picks, strict=True):
            by_sequence[span.sequence] = pick
            if pick.failure:
                self._rows.clear(span.sequence)
        return [by_sequence[span.sequence] for span in plan.spans if span.sequence in by_sequence]

    def _picked(self, logits: torch.Tensor, drawing: list[StepSpan]) -> list[TokenPick]:
        if all(_takes_likeliest(span.sequence) for span in drawing):
            return pick_likeliest(logits)
        return pick_tokens(logits, [self._rule_of(span.sequence) for span in drawing])

    def _rule_of(self, sequence: TokenSequence) -> PickRule:
        request = sequence.request
        return PickRule(
            sampling=request.sampling,
            position=len(sequence.tokens),
            banned=self.end_ids(request) if sequence.generated < request.min_new else frozenset(),
            logprobs=request.logprobs,
        )

    def _use_adapters(self, batch: StepBatch) -> None:
        numbers: dict[str, list[int]] = {}
        first = 0
        for span in batch.order:
            last = first + span.end - span.start
            if name := span.sequence.request.adapter:
                numbers.setdefault(name, []).extend(range(first, last))
            first = last
        used = self._adapters_running() if numbers else ()
        self._lora.use(
            [
                LoraSegment(weights=self._shelf.get(name, used), tokens=torch.tensor(tokens, device=self._device))
                for name, tokens in numbers.items()
            ]
        )

    # -- adapters ------------------------------------------------------------------------------------------------------

    def _known_adapter(self, source: AdapterSource) -> KnownAdapter:
        return known_adapter(source)

    def _read_adapter(self, adapter: KnownAdapter) -> LoraWeights:
        return read_adapter(adapter.source, self._lora.sizes(), self._folder.dtype, self._device)

    # -- sleep ---------------------------------------------------------------------------------------------------------

    def sleep(self, level: SleepLevel) -> None:
        """Give the device's memory back; running sequences wait."""
        super().sleep(level)
        self._shelf.drop_all()
        self._lora.use(())
        self._rows.drop_all()
        del self._pool
        if level == 2 or self._model is None:
            self._model = self._lean = None
            del self._lora  # it has the model's layers
        else:
            self._model.to("cpu")
        if self._device.type == "cuda":
            torch.cuda.empty_cache()

    def wake(self) -> None:
        """Be ready for steps again."""
        if self._asleep:
            self._load()
        super().wake()

    def _load(self) -> None:
        if self._model is None:
            self._model = self._folder.load(self._device)
            self._lora = LoraLayers(self._model)
        self._model.to(self._device)
        if self._device.type == "cpu":
            _keep_freed_memory()
        shape = self._folder.shape
        self._lean = lean_decoder(self._model, shape.architecture, shape.heads, shape.kv_heads, shape.head_size)
        tokens = self._capabilities.kv_tokens
        self._pool = KvPool(
            layers=shape.layers,
            tokens=tokens,
            kv_heads=shape.kv_heads,
            head_size=shape.head_size,
            dtype=self._folder.dtype,
            device=self._device,
        )
        self._rows = DecodeRows(
            layers=shape.layers,
            max_tokens=tokens,
            kv_heads=shape.kv_heads,
            head_size=shape.head_size,
            dtype=self._folder.dtype,
            device=self._device,
        )

    # -- vectors -------------------------------------------------------------------------------------------------------

    def embed(self, inputs: Seq[Seq[int]]) -> list[list[float]]:
        """The mean of each input's last hidden states, over its tokens, divided by its length as a vector."""
        if self._model is None or self._asleep:
            raise EngineRefusal("no_room", "the engine sleeps", "")
        for ids in inputs:
            if not ids or len(ids) > self._capabilities.max_sequence:
                text = f"an input has {len(ids)} tokens; it has from 1 to {self._capabilities.max_sequence}"
                raise EngineRefusal("too_long", text, "input")
            check_ids(tuple(ids), self._capabilities.vocabulary, "input")
        vectors: list[list[float]] = []
        for group in _groups(inputs, self._settings.limits.token_budget):
            found = self._guarded(partial(self._embed_group, group))
            if found is None:
                self._give_back()
                raise EngineRefusal("no_room", f"the device has no memory for {sum(map(len, group))} tokens", "input")
            vectors += found
        return vectors

    @torch.inference_mode()
    def _embed_group(self, group: list[list[int]]) -> list[list[float]]:
        self._lora.use(())
        batch = batch_of_whole(group, self._device)
        hidden = self._model.base_model(
            batch.ids, position_ids=batch.positions, use_cache=False, **{KEYWORD: batch}
        ).last_hidden_state[0]
        means = torch.stack([hidden[part.first : part.last].float().mean(dim=0) for part in batch.parts])
        vectors: list[list[float]] = torch.nn.functional.normalize(means, dim=-1).tolist()
        return vectors


def _groups(inputs: Iterable[Seq[int]], budget: int) -> list[list[list[int]]]:
    """Inputs in order, in groups of at most `budget` tokens; a longer one is a group by itself."""
    groups: list[list[list[int]]] = []
    room = 0
    for ids in inputs:
        if not groups or len(ids) > room:
            groups.append([])
            room = budget
        groups[-1].append([*ids])
        room -= len(ids)
    return groups


def _limits(settings: TorchSettings, folder: ModelFolder) -> SchedulerLimits:
    """Those of the settings; what they do not say of attention follows from the model's shape."""
    if settings.limits.attention_tokens is not None:
        return settings.limits
    return replace(settings.limits, attention_tokens=folder.shape.attention_tokens)


def _capabilities(settings: TorchSettings, folder: ModelFolder) -> Capabilities:
    shape = folder.shape
    longest = min(settings.max_sequence or shape.max_sequence, shape.max_sequence)
    per_token = 2 * shape.layers * shape.kv_heads * shape.head_size * folder.dtype.itemsize
    useful = longest * settings.limits.max_running
    tokens = min((settings.kv_bytes or KV_BYTES) // per_token, useful) // settings.page * settings.page
    if tokens < settings.page:
        raise ValueError(f"kv_bytes has room for no block of {settings.page} tokens, {per_token} bytes each")
    return Capabilities(
        architecture=shape.architecture,
        vocabulary=shape.vocabulary,
        max_sequence=min(longest, tokens),
        max_running=settings.limits.max_running,
        kv_tokens=tokens,
        page=settings.page,
        lora=True,
        prefix_cache=settings.limits.prefix_cache,
        eos_ids=frozenset(token for token in folder.eos_ids if token < shape.vocabulary),
    )


def _takes_likeliest(sequence: TokenSequence) -> bool:
    """Whether the next token is the likeliest one, whichever that is, and nothing is told of it."""
    request = sequence.request
    return request.sampling.temperature < LEAST_HEAT and request.logprobs is None and not request.min_new


def _keep_freed_memory() -> None:
    """Have glibc keep what a step frees for the next one, instead of asking the kernel for the same pages each time: it
    does so below the size of what it has freed once, up to 32 MiB (mallopt(3), M_MMAP_THRESHOLD).
    """
    torch.empty(STEP_BYTES, dtype=torch.uint8)


def _device_of(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(name)
