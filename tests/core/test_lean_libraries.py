"""What server processes are spared of the libraries that they use."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pilotlight_core.lean_libraries import without

PROCESSES = {
    "pilotlight_gateway.__main__": {"httpx", "httpcore", "alembic"},
    "pilotlight_gateway.duties.__main__": {"httpx", "cryptography", "uvicorn", "starlette", "alembic"},
    "pilotlight_autoscaler.__main__": {"httpx", "cryptography", "sqlalchemy"},
    "pilotlight_runtime.__main__": {"click", "sqlalchemy"},
    "pilotlight_supervisor.up": {"httpx", "cryptography", "sqlalchemy"},
}
"""Of each, libraries that it does without, besides `NONE`."""
NONE = {"aiohttp", "boto3", "numpy", "pydantic", "pygments", "rich", "torch", "trio", "typer"}
"""What no process of the platform needs to start."""


@pytest.mark.parametrize("process", PROCESSES)
def test_a_process_starts_without_what_it_does_not_use(process: str) -> None:
    """Each library costs its memory for as long as the process lives, and time of each start."""
    code = f"import sys, {process}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert not (PROCESSES[process] | NONE) & set(done.stdout.split())


def test_a_library_that_is_left_out_can_be_imported_later() -> None:
    """Within the block an import of it fails."""
    code = (
        "import sys; from pilotlight_core.lean_libraries import without\n"
        "with without('wave'):\n"
        "    try: import wave\n"
        "    except ImportError: print('absent')\n"
        "import wave; print(wave.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["absent", "wave"]


def test_a_library_that_is_there_stays() -> None:
    """Whoever loaded it keeps the module that it has."""
    with without("pytest"):
        assert sys.modules["pytest"] is pytest
