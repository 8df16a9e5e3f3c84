"""How long certificates are good for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from pilotlight_core.host.certificates.server_context import ServerContext
from pilotlight_gateway.metrics.certificate_metrics import certificate_gauges, certificates_of
from tests.builders.certificates import a_server, an_authority, tls_files

AT = datetime(2027, 1, 1, tzinfo=UTC)


def test_what_is_left_is_shown_by_listener() -> None:
    """It falls below 0; without a certificate the family is there all the same, for rules that name it."""
    ends = {"api": AT + timedelta(days=14), "bodies": AT - timedelta(seconds=5)}
    (family,) = certificate_gauges(ends, AT)

    assert {sample.labels["listener"]: sample.value for sample in family.samples} == {
        "api": 14 * 86_400.0, "bodies": -5.0,
    }  # fmt: skip
    (none,) = certificate_gauges({}, AT)
    assert (none.name, none.samples) == ("pilotlight_certificate_expires_seconds", [])


def test_the_certificate_that_is_served_counts(tmp_path: Path) -> None:
    """Also one that has taken the place of another; who has none shows nothing."""
    an_authority(tmp_path)
    context = ServerContext(tls_files(a_server(tmp_path, days=10)), datetime.now(UTC))
    source = certificates_of(api=context, bodies=None)

    def left_days() -> list[float]:
        return [round(sample.value / 86_400) for family in source() for sample in family.samples]

    assert left_days() == [10]
    a_server(tmp_path, days=90)
    assert context.refresh(datetime.now(UTC))
    assert left_days() == [90]
