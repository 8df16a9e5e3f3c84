"""Blocks of the pages of docs that operators run or write down."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.infra.manifests import ROOT


def block(page: str, title: str) -> str:
    """What a page has under a title."""
    text = (ROOT / "docs" / page).read_text()
    found = re.search(rf'^```\w+ title="{re.escape(title)}"\n(.*?)^```', text, re.MULTILINE | re.DOTALL)
    assert found is not None, title
    return found[1]


def run_script(folder: Path, script: str) -> str:
    """What it prints, in a folder with the checkout that pages speak of; no cluster is asked."""
    if not (checkout := folder / "pilotlight").exists():
        checkout.symlink_to(ROOT)
    script = script.replace("kubectl create", "echo ---; kubectl create --dry-run=client -o yaml")
    kept = [line for line in script.splitlines() if not re.match(r"kubectl (apply|label|taint) ", line)]
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(kept)], cwd=folder, capture_output=True, text=True, check=False,
        env={"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(folder)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout
