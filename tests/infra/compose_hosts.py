"""Compose files without Docker: a service is a process of its host, with the file system of its container."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.hosts.host_network import DIES_WITH_US, TestHost, inside
from tests.infra.container_roots import PATH, SERVER, Confinement, confined
from tests.infra.manifests import ROOT
from tests.waiting import wait_until

VARIABLE = re.compile(r"\$\{(\w+)(?:(:?[-?])([^}]*))?\}")
START_S = 90.0
IMAGES = {"nats:2.15-alpine": ("nats-server",), "pilotlight/agent": ("python", "-m", "pilotlight_runtime")}
"""What images start without `entrypoint`: the bus's own, and infra/Dockerfile's."""


class ComposeHost:
    """A host with a compose file: `docker compose` there, for the commands that pages have."""

    def __init__(self, host: TestHost, file: Path, variables: Mapping[str, str], files: Mapping[str, Path]) -> None:
        """
        Args:
            variables: of its `.env`.
            files: folders of the host, by the path that they have on it.
        """
        self.host, self.file = host, file
        self._files = dict(files)
        self._whole: dict[str, Any] = interpolated(yaml.safe_load(file.read_text()), variables)
        self._names = host.folder / "names"

    def compose(self, line: str, profile: str, stdin: str = "") -> str:
        """What `docker compose …` prints."""
        words = [word for word in shlex.split(line) if word not in ("--build", "--wait", "--rm", "--no-TTY")]
        assert words[:2] == ["docker", "compose"]
        match words[2:]:
            case ["up"]:
                self._up(profile)
                return ""
            case ["exec", service, "cat", path]:
                return self._place(service, Path(path)).read_text()
            case ["run", service]:
                return self._run(service, self._command(service), stdin)
        raise AssertionError(line)

    def _up(self, profile: str) -> None:
        """Services of the profile and of none, each once what it depends on is healthy; then until all of them are."""
        services = self._whole["services"]
        chosen = [name for name, each in services.items() if profile in each.get("profiles", [profile])]
        started: list[str] = []
        while waiting := [name for name in chosen if name not in started]:
            name = next(each for each in waiting if services[each].get("depends_on", {}).keys() <= set(started))
            for needed in services[name].get("depends_on", {}):
                self._until_healthy(needed)
            prefix = self._root(name)
            self.host.start(name, [*prefix, *self._command(name)], self._environment(name))
            started.append(name)
        for name in started:
            self._until_healthy(name)

    def _until_healthy(self, service: str) -> None:
        test = self._whole["services"][service].get("healthcheck", {}).get("test", ["CMD", "true"])
        process = self.host.running[service]

        def is_healthy() -> bool:
            assert process.poll() is None, self.host.log(service)
            command = [*inside(self.host.namespace), *self._root(service), *test[1:]]
            env = os.environ | {"PATH": PATH}
            return subprocess.run(command, check=False, capture_output=True, env=env).returncode == 0

        wait_until(is_healthy, f"{service} is healthy", START_S)

    def _run(self, service: str, command: list[str], stdin: str) -> str:
        whole = [*inside(self.host.namespace), *DIES_WITH_US, *self._root(service), *command]
        done = subprocess.run(
            whole, input=stdin, capture_output=True, text=True, check=False, timeout=START_S,
            env=self._environment(service),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _command(self, service: str) -> list[str]:
        each = self._whole["services"][service]
        return [*(each.get("entrypoint") or IMAGES[each["image"]]), *each.get("command", ())]

    def _environment(self, service: str) -> dict[str, str]:
        given = self._whole["services"][service].get("environment", {})
        return {name: str(value) for name, value in given.items()} | {"PATH": PATH}

    def _mounts(self, service: str) -> Iterator[tuple[Path, Path]]:
        """From which folder or file of this machine, to which path of the container."""
        for volume in self._whole["services"][service].get("volumes", ()):
            source, target, *_ = volume.split(":")
            if source in self._whole["volumes"]:
                place = self.host.folder / "volumes" / source
                place.mkdir(parents=True, exist_ok=True)
                if self._whole["services"][service]["image"] == "pilotlight/server":
                    os.chown(place, SERVER, SERVER)  # as its image has the folder
            elif source.startswith("."):
                place = (self.file.parent / source).resolve()
            else:
                place = self._files.get(source, Path(source))
            yield place, Path(target)

    def _place(self, service: str, path: Path) -> Path:
        for source, target in self._mounts(service):
            if path.is_relative_to(target):
                return source / path.relative_to(target)
        raise AssertionError(f"{service} has no volume for {path}")

    def _root(self, service: str) -> tuple[str, ...]:
        each, folder = self._whole["services"][service], self.host.folder / service
        self._names.write_text("".join(f"{address} {name}\n" for name, address in self.host.names.items()))
        rows = [*self._mounts(service), (self._names, Path("/etc/hosts"))]
        for path in each.get("tmpfs", ()):
            (place := folder / path.strip("/")).mkdir(parents=True, exist_ok=True)
            place.chmod(0o1777)
            rows.append((place, Path(path)))
        return confined(
            folder,
            rows,
            Confinement(
                user=SERVER if each["image"] == "pilotlight/server" else 0,
                read_only=each.get("read_only", False),
                no_capabilities=each.get("cap_drop") == ["ALL"],
            ),
        )


def interpolated(value: Any, variables: Mapping[str, str]) -> Any:
    """As Compose does: `${NAME}`, `${NAME-default}`, `${NAME:-default}`, `${NAME:?why it must be there}`."""

    def said(found: re.Match[str]) -> str:
        name, operator, rest = found.groups()
        known = variables.get(name)
        if operator in ("?", ":?"):
            assert known, f"{name}: {rest}"
        if (operator == "-" and known is None) or (operator == ":-" and not known):
            return str(rest)
        assert known is not None, f"{name} is not set"
        return known

    if isinstance(value, str):
        return VARIABLE.sub(said, value)
    if isinstance(value, dict):
        return {key: interpolated(inside, variables) for key, inside in value.items()}
    return [interpolated(inside, variables) for inside in value] if isinstance(value, list) else value


def read_variables(path: Path) -> dict[str, str]:
    """Of an `.env` file."""
    return dict(line.split("=", 1) for line in path.read_text().splitlines() if line)


def compose_file(name: str) -> Path:
    return ROOT / "infra" / name
