"""`engine=`, and the weights that it names."""

from __future__ import annotations

import pytest

from pilotlight import VLLM, OptionError, Sim, Torch
from pilotlight.definitions.engine_options import engine_of, engine_spec, engine_weights
from pilotlight_core.model.engines.engine_spec import EngineKind


def test_an_engine_is_described_without_digests() -> None:
    """Those are for the deploy, which pins them."""
    engine = Torch("tiny@0123456789", kv_bytes="2GiB", max_sequences=4)
    spec = engine_spec(engine, ("legal@0123456789",))

    assert (spec.kind, spec.weights, spec.adapters) == (EngineKind.TORCH, "tiny", ("legal",))
    assert (spec.kv_bytes, spec.max_sequences) == (2 * 2**30, 4)
    named = engine_weights({"engine": engine, "adapters": ["legal@0123456789"]})
    assert named == ("tiny@0123456789", "legal@0123456789")
    assert engine_weights({"engine": Sim()}) == ()
    assert engine_weights({}) == ()
    assert engine_of({}) is None


def test_what_is_no_engine_is_refused_by_name() -> None:
    with pytest.raises(OptionError, match=r"engine='tiny': expected Torch\("):
        engine_of({"engine": "tiny"})
    with pytest.raises(OptionError, match="adapters= are of an engine"):
        engine_of({"adapters": ["legal"]})
    with pytest.raises(OptionError, match="adapters='legal': expected a list of names"):
        engine_weights({"engine": Torch("tiny"), "adapters": "legal"})
    with pytest.raises(OptionError, match=r"engine=VLLM\(…\): weights 'a/b' is not a name"):
        VLLM("a/b")
    with pytest.raises(OptionError, match=r"engine=Torch\(…\): Expected `int`"):
        Torch("tiny", max_sequences="many")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="kv_bytes"):
        Torch("tiny", kv_bytes="lots")
