"""The chat example as its README tells: trained, pushed, deployed, and streamed by OpenAI's own client."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.system.support.platform import ROOT, Platform
from tests.system.support.sample_apps import EXAMPLES, deployed


@pytest.mark.long  # it trains, and a container imports transformers
def test_a_model_from_nothing_talks_to_openais_client(platform: Platform, tmp_path: Path) -> None:
    run = [sys.executable, "-m"]
    subprocess.run([*run, "examples.chat.train", str(tmp_path), "--seconds", "20"], cwd=ROOT, check=True)
    platform.cli("weights", "push", "tiny-docs", str(tmp_path))
    env = {**os.environ, "PILOTLIGHT_URL": platform.url, "PILOTLIGHT_API_KEY": platform.key}
    with deployed(platform, EXAMPLES / "chat" / "app.py"):
        talk = [*run, "examples.chat.talk", "What does json.dumps do?"]
        said = subprocess.run(talk, cwd=ROOT, env=env, capture_output=True, text=True, check=True, timeout=120)
    platform.cli("weights", "rm", "tiny-docs")

    assert said.stdout.strip(), said.stderr
