"""Settings: a struct per process, filled from flags and `PILOTLIGHT_*` variables; flags win.

    class WorkerSettings(Settings, frozen=True, kw_only=True):
        slots: Annotated[int, msgspec.Meta(ge=1, description="how many at once")] = 4

    settings = load(WorkerSettings, "one worker")      # --slots 8 or PILOTLIGHT_SLOTS=8

A field's type and bounds validate its value, and its description is the help text. A tuple's flag may be repeated; its
variable has commas between.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar, cast, get_origin

import msgspec

from pilotlight_core.model.ids import END, NAME
from pilotlight_core.model.messages.node_messages import STOP_GRACE_S
from pilotlight_core.model.spec import LEAST_PIDS, MOST_MEMORY, MOST_PIDS

PREFIX = "PILOTLIGHT_"
NAME_PATTERN = f"^(?:{NAME.pattern}){END}"
MOST_MIB = MOST_MEMORY >> 20
CACHE_BYTES = 20 * 10**9
AGENT_DRAIN_S = 4.0
SANDBOXES = ("bubblewrap", "process")
TRUTHS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}

SettingName = Annotated[str, msgspec.Meta(pattern=NAME_PATTERN)]
Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
SettingCount = Annotated[int, msgspec.Meta(ge=0, le=100_000)]


StopGrace = Annotated[
    float, msgspec.Meta(ge=0, le=3600, description="how long calls may go on that nobody wants any more")
]


class BadSetting(ValueError):
    """A flag or variable is wrong; the message names it and what was expected."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    nats_url: Annotated[
        str, msgspec.Meta(description="where the bus is, nats://… or, with TLS, tls://…; of a cluster all, by commas")
    ] = "nats://127.0.0.1:4222"
    ca_file: Annotated[
        str,
        msgspec.Meta(
            description="PEM: the authorities of the certificates of the bus and of gateways' ports for large bodies; "
            "empty: those that Python knows"
        ),
    ] = ""
    state_dir: Annotated[Path, msgspec.Meta(description="folder of everything this machine keeps")] = Path(
        ".pilotlight"
    )
    region: Annotated[SettingName, msgspec.Meta(description="the region this process is in")] = "local"
    zone: Annotated[SettingName, msgspec.Meta(description="the zone this process is in")] = "local-a"
    name: Annotated[str, msgspec.Meta(description="this process's own name, unique in the region")] = ""
    metrics_host: Annotated[str, msgspec.Meta(description="address to serve /metrics on")] = "127.0.0.1"
    metrics_port: Annotated[Port, msgspec.Meta(description="port of /metrics; 0: it is not served")] = 0

    link_dir: Annotated[
        str,
        msgspec.Meta(
            description="folder of the sockets over which gateways and agents of one machine link; empty: below "
            "--state-dir"
        ),
    ] = ""

    @property
    def authority(self) -> str:
        """Where `ca_file` is, from wherever it is read; "": it is none."""
        return str(Path(self.ca_file).expanduser().resolve()) if self.ca_file else ""

    @property
    def links(self) -> Path:
        return Path(self.link_dir).expanduser() if self.link_dir else self.state_dir / "links"

    @property
    def keys_dir(self) -> Path:
        return self.state_dir / "keys"

    @property
    def ledger_path(self) -> Path:
        return self.state_dir / "ledger.sqlite"

    @property
    def default_blob_url(self) -> str:
        return f"file://{(self.state_dir / 'blobs').resolve()}"


class ControllerSettings(Settings, frozen=True, kw_only=True):
    repack_every: Annotated[
        float, msgspec.Meta(ge=0, description="seconds between emptying hardly used GPUs; 0: off")
    ] = 30.0
    min_residency: Annotated[float, msgspec.Meta(ge=0, description="a younger container is not moved")] = 600.0
    moves_per_hour: Annotated[
        int, msgspec.Meta(ge=0, le=100_000, description="running containers that are moved in an hour; 0: none")
    ] = 60
    stop_grace: StopGrace = STOP_GRACE_S
    advise: Annotated[
        bool, msgspec.Meta(description="decide beside the controller that leads, record it, and do nothing")
    ] = False
    tiers_file: Annotated[str, msgspec.Meta(description="tiers (TOML) over the standard ones, as gateways have")] = ""
    price_file: Annotated[
        str, msgspec.Meta(description="prices (TOML) over those of the standard price book, as gateways have")
    ] = ""

    @property
    def prices(self) -> Path | None:
        return Path(self.price_file).expanduser() if self.price_file else None

    @property
    def tiers(self) -> Path | None:
        return Path(self.tiers_file).expanduser() if self.tiers_file else None


class AgentSettings(Settings, frozen=True, kw_only=True):
    node: Annotated[SettingName, msgspec.Meta(description="the node's name")] = "local"
    credentials: Annotated[
        str,
        msgspec.Meta(
            description="file that 'pilotlight node join' has written: the node's name, place and identity on the bus; "
            "empty: --node and --nats-url say them"
        ),
    ] = ""
    cpu_slots: Annotated[
        SettingCount, msgspec.Meta(description="containers without a GPU that fit; 0: the node's cores")
    ] = 0
    reserve_memory: Annotated[
        int,
        msgspec.Meta(
            ge=0,
            description="MiB of the host kept for the platform; 0: 1 GiB and a twentieth, at most a quarter",
        ),
    ] = 0
    warm_memory: Annotated[
        int,
        msgspec.Meta(
            ge=-1,
            le=2**40,
            description="MiB of the host, of what the reserve leaves, for parked containers and weights that are kept; "
            "0: none; -1: an eighth",
        ),
    ] = -1
    reserve_cpu: Annotated[float, msgspec.Meta(ge=0, description="cores of the host kept for the platform")] = 0.0
    agents_here: Annotated[
        int, msgspec.Meta(ge=1, le=1000, description="agents on this machine: each has an even part of the host")
    ] = 1
    blanks: Annotated[SettingCount, msgspec.Meta(description="sandboxes kept started ahead, per base environment")] = 2
    gpu_blanks: Annotated[
        SettingCount,
        msgspec.Meta(
            description="sandboxes kept started ahead on free GPUs and MIG instances, at most; 0, or --blanks 0: none"
        ),
    ] = 8
    base: Annotated[
        tuple[str, ...],
        msgspec.Meta(
            description="NAME=PATH of a virtual environment that functions may run in beside the agent's own, which is "
            "called default; may be repeated"
        ),
    ] = ()
    most_shm: Annotated[
        int, msgspec.Meta(ge=0, le=MOST_MIB, description="MiB of shm= that a function may ask for; 0: its memory=")
    ] = 0
    most_scratch: Annotated[
        int, msgspec.Meta(ge=0, le=MOST_MIB, description="MiB of scratch= that a function may ask for; 0: its memory=")
    ] = 0
    most_pids: Annotated[
        int, msgspec.Meta(ge=LEAST_PIDS, le=MOST_PIDS, description="pids= that a function may ask for")
    ] = 4096
    egress_allow: Annotated[
        str,
        msgspec.Meta(
            description="networks that functions with network= may be let out to although they are not public, such as "
            "10.1.2.3 or 10.8.0.0/16, comma-separated; empty: none"
        ),
    ] = ""
    package_index: Annotated[
        str,
        msgspec.Meta(
            description="URL of the package index of which requirements= is built here, such as "
            "https://packages.example.com/simple/; empty: none is"
        ),
    ] = ""
    package_hosts: Annotated[
        str,
        msgspec.Meta(
            description="further hosts at which that index has its files, comma-separated; builders connect to these "
            "and the index alone"
        ),
    ] = ""
    package_ca_file: Annotated[
        str, msgspec.Meta(description="PEM: the authorities of the index's certificate; empty: the public ones")
    ] = ""
    most_packages: Annotated[
        int, msgspec.Meta(ge=1, le=MOST_MIB, description="MiB of packages that one app's requirements= may come to")
    ] = 2048
    packages_bytes: Annotated[
        int, msgspec.Meta(ge=0, description="bytes of built packages kept beside those that containers here have")
    ] = CACHE_BYTES
    cache_bytes: Annotated[
        int, msgspec.Meta(ge=0, description="bytes of versions' files kept beside those that containers here have")
    ] = CACHE_BYTES
    sandbox: Annotated[str, msgspec.Meta(description="bubblewrap, or process (no isolation: one tenant only)")] = (
        "bubblewrap"
    )
    spot: Annotated[bool, msgspec.Meta(description="the node may be taken away at short notice")] = False
    notices: Annotated[
        str,
        msgspec.Meta(
            description="who says that the node is taken away: aws, gcp or azure (their metadata services), file:PATH "
            '({"deadline": UNIX_SECONDS, "reason": "..."}), or none'
        ),
    ] = "none"
    pool: Annotated[str, msgspec.Meta(description="the pool that the node was launched in; empty: none")] = ""
    provider_id: Annotated[str, msgspec.Meta(description="the machine's name by its provider, which is shown")] = ""
    blob_url: Annotated[str, msgspec.Meta(description="file:///… or s3://bucket/prefix; empty: below --state-dir")] = ""
    trusted_keys: Annotated[
        str,
        msgspec.Meta(
            description="file of public keys (PEM): the operator's, which vouches for those of the gateways, or a "
            "gateway's own; empty: that of the gateway with this --state-dir"
        ),
    ] = ""
    preimport: Annotated[
        str, msgspec.Meta(description="modules that blanks import ahead, comma-separated; none: no module")
    ] = "numpy,torch,safetensors.torch,tokenizers"
    share_gpus: Annotated[bool, msgspec.Meta(description="give GPUs in bounded shares, by time slicing")] = False
    cut_gpus: Annotated[
        bool, msgspec.Meta(description="cut GPUs into MIG instances, and switch their MIG mode, as calls need it")
    ] = True
    stop_grace: StopGrace = STOP_GRACE_S
    drain_seconds: Annotated[
        float, msgspec.Meta(ge=0, le=3600, description="how long running calls may finish after SIGTERM")
    ] = AGENT_DRAIN_S
    mps_pipes: Annotated[
        str, msgspec.Meta(description="folder of the MPS control daemon's pipes: bounds shares; empty: none")
    ] = ""
    fake_gpus: Annotated[str, msgspec.Meta(description="GPUs that exist in software only, such as 2xH100:mig,1xT4")] = (
        ""
    )

    @property
    def trusted(self) -> Path:
        return Path(self.trusted_keys).expanduser() if self.trusted_keys else self.keys_dir

    def __post_init__(self) -> None:
        if self.sandbox not in SANDBOXES:
            raise ValueError(f"expected one of {', '.join(SANDBOXES)} - at `$.sandbox`")


T = TypeVar("T", bound=msgspec.Struct)


def load(cls: type[T], about: str, argv: Sequence[str] | None = None, env: Mapping[str, str] | None = None) -> T:
    """Settings from the command line and the environment. If they are wrong, print a sentence and end the process."""
    try:
        return parse(cls, about, sys.argv[1:] if argv is None else argv, os.environ if env is None else env)
    except BadSetting as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 - logging is not set up yet
        raise SystemExit(2) from None


def parse(cls: type[T], about: str, argv: Sequence[str], env: Mapping[str, str]) -> T:
    """Settings from `argv` and `env`.

    Raises:
        BadSetting: naming the flag or variable and what was expected.
    """
    fields = {field.name: field for field in msgspec.structs.fields(cls)}
    given = vars(_parser(cls, about).parse_args(list(argv)))
    values: dict[str, Any] = {}
    for name, field in fields.items():
        origin, text = _flag(name), given[name]
        # Compose files and shells pass empty variables for unset ones.
        if text is None and (text := env.get(_variable(name)) or None) is not None:
            origin = _variable(name)
        if text is not None:
            values[name] = _convert(text, field.type, origin)
    try:
        return cls(**values)
    except ValueError as error:
        sentence, _, place = str(error).partition(" - at `$.")
        name = place.rstrip("`")
        raise BadSetting(f"{_flag(name)} ({_variable(name)}): {sentence}, got {values.get(name)!r}.") from None


def controller(argv: Sequence[str] | None = None, env: Mapping[str, str] | None = None) -> ControllerSettings:
    return load(ControllerSettings, "The Pilotlight controller: it decides which containers run where.", argv, env)


def agent(argv: Sequence[str] | None = None, env: Mapping[str, str] | None = None) -> AgentSettings:
    return load(AgentSettings, "A Pilotlight agent: it runs and meters the containers of one node.", argv, env)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadSetting(f"{message[0].upper()}{message[1:]}; --help lists all flags.")


def _parser(cls: type[msgspec.Struct], about: str) -> argparse.ArgumentParser:
    parser = _Parser(description=about, allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter)
    for field in msgspec.structs.fields(cls):
        default = "" if field.default in ("", (), msgspec.NODEFAULT) else f" [{field.default}]"
        text = f"{_description(field.type)}{default} ({_variable(field.name)})".replace("%", "%%")
        if _bare(field.type) is bool:
            parser.add_argument(_flag(field.name), action=argparse.BooleanOptionalAction, default=None, help=text)
        else:
            action = "append" if _is_list(field.type) else "store"
            parser.add_argument(
                _flag(field.name), dest=field.name, default=None, help=text, metavar=_metavar(field.type), action=action
            )
    return parser


def _convert(text: str | bool | list[str], kind: Any, origin: str) -> Any:
    try:
        if _is_list(kind):
            return tuple(text.split(",")) if isinstance(text, str) else tuple(cast("list[str]", text))
        if _bare(kind) is bool:
            return text if isinstance(text, bool) else TRUTHS[str(text).lower()]
        if _bare(kind) is Path:
            return Path(str(text)).expanduser()
        return msgspec.convert(text, kind, strict=False)
    except KeyError:
        raise BadSetting(f"{origin}: expected true or false, got {text!r}.") from None
    except msgspec.ValidationError as error:
        raise BadSetting(f"{origin}: {_sentence(str(error))}, got {text!r}.") from None


def _sentence(text: str) -> str:
    text = text.replace("`", "").partition(" - at ")[0]
    if "matching regex" in text:
        return "expected 1 to 63 letters, digits, '_' or '-', not starting with '-'"
    return re.sub(r"^Expected", "expected", text).partition(", got ")[0]


def _metavar(kind: Any) -> str:
    return {int: "N", float: "SECONDS", Path: "PATH"}.get(_bare(kind), "TEXT")


def _is_list(kind: Any) -> bool:
    return get_origin(_bare(kind)) is tuple


def _bare(kind: Any) -> Any:
    while hasattr(kind, "__metadata__"):
        kind = kind.__origin__
    return kind


def _description(kind: Any) -> str:
    metadata = getattr(kind, "__metadata__", ())
    return next((meta.description for meta in metadata if isinstance(meta, msgspec.Meta) and meta.description), "")


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _variable(name: str) -> str:
    return f"{PREFIX}{name.upper()}"
