"""Which tokens of which sequences a step computes, and who holds the room for keys and values.

Theory of operation. A step has a budget of tokens. Sequences that wait for one token each (*decodes*) come first: a
stream does not stall because others have long prompts. The rest of the budget goes to prompts (*prefills*), in chunks
of a quantum, each to the tenant that is furthest behind in tokens over weight; a higher priority goes before all that.
A token of a prompt that is deep in its context takes the place of several, since attention works on all that is before
it: so a step takes about as long whatever it computes, and who comes meanwhile waits for no long one. What tenants get
is counted in tokens nevertheless.

A sequence begins when there is room for all its tokens and the next one, so that a prefill never stops half-way for
want of room; decodes take a block when they cross into one. If then there is none, the youngest sequence of the lowest
priority gives up its blocks, of tenants that hold more than their share first, and goes back to the queue with what it
has generated: it is computed again, mostly from blocks that nobody has overwritten meanwhile.

While others wait, a tenant begins nothing beyond its share of the room; and a tenant within its share takes room back
from those beyond theirs. A share is the tenant's weight over that of all who have sequences here. A tenant that has
nothing running, and whose one sequence needs more than a share, waits until there is room, and nobody begins before
it.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass

from pilotlight_engine.engine_port import GenRequest
from pilotlight_engine.scheduling.kv_blocks import KvBlocks
from pilotlight_engine.scheduling.kv_shares import KvShares
from pilotlight_engine.scheduling.prefix_hashes import next_hash
from pilotlight_engine.scheduling.token_sequence import StepPlan, StepSpan, TokenSequence
from pilotlight_engine.scheduling.token_shares import TokenShares


@dataclass(frozen=True, kw_only=True, slots=True)
class SchedulerLimits:
    """What bounds a step, and the queue."""

    token_budget: int = 512
    """The most tokens of a step."""
    max_running: int = 64
    max_waiting: int = 1024
    quantum: int = 128
    """How many tokens of a prompt one tenant gets before it is asked again who is furthest behind."""
    burst: int = 4096
    """How many tokens a tenant gets at once, at weight 1, that was absent."""
    prefix_cache: bool = True
    watermark: float = 0.01
    """Of all blocks, what stays free for decodes when a sequence begins beside others."""
    attention_tokens: int | None = None
    """A token of a prompt takes one token's place of the budget more for each so many before it. None: it does not."""

    def __post_init__(self) -> None:
        if self.token_budget < 1 or self.max_running < 1 or self.quantum < 1:
            raise ValueError("token_budget, max_running and quantum are at least 1")
        if self.attention_tokens is not None and self.attention_tokens < 1:
            raise ValueError("attention_tokens is at least 1")

    def places(self, position: int) -> int:
        """How many places of the budget a token of a prompt takes, of which so many are before it."""
        return 1 if self.attention_tokens is None else 1 + position // self.attention_tokens


class StepScheduler:
    """The sequences of one engine. It computes nothing, and knows no time."""

    def __init__(
        self, blocks: KvBlocks, limits: SchedulerLimits, may_start: Callable[[TokenSequence], bool] | None = None
    ) -> None:
        self.blocks = blocks
        self.limits = limits
        self.token_budget = limits.token_budget
        """What is left of the limit's after a lack of memory."""
        self.running: dict[str, TokenSequence] = {}
        self.preempted = 0
        self.prefix_hits = 0
        self.prefix_tokens = 0
        self.steps = 0
        self._may_start = may_start or (lambda _: True)
        self._waiting: dict[str, list[TokenSequence]] = {}
        """By tenant: higher priority first, then who came first. No empty ones."""
        self._arrivals = 0
        self._tokens = TokenShares(limits.burst)
        self._shares = KvShares(blocks=blocks.blocks, slots=limits.max_running)
        self._spans: dict[str, StepSpan] = {}
        """Of the step that is being planned."""
        self._places: dict[str, int] = {}
        """Of the budget, by the same sequences."""
        self._budget = 0

    # -- sequences -----------------------------------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """How many sequences have no room yet."""
        return sum(map(len, self._waiting.values()))

    def sequences(self) -> Iterator[TokenSequence]:
        """All of them."""
        yield from self.running.values()
        for queue in self._waiting.values():
            yield from queue

    def find(self, request_id: str) -> TokenSequence | None:
        """The sequence of a request."""
        return self.running.get(request_id) or next((s for s in self.sequences() if s.id == request_id), None)

    def add(self, request: GenRequest, root: bytes) -> TokenSequence:
        """A request that can run begins to wait."""
        tokens = [*request.prompt_ids, *request.prefix_out]
        sequence = TokenSequence(request=request, arrival=self._arrivals, root=root, tokens=tokens)
        self._arrivals += 1
        self._tokens.join(sequence.tenant)
        self._shares.join(sequence.tenant, request.weight)
        self._enqueue(sequence)
        return sequence

    def remove(self, sequence: TokenSequence, *, spoiled: bool = False) -> None:
        """A sequence ends; its blocks are free. If they are spoiled nobody finds in them what was stored."""
        if spoiled:
            self.blocks.hide(sequence.blocks)
        if self.running.pop(sequence.id, None) is not None:
            self._let_go(sequence)
        else:
            self._dequeue(sequence)
        if self._shares.leave(sequence.tenant):
            self._tokens.leave(sequence.tenant)

    def preempt_all(self) -> None:
        """All that is stored is gone: everything waits, to be computed again."""
        for sequence in list(self.running.values()):
            self._preempt(sequence)
        self.blocks.forget_names()

    # -- steps ---------------------------------------------------------------------------------------------------------

    def plan_step(self) -> StepPlan:
        """What to compute next. It is followed by `commit`, or by `withdraw`."""
        self._spans, self._places = {}, {}
        self._budget = self.token_budget
        for sequence in self._decodes_in_order():
            if self._budget and sequence.id in self.running and self._make_room_to_decode(sequence):
                self._give(sequence, 1, places=1)
        self._plan_prefills()
        decodes: list[StepSpan] = []
        prefills: list[StepSpan] = []
        for span in self._spans.values():
            (decodes if span.end - span.start == 1 and span.draws else prefills).append(span)
        return StepPlan(decodes=tuple(decodes), prefills=tuple(prefills))

    def commit(self, plan: StepPlan) -> None:
        """A plan was computed: its keys and values are stored."""
        self.steps += 1
        for span in plan.spans:
            sequence = span.sequence
            full, sequence.computed, sequence.turn = sequence.computed // self.blocks.page, span.end, self.steps
            sequence.reached = max(sequence.reached, span.end)
            if self.limits.prefix_cache and span.end // self.blocks.page > full:
                names = self._names_of(sequence, span.end // self.blocks.page)
                for number in range(full, len(names)):
                    self.blocks.publish(sequence.blocks[number], names[number])

    def withdraw(self, plan: StepPlan) -> None:
        """A plan was not computed, and nobody pays for it. Sequences that began with it stay begun."""
        for span in plan.spans:
            self._tokens.charge(span.sequence.tenant, span.start - span.end, span.sequence.request.weight)

    # -- decodes -------------------------------------------------------------------------------------------------------

    def _decodes_in_order(self) -> list[TokenSequence]:
        """Who had no turn for longest goes first, if the budget is too small for all."""
        decoding = [sequence for sequence in self.running.values() if sequence.pending == 1]
        decoding.sort(key=lambda sequence: (-sequence.request.priority, sequence.turn, sequence.arrival))
        return decoding

    def _make_room_to_decode(self, sequence: TokenSequence) -> bool:
        """Whether there is room for one token more; a sequence that has to give way itself has none."""
        while sequence.computed >= len(sequence.blocks) * self.blocks.page:
            taken = self.blocks.take(1)
            if taken is not None:
                sequence.blocks += taken
                self._shares.hold(sequence.tenant, blocks=1)
                break
            victim = min(self.running.values(), key=self._standing)
            self._preempt(victim)
            if victim is sequence:
                return False
        return True

    def _standing(self, sequence: TokenSequence) -> tuple[int, bool, int]:
        """Who has the least gives way first: lowest priority, then tenants beyond their share, then the youngest."""
        return sequence.request.priority, not self._shares.is_beyond(sequence.tenant), -sequence.arrival

    # -- prefills ------------------------------------------------------------------------------------------------------

    def _plan_prefills(self) -> None:
        """Chunks of prompts, as long as there is budget and somebody who can use it."""
        passed_over: set[str] = set()
        is_closed = False
        begun = self._unfinished_prompts()
        while self._budget > 0:
            begun = {t: rest for t, queue in begun.items() if (rest := [s for s in queue if self._is_unfinished(s)])}
            heads = self._heads(begun, self._waiting.keys() if is_closed else passed_over)
            if not heads:
                return
            behind = self._tokens.in_order(heads)
            tenant = max(behind, key=lambda tenant: heads[tenant].request.priority)  # the first of the greatest
            sequence = heads[tenant]
            if sequence.id not in self.running:
                if not self._start(sequence):
                    passed_over.add(tenant)
                    is_closed = is_closed or self._waits_for_more_than_its_share(sequence)
                    continue
                begun.setdefault(tenant, []).append(sequence)
            left = self._unplanned(sequence)
            places = self.limits.places(len(sequence.tokens) - left)
            # One always, so that a prompt goes on beside many decodes.
            count = min(left, max(1, self._budget // places))
            self._give(sequence, count if len(heads) == 1 else min(count, self.limits.quantum), places)

    def _unfinished_prompts(self) -> dict[str, list[TokenSequence]]:
        """Sequences that began and have more to compute than a decode does, by tenant, in the order of arrival."""
        found: dict[str, list[TokenSequence]] = {}
        for sequence in self.running.values():
            if sequence.pending > 1:
                found.setdefault(sequence.tenant, []).append(sequence)
        for queue in found.values():
            queue.sort(key=lambda sequence: (-sequence.request.priority, sequence.arrival))
        return found

    def _heads(self, begun: dict[str, list[TokenSequence]], passed_over: Container[str]) -> dict[str, TokenSequence]:
        """Of each tenant the sequence whose prompt is next: one that began, or else the first that waits."""
        heads = {tenant: queue[0] for tenant, queue in self._waiting.items() if tenant not in passed_over}
        return {**heads, **{tenant: queue[0] for tenant, queue in begun.items()}}

    def _is_unfinished(self, sequence: TokenSequence) -> bool:
        return sequence.id in self.running and self._unplanned(sequence) > 0

    def _unplanned(self, sequence: TokenSequence) -> int:
        """How many of its tokens neither are computed nor have room in this step."""
        span = self._spans.get(sequence.id)
        return len(sequence.tokens) - (sequence.computed if span is None else span.end)

    def _give(self, sequence: TokenSequence, count: int, places: int) -> None:
        """Tokens of a sequence have room in this step, after those that have it already."""
        span = self._spans.get(sequence.id)
        start, end = (sequence.computed, sequence.computed) if span is None else (span.start, span.end)
        self._spans[sequence.id] = StepSpan(sequence=sequence, start=start, end=end + count)
        self._budget -= count * places
        self._places[sequence.id] = self._places.get(sequence.id, 0) + count * places
        self._tokens.charge(sequence.tenant, count, sequence.request.weight)

    # -- beginning, and giving way -------------------------------------------------------------------------------------

    def _start(self, sequence: TokenSequence) -> bool:
        """Hold room for a sequence that waits, and use what is stored of its tokens."""
        if not self._may_start(sequence):
            return False
        stored, missing = self._find_stored(sequence)
        if not self._fits(sequence, missing + self.blocks.unheld_among(stored)):
            if not self._reclaim(sequence, missing + self.blocks.unheld_among(stored)):
                return False
            stored, missing = self._find_stored(sequence)
        self.blocks.share(stored)
        taken = self.blocks.take(missing)
        if taken is None:  # what gave way was stored for this very sequence
            self.blocks.release(stored)
            return False
        self._dequeue(sequence)
        sequence.blocks = [*stored, *taken]
        sequence.computed = len(stored) * self.blocks.page
        self.running[sequence.id] = sequence
        self._shares.hold(sequence.tenant, blocks=len(sequence.blocks), slots=1)
        if stored and not sequence.began:
            sequence.cached = min(sequence.computed, len(sequence.request.prompt_ids))
            self.prefix_hits += 1
            self.prefix_tokens += sequence.computed
        sequence.began = True
        return True

    def _find_stored(self, sequence: TokenSequence) -> tuple[list[int], int]:
        """The blocks that hold its beginning, and how many more it needs. Its last token is always computed: what
        comes next is known only then.
        """
        stored: list[int] = []
        if self.limits.prefix_cache:
            full = (len(sequence.tokens) - 1) // self.blocks.page
            stored = self.blocks.find(self._names_of(sequence, full))
        return stored, self._need(sequence) - len(stored)

    def _need(self, sequence: TokenSequence) -> int:
        """The blocks of all its tokens and of the next one, where there is to be another after that."""
        most = len(sequence.request.prompt_ids) + sequence.request.max_new
        return self.blocks.count_for(min(len(sequence.tokens) + 1, most))

    def _names_of(self, sequence: TokenSequence, count: int) -> list[bytes]:
        """The names of its first `count` blocks."""
        page, names = self.blocks.page, sequence.names
        while len(names) < count:
            at = len(names) * page
            names.append(next_hash(names[-1] if names else sequence.root, sequence.tokens[at : at + page]))
        return names[:count]

    def _fits(self, sequence: TokenSequence, blocks: int) -> bool:
        """Whether there is room, and it is this tenant's to take."""
        if not self._is_free(blocks, slots=1):
            return False
        others_wait = any(tenant != sequence.tenant for tenant in self._waiting)
        return not others_wait or self._shares.is_within(sequence.tenant, blocks=blocks)

    def _is_free(self, blocks: int, slots: int) -> bool:
        spare = int(self.blocks.blocks * self.limits.watermark) if self.running else 0
        return blocks + spare <= self.blocks.available and len(self.running) + slots <= self.limits.max_running

    def _waits_for_more_than_its_share(self, sequence: TokenSequence) -> bool:
        return self._shares.slots_of(sequence.tenant) == 0 and not self._shares.is_within(
            sequence.tenant, blocks=self._need(sequence), alone=False
        )

    def _reclaim(self, sequence: TokenSequence, blocks: int) -> bool:
        """Make room for a sequence by preempting others that have less right to it; none, if that is not enough."""
        within = self._shares.is_within(sequence.tenant, blocks=blocks, alone=False)
        priority = sequence.request.priority
        shares = self._shares.copy()
        victims: list[TokenSequence] = []
        free, slots = self.blocks.available, self.limits.max_running - len(self.running)
        for victim in sorted(self.running.values(), key=self._standing):
            if free >= blocks and slots >= 1:
                break
            beyond = within and victim.request.priority == priority and shares.is_beyond(victim.tenant)
            if victim.request.priority < priority or (beyond and victim.tenant != sequence.tenant):
                victims.append(victim)
                shares.hold(victim.tenant, blocks=-len(victim.blocks), slots=-1)
                free += sum(self.blocks.holders_of(block) == 1 for block in victim.blocks)
                slots += 1
        if free < blocks or slots < 1:
            return False
        for victim in victims:
            self._preempt(victim)
        return True

    def _preempt(self, sequence: TokenSequence) -> None:
        """A sequence gives up its room and waits again, with what it has generated."""
        span = self._spans.pop(sequence.id, None)
        if span is not None:
            self._budget += self._places.pop(sequence.id)
            self._tokens.charge(sequence.tenant, span.start - span.end, sequence.request.weight)
        del self.running[sequence.id]
        self._let_go(sequence)
        self._enqueue(sequence)
        self.preempted += 1

    def _let_go(self, sequence: TokenSequence) -> None:
        self._shares.hold(sequence.tenant, blocks=-len(sequence.blocks), slots=-1)
        self.blocks.release(sequence.blocks)
        sequence.blocks = []
        sequence.computed = 0

    def _enqueue(self, sequence: TokenSequence) -> None:
        queue = self._waiting.setdefault(sequence.tenant, [])
        insort(queue, sequence, key=lambda each: (-each.request.priority, each.arrival))

    def _dequeue(self, sequence: TokenSequence) -> None:
        queue = self._waiting[sequence.tenant]
        queue.remove(sequence)
        if not queue:
            del self._waiting[sequence.tenant]
