"""`pilotlight deploy`."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from pilotlight.cli.command_app import command_app
from pilotlight.cli.confirm import confirmed
from pilotlight.cli.example_commands import call_line, curl_line
from pilotlight.cli.output import console, note, on_terminal, print_json, print_text, size
from pilotlight.cli.rollout_wish import BAKE, EVERY, STEPS, RolloutWish, serving_apps
from pilotlight.cli.session import ask, client
from pilotlight.definitions.errors import OptionError
from pilotlight.packing import (
    DeployTarget,
    find_target,
    load_apps,
    make_bundle,
    pack_artifacts,
    paths_of_artifacts,
)
from pilotlight.packing.deploys import Progress, deploy
from pilotlight.packing.folder_signing import FolderSigner, SigningWish, signatures_for
from pilotlight_core.model.api.call_api import DeployResponse
from pilotlight_core.model.errors import RemovesFunctions
from pilotlight_core.model.spec import FunctionSpec
from pilotlight_core.model.versions.artifacts import artifact_info

app = command_app()
Deployed = list[tuple[DeployResponse, dict[str, FunctionSpec]]]


@app.command(name="deploy")
def command(
    path: Annotated[str, typer.Argument(help="a file, a folder with an app.py, or a module")],
    message: Annotated[str, typer.Option("--message", "-m", help="what the deploy is for, in the app's history")] = "",
    prune: Annotated[
        bool, typer.Option("--prune", "--yes", "-y", help="remove functions that the file does not have; do not ask")
    ] = False,
    no_traffic: Annotated[
        bool, typer.Option("--no-traffic", help="register the versions, and leave what is deployed as it is")
    ] = False,
    retry: Annotated[bool, typer.Option("--retry", help="also versions that a rollout has rolled back")] = False,
    rollout: Annotated[
        bool, typer.Option("--rollout", help="give it the traffic by and by; it goes back if it is worse")
    ] = False,
    steps: Annotated[str, typer.Option(help="with --rollout: percent of the traffic, rising")] = STEPS,
    every: Annotated[str, typer.Option(help="with --rollout: the least time at a step")] = EVERY,
    bake: Annotated[str, typer.Option(help="with --rollout: how long the old version stays warm at the end")] = BAKE,
    pairs: Annotated[int, typer.Option(help="with --rollout: inputs that both versions run first", min=0)] = 300,
    wait: Annotated[
        bool, typer.Option("--wait", help="with --rollout: until it is over; exit code 3 unless it is promoted")
    ] = False,
    sign: Annotated[Path | None, typer.Option(help="sign code and artifacts with this private key of yours")] = None,
    signature: Annotated[
        list[str] | None, typer.Option(help="NAME=FILE: a signature of weights, by 'pilotlight trust sign'")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print what was deployed as JSON")] = False,
) -> None:
    """Deploy an app. All of its functions change at once, with the files beside them.

    Files named in .pilotlightignore (as in .gitignore) are left out. An unchanged version keeps its number. Functions
    of the app that the file does not have are removed, once you say so.

    \b
    pilotlight deploy examples/hello/app.py
    pilotlight deploy mypackage.app --message "a larger model"
    pilotlight deploy app.py --prune
    pilotlight deploy app.py --sign release.key
    pilotlight deploy app.py --no-traffic    # then: pilotlight call app.function@v8
    pilotlight deploy app.py --rollout --wait
    """
    began = time.monotonic()
    target = find_target(path, within=Path.cwd())
    signing = SigningWish(signer=None if sign is None else FolderSigner.load(sign), given=_named_files(signature))
    wish = RolloutWish(steps=steps, every=every, bake=bake, pairs=pairs, retry=retry, wait=wait) if rollout else None
    if wait and wish is None:
        raise OptionError("--wait waits for a rollout: add --rollout.", field="--wait")
    serving = serving_apps() if wish is not None else {}
    deployed = deploy_target(
        target, message=message, prune=prune, no_traffic=no_traffic, retry=retry, signing=signing, beside=serving
    )
    if wish is not None:
        wish.roll_out([response for response, _ in deployed], serving, as_json=as_json)
        return
    if as_json:
        print_json([response for response, _ in deployed])
        return
    for response, functions in deployed:
        _show(response, functions, time.monotonic() - began, no_traffic=no_traffic)


def _named_files(words: list[str] | None) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for word in words or ():
        name, equals, path = word.partition("=")
        if not (name and equals and path):
            raise OptionError(f"--signature {word!r}: expected NAME=FILE.", field="--signature")
        found[name] = Path(path)
    return found


def deploy_target(
    target: DeployTarget,
    *,
    message: str = "",
    prune: bool = False,
    no_traffic: bool = False,
    retry: bool = False,
    signing: SigningWish | None = None,
    beside: Collection[str] = (),
) -> Deployed:
    """Pack and deploy each app of a target; return the answers, each with its specs.

    `no_traffic`: register its versions only; `beside`: those of these apps. `retry`: also those that a rollout has
    rolled back.
    """
    apps = load_apps(target)
    bundle, platform = make_bundle(target, paths_of_artifacts(apps)), client().platform
    for name in bundle.private_keys:
        note(f"{name} is a private key, and stays here; '!{name}' in .pilotlightignore packs it")
    deployed = []
    for name, one in apps.items():
        artifacts = pack_artifacts(one.functions)
        sent = partial(
            deploy, platform, name, one.specs, bundle, artifacts, base=one.base, requirements=one.requirements,
            message=message, no_traffic=no_traffic or name in beside, retry=retry,
            signatures=signatures_for(bundle, artifacts, signing),
        )  # fmt: skip
        send = partial(_deploy, sent, name)
        if one.requirements:
            note(
                f"resolving what {name} requires: {', '.join(one.requirements[:5])}{' …' * (len(one.requirements) > 5)}"
            )
        try:
            response = send(prune=prune)
        except RemovesFunctions as error:
            if not confirmed(f"{error.detail} Remove them?"):
                raise
            response = send(prune=True)
        deployed.append((response, one.specs))
        for warning in response.warnings:
            note(f"warning: {warning}")
        for text in response.notes:
            note(text)
        for function, weights in artifacts.weights.items():
            note(f"{function} has the weights {', '.join(weights)}")
        for artifact in map(artifact_info, artifacts.entries):
            note(f"with {artifact.kind.value} {artifact.name}: {files_text(artifact.files)}, {size(artifact.size)}")
    note(f"packed {target.folder.name}: {files_text(len(bundle.files))}, {size(bundle.size)}")
    return deployed


def files_text(count: int) -> str:
    """Return `1 file`, `2 files`."""
    return f"{count} files" if count != 1 else "1 file"


def _deploy(send: Callable[..., Coroutine[Any, Any, DeployResponse]], name: str, *, prune: bool) -> DeployResponse:
    with upload_progress(name) as progress:
        return ask(send(prune=prune, progress=progress))


@contextmanager
def upload_progress(name: str, what: str = "uploading") -> Iterator[Progress | None]:
    """Show a bar during the block where somebody sees it."""
    if not on_terminal(stderr=True):
        yield None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"{what} {name}", total=None, visible=False)
        yield lambda done, total: bar.update(task, completed=done, total=total, visible=True)


def _show(
    response: DeployResponse, functions: dict[str, FunctionSpec], seconds: float, *, no_traffic: bool = False
) -> None:
    did = "Registered versions of" if no_traffic else "Deployed"
    print_text(f"{did} {response.app} (revision {response.revision}) in {seconds:.1f} s.")
    if response.removed:
        print_text(f"Removed {', '.join(response.removed)}.")
    for deployed in response.functions:
        spec = functions.get(deployed.name)
        print_text(f"\n{deployed.version}{'' if deployed.changed else '  (unchanged)'}")
        if spec is not None:
            print_text(f"  {curl_line(client().config.url + deployed.endpoint, spec.methods[0])}")
            ref = deployed.version if no_traffic else f"{response.app}.{deployed.name}"
            print_text(f"  {call_line(ref, spec.methods[0])}")
