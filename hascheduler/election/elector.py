"""The elector: observations and time in, the next write of the lease out.

It owns what this candidate believes of the lease. The caller owns the I/O: it carries out the `LeaseAttempt` that
`next_attempt` returns (one compare-and-set), and reports the outcome with the time at which the attempt *began*,
because trust must count from before the write left.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from hascheduler.errors import InvalidInput
from hascheduler.model.leadership import LeaseRecord
from hascheduler.model.values.instants import MonoMs, WallMs

JITTER = 1.2
"""A retry may be a fifth of its period late; the deadline must leave room for that."""


@dataclass(frozen=True, slots=True)
class ElectionConfig:
    """``candidate_id`` is unique per process start: a restarted replica is another candidate."""

    name: str
    candidate_id: str
    endpoint: str
    lease_duration_ms: int
    renew_deadline_ms: int
    retry_period_ms: int

    def __post_init__(self) -> None:
        if not self.candidate_id:
            raise InvalidInput(("candidate_id",), "empty", "an id that is unique per process start")
        if self.retry_period_ms <= 0:
            raise InvalidInput(("retry_period_ms",), f"{self.retry_period_ms}", "a positive number")
        if not self.lease_duration_ms > self.renew_deadline_ms > JITTER * self.retry_period_ms:
            raise InvalidInput(
                ("lease_duration_ms",),
                f"{self.lease_duration_ms} / {self.renew_deadline_ms} / {self.retry_period_ms}",
                "lease_duration > renew_deadline > 1.2 × retry_period",
            )


class LeaseAnswer(StrEnum):
    """The answer to an attempt."""

    WON = "won"
    LOST = "lost"
    UNKNOWN = "unknown"
    """No answer: it may have been carried out. Nothing is believed until the record is read again."""


@dataclass(frozen=True, slots=True)
class LeaseAttempt:
    """One compare-and-set: create ``proposed`` if ``expected`` is None, otherwise replace ``expected`` by it."""

    expected: LeaseRecord | None
    proposed: LeaseRecord


class Elector:
    def __init__(self, config: ElectionConfig, now: MonoMs) -> None:
        self._config = config
        self._record: LeaseRecord | None = None
        self._observed = False
        self._changed_at = now
        self._next_try_at = now
        self._rest_until = now
        self._trusted_until: MonoMs | None = None
        self._highest_term = 0
        self._dead_holder = ""
        self._died_at = now
        self._suspected: LeaseRecord | None = None
        self._suspected_until = now
        self.challenge_delay_ms = 0
        """How long this candidate leaves a free lease to preferred ones. Only an order: any candidate may lead."""

    @property
    def record(self) -> LeaseRecord | None:
        """The newest version of the lease that this candidate knows of."""
        return self._record

    @property
    def observed(self) -> bool:
        """True once the lease, or its absence, has been seen; before that this candidate tries nothing."""
        return self._observed

    @property
    def term(self) -> int:
        """The term this candidate leads in; meaningful while `leads`."""
        return self._record.term if self._record else 0

    def leads(self, now: MonoMs) -> bool:
        """Return True while the lease is this candidate's and its last renewal is fresh enough to be trusted."""
        return self._trusted_until is not None and now < self._trusted_until

    def observe(self, record: LeaseRecord | None, now: MonoMs) -> None:
        """Take a version of the lease that was read or that the stream brought; ignore one older than the known one."""
        known = self._record
        if record is not None:
            self._highest_term = max(self._highest_term, record.term)
            if known is not None and _version(record) < _version(known):
                return
        if self._observed and record == known:
            return
        self._record = record
        self._observed = True
        self._changed_at = now
        if not self._holds(record):
            self._trusted_until = None
            # A released or deleted lease is free at once; a fresh holder is left alone for a whole lease.
            self._next_try_at = now

    def observe_term(self, term: int) -> None:
        """Take a term seen elsewhere (in the journal): the next must be higher, even if the lease was deleted."""
        self._highest_term = max(self._highest_term, term)

    def holder_died(self, holder: str, now: MonoMs) -> None:
        """Take the proof that ``holder``'s process is gone: its lease is free at once."""
        self._dead_holder = holder
        self._died_at = now

    def holder_stalled(self, holder: str, now: MonoMs) -> None:
        """Allow a challenge of the known version of ``holder``'s lease, for one retry period.

        Only of that version: a holder that renews is no longer suspected, and if its renewal has not arrived yet, the
        compare-and-set fails.
        """
        if self._record is not None and self._record.holder == holder:
            self._suspected = self._record
            self._suspected_until = MonoMs(now + self._config.retry_period_ms)

    def next_attempt(self, now: MonoMs, wall: WallMs) -> LeaseAttempt | None:
        """Return the write to try now, or None.

        A leader renews each retry period; a follower takes a lease that is free.
        """
        if not self._observed or now < max(self._next_try_at, self._rest_until):
            return None
        record = self._record
        if self._trusted_until is not None and record is not None and self._holds(record):
            if now >= self._trusted_until:
                self._trusted_until = None
                return None
            renewed = replace(record, renewals=record.renewals + 1, renewed_at_ms=wall)
            return self._try(LeaseAttempt(record, renewed), now)
        if now < self._free_at(record, now) + self._delay_ms(record):
            return None
        taken = LeaseRecord(
            name=self._config.name,
            holder=self._config.candidate_id,
            term=self._highest_term + 1,
            renewals=0 if record is None else record.renewals + 1,
            endpoint=self._config.endpoint,
            acquired_at_ms=wall,
            renewed_at_ms=wall,
            lease_duration_ms=self._config.lease_duration_ms,
            transitions=0 if record is None else record.transitions + 1,
        )
        return self._try(LeaseAttempt(record, taken), now)

    def concluded(self, attempt: LeaseAttempt, answer: LeaseAnswer, began: MonoMs, now: MonoMs) -> None:
        """Take the answer to ``attempt``, which began at ``began``.

        After any answer but WON the caller reads the lease and passes it to `observe`: a write of our own whose answer
        never came may have changed the record. Until then an earlier trust stands, up to its deadline.

        If a challenge is lost although nothing newer was seen, the known record is not the stored one (the lease was
        restored from a backup, or set back by hand): forget it, so that it is read again.
        """
        if answer is LeaseAnswer.WON:
            self.observe(attempt.proposed, now)
            if self._record == attempt.proposed:
                self._trusted_until = MonoMs(began + self._config.renew_deadline_ms)
                self._next_try_at = MonoMs(began + self._config.retry_period_ms)
        elif answer is LeaseAnswer.LOST and self._trusted_until is None and self._record == attempt.expected:
            self._record = None
            self._observed = False

    def release(self, now: MonoMs, wall: WallMs) -> LeaseAttempt | None:
        """Return the write that gives the lease up, so that others take over at once; None if it is not ours.

        This candidate then rests for two retry periods: a holder that gives up has a reason, and another should try.
        """
        record = self._record
        self._trusted_until = None
        if record is None or not self._holds(record):
            return None
        self._rest_until = MonoMs(now + 2 * self._config.retry_period_ms)
        return LeaseAttempt(
            record, replace(record, holder="", endpoint="", renewals=record.renewals + 1, renewed_at_ms=wall)
        )

    def step_down(self) -> None:
        """Stop trusting the lease without writing it: the journal shows another leader."""
        self._trusted_until = None

    def wake_at_ms(self, now: MonoMs) -> MonoMs:
        """Return when to call `next_attempt` again, if nothing is observed before."""
        if not self._observed:
            return MonoMs(now + self._config.retry_period_ms)
        if self._trusted_until is not None:
            return MonoMs(min(self._next_try_at, self._trusted_until))
        free_at = self._free_at(self._record, now) + self._delay_ms(self._record)
        return MonoMs(max(self._next_try_at, self._rest_until, free_at))

    def _holds(self, record: LeaseRecord | None) -> bool:
        return record is not None and record.holder == self._config.candidate_id

    def _free_at(self, record: LeaseRecord | None, now: MonoMs) -> int:
        """Return from when on the lease may be taken, if nothing changes."""
        # Our own name in a lease we do not trust any more: no other candidate can renew it, so we may take it again.
        if record is None or not record.holder or self._holds(record):
            return self._changed_at
        if record.holder == self._dead_holder:
            return max(self._changed_at, self._died_at)
        runs_out_at = self._changed_at + self._wait_ms(record)
        if record == self._suspected and now < self._suspected_until:
            return min(self._suspected_until - self._config.retry_period_ms, runs_out_at)
        return runs_out_at

    def _delay_ms(self, record: LeaseRecord | None) -> int:
        return 0 if self._holds(record) else self.challenge_delay_ms

    def _wait_ms(self, record: LeaseRecord) -> int:
        """Return the longer of the holder's lease duration and ours: it may run with other settings."""
        return max(record.lease_duration_ms, self._config.lease_duration_ms)

    def _try(self, attempt: LeaseAttempt, now: MonoMs) -> LeaseAttempt:
        self._next_try_at = MonoMs(now + self._config.retry_period_ms)
        return attempt


def _version(record: LeaseRecord) -> tuple[int, int]:
    return (record.term, record.renewals)
