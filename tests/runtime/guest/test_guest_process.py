"""A guest's life: blank, loaded, gone."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pilotlight import Sim
from pilotlight.definitions.engines.engine_specs import build_engine_spec
from pilotlight_core.model.messages.call_messages import Outcome
from pilotlight_core.model.spec import FunctionSpec, MethodSpec
from pilotlight_runtime.guest.frames import (
    FRAMES,
    EngineReportOut,
    Invoke,
    Leave,
    Load,
    Loaded,
    LoadError,
    LoadStep,
    Result,
    WindowUpdate,
    header,
)
from pilotlight_runtime.guest.guest_process import NVML_CHECK
from tests.runtime.guest.apps import plain, shop
from tests.runtime.guest.harness import APPS, Guest, spec_of


def test_a_blank_says_hello() -> None:
    """With what it has imported; what is not installed is passed over; and it may leave without ever being used."""
    with Guest(preimport="json,no_such_module") as guest:
        assert guest.hello.modules == ("json",)
        assert guest.hello.pid == guest.process.pid
        assert guest.hello.frames == FRAMES
        assert not guest.hello.cuda
        assert guest.leave() == (0, "", "")


def test_a_function_is_loaded_by_its_spec() -> None:
    """Import and enter are timed; environment and module path are what the spec and the agent say."""
    with Guest() as guest:
        frames = guest.load(spec_of(plain.act, cpu=1.5, env={"A": "spec", "B": "spec"}), env={"B": "agent"})
        assert [frame.name for frame in frames if isinstance(frame, LoadStep)] == ["import", "enter"]
        environment = guest.call(kind="environment")

    assert (environment["A"], environment["B"]) == ("spec", "agent")
    assert environment["OMP_NUM_THREADS"] == "2"
    assert environment["sys.path[0]"] == str(APPS)
    assert "PL_FD" not in environment
    assert NVML_CHECK not in environment  # it was there while modules were imported ahead


def test_a_guest_that_is_expected_skips_the_blank() -> None:
    """Where the Load is there first, nothing is imported that the function may not need."""
    with Guest(preimport="json", early=Load(spec=spec_of(plain.nothing), root=str(APPS))) as guest:
        assert guest.hello.modules == ()
        assert [type(guest.receive()) for _ in range(3)] == [LoadStep, LoadStep, Loaded]
        assert guest.call() is None


def test_a_class_is_entered_checked_and_left() -> None:
    """Hooks run in order, asynchronous or not; one exit hook that fails does not keep the next from running."""
    with Guest() as guest:
        frames = guest.load(spec_of(shop.Shop))
        assert [frame.name for frame in frames if isinstance(frame, LoadStep)] == ["import", "enter", "check"]
        assert guest.call("history") == ["opened", "lit", "checked"]
        assert guest.call("history", since=2) == ["checked"]
        code, out, err = guest.leave()

    assert (code, out) == (0, "shop closed\n")
    assert "the exit hook failed" in err


def _missing(module: str, qualname: str, *, is_class: bool = False) -> FunctionSpec:
    method = MethodSpec(name="", attribute=qualname)
    return FunctionSpec(name="f", module=module, qualname=qualname, is_class=is_class, methods=(method,))


@pytest.mark.parametrize(
    ("spec", "step", "kind", "message"),
    [
        (_missing("broken", "f"), "import", "RuntimeError", "not today"),
        (_missing("absent", "f"), "import", "ModuleNotFoundError", "No module named 'absent'"),
        (_missing("plain", "absent"), "import", "AttributeError", "module 'plain' has no attribute 'absent'"),
        (_missing("plain", "echo", is_class=True), "import", "TypeError", "plain.echo is a function"),
        (spec_of(shop.Stuck), "enter", "OSError", "no model here"),
        (spec_of(shop.Sick), "check", "RuntimeError", "__check__ answered False"),
    ],
)
def test_what_cannot_be_loaded_says_why(spec: FunctionSpec, step: str, kind: str, message: str) -> None:
    """The step, the error and the frames of the tenant's code; then the guest ends."""
    with Guest() as guest:
        error = guest.load(spec)[-1]
        assert isinstance(error, LoadError)
        assert (error.step, error.error.type) == (step, kind)
        assert message in error.error.message
        assert "pilotlight_runtime" not in error.error.traceback or step == "check"
        assert guest.end()[0] == 1


def test_output_is_lines_of_utf8() -> None:
    """What is printed is in the pipes at once, and nothing that can be printed fails."""
    with Guest() as guest:
        guest.load(spec_of(plain.act))
        guest.call(kind="speak")
        assert [guest.line(), guest.line()] == ["to stdout", "half a surrogate: \\ud800"]
        assert guest.leave() == (0, "", "to stderr\n")


def test_a_guest_ends_with_its_agent() -> None:
    """A closed socket is the end, loaded or not."""
    with Guest() as blank, Guest() as loaded:
        loaded.load(spec_of(plain.nothing))
        for guest in (blank, loaded):
            guest.socket.close()
            assert guest.end() == (0, "", "")


@pytest.mark.parametrize("nonsense", [b"\xff\xff\xff\xff", header(3) + b"abc"])
def test_nonsense_ends_the_guest(nonsense: bytes) -> None:
    """A malformed frame ends it with a line that says so."""
    with Guest() as guest:
        guest.load(spec_of(plain.nothing))
        guest.socket.sendall(nonsense)
        code, _, err = guest.end()

    assert code == 70
    assert err.startswith("pilotlight: the agent sent what cannot be understood, so this container ends: a frame of")


def test_the_first_frame_is_load() -> None:
    """Anything else is a mistake of the agent."""
    with Guest() as guest:
        guest.send(WindowUpdate(call_id="a", upto=1))
        code, _, err = guest.end()

    assert code == 70
    assert "the first frame is WindowUpdate: expected Load" in err


def test_frames_behind_the_load_are_kept() -> None:
    """A call that was sent too early is answered after Loaded."""
    with Guest() as guest:
        guest.send(Load(spec=spec_of(plain.nothing), root=str(APPS)), Invoke(call_id="a", input=b"\x80"), Leave())
        frames = [guest.receive() for _ in range(4)]
        assert isinstance(frames[2], Loaded)
        assert (frames[3].call_id, frames[3].outcome) == ("a", "ok")
        assert guest.end()[0] == 0


def test_a_guest_never_reaches_the_servers_floor() -> None:
    """What runs beside a tenant's code imports the vocabulary and nothing of the platform's servers."""
    program = "import sys, pilotlight_runtime.guest.guest_process; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True).stdout

    foreign = ("pilotlight_core.host", "nats", "pilotlight_gateway", "pilotlight_runtime.sandbox", "numpy", "httpx")
    assert [name for name in modules.split() if name.startswith(foreign)] == []


def test_an_engine_function_is_served_and_tells_how_its_engine_is() -> None:
    """Its module is the platform's; a document that does not fit is its caller's fault."""
    with Guest() as guest:
        guest.load(build_engine_spec({"engine": Sim()}, "chat"), takes_reports=True)
        guest.invoke("a", "generate", prompt="Once", max_tokens=3, ignore_eos=True)
        guest.invoke("b", "generate", prompt="Once", adapter="legal")
        frames = [guest.receive()]
        while sum(isinstance(one, Result) for one in frames) < 2 or not isinstance(frames[-1], EngineReportOut):
            frames.append(guest.receive())

    results = {frame.call_id: frame for frame in frames if isinstance(frame, Result)}
    assert results["a"].units == {"prompt_tokens": 4, "completion_tokens": 3}
    assert (results["b"].outcome, results["b"].units) == (Outcome.BAD_INPUT, None)
    assert frames[-1].report.decode_tokens == 2  # the first comes of the prompt
