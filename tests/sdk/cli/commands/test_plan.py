"""`pilotlight plan`: a process of its own, whose words and exit code are passed on."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from pilotlight.cli.commands.plan import unmeasured
from tests.command_line import run_command
from tests.sdk.scripted import KEY, ScriptedPlatform, answer, problem


def plan(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return run_command(("plan", *words), env=os.environ | env)


def prices(a100: str) -> dict[str, object]:
    """What the platform says of its prices."""
    of = {"price": "a100", "of": "device", "usd_per_hour": a100, "source": "set", "past": [], "to_come": []}
    return {"prices": [of], "currency": "USD"}


def test_the_worked_example(tmp_path: Path) -> None:
    """The demand of the file makes a plan of four GPUs."""
    demand = tmp_path / "demand.csv"
    demand.write_text("function,rps,slo_ms,gpu,batch,latency_ms\nclassify,1000,,A100-80GB,32,75\n")

    done = plan("--demand", str(demand), "--solver", "greedy", "--seconds", "5")

    assert done.returncode == 0
    assert "4 x A100-80GB\n" in done.stdout


def test_an_error_in_the_file_ends_with_exit_code_1(tmp_path: Path) -> None:
    """The error names the row and the field on stderr."""
    demand = tmp_path / "demand.csv"
    demand.write_text("function,rps\nclassify,many\n")

    done = plan("--demand", str(demand))

    assert done.returncode == 1
    assert done.stderr == f"error: {demand}, row 2, rps: 'many' is not a number\n"


def test_known_curves_serve_functions_without_points(platform: ScriptedPlatform, tmp_path: Path) -> None:
    """A measured point goes before a learnt one, and GPUs in software are left out."""
    demand = tmp_path / "demand.csv"
    demand.write_text("function,rps\nshop.f,1000\nshop.g,1\n")

    def curve(source: str, latency: float, gpu: str = "A100-80GB", **more: object) -> dict[str, object]:
        speed = 32 * 1000 / latency
        point = {"batch": 32, "throughput": speed, "p50_ms": latency, "p95_ms": latency, "samples": 9}
        return {"gpu": gpu, "slice": "whole", "source": source, "points": [point], **more}

    known = [curve("learnt", 10.0), curve("measured", 75.0), curve("measured", 1.0, "T4", software=True)]
    told = {"version": "shop.f@v1", "version_id": "ver_1", "curves": known, "slices": [], "methods": []}
    platform.will("GET", "/v1/functions/shop.f/curves", answer(told))
    platform.will("GET", "/v1/prices", *(answer(prices(a100)) for a100 in ("2.5", "2.5", "10")))
    platform.will("GET", "/v1/functions/shop.g/curves", problem("unknown_function", "There is no function shop.g."))
    key = {"PILOTLIGHT_URL": platform.url, "PILOTLIGHT_API_KEY": KEY}

    partly = plan("--demand", str(demand), "--known", "--solver", "greedy", **key)
    demand.write_text("function,rps\nshop.f,1000\n")
    done = plan("--demand", str(demand), "--known", "--solver", "greedy", **key)

    assert partly.returncode == 1
    assert "shop.g: There is no function shop.g." in partly.stderr
    assert done.returncode == 0, done.stderr
    assert "4 x A100-80GB\n" in done.stdout
    assert "$10.00 per hour" in done.stdout
    # The operator sets another price.
    assert "$40.00 per hour" in plan("--demand", str(demand), "--known", "--solver", "greedy", **key).stdout


def test_a_price_file_goes_before_the_platforms_prices(platform: ScriptedPlatform, tmp_path: Path) -> None:
    """The platform is not asked for them then."""
    demand, book = tmp_path / "demand.csv", tmp_path / "prices.toml"
    demand.write_text("function,rps,gpu,batch,latency_ms\nf,1000,A100-80GB,32,75\n")
    book.write_text("[prices.a100]\nnano_usd_per_hour = 5_000_000_000\n")
    key = {"PILOTLIGHT_URL": platform.url, "PILOTLIGHT_API_KEY": KEY}

    done = plan("--demand", str(demand), "--known", "--price-file", str(book), "--solver", "greedy", **key)

    assert "$20.00 per hour" in done.stdout
    assert platform.requests == []


def test_curves_of_gpus_in_software_do_not_count(platform: ScriptedPlatform, tmp_path: Path) -> None:
    """The note gives this reason rather than the lack of a measurement."""
    demand = tmp_path / "demand.csv"
    demand.write_text("function,rps\nshop.f,1000\n")
    point = {"batch": 1, "throughput": 9.0, "p50_ms": 1.0, "p95_ms": 1.0, "samples": 9}
    known = {"gpu": "T4", "slice": "whole", "source": "measured", "software": True, "points": [point]}
    told = {"version": "shop.f@v1", "version_id": "ver_1", "curves": [known], "slices": [], "methods": []}
    platform.will("GET", "/v1/functions/shop.f/curves", answer(told))
    platform.will("GET", "/v1/prices", answer(prices("2.5")))

    done = plan("--demand", str(demand), "--known", PILOTLIGHT_URL=platform.url, PILOTLIGHT_API_KEY=KEY)

    assert done.returncode == 1
    assert "shop.f: it was measured on GPUs in software only" in done.stderr


def test_functions_with_points_are_not_requested(tmp_path: Path) -> None:
    """Points count in either file, and unreadable files are left to the planner."""
    (tmp_path / "demand.csv").write_text("function,rps,gpu,batch,latency_ms\na,1,T4,8,10\nb,1,,,\nc,1,,,\n")
    (tmp_path / "curves.csv").write_text("function,gpu,batch,latency_ms\nb,T4,8,10\n")

    tables = [tmp_path / name for name in ("demand.csv", "curves.csv", "nothing.csv")]

    assert unmeasured(tables) == ["c"]
