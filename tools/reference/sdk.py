"""The reference of the SDK, from its public names and their docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

import pilotlight
from pilotlight import verbs
from pilotlight.definitions.options import Options
from tools.reference.docstrings import code, field_docs, markdown, own_doc, table

HEAD = """# SDK

What `from pilotlight import …` has. How it is used: [the guide](../guide/index.md).
"""
GROUPS: dict[str, tuple[str, ...]] = {
    "Definitions": (
        "App", "gpu_function", "enter", "exit", "park", "unpark", "check", "drain", "method", "preprocess",
        "postprocess", "batched", "concurrent", "count_units", "current_call", "current_calls", "checkpoint", "resume",
        "weights",
    ),
    "Values of options": (
        "SLO", "Artifact", "Example", "Cron", "Period", "Warm", "Spread", "Model", "Measured", "Resumable",
        "Torch", "VLLM", "Sim", "Fallback",
        "Upstream", "UpstreamBatch",
    ),
    "Calls": ("Function", "Cls", "Obj", "EngineModel", "FunctionCall", "Client", "call_id", "cancel"),
    "Errors": (
        "PilotlightError", "BadInput", "Misuse", "OptionError", "Unauthenticated", "Forbidden", "NestedRefused",
        "NotFound", "UnknownFunction", "UnknownCall", "Conflict", "TooMuch", "Unavailable", "DeadlineExceeded",
        "Cancelled", "CallFailed", "FunctionRaised", "ExecutionTimeout", "LoadFailed", "BadOutput", "ContainerDied",
        "Preempted",
    ),
}  # fmt: skip
"""Every public name, in the order of the page."""
VERBS = {"local": verbs.Local, "remote": verbs.Remote, "remote_gen": verbs.RemoteGen, "map": verbs.Map,
         "starmap": verbs.StarMap, "spawn": verbs.Spawn}  # fmt: skip
"""Properties of a Function that are called -> what is called."""
MADE_ELSEWHERE = {"Function", "Cls", "Obj", "EngineModel"}
"""Classes of which decorators and calls make the objects."""
OWN_USE = {"App.register", "Cls.find_method", "FunctionCall.as_hinted", "Client.durable_map"}
"""What modules of the SDK call of each other."""


WIDTH = 88
"""Of a signature on one line."""


class Written:
    """An annotation that is shown as it is written in the code, without quotes."""

    def __init__(self, annotation: Any) -> None:
        self.text = _text(annotation)

    def __repr__(self) -> str:
        return self.text


def sdk_page() -> str:
    """The page."""
    parts = [HEAD]
    for group, names in GROUPS.items():
        parts.append(f"## {group}")
        if group == "Errors":
            parts.append(_errors(names))
            continue
        for name in names:
            parts += _entry(name, getattr(pilotlight, name))
    return "\n\n".join(part for part in parts if part) + "\n"


def _entry(name: str, thing: Any) -> Iterator[str]:
    yield f"### {name}"
    if isinstance(thing, type) and issubclass(thing, msgspec.Struct):
        yield markdown(own_doc(thing))
        yield _fields(thing)
    elif isinstance(thing, type):
        if name not in MADE_ELSEWHERE and "__init__" in vars(thing):
            yield _signature(name, vars(thing)["__init__"])
        yield markdown(own_doc(thing))
        for member, value in vars(thing).items():
            if not member.startswith("_") and f"{name}.{member}" not in OWN_USE:
                yield from _member(name, member, value)
    else:
        called = thing if inspect.isfunction(thing) else type(thing).__call__
        yield _signature(name, called)
        yield markdown(own_doc(called), _types(name, called))


def _member(owner: str, name: str, value: Any) -> Iterator[str]:
    plain = value.__func__ if isinstance(value, classmethod | staticmethod) else value
    if not isinstance(plain, property) and not inspect.isfunction(plain):
        return
    doc = own_doc(plain)
    if not doc:
        return
    yield f"#### {owner}.{name}"
    if name in VERBS and isinstance(plain, property):
        called = VERBS[name].__call__
        yield _signature(name, called)
        yield markdown(doc)
        yield markdown(own_doc(called), _types(name, called))
        yield f"`{name}.aio(…)`: {_lower(own_doc(vars(VERBS[name])['aio']))}"
    elif isinstance(plain, property):
        yield markdown(doc)
    else:
        yield _signature(name, plain)
        yield markdown(doc, _types(name, plain))


def _signature(name: str, called: Callable[..., Any]) -> str:
    if name == "gpu_function":
        return "```\ngpu_function(**options)\n```"
    signature = inspect.signature(called)
    kept = [
        p.replace(annotation=Written(p.annotation)) if p.annotation is not p.empty else p
        for key, p in signature.parameters.items()
        if key not in ("self", "cls", "unknown", "target")
    ]
    returned = signature.return_annotation
    answer = "" if returned in (signature.empty, None, "None") else f" -> {_text(returned)}"
    shown = signature.replace(parameters=kept, return_annotation=signature.empty)
    return f"```\n{_wrapped(f'{name}{shown}')}{answer}\n```"


def _wrapped(text: str) -> str:
    """A long signature with a parameter a line."""
    if len(text) <= WIDTH:
        return text
    name, _, rest = text.partition("(")
    parts, depth = [""], 0
    for character in rest.removesuffix(")"):
        depth += (character in "[(") - (character in "])")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return f"{name}(\n" + "".join(f"    {part.strip()},\n" for part in parts) + ")"


def _types(name: str, called: Callable[..., Any]) -> dict[str, str]:
    if name == "gpu_function":
        return {option: _text(hint) for option, hint in Options.__annotations__.items()}
    return {key: _text(hint) for key, hint in getattr(called, "__annotations__", {}).items() if key != "return"}


def _text(hint: Any) -> str:
    text = str(getattr(hint, "__forward_arg__", hint))
    return text.replace("Sequence[", "list[").replace("Mapping[", "dict[").replace(" | ", " or ")


def _fields(kind: type[msgspec.Struct]) -> str:
    docs, hints = field_docs(kind), kind.__annotations__
    return table(
        ("field", "type", "default", "is"),
        [
            (
                code(field.name),
                code(_text(hints[field.name])),
                "required" if field.required else code(str(field.default)),
                docs.get(field.name, ""),
            )
            for field in msgspec.structs.fields(kind)
        ],
    )


def _errors(names: tuple[str, ...]) -> str:
    rows = []
    for name in names:
        kind = getattr(pilotlight, name)
        base = kind.__bases__[0].__name__
        under = code(base) if base in names else ""
        rows.append((code(name), under, code(kind.code), own_doc(kind).partition("\n\n")[0]))
    return table(("exception", "is a", "code", "means"), rows)


def _lower(text: str) -> str:
    first = text.partition("\n\n")[0]
    return first[:1].lower() + first[1:]
