"""Decisions in sentences, and whether the sentences are true."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given

from pilotlight_core.model.devices import MigPlacement
from pilotlight_core.model.messages.node_messages import HostShare
from pilotlight_core.model.placing import Over, Purchase, Spread
from pilotlight_core.model.spec import Isolation
from pilotlight_placement.asks.ask import CPU, Ask
from pilotlight_placement.asks.curves import Curves, ThroughputPoint, whole
from pilotlight_placement.asks.options import key_of, options, slot_options
from pilotlight_placement.asks.resident_ask import ResidentAsk
from pilotlight_placement.explain.explanation import REASONS, explain, fleet_at, ruled_out, rules, why_not
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.fleet.history import Journal
from pilotlight_placement.fleet.occupancy import Unit
from pilotlight_placement.hardware.catalogue import is_kind
from pilotlight_placement.hardware.node import Node, PlacedContainer, Slice, in_memory
from pilotlight_placement.search.decision_record import NoFit, Placement
from pilotlight_placement.search.filters import FILTERS, refusal_at
from pilotlight_placement.search.place import place
from pilotlight_placement.search.policy import STEPS
from tests.example_counts import SLOW, examples
from tests.placement.makers import CHURN as HISTORY
from tests.placement.makers import W, ask, asks, fill, gpu, node, some_nodes


def placed(fleet: Fleet, wanted: Ask) -> Placement:
    found = place(fleet, wanted)
    assert isinstance(found, Placement)
    return found


def test_the_winner_and_the_best_loser_of_each_step_are_told() -> None:
    """Each loser is equal in all steps before the one at which it lost."""
    fleet = Fleet([
        node("a", gpu("g1", mig=True)), node("b", gpu("g2", mig=True)), node("c", gpu("g3", "B200", mig=True)),
        node("d", gpu("g4", mig=True), resident=frozenset(("w",))),
    ])  # fmt: skip
    found = placed(fleet, ask("ANY", gib=5, resident=(W,)))

    told = explain(found, "c1")

    assert told[0] == "c1 runs on 1g at 6 of an H100-80GB on d."
    assert told[1] == "Of 4 devices and slots 4 would do."
    assert any("d has them" in line and "(rule: resident)" in line for line in told)


def test_weights_in_memory_go_before_those_on_disk() -> None:
    """It says which of both a node has; of weights that were pushed the digest is shortened."""
    weights = f"acme:@{'a' * 64}"
    nodes = (
        node("a", gpu("g1", "T4"), resident=frozenset({weights})),
        node("b", gpu("g2", "T4"), resident=frozenset({weights, in_memory(weights)})),
    )
    told = explain(placed(Fleet(nodes), ask("T4", resident=(ResidentAsk(weights),))), "c1")
    assert told[0].endswith("on b.")
    assert any("a has the weights acme:@aaaaaaaaaaaa on its disk, b has them in memory" in line for line in told)


def test_of_several_things_the_bytes_are_told() -> None:
    """How much less a node has at hand, and of what."""
    weights, packages = ResidentAsk(f"acme:@{'a' * 64}", 2**33), ResidentAsk("env_1", 2**28, is_built=True)
    nodes = (
        node("a", gpu("g1", "T4"), resident=frozenset({"env_1"})),
        node("b", gpu("g2", "T4"), resident=frozenset({weights.id})),
    )
    told = explain(placed(Fleet(nodes), ask("T4", resident=(weights, packages))), "c1")
    assert told[0].endswith("on b.")
    said = "of the weights acme:@aaaaaaaaaaaa and the packages env_1 a has 6.8 GiB less at hand than b (rule: resident)"
    assert any(said in line for line in told)
    alone = explain(placed(Fleet([nodes[0], node("c", gpu("g3", "T4"))]), ask("T4", resident=(packages,))))
    assert any("c would have to build the packages env_1, a has them" in line for line in alone)


def test_places_that_are_called_alike_are_told_apart() -> None:
    """Two GPUs of a kind on one node: the other one by its name."""
    found = placed(Fleet([node("a", gpu("g1", mig=True), gpu("g2", mig=True))]), ask("H100", gib=5))
    (other,) = {"g1", "g2"} - set(found.slice.ids)

    assert any(line.startswith(f"Not {found.slice} ({other}): ") for line in explain(found))


def test_each_step_has_its_own_sentence() -> None:
    """Preference, spread, cost and order."""
    curves = Curves({("T4", whole()): (ThroughputPoint(batch=1, throughput=10, p95_ms=9),)})
    fleet = Fleet([
        node("a", gpu("g1", "T4"), zone="x"), node("b", gpu("g2", "T4"), zone="y"),
        node("c", gpu("g3", "T4"), zone="y"), node("d", gpu("g4", "A10"), zone="y"),
    ])  # fmt: skip
    fleet.hold(PlacedContainer(container="old", slice=placed(fleet, ask("T4", zones=("x",))).slice, function="f"))
    wanted = ask("T4", "A10", function="f", spread=Spread(over=Over.ZONE))

    told = " ".join(explain(placed(fleet, wanted)))
    assert "A10 stands after T4 in the function's list" in told
    assert "(rule: order)" in told

    cheap = " ".join(explain(placed(fleet, ask("T4", "A10", by_cost=True, curves=curves))))
    assert "was never measured there" in cheap
    dear = " ".join(explain(placed(fleet, ask("T4", "A10", by_cost=True))))
    assert "86 % more" in dear or "8" in dear
    assert "(rule: cost)" in dear


def test_an_instance_that_exists_saves_making_one() -> None:
    """Between places that are equal otherwise."""
    idle = (MigPlacement(start=6, profile="1g"),)
    for first in ("a", "b"):
        fleet = Fleet([node(name, gpu(f"g{name}", mig=True, instances=idle if name == first else ())) for name in "ab"])
        found = placed(fleet, ask("H100", gib=5))

        assert found.slice.node == first
        assert "its instance would have to be made first" in " ".join(explain(found))


def test_a_refusal_says_how_many_and_why() -> None:
    """Counts by filter, in the order in which they are asked."""
    fleet = Fleet(
        [node("a", gpu("g1", "T4"), gpu("g2", "T4")), node("b", gpu("g3")), node("c", gpu("g4"), draining=True)]
    )
    fleet.hold(PlacedContainer(container="x", slice=placed(fleet, ask("H100")).slice))

    found = place(fleet, ask("H100", gib=20))

    assert isinstance(found, NoFit)
    assert not found.never
    told = explain(found, "c1")
    assert told[0] == "c1 has no place: the only device or slot that could hold H100 with 20.0 GiB is in use."
    assert told[1] == "Of 4 devices and slots 0 would do: 1 on nodes that are draining, 2 of other types, 1 in use."


def test_what_can_never_fit_names_the_largest_slice_and_what_is_missing() -> None:
    """The largest that exists of a type that is asked for."""
    fleet = Fleet([node("a", gpu("g1", "T4")), node("b", gpu("g2", mig=True), gpu("g3", "A100-40GB"))])

    found = place(fleet, ask("H100", "A100", gib=100))

    assert isinstance(found, NoFit)
    assert found.never
    assert "the largest slice that exists is 7g.80gb of H100-80GB with 79.2 GiB: 20.8 GiB are missing" in found.reason


def test_why_not_looks_at_the_fleet_as_it_was() -> None:
    """Later changes do not count; the chosen node and one that is not there say so."""
    fleet = Fleet([node("a", gpu("g1", "T4")), node("b", gpu("g2", "T4")), node("c", gpu("g3", "L4"))])
    found = placed(fleet, ask("T4"))
    other = "b" if found.slice.node == "a" else "a"
    fleet.hold(PlacedContainer(container="x", slice=found.slice))
    fleet.hold(PlacedContainer(container="y", slice=placed(fleet, ask("T4")).slice))

    assert why_not(fleet, found, "c") == ["c: it is a GPU (L4), the ask is for T4."]
    assert "comes first in the fixed order (rule: order)" in why_not(fleet, found, other)[0]
    assert why_not(fleet, found, found.slice.node) == [f"{found.slice.node} was chosen: a whole T4."]
    assert why_not(fleet, found, "z") == ["There was no node z at revision 3; there were: a, b, c."]


def test_a_state_that_is_gone_is_said_to_be_gone() -> None:
    """The journal is bounded; nothing is made up."""
    fleet = Fleet([node("a", gpu("g1", "T4")), node("b", gpu("g2", "T4"))])
    fleet.journal = Journal(most=1)
    found = placed(fleet, ask("T4"))
    fleet.hold(PlacedContainer(container="x", slice=found.slice))
    fleet.release("x")

    told = why_not(fleet, found, "b")

    assert told == ["The fleet's state at revision 2 is gone; it is at revision 4 now."]


def test_why_not_of_a_plan_knows_what_the_plan_had_done_before() -> None:
    """The decision was made after the plan's own first steps, which were taken back."""
    fleet = Fleet([node("a", gpu("g1", "T4")), node("b", gpu("g2", "T4"))])
    with fleet.trial():
        first = placed(fleet, ask("T4"))
        fleet.hold(PlacedContainer(container="x", slice=first.slice))
        second = placed(fleet, ask("T4"))

    told = why_not(fleet, second, first.slice.node)

    assert told == [f"{first.slice.node}: nothing that would do is free: it is taken."]


def test_the_rules_are_told_in_their_order() -> None:
    """One sentence each."""
    assert len(rules()) == len(FILTERS) + len(STEPS)
    assert rules()[0].startswith("draining: ")
    assert all(line.endswith(".") for line in rules())


@examples(60, fewer=SLOW)
@given(some_nodes(), HISTORY, asks(), HISTORY)
def test_every_rejection_has_a_true_reason_and_keeps_it(
    nodes: list[Node], before: list[tuple[Ask, int]], wanted: Ask, after: list[tuple[Ask, int]]
) -> None:
    """Each reason is checked by its meaning, and is the same after the fleet has changed."""
    fleet = Fleet(nodes)
    fill(fleet, before)
    found = place(fleet, wanted)
    for unit in fleet.units.values():
        refusal = refusal_at(fleet, unit, wanted)
        if refusal is not None:
            assert is_true(fleet, unit, wanted, refusal[0].name), refusal
    told = {name: why_not(fleet, found, name) for name in fleet.places}
    assert all(told.values())
    assert ruled_out(found.record).startswith(f"Of {len(fleet.units)} device")
    assert explain(found)

    for container in list(fleet.held):
        fleet.release(container)
    fill(fleet, after)
    fleet.put(replace(nodes[0], draining=not nodes[0].draining))

    assert {name: why_not(fleet, found, name) for name in fleet.places} == told


def is_true(fleet: Fleet, unit: Unit, wanted: Ask, name: str) -> bool:  # noqa: C901 - one line a filter
    """Whether a filter's claim holds, by its meaning and not by the filter's own code."""
    node, domain = unit.node.node, unit.node.node.domain
    runs = [held for held in fleet.held.values() if held.slice.node == node.name]
    match name:
        case "draining":
            return node.draining
        case "health":
            return unit.gpu is not None and bool(unit.gpu.withdrawn)
        case "region":
            return domain.region not in wanted.regions
        case "zone":
            return domain.zone not in wanted.zones
        case "purchase":
            return domain.spot is (wanted.purchase is Purchase.ON_DEMAND)
        case "base":
            return wanted.base not in domain.abilities.bases
        case "feature":
            return any(need not in domain.abilities.features for need in wanted.needs)
        case "shm" | "scratch" | "pids":
            return bool(getattr(wanted, name) > getattr(domain.abilities, name))
        case "type":
            is_cpu = unit.slot is not None
            return not any(
                (c.type == CPU) == is_cpu and (is_cpu or is_kind(c.type, unit.group.kind.name)) for c in wanted.choices
            )
        case "count":
            return any(choice.count > 1 for choice in wanted.choices)
        case "vram":
            counts = [1] if unit.gpu and unit.gpu.mig else [choice.count for choice in wanted.choices]
            assert unit.gpu is not None
            sizes = [cut.memory for cut in unit.gpu.device.cuts] if unit.gpu.mig else [unit.gpu.device.memory]
            return all(wanted.mib(count) > max(sizes) for count in counts)
        case "isolation":
            return wanted.isolation is not Isolation.SHARED or wanted.media
        case "slice":
            return wanted.slice not in keys_on(unit, replace(wanted, slice="", slo_ms=None))
        case "slo":
            keys = keys_on(unit, replace(wanted, slo_ms=None))
            return bool(keys) and all(is_known_slow(wanted, key) for key in keys)
        case "memory":
            return node.host is not None and node.host.memory - promised(fleet, node).memory < wanted.memory
        case "cpu":
            return node.host is not None and node.host.cpu_millis - promised(fleet, node).cpu_millis < wanted.cpu
        case "avoid":
            return any(held.function in wanted.avoid or wanted.function in held.avoid for held in runs)
        case "spread":
            assert wanted.spread is not None
            same = [held for held in fleet.held.values() if held.function == wanted.function]
            where = [fleet.places[held.slice.node].node for held in same]
            over_node = wanted.spread.over is Over.NODE
            there = [n for n in where if (n.name == node.name if over_node else n.domain.zone == domain.zone)]
            return len(there) >= (wanted.spread.most or 0)
    return name == "room" and not has_room(fleet, unit, wanted)


def promised(fleet: Fleet, node: Node) -> HostShare:
    """What the containers of a node are promised of its host."""
    there = [held.host for held in fleet.held.values() if held.slice.node == node.name]
    return HostShare(cpu_millis=sum(each.cpu_millis for each in there), memory=sum(each.memory for each in there))


def keys_on(unit: Unit, wanted: Ask) -> set[str]:
    """The kinds of slices of a unit that would hold the ask, in use or not."""
    if unit.slot is not None:
        return {"CPU/slot"} if isinstance(slot_options(wanted, unit.slot), list) else set()
    assert unit.gpu is not None
    device = unit.gpu.device
    made = options(wanted, device, mig=unit.gpu.mig, shareable=unit.gpu.shareable)
    assert isinstance(made, list)
    return {f"{device.name}/{key_of(option, device)}" for option in made}


def is_known_slow(wanted: Ask, key: str) -> bool:
    """Whether all that is known of it is too slow, and some of that for sure; a share may go by its whole."""
    assert wanted.curves is not None
    assert wanted.slo_ms is not None
    device, cut = key.split("/")
    known = wanted.curves.points
    points = known.get((device, cut)) or (known.get((device, "whole"), ()) if cut.startswith("share") else ())
    return all(p.p95_ms > wanted.slo_ms for p in points) and any(p.hard for p in points)


def has_room(fleet: Fleet, unit: Unit, wanted: Ask) -> bool:
    """Whether any slice that would do could be taken on the unit now, tried one by one."""
    if unit.slot is not None:
        slices = [Slice(node=unit.node.name, kind=unit.slot.kind, type="", ids=(unit.id,), memory=0, slot=True)]
        return isinstance(slot_options(wanted, unit.slot), list) and can(fleet, slices, wanted)
    assert unit.gpu is not None
    made = options(wanted, unit.gpu.device, mig=unit.gpu.mig, shareable=unit.gpu.shareable)
    assert isinstance(made, list)
    slices = []
    for option in made:
        others = [u for u in unit.node.by_group[unit.group] if u.is_empty and u is not unit]
        empty = [u.id for u in others if u.gpu is not None and not u.gpu.withdrawn]
        base = Slice(node=unit.node.name, kind=option.kind, type="", ids=(unit.id,), memory=0, units=option.units)
        if option.profile >= 0:
            cut = unit.gpu.device.cuts[option.profile].profile
            slices += [replace(base, profile=cut.key, start=start) for start in cut.starts]
        elif len(empty) + 1 >= option.count:
            slices.append(replace(base, ids=(unit.id, *empty[: option.count - 1])))
    return can(fleet, slices, wanted)


def can(fleet: Fleet, slices: list[Slice], wanted: Ask) -> bool:
    holds = [
        PlacedContainer(container="new", slice=s, tenant=wanted.tenant, neighbours=wanted.neighbours) for s in slices
    ]
    return any(not fleet.refusal(held) for held in holds)


def test_of_two_gpus_of_one_node_no_node_is_said_to_stand_first() -> None:
    """The order of nodes does not separate devices of one node."""
    found = placed(Fleet([node("n", gpu("g1", "T4"), gpu("g2", "T4"))]), ask("T4"))
    value = found.record.value
    assert value is not None

    told = REASONS["order"](ask("T4"), found.slice, value, found.slice, value)
    assert told == "the two are equal by every other rule, and the other one comes first on n"


@examples(60, fewer=SLOW)
@given(some_nodes(), HISTORY, HISTORY, asks())
def test_the_rebuilt_fleet_is_the_one_that_was(
    nodes: list[Node], before: list[tuple[Ask, int]], after: list[tuple[Ask, int]], wanted: Ask
) -> None:
    """Holds, nodes and demand: so the same ask gets the same place there, whatever happened since."""
    fleet = Fleet(nodes)
    fill(fleet, before)
    decided, held = place(fleet, wanted), dict(fleet.held)
    for name in list(held):
        fleet.release(name)
    fill(fleet, after)
    fleet.remove(min(fleet.places))

    then = fleet_at(fleet, decided.record)

    assert then is not None
    assert then.held == held
    assert {name: place.node for name, place in then.places.items()} == {each.name: each for each in nodes}
    assert place(then, wanted).record.value == decided.record.value


def test_a_revision_that_the_journal_forgot_is_gone() -> None:
    """Nothing is guessed."""
    fleet = Fleet([node("n", gpu("g", "T4"))])
    record = place(fleet, ask("T4")).record
    fleet.drain("n")
    fleet.journal = Journal()

    assert fleet_at(fleet, record) is None
