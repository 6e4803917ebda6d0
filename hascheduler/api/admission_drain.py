"""How fast a queue has been falling lately: what is said to who comes too early.

What left a queue is what came to it less what it grew by. Owner of a few observations per queue that is capped, made
whenever somebody submits to it, so a queue nobody submits to costs nothing.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass, field

RETRY_MIN_S = 1
RETRY_MAX_S = 60
RETRY_UNKNOWN_S = 5
"""Where nothing has been observed for long enough to tell."""
QUEUES_MAX = 1_000
_EVERY_MS = 500
_WINDOW_MS = 20_000
_ENOUGH_MS = 1_000


@dataclass(slots=True)
class _Queue:
    came: int = 0
    waiting: int = 0
    observed: deque[tuple[int, int]] = field(default_factory=deque)
    """(when, how many had left by then)"""


class Drain:
    """Everything goes by key: a tenant, or None for all of the shard."""

    def __init__(self) -> None:
        self._queues: OrderedDict[str | None, _Queue] = OrderedDict()

    def came(self, key: str | None) -> None:
        """The core counts one more, from whichever replica."""
        queue = self._queues.get(key)
        if queue is not None:
            queue.came += 1

    def observe(self, key: str | None, waiting: int, now_ms: int) -> None:
        queue = self._queues.setdefault(key, _Queue())
        self._queues.move_to_end(key)
        if len(self._queues) > QUEUES_MAX:
            self._queues.popitem(last=False)
        queue.waiting = waiting
        if not queue.observed or now_ms - queue.observed[-1][0] >= _EVERY_MS:
            queue.observed.append((now_ms, queue.came - waiting))
        while now_ms - queue.observed[0][0] > _WINDOW_MS:
            queue.observed.popleft()

    def last_known(self, key: str | None) -> int:
        """How many waited when it was last observed."""
        queue = self._queues.get(key)
        return 0 if queue is None else queue.waiting

    def forget(self) -> None:
        """What the core counts can't be compared with what it counted: it may have begun anew."""
        for queue in self._queues.values():
            queue.observed.clear()

    def retry_after_s(self, key: str | None, jobs: int, now_ms: int) -> int:
        """When so many will have left, if they go on leaving as in the last seconds."""
        queue = self._queues.get(key)
        if queue is None or not queue.observed:
            return RETRY_UNKNOWN_S
        since_ms, left_before = queue.observed[0]
        span_ms = now_ms - since_ms
        if span_ms < _ENOUGH_MS:
            return RETRY_UNKNOWN_S
        left = queue.came - queue.waiting - left_before
        if left <= 0:
            return RETRY_MAX_S
        return min(max(-(-jobs * span_ms // (left * 1_000)), RETRY_MIN_S), RETRY_MAX_S)
