"""What operators and tenants read of one diagnosis."""

from __future__ import annotations

from pilotlight_gateway.diagnosis.bottlenecks import diagnose
from pilotlight_gateway.diagnosis.diagnosis_answers import diagnosis_info, diagnosis_line
from pilotlight_gateway.diagnosis.diagnosis_window import DiagnosisWindow, FlowFacts
from tests.gateway.diagnosis.windows import calls, window


def crowded() -> DiagnosisWindow:
    flows = (
        FlowFacts(tenant="mouse", slowdown=8.0, held_part=0.05, mean_ms=480.0),
        FlowFacts(tenant="elephant", slowdown=1.1, held_part=0.95),
    )
    return window(calls(queue=430.0, execute=50.0), flows=flows, containers=4.0, held_part=0.9, queued=4.0)


def test_no_tenant_reads_the_name_of_another() -> None:
    facts = crowded()
    told = str(diagnosis_info(diagnose(facts), facts, operator=False, silent=("gateway-7",)))

    assert "elephant" not in told
    assert "mouse" not in told
    assert "gateway-7" not in told
    assert "another tenant" in told


def test_an_operator_reads_who_it_is_and_how_to_cap_it() -> None:
    facts = crowded()
    told = diagnosis_info(diagnose(facts), facts, operator=True, silent=("gateway-7",))

    assert "calls of mouse" in told.sentence
    assert told.cures[0].command == "pilotlight quota set elephant concurrency=3"
    assert told.silent == ("gateway-7",)


def test_each_metric_that_is_promised_is_told_as_it_is_now() -> None:
    facts = crowded()
    told = diagnosis_info(diagnose(facts), facts, operator=True)

    assert {promise.metric for promise in told.promises} <= told.metrics.keys()
    assert told.metrics["slowed_mean_ms"] == 480.0


def test_a_line_has_the_sentence_and_what_to_do_first() -> None:
    facts = crowded()
    line = diagnosis_line(diagnose(facts), facts, operator=False)

    assert line.sentence.startswith("Noisy neighbour: calls of one tenant")
    assert line.first_cure == "a cap of 3 calls in flight for the other"
