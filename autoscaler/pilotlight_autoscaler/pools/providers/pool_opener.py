"""Which provider a pool's machines come from."""

from __future__ import annotations

from pathlib import Path

from pilotlight_autoscaler.pools.node_pool import NodePool
from pilotlight_autoscaler.pools.open_pools import OpenPool
from pilotlight_autoscaler.pools.providers.ec2_pool import Ec2Pool
from pilotlight_autoscaler.pools.providers.local_pool import LocalPool
from pilotlight_core.model.api.pools.pool_terms import PoolProvider
from pilotlight_core.model.records.pools import PoolRecord


def pool_opener(state_dir: Path) -> OpenPool:
    """Opens pools for one controller; local ones are those of the machine with this state folder."""

    def opened(record: PoolRecord) -> NodePool:
        match record.terms.provider:
            case PoolProvider.LOCAL:
                return LocalPool(record.name, state_dir)
            case PoolProvider.EC2:
                return Ec2Pool(record)
            case PoolProvider.KUBERNETES:
                # A controller without such a pool does not load httpx.
                from pilotlight_autoscaler.pools.providers import kubernetes_pool

                return kubernetes_pool.KubernetesPool(record, kubernetes_pool.cluster_access())

    return opened
