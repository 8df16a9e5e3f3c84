"""The builder of requirements has a way out whoever asks for it: what an index, a package or a deployer could do.

With real sandboxes, uv and the proxy; the index is the test's own.
"""

from __future__ import annotations

import asyncio
import base64
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from pilotlight_core.model.packages.package_locks import PackageLock
from pilotlight_runtime.environments import build_sandbox
from pilotlight_runtime.environments.build_sandbox import BuildFailed
from pilotlight_runtime.environments.environment_builds import EnvironmentBuilds
from tests.builders.package_builds import MIB, built_files, package_builds
from tests.builders.package_index import LocalIndex, package_index
from tests.builders.wheels import Wheel, wheel
from tests.waiting import until

PWNED = "/pwned"
SOON_S = 4.0
"""Enough for a builder to ask, on a machine that has nothing else to do; on another it has not asked yet."""
RUNS = (
    "import os, urllib.request; urllib.request.urlopen({url!r}) if 'HTTP_PROXY' in os.environ else None; os._exit(9)\n"
)
"""Code that asks the index if it runs anywhere in a builder, and ends whatever process it runs in."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def index() -> Iterator[LocalIndex]:
    with package_index() as served:
        yield served


async def locked(builds: EnvironmentBuilds, *requirements: str, tenant: str = "acme") -> PackageLock:
    return await builds.lock(tenant, "default", requirements)


async def built(builds: EnvironmentBuilds, *requirements: str, tenant: str = "acme") -> None:
    """Lock and build; raises BuildFailed."""
    await builds.ensure(tenant, "default", await locked(builds, *requirements, tenant=tenant))


def escaped(root: Path) -> list[Path]:
    """What a wheel has written where it may not."""
    return [path for path in (*root.rglob("escaped.py"), Path("/tmp/escaped.py")) if path.exists()]


def halves(root: Path) -> list[Path]:
    """What a build has left behind."""
    return [*(root / "environments").glob("*/*.*"), *(root / "sandboxes").iterdir()]


async def test_a_wheel_writes_nothing_outside_of_its_folder(
    index: LocalIndex, tmp_path: Path, anyio_backend: str
) -> None:
    """Whether the installer refuses it or leaves it out."""
    paths = ("../../escaped.py", "/tmp/escaped.py", "good/../../../escaped.py", "../app/escaped.py")
    names = [f"climber{number}" for number in range(len(paths))]
    for name, path in zip(names, paths, strict=True):
        index.wheels.append(wheel(name, files={f"{name}.py": "", path: "escaped = True\n"}))
    async with package_builds(tmp_path / "node", index.url) as builds:
        for name in names:
            with suppress(BuildFailed):
                await built(builds, name)

    assert escaped(tmp_path) == []
    allowed = [{f"{name}.py", *_info(name), *_compiled(name)} for name in names]
    assert set(built_files(tmp_path / "node")) <= set().union(*allowed)


async def test_no_code_of_a_package_runs_where_it_is_built(
    index: LocalIndex, tmp_path: Path, anyio_backend: str
) -> None:
    """Neither of a .pth file, nor of what interpreters import by themselves, nor of a module, nor of a script."""
    code = RUNS.format(url=f"http://127.0.0.1:{index.port}{PWNED}")
    files = {
        "zz.pth": code, "sitecustomize.py": code, "usercustomize.py": code, "eager.py": code, "eager/__init__.py": code,
        "encodings/__init__.py": code, "eager-1.0.data/scripts/pip": f"#!python\n{code}",
    }  # fmt: skip
    index.wheels.append(wheel("eager", files=files, scripts={"uv": "eager:main", "ls": "eager:main"}))
    async with package_builds(tmp_path, index.url) as builds:
        await built(builds, "eager")

    assert not [asked for asked in index.asked if PWNED in asked]
    found = built_files(tmp_path)
    assert {"zz.pth", "sitecustomize.py", "bin/ls"} <= set(found)
    assert found["zz.pth"].decode() == code


async def test_a_link_in_a_wheel_leads_nowhere(index: LocalIndex, tmp_path: Path, anyio_backend: str) -> None:
    """It is refused, or is a file with the words of the link."""
    index.wheels.append(wheel("linked", links={"linked_file.py": "/etc/passwd", "linked_folder": "/"}))
    async with package_builds(tmp_path, index.url) as builds:
        with suppress(BuildFailed):
            await built(builds, "linked")

    assert not [path for path in (tmp_path / "environments").rglob("*") if path.is_symlink()]
    assert all(b"root:" not in data for data in built_files(tmp_path).values())


async def test_a_bomb_fills_its_own_room_alone(index: LocalIndex, tmp_path: Path, anyio_backend: str) -> None:
    """64 MiB in a few KiB: the build is refused, and nothing of it stays. The next one is as if it had not been."""
    index.wheels += [wheel("bomb", files={"bomb.bin": bytes(64 * MIB)}), wheel("good")]
    async with package_builds(tmp_path, index.url, most_bytes=8 * MIB) as builds:
        with pytest.raises(BuildFailed):
            await built(builds, "bomb")
        assert halves(tmp_path) == []
        assert built_files(tmp_path) == {}
        await built(builds, "good")

    assert "good.py" in built_files(tmp_path)


async def test_a_file_that_is_not_what_was_locked_is_refused(
    index: LocalIndex, tmp_path: Path, anyio_backend: str
) -> None:
    """An index that changes its mind, in its files alone or in its pages too."""
    index.wheels.append(wheel("honest", files={"honest.py": "GOOD = True\n"}))
    async with package_builds(tmp_path, index.url) as builds:
        lock = await locked(builds, "honest")
        index.wheels[:] = [wheel("honest", files={"honest.py": "GOOD = False\n"})]
        with pytest.raises(BuildFailed, match=r"(?i)hash"):
            await builds.ensure("acme", "default", lock)
        index.digests[index.wheels[0].filename] = lock.packages[0].hashes[0]
        with pytest.raises(BuildFailed, match=r"(?i)hash"):
            await builds.ensure("acme", "default", lock)

    assert built_files(tmp_path) == {}


async def test_an_index_leads_a_builder_to_no_other_host(index: LocalIndex, tmp_path: Path, anyio_backend: str) -> None:
    """Neither by a redirection nor by a link: the proxy connects to what the operator has named alone."""
    inner = wheel("inner")
    with package_index(inner) as inside:

        def redirect(request: BaseHTTPRequestHandler) -> None:
            request.send_response(302)
            request.send_header("Location", f"http://127.0.0.1:{inside.port}/files/{inner.filename}")
            request.end_headers()

        def lead(request: BaseHTTPRequestHandler) -> None:
            url = f"http://localhost:{inside.port}/files/{inner.filename}#sha256={inner.sha256}"
            data = f'<a href="{url}">{inner.filename}</a>'.encode()
            request.send_response(200)
            request.send_header("Content-Type", "text/html")
            request.send_header("Content-Length", str(len(data)))
            request.end_headers()
            request.wfile.write(data)

        index.wheels.append(inner)
        index.answers[f"/files/{inner.filename}"] = redirect
        async with package_builds(tmp_path, index.url) as builds:
            with pytest.raises(BuildFailed):
                await built(builds, "inner")
            index.answers["/simple/inner/"] = lead
            with pytest.raises(BuildFailed):
                await built(builds, "inner")

        assert inside.asked == []


@pytest.mark.variant
async def test_an_index_that_does_not_end_ends_with_its_time(
    index: LocalIndex, tmp_path: Path, anyio_backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It never answers, or never stops to. Another tenant is served meanwhile."""
    over = asyncio.Event()
    loop = asyncio.get_running_loop()

    def hang(_: BaseHTTPRequestHandler) -> None:
        asyncio.run_coroutine_threadsafe(over.wait(), loop).result()

    def stream(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "text/html")
        request.end_headers()
        try:
            while not over.is_set():
                request.wfile.write(b"<a href='x'>x</a>" * 1000)
        except OSError:
            pass  # it was closed

    index.wheels += [wheel("good")]
    index.answers |= {"/simple/silent/": hang, "/simple/endless/": stream}
    try:
        async with package_builds(tmp_path, index.url) as builds, asyncio.TaskGroup() as group:
            monkeypatch.setattr(build_sandbox, "LOCK_S", SOON_S)
            silent = group.create_task(_fault_of(builds, "silent"))
            await until(lambda: "GET /simple/silent/" in index.asked or silent.done())
            monkeypatch.undo()  # it has its time
            await built(builds, "good", tenant="rival")
            assert "did not come within" in await silent
            monkeypatch.setattr(build_sandbox, "LOCK_S", SOON_S)
            assert await _fault_of(builds, "endless")
    finally:
        over.set()

    assert "good.py" in built_files(tmp_path)
    assert halves(tmp_path) == []


async def _fault_of(builds: EnvironmentBuilds, name: str) -> str:
    try:
        await locked(builds, name)
    except BuildFailed as failed:
        return str(failed)
    return ""


@pytest.mark.variant
async def test_an_index_that_is_down_is_told_from_packages_that_are_not_there(
    index: LocalIndex, tmp_path: Path, anyio_backend: str
) -> None:
    """It says that it cannot, or nobody listens there: the deployer is not told that the requirements cannot be met."""

    def unable(request: BaseHTTPRequestHandler) -> None:
        request.send_error(503)

    index.answers["/simple/busy/"] = unable
    async with package_builds(tmp_path / "a", index.url) as builds:
        for name, is_tenants in (("busy", False), ("missing", True)):
            with pytest.raises(BuildFailed) as failed:
                await locked(builds, name)
            assert failed.value.is_tenants is is_tenants, str(failed.value)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        async with package_builds(tmp_path / "b", f"http://127.0.0.1:{nobody.getsockname()[1]}/simple/") as builds:
            with pytest.raises(BuildFailed, match="does not answer") as failed:
                await locked(builds, "any")
    assert not failed.value.is_tenants


async def test_nothing_of_the_hosts_settings_reaches_a_builder(
    index: LocalIndex, tmp_path: Path, anyio_backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Variables, configuration and passwords of the agent's user: there is one index, and it learns of nobody."""
    index.wheels.append(wheel("mine", "1.0"))
    home = tmp_path / "home"
    (home / ".config" / "uv").mkdir(parents=True)
    with package_index(wheel("mine", "9.0")) as other:
        (home / ".netrc").write_text("machine 127.0.0.1 login spy password s3cret\n")
        (home / ".config" / "uv" / "uv.toml").write_text(f'[[index]]\nurl = "{other.url}"\ndefault = true\n')
        for name, value in {
            "HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config"), "NETRC": str(home / ".netrc"),
            "UV_INDEX": other.url, "UV_EXTRA_INDEX_URL": other.url, "UV_FIND_LINKS": other.url,
            "PIP_EXTRA_INDEX_URL": other.url, "UV_CONFIG_FILE": str(home / ".config" / "uv" / "uv.toml"),
        }.items():  # fmt: skip
            monkeypatch.setenv(name, value)
        async with package_builds(tmp_path / "node", index.url) as builds:
            lock = await locked(builds, "mine")
            await builds.ensure("acme", "default", lock)

        assert lock.packages[0].version == "1.0"
        assert other.asked == []
    secret = base64.b64encode(b"spy:s3cret").decode()
    assert not any(secret in value for headers in index.headers for value in headers.values())


async def test_what_is_told_of_a_failure_does_not_say_where_the_index_is(tmp_path: Path, anyio_backend: str) -> None:
    """Nor the operator's password for it, which the index gets."""
    with package_index() as index:
        url = index.url.replace("http://", "http://robot:s3cret@")
        async with package_builds(tmp_path, url) as builds:
            index.answers["/simple/broken/"] = lambda request: request.send_error(500)
            with pytest.raises(BuildFailed) as failed:
                await locked(builds, "broken")
        expected = base64.b64encode(b"robot:s3cret").decode()
        assert any(expected in value for headers in index.headers for value in headers.values())

    assert "s3cret" not in str(failed.value)
    assert str(index.port) not in str(failed.value)
    assert "broken" in str(failed.value)


async def test_what_would_have_to_be_built_is_refused(index: LocalIndex, tmp_path: Path, anyio_backend: str) -> None:
    """A source distribution runs code when it is built, or asked for its metadata."""
    source = Wheel("source", "1.0", b"not even looked at")

    def page(request: BaseHTTPRequestHandler) -> None:
        data = f'<a href="/files/source-1.0.tar.gz#sha256={source.sha256}">source-1.0.tar.gz</a>'.encode()
        request.send_response(200)
        request.send_header("Content-Type", "text/html")
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)

    index.answers["/simple/source/"] = page
    async with package_builds(tmp_path, index.url) as builds:
        with pytest.raises(BuildFailed, match="source"):
            await locked(builds, "source")

    assert not [asked for asked in index.asked if "tar.gz" in asked]


OPTIONS = (
    "--index-url=http://evil.example.com/simple/",
    "-e .",
    "-r /etc/passwd",
    "good --hash=sha256:00",
    "good @ http://evil.example.com/good.whl",
    "http://evil.example.com/good.whl",
    "git+https://evil.example.com/x",
    "./good",
    "/etc",
    "good.whl",
    "~/good",
    "${HOME}",
    "good\n--index-url=http://evil.example.com/",
    "good # x",
    "good; os_name == 'a'\\\n-e .",
    "good==1.0 --no-binary good",
)


async def test_a_requirement_is_a_name_with_versions_and_nothing_else(
    index: LocalIndex, tmp_path: Path, anyio_backend: str
) -> None:
    """A node asks for itself, whatever a gateway lets through; no builder is started."""
    async with package_builds(tmp_path, index.url) as builds:
        for text in OPTIONS:
            with pytest.raises(BuildFailed, match="expected a package of the index"):
                await locked(builds, text)

    assert index.asked == []


async def test_tenants_share_nothing_that_is_built(index: LocalIndex, tmp_path: Path, anyio_backend: str) -> None:
    """Each has its own download and its own files, and no builder sees the folder of any."""
    index.wheels.append(wheel("shared"))
    async with package_builds(tmp_path, index.url) as builds:
        await built(builds, "shared", tenant="acme")
        before = len(index.asked)
        await built(builds, "shared", tenant="rival")

        fetched = [asked for asked in index.asked[before:] if asked.startswith("GET /files/")]
        assert fetched, "the second tenant's speed does not tell what the first one has"
        ids = builds.cache.ids()
    mine, theirs = sorted((tmp_path / "environments").glob("*/*/packages/shared.py"))
    assert len(ids) == 2
    assert _compiled("shared") <= set(built_files(tmp_path))
    assert mine.stat().st_ino != theirs.stat().st_ino
    assert mine.read_bytes() == theirs.read_bytes()


def _info(name: str) -> set[str]:
    files = ("METADATA", "WHEEL", "RECORD", "INSTALLER", "REQUESTED")
    return {f"{name}-1.0.dist-info/{file}" for file in files}


def _compiled(name: str) -> set[str]:
    return {f"__pycache__/{name}.{sys.implementation.cache_tag}.pyc"}
