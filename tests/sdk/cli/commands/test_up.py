"""`pilotlight up`: a child that is announced, signalled and ended in order."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pilotlight.cli.commands.up import supervise

# A stand-in for the platform: it comes up, says so, and on its signal ends in order.
CHILD = """
import json, signal, sys, pathlib
told = []
signal.signal(signal.SIGINT, lambda *_: told.append("int"))
signal.signal(signal.SIGTERM, lambda *_: told.append("term"))
print("a warning", flush=True)
ready = pathlib.Path(sys.argv[sys.argv.index("--json-ready") + 1])
ready.write_text(json.dumps({"url": "http://127.0.0.1:1", "api_key_file": "/k/client.json", "state_dir": "/s"}))
print("Pilotlight is up", flush=True)
while not told:
    signal.pause()
print("ended by", *told, flush=True)
sys.exit(3)
"""


@pytest.mark.parametrize(("number", "name"), [(signal.SIGINT, "int"), (signal.SIGTERM, "term")])
def test_up_prints_the_next_commands_and_ends_its_child_in_order(tmp_path: Path, number: int, name: str) -> None:
    """One signal reaches the child once, and its exit code is passed on."""
    (tmp_path / "child.py").write_text(CHILD)
    code = (
        "import sys; from pilotlight.cli.commands.up import supervise; "
        "sys.exit(supervise([sys.executable, *sys.argv[1:]]))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "child.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        shown = ""
        while "Ctrl-C" not in shown:
            line = parent.stdout.readline()
            assert line, shown
            shown += line
        parent.send_signal(number)
        rest, errors = parent.communicate(timeout=20)
    assert parent.returncode == 3
    assert shown.startswith("Pilotlight is up at http://127.0.0.1:1 (state in /s, key in /k/client.json).\n")
    assert "  export PILOTLIGHT_HOME=/k\n  pilotlight deploy examples/hello/app.py" in shown  # it is not the user's own
    assert rest == ""
    assert errors.splitlines() == [
        "starting nats, gateway, controller, duties, agent, dashboard …", "a warning", "stopping …", f"ended by {name}",
    ]  # fmt: skip


def test_up_as_json_is_a_line_without_secrets(tmp_path: Path) -> None:
    """Where it is and where its key is; the address of the bus has a password, and pids change."""
    (tmp_path / "child.py").write_text(CHILD.replace('"state_dir": "/s"', '"state_dir": "/s", "nats_url": "secret"'))
    code = (
        "import sys; from pilotlight.cli.commands.up import supervise; "
        "sys.exit(supervise([sys.executable, *sys.argv[1:]], as_json=True))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "child.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        line = parent.stdout.readline()
        parent.send_signal(signal.SIGINT)
        rest, _ = parent.communicate(timeout=20)
    told = {"url": "http://127.0.0.1:1", "urls": None, "state_dir": "/s", "api_key_file": "/k/client.json",
            "dashboard_url": None}  # fmt: skip
    assert (json.loads(line), rest) == (told, "")


def test_up_prints_the_link_into_the_dashboard(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Which comes a moment later; what a platform says before it is up is no link."""
    link = 'print("The dashboard: http://127.0.0.1:2/ui/login?code=x", flush=True)\nwhile False:'
    early = 'print("The dashboard: no", flush=True)\nprint("a warning", flush=True)'
    (tmp_path / "child.py").write_text(
        CHILD.replace("while not told:", link).replace('print("a warning", flush=True)', early)
    )

    assert supervise([sys.executable, str(tmp_path / "child.py")]) == 3
    shown = capsys.readouterr()
    assert shown.out.endswith("The dashboard: http://127.0.0.1:2/ui/login?code=x\n")
    assert "The dashboard: no" in shown.err


def test_up_passes_its_options_on() -> None:
    """The child gets known and unknown options, and refuses wrong ones by name."""
    done = subprocess.run(
        [sys.executable, "-m", "pilotlight.cli.main", "up", "--port", "0", "--sandbox", "nonsense", "--region", "eu"],
        capture_output=True, text=True, check=False, env={**os.environ, "NO_COLOR": "1"}, timeout=30,
    )  # fmt: skip
    assert done.returncode != 0
    assert "sandbox" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_ready_file_is_written_where_its_user_says(tmp_path: Path) -> None:
    """With all that the platform tells."""
    (tmp_path / "child.py").write_text(CHILD.replace("while not told:", "while False:"))
    ready = tmp_path / "mine.json"

    assert supervise([sys.executable, str(tmp_path / "child.py")], json_ready=ready) == 3
    assert json.loads(ready.read_bytes())["state_dir"] == "/s"


def test_the_platforms_own_options_are_output() -> None:
    """`pilotlight up -- --help | less` shows them, and nothing is said to start."""
    command = [sys.executable, "-m", "pilotlight.cli.main", "up", "--", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert "--metrics-port" in done.stdout
    assert done.stderr == ""
