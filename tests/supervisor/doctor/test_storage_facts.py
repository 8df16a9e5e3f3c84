"""Where state is kept, and what is closed to others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pilotlight_supervisor.doctor.finding import Health, HostRole
from pilotlight_supervisor.doctor.storage_facts import (
    GIB,
    SecretFile,
    StorageFacts,
    filesystem_of,
    read_secret_files,
    read_storage,
    secret_file_findings,
    storage_findings,
)

GOOD = StorageFacts(
    state_dir="/var/lib/pilotlight", folder="/var/lib/pilotlight", filesystem="ext4", free=100 * GIB,
    free_inodes=10**6, sync_s=0.002,
)  # fmt: skip
MOUNTS = """\
1 0 8:1 / / rw - ext4 /dev/sda rw
2 1 0:5 / /var/lib rw shared:1 - xfs /dev/sdb rw
3 1 0:6 / /var/lib/my\\040state rw - nfs4 host:/x rw
4 1 0:7 / /mnt rw - ext4 /dev/sdc rw
5 4 0:8 / /mnt rw - tmpfs tmpfs rw
"""


def test_a_good_disk_has_nothing_to_say() -> None:
    """For any role."""
    assert {each.health for role in HostRole for each in storage_findings(GOOD, role)} == {Health.OK}


@pytest.mark.parametrize(
    ("facts", "name", "health"),
    [
        *((replace(GOOD, filesystem=kind), "state folder", "fail") for kind in ("tmpfs", "nfs4", "cifs", "fuse.sshfs")),
        (replace(GOOD, sync_s=None, problem="Permission denied"), "fsync", "fail"),
        (replace(GOOD, sync_s=0.5), "fsync", "warn"),
        (replace(GOOD, free=5 * GIB), "disk", "warn"),
        (replace(GOOD, free=GIB // 2), "disk", "fail"),
        (replace(GOOD, free_inodes=100), "inodes", "warn"),
    ],
)
def test_each_fault_fails_its_own_line(facts: StorageFacts, name: str, health: str) -> None:
    """With what to do."""
    (bad,) = (each for each in storage_findings(facts, HostRole.NODE) if each.health is not Health.OK)

    assert (bad.name, bad.health) == (name, health)
    assert bad.todo


@pytest.mark.parametrize(
    ("folder", "kind"),
    [("/etc", "ext4"), ("/var/lib/pilotlight", "xfs"), ("/var/lib/my state/x", "nfs4"), ("/var/library", "ext4"),
     ("/mnt", "tmpfs")],
)  # fmt: skip
def test_a_folder_is_on_the_nearest_mount(folder: str, kind: str) -> None:
    """Of two at one place on the later one."""
    assert filesystem_of(folder, MOUNTS) == kind


def test_a_folder_that_is_not_there_yet_is_not_made(tmp_path: Path) -> None:
    """The nearest one above is tried, and nothing stays there."""
    facts = read_storage(tmp_path / "var" / "state")

    assert (facts.folder, facts.state_dir) == (str(tmp_path), str(tmp_path / "var" / "state"))
    assert facts.sync_s is not None
    assert facts.filesystem
    assert list(tmp_path.iterdir()) == []
    line = next(iter(storage_findings(facts, HostRole.NODE)))
    assert "since it is not there yet" in line.found


def test_secret_files_are_closed(tmp_path: Path) -> None:
    """Those that are named, and those that processes keep; public halves are for all."""
    keys = tmp_path / "keys"
    keys.mkdir()
    for name, mode in (("manifest_ed25519", 0o600), ("manifest_ed25519.pub", 0o644), ("secrets_aes256", 0o640)):
        (keys / name).touch(mode)
        (keys / name).chmod(mode)
    found = {each.name: each for each in secret_file_findings(read_secret_files([tmp_path / "node.json"], tmp_path))}

    assert {name: each.health for name, each in found.items()} == {
        "secret file node.json": "fail", "secret file manifest_ed25519": "ok", "secret file secrets_aes256": "fail",
    }  # fmt: skip
    assert found["secret file secrets_aes256"].todo == f"chmod 600 {keys / 'secrets_aes256'}"
    assert "No such file" in found["secret file node.json"].found


def test_the_mode_is_said() -> None:
    """As chmod takes it."""
    (line,) = secret_file_findings([SecretFile(path="/etc/pilotlight/node.json", mode=0o644)])

    assert line.found == "/etc/pilotlight/node.json has mode 0644"
