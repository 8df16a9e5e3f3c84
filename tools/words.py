"""Hold the names of the code to the glossary, `docs/design/words.md`: `python -m tools.words`.

Five rules, over the product (the packages that are installed, not tests, tools, benchmarks and examples):

class     A public class or type alias at the top of a module has its name to itself in the whole product. Aliases in
          `pilotlight.cli` declare a command's parameters and do not count.
module    No module is called something that means nothing outside its room (GENERIC) or only to whoever wrote it
          (PRIVATE). Within a package no two modules have one name, but for those in RESOURCES, which are named after
          the resource that they serve, as the module that it comes from may be.
verb      No function begins with a word of VAGUE_VERBS. A public function that returns nothing is told what to do or
          what has happened: its name begins with a word of VERBS, or says the event, as `on_credit`, `call_ended` and
          `homes_changed` do.
concept   What has one name has no other: no field and no parameter of the types in CONCEPTS bears a name from there.
          The SDK's parameters are words that tenants know, and do not count.
glossary  A word has one row, `| word | meaning | in the code |`, and what its last cell names in backticks is there: a
          class, type, function or constant at the top of some module.

What is allowed nevertheless is named in ALLOWED with its reason; an entry that is no longer needed fails too.
"""

# ruff: noqa: T201 - it is a command; printing is what it does

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.syntax import inner, parsed
from tools.vocabulary import CONCEPTS, EVENTS, GENERIC, PRIVATE, RESOURCES, VAGUE_VERBS, VERBS

PRODUCT = ("core", "placement", "engine", "runtime", "autoscaler", "gateway", "sdk", "supervisor")
PARAMETERS = "pilotlight.cli"
TENANTS_WORDS = "pilotlight"
"""The package whose parameters are the tenants' words."""

ALLOWED: dict[str, str] = {
    "pilotlight_core.host.config._Parser.error": "argparse's name",
    "pilotlight_core.model.api.seeing.tally_api.HomeStats.ready": "containers that are ready, on average",
    "pilotlight_core.model.api.seeing.tally_api.StatsPoint.ready": "containers that are ready, on average",
    "pilotlight_core.model.api.seeing.tally_api.StatsRow.ready": "containers that are ready, on average",
    "pilotlight_gateway.metrics.call_recorder.CallRecorder.chunks": "the event of `Origin.chunks`: so many have come",
    "pilotlight_gateway.http.server.BoundedProtocol.timeout_keep_alive_handler": "uvicorn's name",
    "pilotlight_gateway.http.quiet_server.QuietServer.main_loop": "uvicorn's name",
    "pilotlight_gateway.http.quiet_server.QuietServer.shutdown": "uvicorn's name",
    "pilotlight_gateway.http.quiet_server.QuietServer.startup": "uvicorn's name",
    "pilotlight_gateway.cluster.router.Router.to_origin": "the other direction of `to_home`, which returns something",
    "pilotlight_gateway.cluster.router.ShardRouter.to_origin": "it implements `Router.to_origin`",
}
"""`module.name` as the tool prints it -> why it reads better so."""

ROW = re.compile(r"\|([^|]+)\|([^|]+)\|([^|]+)\|\s*")
NAMED = re.compile(r"`([^`]+)`")
CAMEL = re.compile(r"[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*")
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, kw_only=True)
class Module:
    """One module of the product, by its dotted name."""

    name: str
    tree: ast.Module

    @property
    def package(self) -> str:
        """The distribution's package that it belongs to."""
        return self.name.partition(".")[0]

    @property
    def last(self) -> str:
        """Its name without its rooms."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What is wrong with a name, and what to use instead."""

    where: str
    """`module.name`, as ALLOWED has it."""
    sentence: str

    def __str__(self) -> str:
        return f"{self.where}: {self.sentence}"


def read(root: Path) -> list[Module]:
    """Every module below the product's folders, but for packages' `__init__` and `__main__`."""
    found = []
    for folder in PRODUCT:
        for path in sorted((root / folder).rglob("*.py")):
            name = ".".join(path.relative_to(root / folder).with_suffix("").parts)
            if not name.endswith(("__init__", "__main__")):
                found.append(Module(name=name, tree=parsed(path)))
    return found


# -- classes -----------------------------------------------------------------------------------------------------------


def public_names(module: Module) -> Iterator[str]:
    """The public classes and type aliases that a module defines at its top."""
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name
        elif isinstance(node, ast.Assign) and not module.name.startswith(PARAMETERS):
            for target in node.targets:
                if isinstance(target, ast.Name) and CAMEL.fullmatch(target.id):
                    yield target.id


def class_faults(modules: Iterable[Module]) -> Iterator[Fault]:
    """Each place of a class's or alias's name that has several."""
    places: dict[str, list[str]] = defaultdict(list)
    for module in modules:
        for name in public_names(module):
            places[name].append(module.name)
    for name, where in sorted(places.items()):
        for each in where if len(where) > 1 else ():
            others = ", ".join(other for other in where if other != each) or "this module again"
            yield Fault(where=f"{each}.{name}", sentence=f"{others} has a {name} too: say of what, or what it is for")


# -- modules -----------------------------------------------------------------------------------------------------------


def module_faults(modules: Iterable[Module]) -> Iterator[Fault]:
    """Modules whose name says nothing outside their room, is a private word, or stands twice in a package."""
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for module in modules:
        if (better := GENERIC.get(module.last) or PRIVATE.get(module.last)) is not None:
            yield Fault(where=module.name, sentence=f"`{module.last}` {better}")
        if not module.name.startswith(RESOURCES):
            places[module.package, module.last].append(module.name)
    for (_, last), where in sorted(places.items()):
        for each in where if len(where) > 1 else ():
            others = ", ".join(other for other in where if other != each)
            yield Fault(where=each, sentence=f"{others} is called `{last}` too: say of what")


# -- functions ---------------------------------------------------------------------------------------------------------


def functions(node: ast.AST, prefix: str, *, nested: bool = False) -> Iterator[tuple[str, ast.AST, bool]]:
    """Every function below `node`: its name with its classes', itself, and whether it stands within another one."""
    for child in inner(node):
        if isinstance(child, FUNCTION):
            yield f"{prefix}{child.name}", child, nested
            yield from functions(child, f"{prefix}{child.name}.", nested=True)
        elif isinstance(child, ast.ClassDef):
            yield from functions(child, f"{prefix}{child.name}.", nested=nested)
        else:
            yield from functions(child, prefix, nested=nested)


def is_command(node: ast.AST) -> bool:
    """Whether a function is called for what it does: it returns nothing, and is no property or overload."""
    if not isinstance(node, FUNCTION) or node.returns is None:
        return False
    decorators = " ".join(map(ast.unparse, node.decorator_list))
    return ast.unparse(node.returns) in ("None", "NoReturn") and not re.search("property|setter|overload", decorators)


def is_event(words: list[str]) -> bool:
    """Whether a name says what has happened: `on_credit`, `call_ended`, `passed_over`."""
    return words[0] == "on" or any(word.endswith("ed") or word in EVENTS for word in (words[0], words[-1]))


def verb_faults(module: Module) -> Iterator[Fault]:
    """Functions with a verb that says too little, and commands that begin with no verb."""
    for name, node, nested in functions(module.tree, f"{module.name}."):
        last = name.rpartition(".")[2]
        words = last.strip("_").split("_")
        if last.startswith("__") or not last.islower() or last == "main":  # what others named: nvmlDeviceGetName
            continue
        if (better := VAGUE_VERBS.get(words[0])) is not None:
            yield Fault(where=name, sentence=f"`{words[0]}` says too little: {better}")
        elif nested or last.startswith("_") or module.name.startswith(PARAMETERS) or not is_command(node):
            continue
        elif words[0] not in VERBS and not is_event(words):
            yield Fault(where=name, sentence=f"it returns nothing, and `{words[0]}` is no verb of tools/vocabulary.py")


# -- concepts ----------------------------------------------------------------------------------------------------------


def annotated(node: ast.AST, prefix: str) -> Iterator[tuple[str, str, str]]:
    """Every annotated field and parameter below `node`: where, its name, and its type without `| None`."""
    for child in inner(node):
        below = f"{prefix}{child.name}." if isinstance(child, ast.ClassDef | FUNCTION) else prefix
        if isinstance(child, FUNCTION):
            arguments = child.args
            for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                if each.annotation is not None:
                    yield f"{prefix}{child.name}({each.arg})", each.arg, ast.unparse(each.annotation)
        elif isinstance(child, ast.AnnAssign):
            target = child.target
            name = target.id if isinstance(target, ast.Name) else getattr(target, "attr", "")
            yield f"{prefix}{name}", name, ast.unparse(child.annotation)
        yield from annotated(child, below)


def concept_faults(module: Module) -> Iterator[Fault]:
    """Fields and parameters with a second name for what has one."""
    if module.package == TENANTS_WORDS:
        return
    for where, name, kind in annotated(module.tree, f"{module.name}."):
        better = CONCEPTS.get((name.lstrip("_"), kind.removesuffix(" | None")))
        if better is not None:
            yield Fault(where=where, sentence=f"`{name}: {kind}` is {better}")


# -- the glossary ------------------------------------------------------------------------------------------------------


def defined(module: Module) -> Iterator[str]:
    """Everything that a module defines at its top."""
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef | FUNCTION):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    yield target.id


def glossary_faults(text: str, modules: Iterable[Module]) -> Iterator[Fault]:
    """Words that have two rows, and rows that name what is not there, or nothing."""
    there = {name for module in modules for name in defined(module)}
    seen: set[str] = set()
    for found in filter(None, map(ROW.fullmatch, text.splitlines())):
        word, named = found[1].strip(), NAMED.findall(found[3])
        if word == "word" or set(word) <= {"-"}:
            continue
        if word in seen:
            yield Fault(where=word, sentence="it has two rows in docs/design/words.md")
        seen.add(word)
        if not named:
            yield Fault(where=word, sentence="its row in docs/design/words.md names nothing in the code")
        for name in named:
            if name not in there:
                yield Fault(where=word, sentence=f"its row in docs/design/words.md names `{name}`, which is not there")


def faults(modules: list[Module], glossary: str, allowed: dict[str, str]) -> list[str]:
    """A sentence for each name that is wrong and not in `allowed`, and for each entry there that is not needed."""
    found = [*class_faults(modules), *module_faults(modules), *glossary_faults(glossary, modules)]
    for module in modules:
        found += [*verb_faults(module), *concept_faults(module)]
    stale = sorted(allowed.keys() - {fault.where for fault in found})
    return [str(fault) for fault in found if fault.where not in allowed] + [
        f"{where}: allowed, but nothing is wrong with it; remove it from ALLOWED" for where in stale
    ]


def main() -> int:
    """Print how many names there are and what is wrong with some; 1 if anything is."""
    root = Path(__file__).parents[1]
    modules = read(root)
    names = sum(1 for module in modules for _ in public_names(module))
    print(f"words      {len(modules)} modules, {names} public classes and types")
    wrong = faults(modules, (root / "docs" / "design" / "words.md").read_text(), ALLOWED)
    for sentence in wrong:
        print(f"error      {sentence}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
