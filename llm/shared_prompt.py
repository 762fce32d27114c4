"""Shared prompts: prompts read once, whose keys and values later calls begin with.

An agent's own prompt, read when the service starts, is there for all calls. What a client puts into a prompt
stays within its tenant: how soon a call's first token comes would tell another tenant what it says.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llm.cache import PREFILL_CHUNK, CallCache, common_prefix
from llm.fair_lock import FairLock
from llm.prompt_files import PromptFiles
from llm.targets.base import CopyableTarget, KeysAndValues, Target

logger = logging.getLogger(__name__)

MEMORY = 256 << 20
"""Bytes of keys and values kept in memory: about 4,700 tokens of the default model, a dozen agents."""

_ALL = ""
"""In the place of a tenant: an agent's own prompt, which calls of every tenant begin with."""

_CHUNK = 16
"""Ids of an agent's prompt read at a time: a pass that somebody waits for comes after one chunk at most."""


class SharedPrompts:
    """The prompts that one target has read, by tenant and ids. Thread-safe.

    Beyond `memory` bytes clients' prompts go, the longest unused first. Agents' own prompts stay: one that
    does not fit beside the others is not made.
    """

    def __init__(
        self,
        target: CopyableTarget,
        pass_lock: FairLock,
        files: PromptFiles | None = None,
        *,
        memory: int = MEMORY,
    ) -> None:
        """`files`: where agents' prompts are kept for the next start."""
        self._target = target
        self._pass_lock = pass_lock
        self._files = files
        self._memory = memory
        self._lock = threading.Lock()
        self._prompts: OrderedDict[tuple[str, tuple[int, ...]], KeysAndValues] = OrderedDict()

    @property
    def bytes(self) -> int:
        """Bytes of keys and values in memory."""
        with self._lock:
            return sum(read.nbytes for read in self._prompts.values())

    def of(self, tenant: str) -> TenantPrompts:
        """The prompts as one tenant's calls see them; with no tenant, agents' own ones only."""
        return TenantPrompts(self, tenant)

    def read(self, ids: Sequence[int], cancelled: Callable[[], bool]) -> bool:
        """Have an agent's prompt ready: from disk, or read here in small chunks between other calls' passes.

        Returns False where it was cancelled. What was read until then is kept, and the next `read` goes on
        from there.
        """
        if len(ids) > self._target.context or not self._fits(_ALL, ids):
            logger.warning("no room to share a prompt of %d tokens: every call reads it", len(ids))
            return True
        if self.longest(_ALL, ids, len(ids) - 1) is not None:
            return True
        if self._files is not None and (read := self._files.load(ids)) is not None:
            self._put(_ALL, ids, read)
            return True
        cache = CallCache(self._target.open(), self._pass_lock, self.of(_ALL))
        try:
            cache.read(ids[cache.begin(ids) :], cancelled, _CHUNK)
            read = cache.copy_out(len(cache))
        finally:
            cache.close()
        if len(read):
            self._put(_ALL, ids[: len(read)], read)
        if len(read) < len(ids):
            return False
        if self._files is not None:
            self._files.save(ids, read)
        return True

    def longest(self, tenant: str, ids: Sequence[int], more_than: int) -> KeysAndValues | None:
        """See `llm.cache.Beginnings.longest`."""
        beginning = tuple(ids[: more_than + 1])
        with self._lock:
            best, length = None, more_than
            for key in self._prompts:
                if key[0] in (tenant, _ALL) and key[1][: more_than + 1] == beginning:
                    common = common_prefix(key[1], ids)
                    if common > length:
                        best, length = key, common
            if best is None:
                return None
            self._prompts.move_to_end(best)
            return self._prompts[best][:length]

    def keep(self, tenant: str, cache: CallCache, length: int) -> None:
        """Share the first `length` ids of a call's cache with the tenant's other calls.

        Not without a tenant, nor where less than a chunk of them would be new.
        """
        ids = cache.ids[:length]
        new = max(0, length - PREFILL_CHUNK)
        if tenant != _ALL and self.longest(tenant, ids, new) is None and self._fits(tenant, ids):
            self._put(tenant, ids, cache.copy_out(length))

    def _fits(self, tenant: str, ids: Sequence[int]) -> bool:
        """Whether there is room beside the agents' own prompts that this one does not replace."""
        with self._lock:
            staying = [
                read.nbytes
                for key, read in self._prompts.items()
                if key[0] == _ALL and not (tenant == _ALL and _begins(ids, key[1]))
            ]
        return len(ids) * self._target.position_bytes + sum(staying) <= self._memory

    def _put(self, tenant: str, ids: Sequence[int], read: KeysAndValues) -> None:
        """Add a prompt in the place of its own beginnings, and make room for it."""
        with self._lock:
            for key in [k for k in self._prompts if k[0] == tenant and _begins(ids, k[1])]:
                del self._prompts[key]
            self._prompts[tenant, tuple(ids)] = read
            excess = sum(each.nbytes for each in self._prompts.values()) - self._memory
            for key in [k for k in self._prompts if k[0] != _ALL]:
                if excess <= 0:
                    break
                excess -= self._prompts.pop(key).nbytes


@dataclass(frozen=True, slots=True)
class TenantPrompts:
    """What calls of one tenant begin with; `llm.cache.Beginnings`."""

    prompts: SharedPrompts
    tenant: str

    def longest(self, ids: Sequence[int], more_than: int) -> KeysAndValues | None:
        return self.prompts.longest(self.tenant, ids, more_than)

    def keep(self, cache: CallCache, length: int) -> None:
        self.prompts.keep(self.tenant, cache, length)


def shared_prompts(
    target: Target, pass_lock: FairLock, files: PromptFiles | None = None
) -> SharedPrompts | None:
    """None for a target whose caches cannot be copied."""
    if not isinstance(target, CopyableTarget) or not target.position_bytes:
        return None
    return SharedPrompts(target, pass_lock, files)


def _begins(ids: Sequence[int], beginning: Sequence[int]) -> bool:
    return tuple(ids[: len(beginning)]) == tuple(beginning)
