"""`gpu_function`, the one decorator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, Unpack, overload

from pilotlight.app import Decorator, decorate
from pilotlight.cls import Cls
from pilotlight.definitions.options import Options
from pilotlight.function import Function

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


@overload
def gpu_function(target: type[T], /) -> Cls[T]: ...  # type: ignore[overload-overlap]  # a class is callable too
@overload
def gpu_function(target: Callable[P, R], /) -> Function[P, R]: ...
@overload
def gpu_function(**options: Unpack[Options]) -> Decorator: ...
def gpu_function(target: Any = None, /, **options: Any) -> Any:
    """Turn a function, async function, generator or class into a Function or Cls.

    Bare, or with options: `@gpu_function(gpu="any", timeout=60)`; `@app.gpu_function` is the same with an app.

    A class may have methods marked `@check()`, which run after its `@enter()` hooks and the examples of `warmup`: the
    start fails if one raises or returns False. `__check__(self)` is another name for such a method.

    Options:
        gpu: "H100", "H100:2", "any", or a list in order of preference ("cpu": a CPU slot). Default: a CPU slot.
        vram: GPU memory: "10GiB", or MiB as an int. Default: the whole device.
        cpu: Cores of the host, promised and at most. Default: 0.1 promised, 1 where others leave it.
        memory: Host memory, promised and at most: "2GiB", or MiB as an int. Default 2 GiB.
        shm: /dev/shm, which libraries use to share tensors between processes: "2GiB", or MiB as an int. It lives in
            memory and counts into `memory`. Default 256 MiB.
        scratch: /tmp, as `shm`. Default 256 MiB.
        pids: Processes and threads of a container. Default 512.
        timeout: Seconds that one call may run. Default 300.
        startup_timeout: Seconds that loading may take. Default 600.
        retries: How often a call that raised is tried again: a live one after 0.1, 0.2, … 10 s, while its caller waits
            and no chunk has been sent; a job after 1, 2, … 300 s. Default 0.
        min_containers: Containers kept without calls. Default 0.
        max_containers: Default 10.
        buffer_containers: Containers kept beyond the busy ones. Default 0.
        scaledown_window: Seconds without calls after which a container ends. Default 60.
        zero_window: The same of the last container. Default: scaledown_window.
        forecast: Whether what its past foretells may keep or start containers. Default True.
        warm: Times of the week in which it keeps containers without calls: a list of
            Warm("Mon-Fri 08:00-18:00", containers=2, tz="Europe/Berlin").
        env: Environment variables by name; nothing secret, since they are stored in plain text.
        tags: What usage is reported by (`pilotlight usage --by tag:team`): {"team": "search"}, beside those of the app.
        max_units: What one call is billed for at most of units that it counts and that have a price:
            {"completion_tokens": 4096}. Of units that are not named it is billed nothing.
        artifacts: Weights, tokenizers and other large files, apart from the code: a list of Artifact(kind, name, path).
        schedule: When it runs by itself, without arguments: Cron("0 6 * * *", tz="Europe/Berlin") or Period(minutes=5).
            Of a class a method has it: @method(schedule=…). Default: never.
        network: What it may connect to, if an operator allows it to its tenant: a list of "api.example.com:443", where
            TLS is spoken with that host. See docs/guide/network.md. Default: nothing.
        secrets: Where it finds values of secrets (`pilotlight secret set`), by variable, or file below /run/secrets:
            {"HF_TOKEN": "hf-token", "/run/secrets/key.pem": "signing-key"}. Of a list of names each is the variable of
            its name: ["hf-token"] is HF_TOKEN.
        warmup: Calls that each container makes of itself before others reach it, so that what is slow the first time is
            done: a list of inputs, [{"text": "hello"}], of batches, which are lists of inputs, or of Example(input,
            method="embed"). Their answers are discarded; the start fails if one raises.
        check: A call whose answer is known, Example(input, output=…): the start fails if another one comes. A container
            checks itself again later, and is replaced if that fails.
        check_every: Seconds between two checks of a container, 0: never. Default 300, of `__check__` alone 0.
        check_timeout: Seconds that a check may take, for which a call may have to wait. Default 10.
        isolation: "shared" with other functions of yours, "mig" or "exclusive". Default "shared".
        idempotent: Whether a started call may run again, if its container dies or its batch raises. Default False.
        resumable: Whether a stream goes on in another container, when its own is lost: the generator saves its state by
            `checkpoint(state)`, and begins with `resume(state)`. True, or Resumable(resume_s=, migrations=). Default
            False.
        fallback: The function of the same app that runs a call when this one has no room for it in time, such as a
            smaller or quantised model with the same type hints: its name, or Fallback("small", classes=["batch"],
            tiers=["free"]), for calls of these classes by tenants of these tiers alone. Default: it is refused.
        slo: Target latency in milliseconds: SLO(p95_ms=), and of an engine's tokens SLO(ttft_ms=, itl_ms=).
        priority: "interactive", "standard" or "batch". Default "standard".
        model: Computes GPU memory, instead of `vram`: Model(parameters=8e9, layers=32, …).
        by_cost: Take the GPU of the list with the least cost per call, instead of the first. Default False.
        measured: Measured throughput and latency, by GPU and slice: a list of Measured.
        weights: Weights that were pushed (`pilotlight weights push`), by name or name@digest: a list such as
            ["llama"]. pilotlight.weights("llama") is their folder; nodes that have them go first.
        serves: Names of models under which clients of OpenAI's API call it: "acme/tiny-1.5", or several. See
            docs/guide/openai.md. Default: none.
        spread: "node" or "zone" keeps its containers apart; Spread(over="zone", most=2) is a hard limit.
        avoid: Functions ("app.function") whose nodes it avoids.
        spot: True: interruptible nodes only, False: none of them. Default: any.
        region: A region, or a list, in which it may run. Default: any.
        zone: A zone, or a list, in which it may run. Default: any.
        neighbours: Whether other tenants may share its GPU, if they agree. Default False.
        media: Whether it needs the GPU's video engines. Default False.
        upstream: An `Upstream`: the HTTP API outside that the function, which is asynchronous, calls with
            `await api.call(…)`; it may reach that API and has its key. See docs/guide/upstream.md.
        engine: The language model that it is, instead of code: Torch("llama"), VLLM("llama") or Sim(), above an empty
            function. `app.engine("chat", Torch("llama"))` is the same without one.
        adapters: LoRA adapters of its engine: a list of names of weights.
        name: The name of the deployed function. Default: its own.
        app: The app it belongs to. Default: one named after its module ("a-b" for `a.b`).

    Raises:
        OptionError: naming the option, the values it takes, and what another platform's option is here.
    """
    return decorate(target, options)
