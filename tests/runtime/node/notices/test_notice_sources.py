"""The setting that names who is asked."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import BadInput
from pilotlight_runtime.node.notices.aws_notices import AwsNotices
from pilotlight_runtime.node.notices.azure_notices import AzureNotices
from pilotlight_runtime.node.notices.file_notices import FileNotices
from pilotlight_runtime.node.notices.gcp_notices import GcpNotices
from pilotlight_runtime.node.notices.notice_sources import notice_source


async def test_each_name_has_its_source() -> None:
    """None: nobody is asked."""
    kinds = {"aws": AwsNotices, "gcp": GcpNotices, "azure": AzureNotices, "file:/tmp/notice": FileNotices}
    for setting, kind in kinds.items():
        assert type(notice_source(setting)) is kind
    assert notice_source("none") is None
    assert notice_source("") is None


@pytest.mark.parametrize("setting", ["ec2", "file:", "file", "AWS"])
def test_another_name_is_refused_with_those_that_there_are(setting: str) -> None:
    """The setting is named."""
    with pytest.raises(BadInput, match="--notices: expected aws, gcp, azure, file:PATH or none"):
        notice_source(setting)
