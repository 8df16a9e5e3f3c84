"""The source of notices that a setting names: `--notices aws|gcp|azure|file:PATH|none`."""

from __future__ import annotations

from pathlib import Path

from pilotlight_core.model.errors import BadInput
from pilotlight_runtime.node.notices.aws_notices import AwsNotices
from pilotlight_runtime.node.notices.azure_notices import AzureNotices
from pilotlight_runtime.node.notices.file_notices import FileNotices
from pilotlight_runtime.node.notices.gcp_notices import GcpNotices
from pilotlight_runtime.node.notices.notice_port import NoticeSource

FILE = "file:"


def notice_source(setting: str) -> NoticeSource | None:
    """Whom the node asks; None: nobody.

    Raises:
        BadInput
    """
    match setting:
        case "" | "none":
            return None
        case "aws":
            return AwsNotices()
        case "gcp":
            return GcpNotices()
        case "azure":
            return AzureNotices()
    if setting.startswith(FILE) and (path := setting.removeprefix(FILE)):
        return FileNotices(Path(path).expanduser())
    raise BadInput(f"--notices: expected aws, gcp, azure, file:PATH or none, got {setting!r:.80}.", field="notices")
