"""What this replica has let in and its core does not count yet: between the write and its echo in the stream.

Owner of that account, in all and for each tenant that has a cap. What never comes back (a write that failed, a job
that was there already) is forgotten after a while; only not while the stream is silent, as nothing comes back then.
"""

from collections import deque
from dataclasses import dataclass

FORGOTTEN_AFTER_MS = 10_000
"""Longer than a write may take and its echo usually does."""
_TOGETHER_MS = 100
_ENTRIES_MAX = 200


@dataclass(slots=True)
class _Entry:
    at_ms: int
    jobs: int


class Account:
    """Everything goes by key: a tenant, or None for all of the shard."""

    def __init__(self) -> None:
        self._entries: dict[str | None, deque[_Entry]] = {}

    def unseen(self, key: str | None, now_ms: int, *, forgetting: bool) -> int:
        entries = self._entries.get(key)
        if entries is None:
            return 0
        while forgetting and entries and now_ms - entries[0].at_ms >= FORGOTTEN_AFTER_MS:
            entries.popleft()
        if not entries:
            del self._entries[key]
        return sum(entry.jobs for entry in entries)

    def let_in(self, key: str | None, jobs: int, now_ms: int) -> None:
        entries = self._entries.setdefault(key, deque())
        # A silent stream must not make this grow: what comes beyond the bound is forgotten with the last.
        if entries and (now_ms - entries[-1].at_ms < _TOGETHER_MS or len(entries) >= _ENTRIES_MAX):
            entries[-1].jobs += jobs
        else:
            entries.append(_Entry(now_ms, jobs))

    def take_back(self, key: str | None, jobs: int) -> None:
        """They were not written after all."""
        self._settle(key, jobs, newest_first=True)

    def came_back(self, key: str | None) -> None:
        """The core counts one of them now."""
        self._settle(key, 1, newest_first=False)

    def _settle(self, key: str | None, jobs: int, *, newest_first: bool) -> None:
        entries = self._entries.get(key)
        while entries and jobs:
            entry = entries[-1] if newest_first else entries[0]
            settled = min(jobs, entry.jobs)
            jobs -= settled
            entry.jobs -= settled
            if entry.jobs:
                continue
            if newest_first:
                entries.pop()
            else:
                entries.popleft()
        if not entries:
            self._entries.pop(key, None)
