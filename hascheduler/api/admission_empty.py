"""Which buckets are known to be empty, and until when: who comes too early need not reach the database to hear it.

Others only take from a bucket too, so it can't hold enough before the time that the database has told.
"""

from collections import OrderedDict
from dataclasses import dataclass

from hascheduler.model.definition import RateLimit

BUCKETS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class _Empty:
    limit: RateLimit
    jobs: int
    until_ms: int


class EmptyBuckets:
    def __init__(self) -> None:
        self._of: OrderedDict[str, _Empty] = OrderedDict()

    def found(self, tenant: str, limit: RateLimit, jobs: int, until_ms: int) -> None:
        """It does not hold so many before then."""
        self._of[tenant] = _Empty(limit, jobs, until_ms)
        self._of.move_to_end(tenant)
        if len(self._of) > BUCKETS_MAX:
            self._of.popitem(last=False)

    def wait_ms(self, tenant: str, limit: RateLimit, jobs: int, now_ms: int) -> int:
        """How long it surely holds less than so many; 0: who knows."""
        empty = self._of.get(tenant)
        if empty is None or empty.limit != limit or jobs < empty.jobs:
            return 0
        return max(0, empty.until_ms - now_ms)
