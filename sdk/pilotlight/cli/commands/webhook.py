"""`pilotlight webhook`."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from pilotlight.cli.arguments import read_span
from pilotlight.cli.command_app import command_app
from pilotlight.cli.output import ago, milliseconds, note, print_json, print_text, span
from pilotlight.cli.session import ask, client
from pilotlight.cli.tables import print_table
from pilotlight.definitions.errors import Misuse
from pilotlight_core.model.api.webhook_api import EVENTS, JOB_EVENTS, WebhookChange, WebhookRequest, WebhookRotation
from pilotlight_core.model.suggestions import did_you_mean, nearest

app = command_app(no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="print JSON")]
Id = Annotated[str, typer.Argument(help="the webhook's id, as listed")]
Events = Annotated[str | None, typer.Option(help="the events that it gets, with commas between; default: all")]
Label = Annotated[str | None, typer.Option(help="what it is for")]


@app.callback()
def group() -> None:
    """Messages to your servers when jobs end."""


@app.command()
def create(
    url: Annotated[str, typer.Argument(help="where to send: https://…")],
    events: Events = None,
    label: Label = None,
    as_json: Json = False,
) -> None:
    """Make a webhook. Its signing secret is shown once, on stdout.

    Events: job.succeeded, job.failed, job.cancelled, job.expired.

    \b
    SECRET=$(pilotlight webhook create https://example.com/hooks)
    pilotlight webhook create https://example.com/hooks --events job.failed,job.expired
    """
    request = WebhookRequest(url=url, events=_events(events) or tuple(map(str, JOB_EVENTS)), label=label or "")
    made = ask(client().webhooks.create(request))
    if as_json:
        print_json(made)
        return
    print_text(made["secret"])
    note(f"{made['id']} gets {', '.join(made['events'])}; the secret is not shown again.")


@app.command(name="list")
def list_webhooks(as_json: Json = False) -> None:
    """List webhooks.

    \b
    pilotlight webhook list
    """
    webhooks = ask(client().webhooks.list_webhooks())
    if as_json:
        print_json(webhooks)
        return
    rows = [(hook["id"], hook["url"], ", ".join(hook["events"]), _state(hook), hook["label"]) for hook in webhooks]
    print_table(("id", "url", "events", "state", "label"), rows, empty="No webhooks.", less=("events", "label"))


@app.command()
def update(
    id: Id,  # noqa: A002 - what the API calls it
    url: Annotated[str | None, typer.Option(help="where to send from now on")] = None,
    events: Events = None,
    label: Label = None,
    as_json: Json = False,
) -> None:
    """Change the given fields of a webhook.

    \b
    pilotlight webhook update wh_8c1f… --events job.failed
    """
    _change(id, WebhookChange(url=url, events=_events(events), label=label), as_json=as_json)


@app.command()
def enable(id: Id, as_json: Json = False) -> None:  # noqa: A002
    """Send to a webhook again, from now on.

    \b
    pilotlight webhook enable wh_8c1f…
    """
    _change(id, WebhookChange(disabled=False), as_json=as_json)


@app.command()
def disable(id: Id, as_json: Json = False) -> None:  # noqa: A002
    """Send nothing to a webhook until it is enabled.

    \b
    pilotlight webhook disable wh_8c1f…
    """
    _change(id, WebhookChange(disabled=True), as_json=as_json)


@app.command()
def delete(id: Id, as_json: Json = False) -> None:  # noqa: A002
    """Delete a webhook and its waiting deliveries.

    \b
    pilotlight webhook delete wh_8c1f…
    """
    ask(client().webhooks.delete(id))
    if as_json:
        print_json({"id": id, "deleted": True})
    else:
        print_text(f"Deleted {id}.")


@app.command()
def rotate(
    id: Id,  # noqa: A002
    overlap: Annotated[str, typer.Option(help="how long both secrets sign: 0s, 12h, 7d")] = "1d",
    as_json: Json = False,
) -> None:
    """Make a new signing secret, shown once, on stdout. The former one also signs for a while.

    \b
    SECRET=$(pilotlight webhook rotate wh_8c1f… --overlap 12h)
    """
    made = ask(client().webhooks.rotate(id, WebhookRotation(overlap_s=read_span(overlap, "--overlap"))))
    if as_json:
        print_json(made)
        return
    print_text(made["secret"])
    note(f"The former secret of {id} signs for {overlap} more; this one is not shown again.")


@app.command()
def ping(id: Id, as_json: Json = False) -> None:  # noqa: A002
    """Send a test event.

    \b
    pilotlight webhook ping wh_8c1f… && pilotlight webhook deliveries wh_8c1f…
    """
    _sent(ask(client().webhooks.ping(id)), as_json=as_json)


@app.command()
def deliveries(
    id: Id,  # noqa: A002
    limit: Annotated[int, typer.Option(min=1, max=1000, help="how many at most")] = 20,
    as_json: Json = False,
) -> None:
    """List past and future deliveries, newest first.

    \b
    pilotlight webhook deliveries wh_8c1f…
    """
    found = ask(client().webhooks.list_deliveries(id, limit))
    if as_json:
        print_json(found)
        return
    columns = ("id", "event", "about", "state", "created", "attempts", "last", "took")
    print_table(
        columns,
        [_row(delivery) for delivery in found],
        empty="Nothing was sent.",
        right=("attempts", "took"),
        less=("about", "took", "created", "attempts"),
    )


@app.command()
def resend(
    id: Id,  # noqa: A002
    delivery: Annotated[str, typer.Argument(help="the delivery's id, as listed")],
    as_json: Json = False,
) -> None:
    """Send a delivery again, under its id.

    \b
    pilotlight webhook resend wh_8c1f… msg_77ab…
    """
    _sent(ask(client().webhooks.resend(id, delivery)), as_json=as_json)


def _events(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    events = tuple(part.strip() for part in text.split(",") if part.strip())
    if wrong := next((event for event in events if event not in EVENTS), None):
        meant = did_you_mean(nearest(wrong, EVENTS))
        raise Misuse(f"--events {wrong}: expected some of {', '.join(EVENTS)}.{meant}", field="events")
    return events


def _change(webhook: str, change: WebhookChange, *, as_json: bool) -> None:
    made = ask(client().webhooks.update(webhook, change))
    if as_json:
        print_json(made)
    else:
        print_text(f"{made['id']} ({_state(made)}): {', '.join(made['events'])} to {made['url']}")


def _sent(delivery: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(delivery)
    else:
        print_text(delivery["id"])


def _state(webhook: dict[str, Any]) -> str:
    if webhook["disabled"]:
        return f"disabled: {webhook['disabled_because']}"
    since = webhook.get("failing_since")
    return "on" if since is None else f"failing for {span(time.time() - float(since))}"


def _row(delivery: dict[str, Any]) -> tuple[Any, ...]:
    attempts = delivery["attempts"]
    last = attempts[-1] if attempts else {}
    due = delivery.get("next_at")
    state = delivery["state"] if not due else f"next in {span(float(due) - time.time())}"
    return (
        delivery["id"], delivery["event"], delivery["about"], state, ago(float(delivery["created_at"])), len(attempts),
        last.get("error") or last.get("status", "-"), milliseconds(float(last["ms"])) if last else "-",
    )  # fmt: skip
