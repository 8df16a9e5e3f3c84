"""Which provider a pool has."""

from __future__ import annotations

from pathlib import Path

import pytest

from pilotlight_autoscaler.pools.providers.ec2_pool import Ec2Pool
from pilotlight_autoscaler.pools.providers.local_pool import LocalPool
from pilotlight_autoscaler.pools.providers.pool_opener import pool_opener
from pilotlight_core.model.api.pools.pool_terms import Ec2Terms, KubernetesTerms, PoolProvider
from tests.builders.pools import pool


def test_a_pool_is_opened_by_its_provider(tmp_path: Path) -> None:
    """One that does not say how, or is on a cluster that this process is not in, is refused in words."""
    opened = pool_opener(tmp_path)
    ec2 = Ec2Terms(image="ami-1", subnets={"a": "subnet-1"}, join_url="https://gw")
    assert isinstance(opened(pool(provider=PoolProvider.LOCAL)), LocalPool)
    assert isinstance(opened(pool(ec2=ec2)), Ec2Pool)
    with pytest.raises(ValueError, match="how its machines are made"):
        opened(pool())
    with pytest.raises(ValueError, match="how its agents are made"):
        opened(pool(provider=PoolProvider.KUBERNETES))
    with pytest.raises(ValueError, match="in no pod"):
        opened(pool(provider=PoolProvider.KUBERNETES, kubernetes=KubernetesTerms()))
