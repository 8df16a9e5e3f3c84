"""The Helm chart says what the manifests say, and lets operators set what they may."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.infra.charts import LINT, ChartRefusal, helm, released, releases, without_digests
from tests.infra.manifests import KUSTOMIZE, Manifest, rendered
from tests.infra.pages import block
from tools.chart import CHART
from tools.chart.chart_files import chart_files
from tools.chart.chart_templates import Key, by_key, overlay_objects, unhashed
from tools.chart.chart_values import VALUES

PAGE = "kubernetes.md"
WORKLOADS = ("StatefulSet", "Deployment", "DaemonSet")


def test_the_chart_is_made_of_the_manifests() -> None:
    """`python -m tools.chart` would change nothing."""
    there = {str(path.relative_to(CHART)): path.read_text() for path in CHART.rglob("*") if path.is_file()}
    assert there == chart_files()


@pytest.mark.parametrize("name", ["gpu", "cpu"])
def test_it_renders_what_kubectl_renders(name: str) -> None:
    """Object by object, without a word of the operator's; namespaces are made before."""
    assert without_digests(released(gpu=name == "gpu")) == overlay_objects(name)


def test_it_monitors_as_the_component_does() -> None:
    assert without_digests(released(monitoring=True)) == overlay_objects("gpu") | overlay_objects("monitoring")


def test_helm_finds_no_fault() -> None:
    """But that there is no icon."""
    found = helm(LINT)
    assert found["errors"] == []
    assert [each["error"] for each in found["messages"]] == ["icon is recommended"]


def test_values_of_the_page_are_its_kustomization(tmp_path: Path) -> None:
    """Whichever of both an operator takes, the same arrives."""
    own = block(PAGE, "kustomization.yaml")
    place = os.path.relpath(KUSTOMIZE, tmp_path.resolve())
    (tmp_path / "kustomization.yaml").write_text(own.replace("pilotlight/infra/kustomize", place))
    values = yaml.safe_load(block(PAGE, "values.yaml"))

    assert without_digests(released(**values)) == by_key(unhashed(rendered(tmp_path)))


def test_a_claim_with_known_vulnerabilities_is_as_the_component_has_it(tmp_path: Path) -> None:
    """A volume of gateways and duties in the place of an empty one, and the file's name in the map."""
    place = os.path.relpath(KUSTOMIZE, tmp_path.resolve())
    lines = [f"resources: [{place}/overlays/cpu]", f"components: [{place}/components/vulnerabilities]"]
    (tmp_path / "kustomization.yaml").write_text("\n".join(lines))
    found = by_key(unhashed(rendered(tmp_path)))
    release = without_digests(released(gpu=False, osvFile="/var/lib/osv/all.zip", osvClaim="pilotlight-osv"))

    for objects in (found, release):
        for each in objects.values():
            volumes = each.get("spec", {}).get("template", {}).get("spec", {}).get("volumes", [])
            volumes.sort(key=lambda volume: str(volume["name"]))  # a patch puts its own first
    assert release == found
    assert sum("pilotlight-osv" in str(each) for each in found.values()) == 2


def given(name: str) -> Any:
    """Some value of the right type that is not the default."""
    chart: Any = yaml.safe_load((CHART / "values.yaml").read_text())
    for key in name.split("."):
        chart = chart[key]
    if isinstance(chart, int):
        return chart + 1
    return {"x": "y"} if isinstance(chart, dict) else [{"name": "x"}] if isinstance(chart, list) else "changed"


def nested(name: str, value: Any) -> dict[str, Any]:
    for key in reversed(name.split(".")):
        value = {key: value}
    return dict(value)


def test_each_value_arrives() -> None:
    """At all of its places, and changes no other object but pods that are told of a map."""
    before, *afterwards = releases({}, *(nested(each.name, given(each.name)) for each in VALUES))
    for value, after in zip(VALUES, afterwards, strict=True):
        places = {(place.kind, place.object_name) for place in value.places}
        changed = {(key[0], key[2]) for key, each in after.items() if each != before[key]}
        told = {each for each in changed - places if each[0] in WORKLOADS}
        assert after.keys() == before.keys()
        assert changed == places | told, value.name
        assert bool(told) is any(kind == "ConfigMap" for kind, _ in places), value.name


def test_a_map_that_changes_starts_who_reads_it_anew() -> None:
    """And nobody else."""
    before, after = releases({}, {"region": "eu"})
    told = {key[2] for key, each in after.items() if each != before[key] and key[0] in WORKLOADS}
    assert told == {"pilotlight-gateway", "pilotlight-duties", "pilotlight-controller", "pilotlight-dashboard"}
    others = [each for each in digests(before) if each[1] != "checksum/pilotlight"]
    assert all(digests(before)[each] == digests(after)[each] for each in others)


def digests(objects: dict[Key, Manifest]) -> dict[tuple[str, str], str]:
    """Of maps, by who is told of them."""
    return {
        (key[2], note): value
        for key, each in objects.items()
        if key[0] in WORKLOADS
        for note, value in each["spec"]["template"]["metadata"]["annotations"].items()
    }


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"blobURL": "s3://x"}, "blobURL"),
        ({"gateway": {"replica": 3}}, "replica"),
        ({"gateway": {"replicas": "3"}}, "integer"),
    ],
)
def test_a_value_that_is_written_wrong_is_refused(values: dict[str, Any], says: str) -> None:
    """By its name, and not passed over."""
    with pytest.raises(ChartRefusal, match=says):
        released(**values)


def test_large_numbers_stay_as_they_are() -> None:
    """Helm reads numbers as floating-point ones, which would be written with an exponent."""
    found = released(agent={"reserveMemory": 12_345_678})
    assert found["ConfigMap", "pilotlight-nodes", "pilotlight-agent"]["data"]["reserve-memory"] == "12345678"


def test_every_value_says_what_it_is() -> None:
    text = (CHART / "values.yaml").read_text()
    for each in VALUES:
        says, key = re.escape(each.says), each.name.rpartition(".")[2]
        assert re.search(rf"^( *)# {says}\n\1{key}:", text, re.MULTILINE), each.name
