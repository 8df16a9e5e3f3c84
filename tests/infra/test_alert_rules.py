"""The rules of alerts: what they say of histories of calls, who is told, and where people read what to do."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.infra.manifests import ROOT
from tools.monitoring import PROMETHEUS
from tools.monitoring.monitoring_files import RULES, monitoring_files

RULE_FILES = ("alerts.yaml", RULES)


def run(tool: str, *arguments: str | Path, folder: Path = PROMETHEUS) -> subprocess.CompletedProcess[str]:
    """Run promtool or amtool, which `make setup` and tests' targets install."""
    program = shutil.which(tool, path=f"{ROOT / '.venv' / 'bin'}:/usr/bin:/usr/local/bin")
    if program is None:
        pytest.skip(f"{tool} is not installed: infra/setup/monitoring_tools.sh .venv")
    return subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_the_files_are_those_that_are_made() -> None:
    made = monitoring_files()
    different = [name for name, text in made.items() if (ROOT / name).read_text() != text]

    assert not different, f"run `make monitoring`: {different}"


def test_the_rules_are_rules() -> None:
    checked = run("promtool", "check", "rules", "--lint=all", "--lint-fatal", *RULE_FILES)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    checked = run("promtool", "check", "config", "--syntax-only", "prometheus.yaml")
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.variant
def test_histories_of_hours_raise_what_they_must_and_nothing_else() -> None:
    """One failure at night wakes nobody, 2 % of them do."""
    assert_passes("service_levels.test.yaml")


def test_histories_of_days_raise_what_they_must_and_nothing_else() -> None:
    """Half a percent for a day is a ticket; a platform of an hour has none for three days."""
    assert_passes("service_levels_long.test.yaml")


def assert_passes(tests: str) -> None:
    tested = run("promtool", "test", "rules", tests)
    assert tested.returncode == 0, tested.stdout + tested.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("[5m]", "[2h]"),
        ("> 0.0144 and", "> 0.144 and"),
        (" and sum by (slo) (increase(pilotlight_slo_calls_total{slo=\"availability\"}[1h])) >= 348", ""),
        (" and sum by (slo) (pilotlight_slo_calls_total{slo=\"availability\"} offset 1d) >= 0", ""),
        ("pilotlight:slo_bad:ratio_rate30m{slo=\"unary\"} > 0.3 and ", "pilotlight:slo_bad:ratio_rate30m > 3 and "),
        (" unless sum by (slo)", " and sum by (slo)"),
    ],
    ids=["window", "burn", "few calls", "young", "level", "success"],
)  # fmt: skip
def test_a_rule_that_is_changed_fails_a_history(tmp_path: Path, was: str, becomes: str) -> None:
    """Otherwise the histories would show nothing."""
    for name in (RULES, "service_levels.test.yaml", "service_levels_long.test.yaml"):
        shutil.copy(PROMETHEUS / name, tmp_path)
    text = (tmp_path / RULES).read_text()
    assert was in text
    (tmp_path / RULES).write_text(text.replace(was, becomes))

    tested = [
        run("promtool", "test", "rules", f"service_levels{kind}.test.yaml", folder=tmp_path) for kind in ("", "_long")
    ]
    assert any(each.returncode for each in tested)


@pytest.mark.parametrize(("severity", "receiver"), [("critical", "people"), ("warning", "tickets")])
def test_alerts_find_their_people(severity: str, receiver: str) -> None:
    way = run("amtool", "config", "routes", "test", "--config.file=alertmanager.yaml", f"--verify.receivers={receiver}",
              f"severity={severity}")  # fmt: skip
    assert way.returncode == 0, way.stdout + way.stderr
    checked = run("amtool", "check-config", "alertmanager.yaml")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_each_alert_leads_to_a_section_that_says_what_to_do() -> None:
    """And each section is of an alert that there is."""
    alerts = [
        rule
        for name in RULE_FILES
        for group in yaml.safe_load((PROMETHEUS / name).read_text())["groups"]
        for rule in group["rules"]
        if "alert" in rule
    ]
    sections = set(re.findall(r"^## (Pilotlight\w+)$", (ROOT / "docs" / "runbooks.md").read_text(), re.MULTILINE))

    assert {alert["alert"] for alert in alerts} == sections
    for alert in alerts:
        assert alert["annotations"]["runbook_url"].endswith(f"runbooks.md{{{{ end }}}}#{alert['alert'].lower()}")
        assert alert["labels"]["severity"] in ("critical", "warning")
