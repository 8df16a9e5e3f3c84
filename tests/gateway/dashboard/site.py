"""The dashboard over a whole HTTP side: its pages are asked for as a browser does."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec

from pilotlight_gateway.dashboard.asset_files import AssetFiles
from pilotlight_gateway.dashboard.dashboard_app import DashboardApp
from pilotlight_gateway.dashboard.dashboard_counts import CountedApi, DashboardCounts
from pilotlight_gateway.dashboard.page_drawings import PageDrawings
from pilotlight_gateway.dashboard.page_parts.gateway_client import AnswerCache, ApiAnswer, ApiProblem
from pilotlight_gateway.tenancy.api_keys import ApiKey
from tests.gateway.world import World

ORIGIN = "http://dashboard"
OWN_PAGE = {"sec-fetch-site": "same-origin"}
CSRF = re.compile(r'name="csrf" value="([0-9a-f]+)"')


class WorldApi:
    """A `GatewayApi` over the application of a `World`; `asked` is what it was asked."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.asked: list[tuple[str, str]] = []
        self.answers: dict[str, ApiAnswer] = {}
        """By path, what is answered in place of the application."""
        self.down = False
        """Whether no gateway answers."""

    async def ask(self, method: str, path: str, token: str = "", body: Any = None) -> ApiAnswer:
        self.asked.append((method, path))
        if self.down:
            raise ApiProblem(0, "unreachable", "No gateway answers at the moment.")
        if (known := self.answers.get(path.partition("?")[0])) is not None:
            return known
        async with self.world.client(token) as client:
            answer = await client.request(method, path, json=body)
        return ApiAnswer(status=answer.status_code, body=answer.content)


class WorldStreams:
    """A `FollowedSource` over the same: what a route lists now is what a stream of it has sent. `asked`: the paths."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.asked: list[str] = []
        self.values: dict[str, list[Any]] = {}
        """By path, what has come in place of what the application says."""

    async def read(self, audience: object, path: str, token: str) -> tuple[Any, ...]:
        self.asked.append(path)
        if (known := self.values.get(path.partition("?")[0])) is not None:
            return tuple(known)
        async with self.world.client(token) as client:
            answer = await client.get(path.replace("follow=true&", ""))
        told = ApiAnswer(status=answer.status_code, body=answer.content)
        if told.status >= 400:
            raise told.problem()
        if answer.headers["content-type"].startswith("application/json"):
            return tuple(told.value()["events"])
        return tuple(msgspec.json.decode(line) for line in told.body.splitlines() if line)


class Site:
    """A dashboard, and browsers at it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.api = WorldApi(world)
        self.streams = WorldStreams(world)
        counts = DashboardCounts()
        counted = CountedApi(self.api, counts)
        self.answers = AnswerCache(counted, world.clock, self.streams)
        self.drawings = PageDrawings(self.answers, clock=world.clock, wall=world.wall)
        self.app = DashboardApp(
            counted, self.drawings, AssetFiles(), clock=world.clock, wall=world.wall, counts=counts
        )  # fmt: skip

    def forget(self) -> None:
        """Time passes until what is remembered for seconds is asked for anew."""
        self.world.clock.at += 60.0

    def browser(self, **headers: str) -> httpx.AsyncClient:
        """Without a session."""
        return httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url=ORIGIN, headers=headers)

    @asynccontextmanager
    async def logged_in(self, key: ApiKey | None = None) -> AsyncIterator[httpx.AsyncClient]:
        """A browser with a session, of an operator by default."""
        async with self.browser() as browser:
            answer = await browser.post("/ui/login", data={"key": str(key or self.world.operator)}, headers=OWN_PAGE)
            assert answer.status_code == 303, answer.text
            # httpx sends no Secure cookie over http; a browser does, to its own machine.
            browser.headers["cookie"] = answer.headers["set-cookie"].partition(";")[0]
            browser.cookies.clear()
            yield browser


def csrf_of(page: str) -> str:
    """What a page's forms have against those of other sites."""
    found = CSRF.search(page)
    assert found is not None
    return found[1]
