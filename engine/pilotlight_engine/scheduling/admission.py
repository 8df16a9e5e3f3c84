"""Which requests an engine refuses before they touch anything: those that could only end in harm."""

from __future__ import annotations

from collections.abc import Container

from pilotlight_engine.engine_port import Capabilities, EngineRefusal, GenRequest

MAX_LOGPROBS = 20
MAX_SEED = 1 << 63


def check_request(request: GenRequest, capabilities: Capabilities, adapters: Container[str]) -> None:
    """Raise `EngineRefusal` if a request cannot run in an engine, whatever else runs."""
    _check_tokens(request, capabilities)
    _check_sampling(request)
    prompt, most = len(request.prompt_ids), len(request.prompt_ids) + request.max_new
    longest = capabilities.max_sequence
    if prompt >= longest:
        text = f"the prompt has {prompt} tokens; with at least one new token a sequence has at most {longest}"
        raise EngineRefusal("too_long", f"{text}. Shorten the prompt.", "prompt")
    if most > longest:
        text = f"{prompt} tokens of prompt and {request.max_new} new ones are {most}; a sequence has at most {longest}"
        raise EngineRefusal("too_long", f"{text}. Ask for at most {longest - prompt} new tokens.", "max_tokens")
    if most > capabilities.kv_tokens:
        text = (
            f"the sequence may grow to {most} tokens; this engine stores {capabilities.kv_tokens} of all its sequences"
        )
        raise EngineRefusal("no_room", f"{text}. Ask for fewer tokens, or give the function more memory.", "max_tokens")
    if request.adapter and not capabilities.lora:
        raise EngineRefusal("no_adapter", f"{capabilities.architecture} takes no adapters in this engine", "adapter")
    if request.adapter and request.adapter not in adapters:
        raise EngineRefusal("no_adapter", f"there is no adapter {request.adapter!r} here", "adapter")


def check_ids(ids: tuple[int, ...], vocabulary: int, field: str) -> None:
    """Raise if an id is none of the model's: on a GPU it would end the process, and all sequences with it."""
    if ids and not (min(ids) >= 0 and max(ids) < vocabulary):
        wrong = next(each for each in ids if not 0 <= each < vocabulary)
        raise EngineRefusal("bad_tokens", f"{wrong} is no token: ids are from 0 to {vocabulary - 1}", field)


def _check_tokens(request: GenRequest, capabilities: Capabilities) -> None:
    if not request.prompt_ids:
        raise EngineRefusal("bad_tokens", "the prompt is empty; it has at least one token", "prompt")
    check_ids(request.prompt_ids, capabilities.vocabulary, "prompt_ids")
    check_ids(request.prefix_out, capabilities.vocabulary, "prefix_out")
    if request.max_new < 1:
        raise EngineRefusal("too_long", f"max_tokens is at least 1, not {request.max_new}", "max_tokens")
    if len(request.prefix_out) > request.max_new:
        text = f"{len(request.prefix_out)} tokens are there already, more than the {request.max_new} asked for"
        raise EngineRefusal("bad_tokens", text, "prefix_out")


def _check_sampling(request: GenRequest) -> None:
    sampling = request.sampling
    if not 0 <= sampling.temperature <= 100:  # false for what is not a number, too
        raise EngineRefusal("bad_tokens", f"temperature is from 0 to 100, not {sampling.temperature}", "temperature")
    if not 0 < sampling.top_p <= 1:
        raise EngineRefusal("bad_tokens", f"top_p is above 0, and at most 1, not {sampling.top_p}", "top_p")
    if sampling.top_k < 0:
        raise EngineRefusal("bad_tokens", f"top_k is at least 0, not {sampling.top_k}", "top_k")
    if not -MAX_SEED <= sampling.seed < MAX_SEED:
        raise EngineRefusal("bad_tokens", f"seed has 64 bits; {sampling.seed} has more", "seed")
    if request.logprobs is not None and not 0 <= request.logprobs <= MAX_LOGPROBS:
        raise EngineRefusal("bad_tokens", f"logprobs is from 0 to {MAX_LOGPROBS}, not {request.logprobs}", "logprobs")
    if not 0 < request.weight < float("inf"):
        raise EngineRefusal("bad_tokens", f"weight is above 0, not {request.weight}", "weight")
