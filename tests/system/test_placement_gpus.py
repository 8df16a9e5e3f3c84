"""The platform over GPUs that exist in software only: cut, switched, shared, explained, drawn and metered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pilotlight_core.model.units import WHOLE_DEVICE
from tests.system.support.ledger import check_devices_are_accounted_whole
from tests.system.support.ledger import rows as rows_of
from tests.system.support.platform import Platform, make_tenant
from tests.system.support.platform import platform as run_platform
from tests.waiting import wait_until

SOURCE = """\
import pilotlight

app = pilotlight.App("sliced")


@app.gpu_function(gpu="H100", vram="8GiB", memory="256MiB", scaledown_window=60)
def small(text: str) -> str:
    return text.upper()


@app.gpu_function(gpu="H100", vram="36GiB", memory="256MiB", scaledown_window=60)
def half(text: str) -> str:
    return text.lower()


@app.gpu_function(gpu="H100", vram="36GiB", memory="256MiB", scaledown_window=60)
def second(text: str) -> str:
    return text.title()


@app.gpu_function(gpu="T4", memory="256MiB", scaledown_window=60)
def whole(text: str) -> str:
    return text[::-1]


@app.gpu_function(gpu="A10:2", memory="128MiB", scaledown_window=60)
def pair(text: str) -> str:
    return text.swapcase()


@app.gpu_function(gpu="H200", vram="8GiB", memory="128MiB", scaledown_window=60)
def part(text: str) -> str:
    return text + text


@app.gpu_function(gpu="H200", memory="128MiB", scaledown_window=60)
def entire(text: str) -> str:
    return text.strip()


@app.gpu_function(gpu="L4", vram="5GiB", memory="128MiB", scaledown_window=60)
def quarter(text: str) -> str:
    return text * 2


@app.gpu_function(gpu="L4", vram="10GiB", memory="128MiB", scaledown_window=60)
def rest(text: str) -> str:
    return text * 3
"""
OTHERS = """\
import pilotlight

app = pilotlight.App("others")


@app.gpu_function(gpu="L4", vram="2GiB", memory="128MiB", scaledown_window=60)
def small(text: str) -> str:
    return text
"""
LARGE = SOURCE.replace("36GiB", "90GiB").replace('"sliced"', '"large"')


@pytest.fixture(scope="module")
def gpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A node with an H100 in MIG mode, one that is not, and others that are not."""
    folder = tmp_path_factory.mktemp("gpus")
    options = ("--cpu-slots", "2", "--blanks", "1", "--fake-gpus", "1xH100:mig,1xH100,1xT4,1xL4:share,2xA10,1xH200")
    with run_platform(folder, *options) as running:
        source = folder / "app" / "app.py"
        source.parent.mkdir()
        source.write_text(SOURCE)
        running.deploy(source)
        yield running


def rows(platform: Platform) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = platform.http.get("/v1/fleet").json()["devices"]
    return [row for row in found if row["type"] != "CPU"]


def used_of(platform: Platform, gpu: str) -> list[tuple[bool, list[str]]]:
    """For each GPU of a type whether it is in MIG mode, and what of it is used."""
    devices = [row for row in rows(platform) if row["type"] == gpu]
    parts = [(row["mig"], [part["label"] for part in row["segments"] if part["use"] == "used"]) for row in devices]
    return sorted((mig, sorted(labels)) for mig, labels in parts)


def blanks_of(platform: Platform, gpu: str) -> dict[str, str]:
    """Slice -> base environment of the blank on it, of a type of GPU."""
    (node,) = platform.http.get("/v1/nodes").json()["nodes"]
    return {part["id"]: part["blank"] for part in node["slices"] if part["gpu_type"] == gpu and part.get("blank")}


def test_a_call_on_a_free_gpu_finds_a_blank_there(gpus: Platform) -> None:
    """It was kept for a function that nobody has called yet, at the operator's cost, and is used once."""
    (t4,) = wait_until(lambda: blanks_of(gpus, "T4"), "the T4 has its blank")

    answer = gpus.answer("sliced.whole", text="xy")

    assert answer["output"] == "yx"
    assert "blank" in answer["cold_start"]
    assert "sandbox" not in answer["cold_start"]
    assert gpus.container_of("sliced", "whole")["slice"] == t4
    wait_until(lambda: not blanks_of(gpus, "T4"), "it is used up")
    query = "SELECT state, tenant, SUM(ns) FROM lease_line WHERE slice = ? AND state = 'blank' GROUP BY state, tenant"
    (paid,) = wait_until(lambda: rows_of(gpus, query, t4), "it is in the ledger")
    assert paid[1] == ""
    assert paid[2] > 0


def test_functions_run_on_instances_that_are_cut_for_them(gpus: Platform) -> None:
    """Each on a part of a GPU; the fleet shows whose is what."""
    assert gpus.output("sliced.small", text="a") == "A"
    assert gpus.output("sliced.half", text="B") == "b"
    assert gpus.output("sliced.whole", text="xy") == "yx"

    by_function = {name: gpus.container_of("sliced", name)["id"] for name in ("small", "half", "whole")}

    def labels() -> dict[str, str]:
        parts = [part for row in rows(gpus) for part in row["segments"] if part["use"] == "used"]
        return {part["container"]: part["label"] for part in parts}

    used = wait_until(lambda: (seen := labels()).keys() >= set(by_function.values()) and seen, "the fleet shows them")
    assert used[by_function["small"]] == "1g"
    assert used[by_function["half"]] == "3g"
    drawn = gpus.cli("fleet").stdout
    assert "stranded" in drawn
    assert drawn.count("in software") == 7
    assert f"{by_function['half']} (default)" in drawn


def test_an_idle_gpu_is_switched_to_mig_where_a_part_would_do(gpus: Platform) -> None:
    """The first has no place for a second half; nobody gets a whole one for it."""
    assert gpus.output("sliced.half", text="B") == "b"
    assert gpus.output("sliced.small", text="a") == "A"
    assert gpus.output("sliced.second", text="ab cd") == "Ab Cd"

    wait_until(lambda: used_of(gpus, "H100-80GB") == [(True, ["1g", "3g"]), (True, ["3g"])], "the fleet shows them so")


def test_the_explanation_names_the_cut(gpus: Platform) -> None:
    """With the rule that decided and what was ruled out."""
    assert gpus.output("sliced.small", text="a") == "A"
    container = gpus.container_of("sliced", "small")["id"]

    told = gpus.cli("placement", "explain", container).stdout

    assert " on 1g at " in told.splitlines()[0]
    assert "of other types" in told
    why_not = gpus.cli("placement", "explain", container, "--why-not", "local").stdout
    assert "local was chosen: 1g at " in why_not


def test_a_function_is_measured_on_one_kind_of_slice(gpus: Platform) -> None:
    """On the MIG instance that was asked for; that the GPU is software is said, and kept."""
    done = gpus.cli("profile", "sliced.small", "text=a", "--slice", "1g", "--seconds", "0.1", "--json")

    assert "1g.10gb of H100-80GB (a GPU in software" in done.stderr
    (curve,) = json.loads(done.stdout)["curves"]
    assert (curve["gpu"], curve["slice"], curve["software"]) == ("H100-80GB", "1g", True)
    assert "on 1g of H100-80GB: " in gpus.cli("placement", "plan", "sliced.small").stdout


def test_an_idle_gpu_becomes_what_is_needed_next(gpus: Platform) -> None:
    """Cut to measure a kind of slice that nobody had; whole again for a call, which idle parts give way to."""
    done = gpus.cli("profile", "sliced.part", "text=a", "--slice", "1g", "--seconds", "0.1", "--json")
    (curve,) = json.loads(done.stdout)["curves"]
    assert (curve["gpu"], curve["slice"]) == ("H200", "1g")

    assert gpus.output("sliced.part", text="ab") == "abab"
    assert gpus.output("sliced.entire", text=" a ") == "a"

    wait_until(lambda: used_of(gpus, "H200") == [(True, ["7g"])], "the fleet shows it so")
    wait_until(lambda: not [each for each in gpus.containers("sliced") if each["function"] == "part"], "it has gone")


def test_what_no_slice_holds_is_refused_at_deploy(gpus: Platform, tmp_path: Path) -> None:
    """With the arithmetic before, and the largest slice in the refusal."""
    (tmp_path / "app.py").write_text(LARGE)

    told = gpus.refusal(tmp_path / "app.py")
    assert "half can never run here" in told
    assert "the largest slice that exists is" in told
    assert "GiB are missing" in told
    plan = gpus.cli("placement", "plan", f"{tmp_path / 'app.py'}::half", check=False)
    assert plan.returncode == 1
    assert "declared        90.00 GiB" in plan.stdout


def test_whatever_is_told_of_gpus_in_software_says_so(gpus: Platform) -> None:
    """Receipts, usage, containers and the fleet: nobody takes their figures for a GPU's."""
    answer = gpus.answer("sliced.whole", text="xy")
    assert answer["usage"]["price"] == "fake-t4"
    assert float(answer["usage"]["cost"]) > 0

    assert all(row["software"] and row["id"].startswith("FAKE-GPU-") for row in rows(gpus))
    assert gpus.container_of("sliced", "whole")["slice"].startswith("FAKE-GPU-")

    def billed() -> set[str]:
        lines = gpus.http.get("/v1/usage").json()["lines"]
        return {line["price"] for line in lines if line["function"] == "whole"}

    assert wait_until(billed, "the call is in the ledger") == {"fake-t4", "cpu_core", "memory_gib"}
    assert "fake-t4" in gpus.cli("usage", "--json").stdout


def test_one_container_has_two_gpus_and_pays_for_both(gpus: Platform) -> None:
    """Each is metered as the container's for the same time."""
    answer = gpus.answer("sliced.pair", text="aB")
    assert answer["output"] == "Ab"
    assert (answer["usage"]["ppm"], answer["usage"]["price"]) == (2 * WHOLE_DEVICE, "fake-a10")
    container = gpus.container_of("sliced", "pair")
    both = container["slice"].split("+")
    assert len(set(both)) == 2

    query = "SELECT device, SUM(ns) FROM lease_line WHERE container = ? AND state = 'busy' GROUP BY device"
    spent = wait_until(
        lambda: len(found := dict(rows_of(gpus, query, container["id"]))) == 2 and found, "both are in the ledger"
    )
    assert spent == dict.fromkeys(both, answer["usage"]["ns"])


def test_functions_of_one_tenant_share_a_gpu_and_pay_for_their_parts(gpus: Platform, tmp_path: Path) -> None:
    """What is left of it is the operator's. Another tenant's function gets it only when they have given way."""
    quarter, rest = gpus.answer("sliced.quarter", text="a"), gpus.answer("sliced.rest", text="b")
    assert (quarter["output"], rest["output"]) == ("aa", "bbb")
    first, second = (gpus.container_of("sliced", name)["slice"] for name in ("quarter", "rest"))
    assert first.partition(":")[0] == second.partition(":")[0]
    assert "/1000~" in first
    ppm = [answer["usage"]["ppm"] for answer in (quarter, rest)]
    assert 0 < ppm[0] < ppm[1] < sum(ppm) < WHOLE_DEVICE
    assert quarter["usage"]["price"] == "fake-l4"

    key = make_tenant(gpus, "neighbour")
    (tmp_path / "app.py").write_text(OTHERS)
    gpus.cli("deploy", str(tmp_path / "app.py"), key=key)
    with gpus.as_holder_of(key) as neighbour:
        answer = neighbour.post("/v1/functions/others.small/calls", json={"input": {"text": "c"}})
    assert answer.json()["output"] == "c"

    query = "SELECT t0, t1, tenant FROM lease_line WHERE slice LIKE '%/1000~%' AND tenant != '' ORDER BY t0"
    wait_until(lambda: len({tenant for _, _, tenant in rows_of(gpus, query)}) == 2, "both tenants are in the ledger")
    shares = rows_of(gpus, query)
    gave_way = max(t1 for _, t1, tenant in shares if tenant != "neighbour")
    assert gave_way <= min(t0 for t0, _, tenant in shares if tenant == "neighbour")
    check_devices_are_accounted_whole(gpus)
