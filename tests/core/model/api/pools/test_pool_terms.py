"""What operators say of a pool."""

from __future__ import annotations

from msgspec.structs import replace

from pilotlight_core.model.api.pools.pool_terms import Ec2Terms, MachineType, PoolTerms
from pilotlight_core.model.placing import Purchase

SMALL, LARGE = MachineType(name="small", gpus="1xL4"), MachineType(name="large", gpus="8xL4")
EC2 = Ec2Terms(image="ami-1", subnets={"a": "subnet-1"}, join_url="https://gw")
TERMS = PoolTerms(types=(SMALL, LARGE), ec2=EC2)


def test_a_machine_drifts_when_it_would_be_made_otherwise() -> None:
    """Another image, purchase or hardware; not for a price, a limit, a further type, or who hears of it."""
    now = TERMS.digest_of("small")
    for other in (
        replace(TERMS, ec2=replace(EC2, image="ami-2")), replace(TERMS, purchase=Purchase.SPOT),
        replace(TERMS, types=(replace(SMALL, gpus="1xT4"), LARGE)), replace(TERMS, types=(LARGE,)),
        replace(TERMS, bases=("default", "cuda")),
    ):  # fmt: skip
        assert other.digest_of("small") != now
    for same in (
        replace(TERMS, types=(replace(SMALL, usd_per_hour=3.0),)), replace(TERMS, most_nodes=9, weight=5),
        replace(TERMS, ec2=replace(EC2, queue_url="https://sqs")), replace(TERMS, zones=("a",)),
    ):  # fmt: skip
        assert same.digest_of("small") == now
    assert TERMS.digest != replace(TERMS, types=(SMALL,)).digest
