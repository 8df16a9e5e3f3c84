"""Pictures of each page of the dashboard, light and dark: `python -m tools.dashboard_pictures docs/guide/dashboard`.

They are of a platform that it starts, with GPUs in software, three functions and some traffic. Needs chromium. With
`--rollouts` they are of the pages of rollouts alone, and there is little beside these: for two cores, where rollouts
that share them with all the rest stand still.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
from PIL import Image

from pilotlight_gateway.dashboard.all_pages import PAGES
from tools.headless_browser import Browser, Tab

APP = textwrap.dedent(
    '''
    """What the pictures show: a function of a slice each, one that waits, and one that cannot be loaded."""

    import time

    from pilotlight import App, batched, enter, method

    app = App("search")


    @app.gpu_function(gpu="H100", vram="16GiB", min_containers=2, max_containers=4)
    @batched(max_batch_size=8, wait_ms=5)
    def embed(texts: list[str]) -> list[int]:
        time.sleep(0.02 + 0.002 * len(texts))
        return [len(text) for text in texts]


    @app.gpu_function(gpu="H100", vram="40GiB", max_containers=1)
    def rerank(query: str) -> str:
        time.sleep(1.5)
        return query


    @app.gpu_function(gpu="T4", max_containers=1, retries=0)
    class Caption:
        @enter()
        def load(self) -> None:
            raise RuntimeError("no weights")

        @method()
        def describe(self, image: str) -> str:
            return image
    '''
)
SECOND = textwrap.dedent(
    '''
    """What another tenant has."""

    import time

    from pilotlight import App

    app = App("maps")


    @app.gpu_function(gpu="H100", vram="30GiB", min_containers=3, max_containers=3)
    def route(start: str) -> str:
        time.sleep(0.2)
        return start
    '''
)
CHANGED = textwrap.dedent(
    '''
    """What changes: one new version is worse, the other is not."""

    import time

    from pilotlight import App

    app = App("{name}")


    @app.gpu_function(memory="256MiB", min_containers=1, max_containers=1, idempotent=True, retries=0, forecast=False)
    def rate(text: str) -> int:
        time.sleep(0.02)
        return {body}
    '''
)
"""Of an app of a name, by what its function answers."""
SOUND, AS_SOUND, BROKEN = "len(text)", "len(text) + 0", "len(text) // 0"
ROLLOUTS = {"tags": (BROKEN, ("--steps", "50,100", "--pairs", "0")),
            "labels": (AS_SOUND, ("--steps", "25,50,100", "--every", "30m", "--pairs", "60"))}  # fmt: skip
"""By app, its new version, and how it is given the traffic."""
COMPARED, JUDGED_WITHIN_S = 200, 600.0
"""Calls of the sound new version, when it is pictured; the broken one is back by then."""
GPUS = "3xH100:mig,2xT4"
UP_WITHIN_S, TRAFFIC_S, SETTLES_S = 90.0, 60.0, 2.5
COLOURS = 96
"""Of a picture: text and lines need no more, and it is a quarter as large."""
OF_ROLLOUTS = ("/ui/rollouts", "/ui/all-rollouts", "/ui/rollouts/labels", "/ui/rollouts/tags")
MORE = ("/ui/nodes/local", "/ui/functions/search.embed", *OF_ROLLOUTS[2:])
MOST_HEIGHT = 1_400
"""Pixels of height of a picture, at most."""


def main() -> None:
    """Write the pictures."""
    parser = argparse.ArgumentParser(prog="python -m tools.dashboard_pictures", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the pictures are written")
    parser.add_argument("--rollouts", action="store_true", help="of the pages of rollouts alone")
    options = parser.parse_args()
    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as state,
        platform(Path(state), rollouts=options.rollouts) as (api, key, dashboard),
    ):
        asyncio.run(take(folder, Path(state), api, key, dashboard, rollouts=options.rollouts))


@contextmanager
def platform(state: Path, *, rollouts: bool) -> Iterator[tuple[str, str, str]]:
    """The addresses of a platform and its dashboard, and a key, until the block ends.

    `rollouts`: it has nothing but what is rolled out.
    """
    ready, client = state / "ready.json", state / "client.json"
    command = (
        sys.executable, "-m", "pilotlight_supervisor.up", "--state-dir", str(state / "state"), "--port", "0",
        "--client-file", str(client), "--json-ready", str(ready), "--fake-gpus", GPUS, "--extra-agents", "1",
        "--sandbox", "process", "--blanks", "1", "--cpu-slots", "6",
    )  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        ends = time.monotonic() + UP_WITHIN_S
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > ends:
                raise SystemExit("the platform does not start")
            time.sleep(0.2)
        told = json.loads(ready.read_text())
        key = json.loads(client.read_text())["api_key"]
        deploys = [(key, CHANGED.format(name=name, body=SOUND)) for name in ROLLOUTS]
        if not rollouts:
            deploys += [(key, APP), (_second_tenant(told["url"], key), SECOND)]
        for owner, code in deploys:
            deploy(state, told["url"], owner, code)
        yield told["url"], key, told["dashboard_url"]
    finally:
        process.terminate()
        process.wait(60)


def deploy(folder: Path, url: str, key: str, code: str, *words: str) -> None:
    """Deploy an app of one file, as a person would."""
    (folder / "app.py").write_text(code)
    env = {**os.environ, "PILOTLIGHT_URL": url, "PILOTLIGHT_API_KEY": key}
    command = (sys.executable, "-m", "pilotlight.cli.main", "deploy", str(folder / "app.py"), *words)
    subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)


def _second_tenant(url: str, key: str) -> str:
    """A key of a tenant that is made."""
    headers = {"authorization": f"Bearer {key}"}
    httpx.post(f"{url}/v1/tenants", headers=headers, json={"name": "maps", "tier": "paid"}).raise_for_status()
    made = httpx.post(f"{url}/v1/tenants/maps/keys", headers=headers, json={"scopes": ["admin"]}).raise_for_status()
    return str(made.json()["key"])


async def take(folder: Path, state: Path, api: str, key: str, dashboard: str, *, rollouts: bool) -> None:
    """Call the functions for a while, begin the rollouts, then take a picture of each page."""
    headers = {"authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(base_url=api, headers=headers, timeout=120.0) as client:
        traffic = [(f"{name}.rate", {"text": "x"}, 0.02) for name in ROLLOUTS for _ in range(2)]
        traffic += [] if rollouts else [
            ("search.embed", {"texts": "a short text"}, 0.05), ("search.embed", {"texts": "another"}, 0.08),
            ("search.embed", {"texts": "a third"}, 0.11), *((("search.rerank", {"query": "x"}, 0.1),) * 6),
            ("search.Caption", {"image": "x"}, 1.0),
        ]  # fmt: skip
        calling = [asyncio.create_task(_call_on(client, name, body, pause)) for name, body, pause in traffic]
        for name, (body, words) in ROLLOUTS.items():
            code = CHANGED.format(name=name, body=body)
            await asyncio.to_thread(deploy, state, api, key, code, "--rollout", *words)
        await _until_judged(client)
        call = ""
        if not rollouts:
            await asyncio.sleep(TRAFFIC_S)
            kept = (await client.get("/v1/calls", params={"function": "search.rerank", "limit": 1})).json()["calls"]
            call = f"/ui/calls/{kept[0]['id']}" if kept else ""
        paths = OF_ROLLOUTS if rollouts else (*(page.path for page in PAGES if page.listed), *MORE)
        async with Browser.started() as browser:
            for dark in (False, True):
                async with browser.tab(dark=dark) as tab:
                    scheme = "dark" if dark else "light"
                    await tab.open(f"{dashboard}/ui/login")
                    if not rollouts:
                        await _picture(tab, folder / f"login-{scheme}.png", 420)
                    await tab.submit("form.login", key=key)
                    await _take_all(folder, tab, dashboard, scheme, paths, call)
                    if not rollouts:
                        await _take_call(folder, tab, client, dashboard, scheme)
        for task in calling:
            task.cancel()
        await asyncio.wait(calling)


async def _until_judged(client: httpx.AsyncClient) -> None:
    """Until the broken version is back, and enough calls of the sound one were compared."""
    async with asyncio.timeout(JUDGED_WITHIN_S):
        while True:
            tags, labels = [(await client.get(f"/v1/apps/{name}/rollout")).json() for name in ("tags", "labels")]
            if tags["state"] == "rolled_back" and labels["calls"].get("canary", 0) >= COMPARED:
                return
            await asyncio.sleep(1.0)


async def _call_on(client: httpx.AsyncClient, name: str, body: dict[str, str], pause: float) -> None:
    while True:
        await client.post(f"/v1/functions/{name}/calls", json={"input": body})
        await asyncio.sleep(pause)


async def _take_all(folder: Path, tab: Tab, dashboard: str, scheme: str, paths: Sequence[str], call: str) -> None:
    for path in (*paths, *([call] if call else [])):
        await tab.open(f"{dashboard}{path}")
        await asyncio.sleep(SETTLES_S)
        height = min(MOST_HEIGHT, int(await tab.evaluate("document.documentElement.scrollHeight")))
        name = "call" if path == call else path.removeprefix("/ui/").replace("/", "-").replace(".", "-")
        await _picture(tab, folder / f"{name}-{scheme}.png", height)


async def _take_call(folder: Path, tab: Tab, client: httpx.AsyncClient, dashboard: str, scheme: str) -> None:
    """The page of the kept call that had the most to wait for."""
    kept = (await client.get("/v1/calls", params={"limit": 200})).json()["calls"]
    slowest = max((one for one in kept if not one["code"]), key=lambda one: one["total_ms"])
    await tab.open(f"{dashboard}/ui/calls/{slowest['id']}")
    await asyncio.sleep(SETTLES_S)
    await _picture(tab, folder / f"call-{scheme}.png", MOST_HEIGHT)


async def _picture(tab: Tab, path: Path, height: int) -> None:
    await tab.picture(path, height)
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(COLOURS)
    small.save(path, optimize=True)


if __name__ == "__main__":
    main()
