"""The room for keys and values, in blocks of one size: which are free, who holds which, and which hold a known prefix.

A block that nobody holds but that has a name stays as it is until its room is needed: whoever begins with the same
tokens takes it over. Those that were let go first are overwritten first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from collections.abc import Sequence as Seq


class KvBlocks:
    """Blocks by number, from 0. What lies in them is the engine's."""

    def __init__(self, blocks: int, page: int) -> None:
        if blocks < 1 or page < 1:
            raise ValueError(f"blocks and page are at least 1, not {blocks} and {page}")
        self.blocks = blocks
        self.page = page
        self._empty = list(range(blocks - 1, -1, -1))
        self._holders = [0] * blocks
        self._names: dict[int, bytes] = {}
        self._by_name: dict[bytes, int] = {}
        self._unheld: OrderedDict[int, None] = OrderedDict()
        """Named blocks without a holder, the one to overwrite first at the head."""

    @property
    def available(self) -> int:
        """How many blocks can be taken."""
        return len(self._empty) + len(self._unheld)

    @property
    def held(self) -> int:
        """How many blocks have a holder."""
        return self.blocks - self.available

    def count_for(self, tokens: int) -> int:
        """How many blocks `tokens` tokens need."""
        return -(-tokens // self.page)

    def holders_of(self, block: int) -> int:
        """How many sequences hold a block."""
        return self._holders[block]

    def take(self, count: int) -> list[int] | None:
        """`count` blocks for one holder, or None if there are not as many."""
        if count > self.available:
            return None
        taken = []
        for _ in range(count):
            block = self._empty.pop() if self._empty else self._overwrite()
            self._holders[block] = 1
            taken.append(block)
        return taken

    def find(self, names: Iterable[bytes]) -> list[int]:
        """The blocks of as many leading `names` as are stored."""
        found = []
        for name in names:
            block = self._by_name.get(name)
            if block is None:
                break
            found.append(block)
        return found

    def unheld_among(self, blocks: Iterable[int]) -> int:
        """How many of `blocks` have no holder: `share` of them leaves as many fewer available."""
        return sum(block in self._unheld for block in blocks)

    def share(self, blocks: Iterable[int]) -> None:
        """Hold blocks that `find` returned, beside whoever does already."""
        for block in blocks:
            self._holders[block] += 1
            self._unheld.pop(block, None)

    def publish(self, block: int, name: bytes) -> None:
        """Say what a full block holds. Where another block has the name, that one keeps it."""
        if name not in self._by_name and block not in self._names:
            self._by_name[name] = block
            self._names[block] = name

    def release(self, blocks: Seq[int]) -> None:
        """Hold blocks no longer. The last ones are overwritten first: a chain is of use from its beginning."""
        for block in reversed(blocks):
            self._holders[block] -= 1
            if self._holders[block]:
                continue
            if block in self._names:
                self._unheld[block] = None
            else:
                self._empty.append(block)

    def hide(self, blocks: Iterable[int]) -> None:
        """What held blocks contain is not to be found any more. Whoever shares them already does so still."""
        for block in blocks:
            name = self._names.pop(block, None)
            if name is not None:
                del self._by_name[name]

    def forget_names(self) -> None:
        """Take all that is stored for gone; blocks keep their holders."""
        self._empty.extend(self._unheld)
        self._unheld.clear()
        self._names.clear()
        self._by_name.clear()

    def check_integrity(self) -> None:
        """Raise if a block is counted twice, or lost."""
        free = [*self._empty, *self._unheld]
        held = [block for block, holders in enumerate(self._holders) if holders]
        if sorted([*free, *held]) != list(range(self.blocks)):
            raise AssertionError(f"{len(free)} free and {len(held)} held blocks are not {self.blocks}")
        if {name: block for block, name in self._names.items()} != self._by_name or set(self._unheld) - set(
            self._names
        ):
            raise AssertionError("names and blocks do not agree")

    def _overwrite(self) -> int:
        block, _ = self._unheld.popitem(last=False)
        del self._by_name[self._names.pop(block)]
        return block
