"""What the drafters of one tenant remember from call to call. Nothing of it is ever shared between tenants:
how fast a reply comes would tell one what the other's callers are told.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Sequence

from llm.drafters.token_index import Match, TokenIndex

MOST_TENANTS = 64
MOST_PHRASES = 512
LONGEST_PHRASE = 32


class _Node:
    """A place in the trie of phrases: how many phrases pass through it, and where they go on."""

    __slots__ = ("count", "next")

    def __init__(self) -> None:
        self.count = 0
        self.next: dict[int, _Node] = {}


class TenantMemory:
    """Texts and phrases of one tenant, oldest forgotten first. Thread-safe: calls of a tenant share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._texts = TokenIndex()
        self._taught: dict[tuple[int, ...], int] = {}
        self._root = _Node()
        self._phrases: deque[tuple[int, ...]] = deque()

    def add_text(self, ids: Sequence[int]) -> None:
        with self._lock:
            self._texts.add(ids)

    def teach_text(self, ids: Sequence[int]) -> None:
        """Add a text that every call of the tenant brings along; while it is known nothing changes."""
        text = tuple(ids)
        with self._lock:
            if self._taught.get(text, -1) in self._texts:
                return
            self._taught = {known: number for known, number in self._taught.items() if number in self._texts}
            self._taught[text] = self._texts.add(text)

    def longest_match(self, ids: Sequence[int], at_least: int, budget: int) -> Match | None:
        with self._lock:
            return self._texts.longest_match(ids, at_least, budget)

    def add_phrase(self, ids: Sequence[int]) -> None:
        """Remember how a reply begins."""
        phrase = tuple(ids[:LONGEST_PHRASE])
        with self._lock:
            self._phrases.append(phrase)
            self._count(phrase, 1)
            if len(self._phrases) > MOST_PHRASES:
                self._count(self._phrases.popleft(), -1)

    def teach_phrase(self, ids: Sequence[int]) -> None:
        """Add a phrase that every call of the tenant brings along; while it is known nothing changes."""
        with self._lock:
            known = tuple(ids[:LONGEST_PHRASE]) in self._phrases
        if not known:
            self.add_phrase(ids)

    def phrase_after(self, begun: Sequence[int], budget: int) -> Match | None:
        """How most phrases that begin with `begun` go on, as long as at least half of them agree."""
        with self._lock:
            node = self._root
            for token in begun:
                if (node := node.next.get(token, _NOWHERE)) is _NOWHERE:
                    return None
            ids: list[int] = []
            share = 1.0
            while node.next and len(ids) < budget:
                token, following = max(node.next.items(), key=lambda item: item[1].count)
                of_these = following.count / sum(n.count for n in node.next.values())
                if ids and of_these < 0.5:
                    break
                share = min(share, of_these)
                ids.append(token)
                node = following
            return Match(node.count, tuple(ids), share) if ids else None

    def _count(self, phrase: Sequence[int], change: int) -> None:
        node = self._root
        for token in phrase:
            following = node.next.setdefault(token, _Node())
            following.count += change
            if following.count == 0:
                del node.next[token]
                return
            node = following


_NOWHERE = _Node()


class TenantMemories:
    """One memory a tenant; the longest unused is forgotten beyond a limit. Without a tenant, one a call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of_tenant: OrderedDict[str, TenantMemory] = OrderedDict()

    def of(self, tenant: str) -> TenantMemory:
        if not tenant:
            return TenantMemory()
        with self._lock:
            memory = self._of_tenant.setdefault(tenant, TenantMemory())
            self._of_tenant.move_to_end(tenant)
            while len(self._of_tenant) > MOST_TENANTS:
                self._of_tenant.popitem(last=False)
            return memory
