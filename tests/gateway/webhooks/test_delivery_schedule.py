"""Who is sent next."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pilotlight_gateway.webhooks.delivery_schedule import DeliveryLimits, DeliverySchedule, EndpointKey
from tests.example_counts import examples

BOUNDS = DeliveryLimits(webhook=2, tenant=3, total=5)
LINES = [EndpointKey(tenant, f"wh{number}") for tenant in ("a", "b", "c") for number in range(2)]


def keys(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def test_what_is_due_is_taken_in_its_order() -> None:
    """Not before its time; what is under way is not taken twice."""
    agenda = DeliverySchedule()
    agenda.put("late", LINES[0], 10.0)
    agenda.put("early", LINES[0], 5.0)

    assert agenda.take(4.9) == []
    assert agenda.next_at() == 5.0
    assert agenda.take(5.0) == ["early"]
    assert agenda.take(20.0) == ["late"]
    assert agenda.take(20.0) == []
    assert agenda.next_at() is None


def test_what_is_done_is_due_as_last_put() -> None:
    """A new instant counts once the present attempt is over; what was dropped is over."""
    agenda = DeliverySchedule()
    for key in ("again", "over"):
        agenda.put(key, LINES[0], 0.0)
    assert sorted(agenda.take(0.0)) == ["again", "over"]
    agenda.put("again", LINES[0], 7.0)
    agenda.drop("over")
    assert agenda.next_at() is None
    for key in ("again", "over"):
        agenda.done(key)

    assert agenda.next_at() == 7.0
    assert len(agenda) == agenda.pending(LINES[0]) == 1


def test_a_line_that_has_run_empty_is_in_nobodys_way() -> None:
    """What is due next is told past it."""
    agenda = DeliverySchedule(DeliveryLimits(webhook=1, tenant=5, total=5))
    agenda.put("over", LINES[0], 0.0)
    assert agenda.take(0.0) == ["over"]
    agenda.put("next", LINES[2], 5.0)
    agenda.put("later", LINES[4], 6.0)
    agenda.drop("over")

    assert agenda.next_at() == 5.0


def test_a_slow_receiver_holds_up_nobody_else() -> None:
    """Its own deliveries wait for it; its tenant's others and other tenants' do not."""
    agenda = DeliverySchedule(DeliveryLimits(webhook=2, tenant=3, total=100))
    slow, same_tenant, other = LINES[0], LINES[1], LINES[2]
    for key in keys("slow", 1_000):
        agenda.put(key, slow, 0.0)
    assert len(agenda.take(0.0)) == 2  # never done

    agenda.put("sibling", same_tenant, 1.0)
    agenda.put("other", other, 1.0)

    assert sorted(agenda.take(1.0)) == ["other", "sibling"]


def test_lines_take_turns() -> None:
    """However long one is, each gets as many as another while room is short."""
    agenda = DeliverySchedule(DeliveryLimits(webhook=10, tenant=10, total=6))
    for line, count in ((LINES[0], 100), (LINES[2], 3), (LINES[4], 3)):
        for key in keys(line.tenant, count):
            agenda.put(key, line, 0.0)

    assert sorted(key[0] for key in agenda.take(0.0)) == ["a", "a", "b", "b", "c", "c"]


class AgendaMachine(RuleBasedStateMachine):
    """Against a model: a dictionary of what is due and a set of what is under way."""

    def __init__(self) -> None:
        super().__init__()
        self.agenda = DeliverySchedule(BOUNDS)
        self.due: dict[str, tuple[float, EndpointKey]] = {}
        self.under_way: dict[str, EndpointKey] = {}
        self.now = 0.0

    @rule(number=st.integers(0, 15), line=st.sampled_from(LINES), delay=st.floats(0, 10))
    def put(self, number: int, line: EndpointKey, delay: float) -> None:
        key = f"{line.tenant}.{line.webhook}.{number}"
        self.agenda.put(key, line, self.now + delay)
        self.due[key] = (self.now + delay, line)

    @precondition(lambda self: self.due)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.due)))
        self.agenda.drop(key)
        del self.due[key]
        self.under_way.pop(key, None)

    @precondition(lambda self: self.under_way)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.under_way)))
        self.agenda.done(key)
        del self.under_way[key]

    @rule(seconds=st.floats(0, 10))
    def take(self, seconds: float) -> None:
        self.now += seconds
        for key in self.agenda.take(self.now):
            at, line = self.due[key]
            assert at <= self.now
            assert key not in self.under_way
            self.under_way[key] = line
        waiting = [key for key, (at, _) in self.due.items() if at <= self.now and key not in self.under_way]
        assert all(self.is_held_up(self.due[key][1]) for key in waiting)  # nothing waits without a reason
        following = self.agenda.next_at()
        assert following is None or following > self.now

    def is_held_up(self, line: EndpointKey) -> bool:
        lines = list(self.under_way.values())
        return (
            len(lines) >= BOUNDS.total
            or lines.count(line) >= BOUNDS.webhook
            or sum(other.tenant == line.tenant for other in lines) >= BOUNDS.tenant
        )

    @invariant()
    def adds_up(self) -> None:
        self.agenda.check_integrity()
        assert len(self.agenda) == len(self.due)
        assert self.agenda.under_way == len(self.under_way)
        for line in LINES:
            assert self.agenda.pending(line) == sum(of == line for _, of in self.due.values())


TestAgenda = AgendaMachine.TestCase
TestAgenda.settings = examples(60, stateful_step_count=40)
