"""How much of the audit log one party may take, so that a flood leaves room for what the others did.

Who was not identified leaves no record: it is counted, and a sample stands in the log of the process. What a caller was
refused is recorded, up to a burst and then now and then, and the next record of that caller says how many were left
out. What a caller did is always recorded, as far as its share of the records that wait to be stored goes.
"""

from collections import Counter, OrderedDict

from hascheduler.model.instants import MonoMs

_SAMPLE_BURST, _SAMPLE_EVERY_MS = 20, 10_000
_REFUSALS_BURST, _REFUSAL_EVERY_MS = 100, 10_000
_PARTIES_MAX = 1_000


class Sampler:
    """``burst`` at once, and then one each ``every_ms``; the others are counted."""

    def __init__(self, burst: int, every_ms: int) -> None:
        self._burst = burst
        self._every_ms = every_ms
        self._left = burst
        self._since_ms: int | None = None
        self._left_out = 0

    def take(self, now: MonoMs) -> int | None:
        """How many were left out before this one; None: this one is left out too."""
        since_ms = now if self._since_ms is None else self._since_ms
        regained = (now - since_ms) // self._every_ms
        self._left = min(self._burst, self._left + regained)
        # Of a full one nothing is saved up.
        self._since_ms = now if self._left == self._burst else since_ms + regained * self._every_ms
        if self._left == 0:
            self._left_out += 1
            return None
        self._left -= 1
        left_out, self._left_out = self._left_out, 0
        return left_out


class AuditBudget:
    """Owner of how much each party has taken. Parties are the public ids of tokens."""

    def __init__(self, waiting_max: int) -> None:
        self._waiting_max = waiting_max
        self._waiting: Counter[str] = Counter()
        self._strangers = Sampler(_SAMPLE_BURST, _SAMPLE_EVERY_MS)
        self._refusals: OrderedDict[str, Sampler] = OrderedDict()

    def stranger(self, now: MonoMs) -> int | None:
        """As `Sampler.take`, for the log line of a party that was not identified."""
        return self._strangers.take(now)

    def refusal(self, party: str, now: MonoMs) -> int | None:
        """As `Sampler.take`, for the record of what ``party`` was refused."""
        sample = self._refusals.pop(party, None) or Sampler(_REFUSALS_BURST, _REFUSAL_EVERY_MS)
        self._refusals[party] = sample
        if len(self._refusals) > _PARTIES_MAX:
            self._refusals.popitem(last=False)
        return sample.take(now)

    def wait(self, party: str) -> bool:
        """Whether one more record of ``party`` may wait; it counts from then on."""
        if self._waiting[party] >= self._waiting_max:
            return False
        self._waiting[party] += 1
        return True

    def stored(self, party: str) -> None:
        self._waiting[party] -= 1
        if self._waiting[party] <= 0:
            del self._waiting[party]
