"""What sampled calls have in common."""

from __future__ import annotations

from typing import Any

from pilotlight_core.model.spec import SLO
from pilotlight_core.model.tracing.sampled_call import SampledKind
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.traces.sampled_kinds import MOST_KINDS, SampledKinds, is_ordinary
from tests.builders.calls import grant, prepared_call
from tests.builders.kept import STAGES
from tests.builders.specs import function_spec, method, version_record

VERSION = version_record(function_spec("rank", method(), slo=SLO(p95_ms=300.0)), app="shop")


def kept(kinds: SampledKinds, *, slow_ms: float = 300.0, container: str = "c1", **more: Any) -> SampledKind:
    """That of an ordinary call, as it is kept."""
    result = CallResult(output=b"secret", stages=STAGES, grant=grant(1, container=container))
    return kinds.of(prepared_call("a", version=VERSION, **more), result, slow_ms).kind


def test_calls_of_a_container_have_what_they_share_once() -> None:
    """Of another tenant, or where a call counts as slow otherwise, it is another one."""
    kinds = SampledKinds("fd7")
    assert kept(kinds) is kept(kinds)
    others = [kept(kinds, tenant="other"), kept(kinds, slow_ms=60.0), kept(kinds, container="c2"), kept(kinds)]
    assert len(set(others)) == 4


def test_what_is_remembered_is_bounded() -> None:
    kinds = SampledKinds("fd7")
    for number in range(MOST_KINDS + 5):
        kept(kinds, container=f"c{number}")
    assert 0 < len(kinds) <= MOST_KINDS


def test_a_call_with_hooks_or_without_its_stages_is_told_of_whole() -> None:
    """Its record has more than an ordinary one has room for."""
    result = CallResult(output=b"", stages=STAGES, grant=grant(1))
    assert is_ordinary(prepared_call("a", version=VERSION), result, STAGES)
    assert not is_ordinary(prepared_call("a", version=VERSION), result, {})
    assert not is_ordinary(prepared_call("a", version=VERSION), result, STAGES | {"preprocess": 1.0})
