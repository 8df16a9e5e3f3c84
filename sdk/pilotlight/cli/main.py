"""`pilotlight`: loads each command on use."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from pilotlight.cli.output import error_json, print_json, show_error
from pilotlight.definitions.errors import PilotlightError
from pilotlight.definitions.version import VERSION
from pilotlight_core.model.suggestions import did_you_mean, nearest

COMMANDS = (
    "up", "deploy", "run", "call", "calls", "job", "logs", "events", "app", "alias", "rollout", "scale", "container",
    "batch", "webhook", "secret", "trust", "policy", "sbom", "weights", "model", "stats", "dashboard", "fleet",
    "placement", "explain", "diagnose", "profile", "usage", "billing", "price", "ledger", "tenant", "key", "login",
    "logout", "whoami", "issuer", "keyset", "quota", "audit", "backup", "restore", "doctor", "node", "pool", "ca",
    "plan", "record", "simulate", "version",
)  # fmt: skip
"""Modules of `commands`, in the order of the help."""
PLACES = {
    "alias": "rollouts.alias", "rollout": "rollouts.rollout",
    "audit": "operator.audit", "backup": "operator.backup", "billing": "billing.billing", "ca": "operator.ca",
    "calls": "seeing.calls", "dashboard": "seeing.dashboard", "events": "seeing.events",
    "diagnose": "scaling.diagnose",
    "doctor": "operator.doctor", "explain": "scaling.explain", "issuer": "operator.issuer",
    "ledger": "operator.ledger", "model": "models.model",
    "login": "identity.login", "logout": "identity.logout", "pool": "operator.pool",
    "price": "operator.price", "record": "operator.traffic_record", "restore": "operator.restore",
    "scale": "scaling.scale", "secret": "secrets.secret", "simulate": "operator.simulate",
    "sbom": "supply.sbom", "policy": "supply.policy", "trust": "supply.trust", "keyset": "supply.keyset",
    "stats": "seeing.stats",
    "weights": "models.weights",
    "whoami": "identity.whoami",
}  # fmt: skip
"""Modules that are in a folder of `commands`."""
ALIASES = {"token": "key"}
INTERRUPTED = 130
JSON = "--json"
GARBAGE = 20_000
"""Objects between two collections: loading modules makes many, and none of them is garbage."""
USAGE = "usage"
"""The code, in JSON, of an error in the words themselves."""
USAGE_ERROR: type[Any] = next(one for one in typer.BadParameter.__mro__ if one.__name__ == "ClickException")
"""Of click, or of the copy of it that newer typers have."""


def module_of(command: str) -> str:
    """The module of one of `COMMANDS`."""
    return f"pilotlight.cli.commands.{PLACES.get(command, command)}"


class CommandGroup(TyperGroup):
    """All commands. A PilotlightError is printed in two lines, with exit code 1; with --json also as JSON on stdout."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - typer's signature
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - typer's signature
        module = ALIASES.get(cmd_name, cmd_name)
        if module not in COMMANDS:
            return None
        command = typer.main.get_command(import_module(module_of(module)).app)
        command.name = cmd_name
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        word = args[0]
        if word not in COMMANDS and word not in ALIASES and not word.startswith("-"):
            hint = did_you_mean(nearest(word, (*COMMANDS, *ALIASES)))
            ctx.fail(f"There is no command {word!r}.{hint}")
        return super().resolve_command(ctx, args)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        standalone = kwargs.pop("standalone_mode", True)
        kwargs["standalone_mode"] = False  # errors are shown here
        if not standalone:
            return super().main(*args, **kwargs)
        words: Sequence[str] | None = args[0] if args else kwargs.get("args")
        as_json = JSON in (sys.argv[1:] if words is None else words)
        try:
            sys.exit(super().main(*args, **kwargs) or 0)
        except PilotlightError as error:
            show_error(error)
            if as_json:
                print_json(error_json(error), indent=False)
            sys.exit(1)
        except USAGE_ERROR as error:
            error.show()
            if as_json:
                print_json({"error": {"code": USAGE, "detail": error.format_message()}}, indent=False)
            sys.exit(error.exit_code)
        except (KeyboardInterrupt, typer.Abort):
            sys.exit(INTERRUPTED)
        except BrokenPipeError:
            # The reader of our output has gone, as `head` does: the interpreter's last flush must not fail.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)


app = typer.Typer(
    name="pilotlight",
    cls=CommandGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"pilotlight {VERSION}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    """Run GPU functions that cost nothing while idle and start without a wait.

    \b
    pilotlight up                           a platform on this machine
    pilotlight deploy examples/hello/app.py
    pilotlight call hello.greet name=Ada
    """


def main() -> None:
    """Run the command that the process was started with; what slows its start and serves no command is left out."""
    gc.set_threshold(GARBAGE)
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type] # httpx's own command, with all of rich
    app()


if __name__ == "__main__":
    main()
