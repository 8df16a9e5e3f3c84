"""What `import pilotlight` brings, and what it does not cost."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import metadata

import pytest

import pilotlight

HEAVY = ("httpx", "asyncio", "typer", "rich", "pathspec", "numpy", "torch", "ssl", "hashlib")


def modules_after(statement: str) -> set[str]:
    """The modules that a fresh interpreter holds after `statement`."""
    code = f"{statement}; import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "statement",
    [
        "import pilotlight",
        "from pilotlight import App, gpu_function, SLO, Function, enter, exit, method, batched, concurrent",
        "import pilotlight; pilotlight.gpu_function(name='f')(lambda x: x)",
    ],
)
def test_an_import_loads_nothing_heavy(statement: str) -> None:
    """No HTTP client, event loop, terminal library or OpenSSL is loaded before the first call."""
    assert not modules_after(statement) & set(HEAVY)


def test_the_bare_import_loads_hardly_anything() -> None:
    """Names are loaded on first use, and msgspec with them."""
    assert "msgspec" not in modules_after("import pilotlight")


def test_client_and_command_line_need_no_extra() -> None:
    """`pip install` without an extra brings all that they import, the platform's own packages aside."""
    code = (
        "import pilotlight, pkgutil; "
        "[__import__(each.name) for each in pkgutil.walk_packages(pilotlight.__path__, 'pilotlight.')]"
    )
    needed = metadata("pilotlight").get_all("Requires-Dist") or []
    extra = [each for each in needed if re.search("""extra == ['"]server['"]""", each)]
    server = {re.split(r"[^\w-]", each)[0].replace("-", "_") for each in extra}
    assert {"starlette", "sqlalchemy", "uvicorn", "alembic"} <= server
    assert not modules_after(code) & {*server, "nats", "pynvml", "prometheus_client", "pilotlight_gateway"}


def test_every_public_name_exists() -> None:
    """`__all__` and the attributes agree, and other names do not exist."""
    for name in pilotlight.__all__:
        assert getattr(pilotlight, name) is not None
    assert set(pilotlight.__all__) <= set(dir(pilotlight))
    with pytest.raises(AttributeError, match="nonsense"):
        _ = pilotlight.nonsense
