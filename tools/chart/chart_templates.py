"""The manifests as templates: what kubectl renders, with marks where values stand, then with expressions there."""

from __future__ import annotations

import copy
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tools.chart import ROOT
from tools.chart.chart_values import VALUES, ChartValue, Place

KUSTOMIZE = ROOT / "infra" / "kustomize"
HASH = re.compile(r"-[a-z0-9]{10}$")
COMPONENT = "app.kubernetes.io/component"
MARK = re.compile(r"^( *(?:- )*)([\w./-]+): __(\w+):([\w.-]+)__$")
FORMS = {
    "text": "{{{{ .Values.{name} | quote }}}}",
    "number": "{{{{ int64 .Values.{name} }}}}",
    "quoted": "{{{{ int64 .Values.{name} | quote }}}}",
    "block": "{{{{- toYaml .Values.{name} | nindent {margin} }}}}",
    "added": "{{{{ . | quote }}}}",
    "added_block": "{{{{- toYaml . | nindent {margin} }}}}",
    "claim": (
        "{{{{- with .Values.{name} }}}}\n"
        "persistentVolumeClaim: {{ claimName: {{{{ . | quote }}}}, readOnly: true }}\n"
        "{{{{- else }}}}\nemptyDir: {{ sizeLimit: 1Mi }}\n{{{{- end }}}}"
    ),
    "checksum": '{{{{ include (print .Template.BasePath "/{file}") . | sha256sum }}}}',
}
"""What stands in a template, by the form of a value."""
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
FILES = {"pilotlight-gateways": "gateway", "pilotlight-dashboards": "dashboard"}
"""Of objects that are not in the file of their own name."""
Manifest = dict[str, Any]
Key = tuple[str, str, str]
"""Of an object: kind, namespace, name."""
Objects = Mapping[Key, Manifest]


class UnfitManifests(Exception):
    """The manifests have something of which no template can be made."""


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]  # yaml has no types
    """Texts of several lines as they are, and lists indented as in the manifests."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002 - yaml's signature
        super().increase_indent(flow, indentless=False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - no anchors: files are cut apart
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def overlay_objects(name: str) -> dict[Key, Manifest]:
    """What kubectl renders of an overlay, or a component, with maps by the names that they have without their hash."""
    folder = next(each / name for each in (KUSTOMIZE / "overlays", KUSTOMIZE / "components") if (each / name).exists())
    command = [str(Path(sys.executable).parent / "kubectl"), "kustomize", str(folder)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return by_key(unhashed(yaml.load_all(said, LOADER)))


def by_key(objects: Iterable[Manifest]) -> dict[Key, Manifest]:
    """By kind, namespace and name; without namespaces, which must be there before their secrets."""
    return {
        (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each
        for each in objects
        if each["kind"] != "Namespace"
    }


def unhashed(objects: Iterable[Manifest]) -> list[Manifest]:
    """With plain names of maps, where they are defined and where they are referred to."""
    found = list(objects)
    plain = {
        each["metadata"]["name"]: HASH.sub("", each["metadata"]["name"])
        for each in found
        if each["kind"] == "ConfigMap"
    }
    return [_renamed(each, plain) for each in found]


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, dict):
        return {key: _renamed(inside, names) for key, inside in value.items()}
    return [_renamed(inside, names) for inside in value] if isinstance(value, list) else value


def step_into(value: Any, key: str) -> Any:
    """What is under a key, at an index, or called so in a list."""
    if isinstance(value, dict):
        return value[key]
    return value[int(key)] if key.isdigit() else next(each for each in value if each["name"] == key)


def found_at(objects: Iterable[Manifest], place: Place) -> tuple[Any, str]:
    """What holds the value of a place, and by which key."""
    (owner,) = [each for each in objects if (each["kind"], each["metadata"]["name"]) == (place.kind, place.object_name)]
    *way, last = place.path.split("/")
    holder: Any = owner
    for key in way:
        holder = step_into(holder, key)
    return holder, last


def default_of(objects: Iterable[Manifest], value: ChartValue) -> Any:
    """What manifests say; the same at all places. A number in quotes is a number to who sets it.

    Raises:
        UnfitManifests: they say different things at its places.
    """
    if value.addition is not None:
        return value.addition()
    known = list(objects)
    said = [step_into(*found_at(known, place)) for place in value.places]
    if any(each != said[0] for each in said):
        raise UnfitManifests(f"{value.name}: {said}")
    return int(said[0]) if isinstance(said[0], str) and said[0].isdigit() else said[0]


def templates(cpu: Objects, gpu: Objects, extra: Objects) -> dict[str, str]:
    """The files below `templates/`, by name; `extra` is there for who monitors.

    Raises:
        UnfitManifests: the overlays have different objects, or texts that Helm would read as its own.
    """
    own, other = marked(gpu), marked(cpu)
    if own.keys() != other.keys():
        raise UnfitManifests(f"only in one overlay: {own.keys() ^ other.keys()}")
    found: dict[str, list[str]] = {}
    for key, each in own.items():
        text = template(each)
        if other[key] != each:
            text = f"{{{{- if .Values.gpu }}}}\n{text}{{{{- else }}}}\n{template(other[key])}{{{{- end }}}}\n"
        found.setdefault(_file_of(each), []).append(text)
    texts = {name: "---\n".join(parts) for name, parts in found.items()}
    monitors = "---\n".join(template(each) for each in extra.values())
    return texts | {"monitoring.yaml": f"{{{{- if .Values.monitoring }}}}\n{monitors}{{{{- end }}}}\n"}


def marked(objects: Objects) -> dict[Key, Manifest]:
    """With a mark at each place of a value, and one for each map that a pod reads, which is to be replaced with it."""
    made = copy.deepcopy(dict(objects))
    for value in VALUES:
        for place in value.places:
            holder, last = found_at(made.values(), place)
            if value.is_claim:
                del holder[last]  # and a claim, or what stood there, behind the volume's name
                holder["persistentVolumeClaim"] = f"__claim:{value.name}__"
                continue
            form = _form(step_into(holder, last)) if value.addition is None else _addition_form(value.addition)
            holder[last] = f"__{form}:{value.name}__"
    maps = {name for kind, _, name in made if kind == "ConfigMap"}
    for each in made.values():
        if "template" in each.get("spec", {}):
            read = sorted(maps & set(_maps_read(each["spec"]["template"])))
            notes = {f"checksum/{name}": f"__checksum:{name}__" for name in read}
            each["spec"]["template"]["metadata"]["annotations"] = notes
    return made


def _form(said: Any) -> str:
    if isinstance(said, str):
        return "quoted" if said.isdigit() else "text"
    return "number" if isinstance(said, int) else "block"


def _addition_form(kind: type) -> str:
    return "added" if kind is str else "added_block"


def _maps_read(value: Any) -> Iterator[str]:
    """The names of maps in a template of pods: as volumes, or as variables."""
    if isinstance(value, dict):
        for key in value.keys() & {"configMap", "configMapKeyRef"}:
            yield value[key]["name"]
    if isinstance(value, dict | list):
        for inside in value.values() if isinstance(value, dict) else value:
            yield from _maps_read(inside)


def template(marked_object: Manifest) -> str:
    """One object as a template."""
    text = yaml.dump(marked_object, Dumper=_Dumper, sort_keys=False, width=1000, allow_unicode=True)
    if "{{" in text:
        raise UnfitManifests(f"{marked_object['metadata']['name']} has {{{{ in it")
    return "".join(_line(line) for line in text.splitlines(keepends=True))


def _line(line: str) -> str:
    """A line with an expression in place of its mark."""
    found = MARK.match(line)
    if found is None:
        return line
    indent, key, form, name = found.groups()
    margin = len(indent) + 2
    file = map_file(name)
    said = FORMS[form].format(name=name, margin=margin, file=file)
    if form == "claim":
        return "".join(f"{indent}{each}\n" for each in said.splitlines())
    if not form.startswith("added"):
        return f"{indent}{key}: {said}\n"
    return f"{indent}{{{{- with .Values.{name} }}}}\n{indent}{key}: {said}\n{indent}{{{{- end }}}}\n"


def map_file(name: str) -> str:
    """Of a map, which has one of its own: its digest is in the annotations of pods that read it."""
    return f"map-{name.removeprefix('pilotlight-')}.yaml"


def _file_of(each: Manifest) -> str:
    name, kind = each["metadata"]["name"], each["kind"]
    if kind == "ConfigMap":
        return map_file(name)
    return "network.yaml" if kind == "NetworkPolicy" else f"{FILES.get(name, name.removeprefix('pilotlight-'))}.yaml"
