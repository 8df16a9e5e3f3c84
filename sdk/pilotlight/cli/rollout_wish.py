"""What a deploy is to do with its new versions: give them the traffic by a rollout, and perhaps wait for its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pilotlight.cli.arguments import read_span
from pilotlight.cli.output import note, print_json, print_text
from pilotlight.cli.rollout_watch import check_outcome, follow_rollout, plan_line
from pilotlight.cli.rollout_words import read_steps
from pilotlight.cli.session import ask, client
from pilotlight_core.model.api.call_api import DeployResponse
from pilotlight_core.model.api.rollouts.rollout_api import RolloutRequest, RolloutStarted

STEPS, EVERY, BAKE = "1,5,10,25,50,100", "5m", "30m"


@dataclass(frozen=True, kw_only=True)
class RolloutWish:
    """The options of `deploy --rollout`, as they were written."""

    steps: str = STEPS
    every: str = EVERY
    bake: str = BAKE
    pairs: int = 300
    retry: bool = False
    wait: bool = False

    def __post_init__(self) -> None:
        self.request_for(0)

    def request_for(self, revision: int) -> RolloutRequest:
        """The rollout of a deploy.

        Raises:
            typer.BadParameter: naming the option that is wrong.
        """
        return RolloutRequest(
            canary=str(revision),
            steps=read_steps(self.steps),
            every_s=read_span(self.every, "--every"),
            bake_s=read_span(self.bake, "--bake"),
            pairs=self.pairs,
            retry=self.retry,
        )

    def roll_out(
        self, deployed: Sequence[DeployResponse], serving: Mapping[str, Mapping[str, str]], *, as_json: bool
    ) -> None:
        """Start a rollout of each app that was in service; wait for them, if that is wished.

        What was in service before is in `serving`: by app and function, the id of the version.
        """
        started = []
        for response in deployed:
            if response.app not in serving:
                note(f"{response.app} was not in service, so there is nothing to compare it with: it is deployed.")
            elif all(serving[response.app].get(one.name) == one.version_id for one in response.functions):
                note(f"{response.app} is unchanged, and in service: there is nothing to roll out.")
            else:
                begun = ask(client().rollouts.start_rollout(response.app, self.request_for(response.revision)))
                started.append(begun)
                if not as_json:
                    show_started(begun)
        ended = [follow_rollout(one.rollout.app, one.rollout.id) for one in started] if self.wait else []
        if as_json:
            print_json({"deploys": deployed, "rollouts": ended or [one.rollout for one in started]})
        for last, one in zip(ended, started, strict=False):
            check_outcome(last, one.rollout.id)


def serving_apps() -> dict[str, dict[str, str]]:
    """The apps that have something in service: by app and function, the id of its version."""
    return {
        info.app: {function.name: function.version_id for function in info.functions}
        for info in ask(client().platform.list_apps())
        if not info.stopped and info.functions
    }


def show_started(started: RolloutStarted) -> None:
    """Print what has begun, and what it will see."""
    view = started.rollout
    print_text(f"Rollout {view.number} of {view.app} has begun: {plan_line(view)}.")
    print_text("It goes back by itself if the new version is worse, as far as that can be seen:")
    for line in started.visible:
        print_text(f"  {line}")
    for warning in started.warnings:
        note(f"warning: {warning}")
    print_text(f"pilotlight rollout status {view.app} --watch")
