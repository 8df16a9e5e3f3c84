"""Which files of a folder are packed, and which are refused."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from pilotlight.packing.walk import (
    LARGEST_KEY_BYTES,
    MAX_PATH,
    PackError,
    files_below,
    ignore_rules,
    is_private_key,
)
from tests.sdk.packing.folders import write


def found(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in files_below(folder))


def test_links_pickles_and_special_files_are_refused_by_name(tmp_path: Path) -> None:
    """An ignored file is not refused."""
    (write(tmp_path / "link", "app.py") / "weights").symlink_to("/etc")
    (write(tmp_path / "pickle", "app.py") / "model.PKL").touch()
    os.mkfifo(write(tmp_path / "pipe", "app.py") / "queue")
    write(tmp_path / "name", "bad\nname.txt")
    write(tmp_path / "back", "back\\slash.txt")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(write(tmp_path / "sock", "app.py") / "s"))
        for folder, message in (
            ("link", "'weights' is a symlink"), ("pickle", "'model.PKL' is a pickle"), ("pipe", "neither a file"),
            ("name", "cannot travel"), ("back", "cannot travel"), ("sock", "neither a file"),
        ):  # fmt: skip
            with pytest.raises(PackError, match=message):
                found(tmp_path / folder)
    (tmp_path / "link" / ".pilotlightignore").write_text("weights\n")
    assert found(tmp_path / "link") == ["app.py"]


def test_unreadable_rules_are_refused(tmp_path: Path) -> None:
    """They are not skipped."""
    (write(tmp_path, "app.py") / ".pilotlightignore").write_bytes(b"\xff\xfe")
    with pytest.raises(PackError, match="cannot be read"):
        found(tmp_path)


def test_caches_environments_and_secrets_are_left_out(tmp_path: Path) -> None:
    """No ignore file is needed."""
    write(
        tmp_path, "app.py", ".git/config", "__pycache__/app.cpython-311.pyc", "x.pyc", ".venv/bin/python", ".env",
        ".env.local", "node_modules/a/b.js", "pkg/__pycache__/y.pyc", ".pilotlight/state", ".gitignore",
    )  # fmt: skip
    assert found(tmp_path) == [".gitignore", "app.py"]


def test_the_state_of_a_platform_is_left_out(tmp_path: Path) -> None:
    """It has the keys that sign deploys, whatever the name of its folder."""
    write(tmp_path, "app.py", "state/up.lock", "state/keys/manifest_ed25519", "state/nats/x", "stately/up.py")
    assert found(tmp_path) == ["app.py", "stately/up.py"]


def test_private_keys_stay_where_they_are(tmp_path: Path) -> None:
    """Such as the one that signs the deploy, whatever its name; unless the ignore file says that it is to be packed."""
    write(tmp_path, "app.py", "release.key", "release.key.pub", "certs/server.pem", "certs/ca.pem", "large.key")
    begin = "-----BEGIN {} KEY-----\n"
    (tmp_path / "release.key").write_text(begin.format("PRIVATE"))
    (tmp_path / "release.key.pub").write_text(begin.format("PUBLIC"))
    (tmp_path / "certs" / "server.pem").write_text("\n" + begin.format("RSA PRIVATE"))
    (tmp_path / "certs" / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    (tmp_path / "large.key").write_text(begin.format("PRIVATE") + "x" * LARGEST_KEY_BYTES)
    keys: list[str] = []
    packed = [path.relative_to(tmp_path).as_posix() for path in files_below(tmp_path, private_keys=keys)]
    assert sorted(packed) == ["app.py", "certs/ca.pem", "large.key", "release.key.pub"]
    assert sorted(keys) == ["certs/server.pem", "release.key"]

    (tmp_path / ".pilotlightignore").write_text("!certs/server.pem\n")
    assert "certs/server.pem" in found(tmp_path)
    assert "release.key" not in found(tmp_path)


def test_what_cannot_be_read_is_no_key(tmp_path: Path) -> None:
    assert not is_private_key(tmp_path / "nothing")


def test_the_ignore_file_has_the_syntax_of_gitignore(tmp_path: Path) -> None:
    """Its rules come last, and it is not packed itself."""
    write(tmp_path, "app.py", "data/a.bin", "data/keep.bin", "notes.md", "deep/notes.md", "build/x", ".env.example")
    (tmp_path / ".pilotlightignore").write_text("data/*\n!data/keep.bin\n/notes.md\nbuild/\n!.env.example\n# comment\n")
    assert found(tmp_path) == [".env.example", "app.py", "data/keep.bin", "deep/notes.md"]


def test_a_path_that_no_container_could_have_is_refused(tmp_path: Path) -> None:
    """A path is bounded in all, however short its parts are."""
    folder = tmp_path / "long"
    write(folder, "/".join(["a" * 200] * 3) + "/x.txt")
    with pytest.raises(PackError, match=f"has a path of more than {MAX_PATH} characters") as caught:
        found(folder)
    assert caught.value.more["field"] == "files"


def test_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """Linux takes any bytes as a name; a manifest does not."""
    (tmp_path / os.fsdecode(b"\xff.txt")).touch()
    with pytest.raises(PackError, match="has a name that cannot travel"):
        found(tmp_path)


@pytest.mark.parametrize("name", ["gnp\u202epy.app", "a\u2066b", "a\x9bb"])
def test_a_name_that_misleads_is_refused(tmp_path: Path, name: str) -> None:
    """It would be shown as another one; the platform refuses it too."""
    write(tmp_path / name, "x")
    with pytest.raises(PackError, match="has a name that cannot travel"):
        list(files_below(tmp_path))


def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """The error has the reason and the remedy."""
    with pytest.raises(PackError, match=r"gone cannot be read \(No such file or directory\): name it in .pilot"):
        list(files_below(tmp_path / "gone"))


def test_the_last_rule_that_matches_holds() -> None:
    """An ignore file is optional; what is always ignored needs none."""
    rules = ignore_rules(Path("/nowhere"))
    assert rules.match_file("deep/.env")
    assert not rules.match_file("app.py")
