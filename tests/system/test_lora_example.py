"""The example of adapters as its README tells: trained, pushed, deployed, and called side by side."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.system.support.platform import ROOT, Platform
from tests.system.support.sample_apps import EXAMPLES, deployed

ADAPTERS = ("capitals", "signatures")


@pytest.mark.long  # it trains three times, and a container imports transformers
def test_a_model_and_its_adapters_answer_openais_client_side_by_side(platform: Platform, tmp_path: Path) -> None:
    run = [sys.executable, "-m"]
    model, adapters = tmp_path / "model", tmp_path / "adapters"
    subprocess.run([*run, "examples.chat.train", str(model), "--seconds", "20"], cwd=ROOT, check=True)
    subprocess.run([*run, "examples.lora.train", str(model), str(adapters), "--seconds", "20"], cwd=ROOT, check=True)
    platform.cli("weights", "push", "tiny-docs", str(model))
    for name in ADAPTERS:
        platform.cli("weights", "push", name, str(adapters / name))
    env = {**os.environ, "PILOTLIGHT_URL": platform.url, "PILOTLIGHT_API_KEY": platform.key}
    with deployed(platform, EXAMPLES / "lora" / "app.py"):
        ask = [*run, "examples.lora.ask", "What does json.dumps do?"]
        said = subprocess.run(ask, cwd=ROOT, env=env, capture_output=True, text=True, check=True, timeout=120).stdout
    for name in ("tiny-docs", *ADAPTERS):
        platform.cli("weights", "rm", name)

    answers = dict(line.split(": ", 1) for line in said.splitlines()[:3])
    assert list(answers) == ["library", "library:capitals", "library:signatures"], said
    assert any(answers.values()), said  # what they learn in this time depends on the machine
