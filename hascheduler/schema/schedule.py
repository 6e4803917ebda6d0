"""A schedule as the mirror holds it: its trigger, its policy for late and overlapping times, and the job that it makes.

*Trigger periods* record which trigger is in force when, so that an edit is not retroactive and loses nothing: the
nominal times of the current trigger begin after ``since_ms``; times of earlier triggers that were not decided when
those were replaced (the leader was down, or the jitter was not over) stay in ``past`` until the cursor has passed them.
A pause is a period too::

    cursor          past[0]                  past[1]               since_ms
    ──┼──────────────────────────────┤├───────────────────────┤├────────────────────►
            old trigger                 any trigger, paused        current trigger
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from hascheduler.errors import InvalidInput
from hascheduler.model.job import ScheduleId
from hascheduler.model.resources import Resources
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.frozen import compact
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import NOTHING_DECIDED, FireCounts
from hascheduler.schema.trigger import Trigger

ZoneOffsets = tuple[tuple[str, int], ...]
"""The seconds to add to an instant, by zone, to get the last wall time that is decided by then."""

PAST_MAX = 32
"""The most periods of earlier triggers that wait for a leader to decide their times."""


class CatchUp(StrEnum):
    """The misfire policy: the fate of nominal times that were not decided within the grace."""

    NONE = "none"
    """Times beyond the grace are missed."""
    LATEST = "latest"
    """The newest due time fires, and stands for all before it."""
    ALL = "all"
    """All fire, the newest ``catch_up_max`` of them."""


class Overlap(StrEnum):
    """The overlap policy: the fate of a nominal time while an earlier job of the schedule has not ended."""

    ALLOW = "allow"
    SKIP = "skip"
    BUFFER_ONE = "buffer_one"
    """One job may wait for the earlier ones to end; further nominal times are skipped."""
    CANCEL_RUNNING = "cancel_running"
    """The earlier jobs are cancelled, and the new one starts when they have ended."""

    @property
    def is_serial(self) -> bool:
        """Return True if a fired job has to wait until the schedule's earlier jobs have ended."""
        return self in (Overlap.BUFFER_ONE, Overlap.CANCEL_RUNNING)


class ScheduleState(StrEnum):
    ACTIVE = "active"
    """Its trigger has times to come."""
    PAUSED = "paused"
    ENDED = "ended"


AHEAD_MS = 60_000
"""A cursor further ahead than this is not explained by small differences of clocks."""
GRACE_MS_DEFAULT = 60_000
CATCH_UP_MAX_DEFAULT = 1_000


@dataclass(frozen=True, slots=True)
class SchedulePolicy:
    """The policy for late and overlapping times, and for failures.

    ``grace_ms`` is how late a fire may be and still count as on time; ``pause_after_failures`` None: never.
    """

    grace_ms: int = GRACE_MS_DEFAULT
    catch_up: CatchUp = CatchUp.LATEST
    catch_up_max: int = CATCH_UP_MAX_DEFAULT
    overlap: Overlap = Overlap.ALLOW
    pause_after_failures: int | None = None


DEFAULT_POLICY = SchedulePolicy()


@dataclass(frozen=True, slots=True)
class JobTemplate:
    """The job that a schedule makes at each fire, without its payload (that stays in the database).

    ``target`` None: the schedule's name. It nearly always is, so many schedules can share one template. A job that has
    not begun ``expires_in_ms`` after its nominal time never does; None: it does not expire.
    """

    definition: str
    target: str | None
    tenant: str
    lane: str
    fairness_key: str
    priority: int
    mode: str
    resources: Resources | None = None
    expires_in_ms: int | None = None

    def target_of(self, schedule: str) -> str:
        """Return the target of the jobs of the schedule of that name."""
        return schedule if self.target is None else self.target


@dataclass(frozen=True, slots=True)
class GraphJob:
    """One of several jobs that each fire makes; ``depends_on`` are refs of others of them."""

    ref: str
    depends_on: tuple[str, ...]
    template: JobTemplate
    render: bool = False


@dataclass(frozen=True, slots=True)
class JobGraph:
    """All jobs that each fire makes, as written, of one tenant; ``order`` has their places (see `graph_order`).

    One job comes after all the others, directly or not. It stands for the whole graph: its id is the fire's, it ends
    when all of them have succeeded or one of them has not, and the verdict, the overlap and the count of failures refer
    to it.
    """

    jobs: tuple[GraphJob, ...]
    order: tuple[int, ...]

    @property
    def in_order(self) -> list[GraphJob]:
        """Return the jobs, each after those that it depends on, so the last of them at the end."""
        return [self.jobs[place] for place in self.order]

    @property
    def last(self) -> GraphJob:
        """Return the job that comes after all others, whose id is the fire's."""
        return self.jobs[self.order[-1]]


@dataclass(frozen=True, slots=True)
class TriggerPeriod:
    """A time after ``since_ms`` through ``through_ms`` with ``trigger`` in force; if ``paused``, it does not fire."""

    trigger: Trigger
    since_ms: WallMs
    through_ms: WallMs
    paused: bool = False


@dataclass(frozen=True, slots=True)
class Basis:
    """The basis of a decision about a nominal time: the cursor, and the fields that fix the times in force.

    An edit of the times changes ``since_ms`` or ``paused_at_ms``. ``created_at_ms`` tells schedules of one name apart;
    None in a journal that 0.2.0 wrote.
    """

    cursor_ms: WallMs
    since_ms: WallMs
    paused_at_ms: WallMs | None = None
    created_at_ms: WallMs | None = None

    def is_of(self, created_at_ms: int) -> bool:
        """Return True if the decision may concern the schedule that was created then."""
        return self.created_at_ms is None or self.created_at_ms == created_at_ms


@compact("policy", "paused_at_ms", "past", "failures", "graph", "reset_at_ms")
@dataclass(frozen=True, slots=True)
class ScheduleRef:
    """One schedule. ``rev`` grows with every edit.

    The leader's fields, whose writing is not an edit: ``cursor_ms`` is the last nominal time decided, and grows until a
    reset; ``tally`` counts those decided, by verdict; ``failures`` is how many of its jobs failed in a row. ``offsets``
    are those at the cursor by the time-zone data of the leader that set it, which another leader's may contradict (see
    `hascheduler.triggers.local_order`); a zone that is not in it is not known to differ. ``reset_at_ms`` asks the
    leader to take the cursor back to that instant.

    ``template`` is the job that a fire makes. If it makes several, they are the ``graph``, and ``template`` is the
    last.
    """

    name: str
    rev: int
    trigger: Trigger
    template: JobTemplate
    created_at_ms: WallMs
    since_ms: WallMs
    cursor_ms: WallMs
    policy: SchedulePolicy = DEFAULT_POLICY
    paused_at_ms: WallMs | None = None
    past: tuple[TriggerPeriod, ...] = ()
    tally: FireCounts = NOTHING_DECIDED
    failures: int = 0
    graph: JobGraph | None = None
    offsets: ZoneOffsets = ()
    reset_at_ms: WallMs | None = None

    def is_ahead(self, now: int) -> bool:
        """Return True if its times were decided so far ahead that a wrong clock, and no person, is why it is silent."""
        return self.cursor_ms > now + AHEAD_MS

    @property
    def jobs_per_fire(self) -> int:
        return 1 if self.graph is None else len(self.graph.jobs)

    @property
    def definitions(self) -> tuple[str, ...]:
        """Return the definitions of the jobs that a fire makes."""
        if self.graph is None:
            return (self.template.definition,)
        return tuple(dict.fromkeys(job.template.definition for job in self.graph.in_order))

    @property
    def expires_in_ms(self) -> int | None:
        """Return how long after a nominal time its fire is still useful: the shortest of its jobs' spans."""
        if self.graph is None:
            return self.template.expires_in_ms
        spans = [job.template.expires_in_ms for job in self.graph.jobs]
        return min((span for span in spans if span is not None), default=None)

    @property
    def waits_for_its_fires(self) -> bool:
        """Return True if a time may be decided only when all jobs of the fires before it are known.

        The time waits for those jobs, or they are cancelled. Only the store knows which jobs a graph has.
        """
        return self.graph is not None and self.policy.overlap.is_serial

    def basis_at(self, cursor_ms: int) -> Basis:
        """Return the basis of a decision about the first times after ``cursor_ms``."""
        return Basis(WallMs(cursor_ms), self.since_ms, self.paused_at_ms, self.created_at_ms)

    @property
    def identity(self) -> ScheduleId:
        return ScheduleId(self.name, self.template.tenant, self.created_at_ms)


GRAPH_JOBS_MIN = 2
GRAPH_JOBS_MAX = 20
REF_PATTERN = r"^[a-z0-9][a-z0-9_-]{0,31}$"
REF_EXPECTED = "1 to 32 of a-z, 0-9, '_' and '-', beginning with a letter or digit"
_REF = re.compile(REF_PATTERN[:-1] + r"\Z")


def is_ref(text: str) -> bool:
    return _REF.match(text) is not None


def graph_order(nodes: Sequence[tuple[str, Sequence[str]]]) -> tuple[int, ...]:
    """Return the places of ``nodes``, each a ref and the refs that it depends on: each after those, else as written.

    The last place belongs to the job that comes after all others. Raise `InvalidInput` below ``jobs`` if there is no
    such order.
    """
    places: dict[str, int] = {}
    for place, (ref, _) in enumerate(nodes):
        if places.setdefault(ref, place) != place:
            raise InvalidInput(("jobs", place, "ref"), f"{quoted(ref)} is repeated", "each ref once")
    needs = [_needs(place, ref, refs, places) for place, (ref, refs) in enumerate(nodes)]
    order: list[int] = []
    left = dict.fromkeys(range(len(nodes)))
    while left:
        ready = next((place for place in left if needs[place].isdisjoint(left)), None)
        if ready is None:
            place = next(iter(left))
            raise InvalidInput(("jobs", place, "depends_on"), "depends on itself through other jobs", "no cycle")
        order.append(ready)
        del left[ready]
    needed = set().union(*needs)
    ends = [place for place in range(len(nodes)) if place not in needed]
    if len(ends) > 1:
        named = " and ".join(quoted(nodes[place][0]) for place in ends[:2])
        problem = f"no job comes after {named}"
        raise InvalidInput(
            ("jobs",), problem, "exactly one job that no other depends on: add a job that depends on these"
        )
    return tuple(order)


def _needs(place: int, ref: str, refs: Sequence[str], places: dict[str, int]) -> set[int]:
    for number, other in enumerate(refs):
        path = ("jobs", place, "depends_on", number)
        if other not in places:
            raise InvalidInput(path, f"no job of this schedule has the ref {quoted(other)}", " or ".join(places))
        if other == ref:
            raise InvalidInput(path, f"{quoted(ref)} depends on itself", "the refs of others")
        if other in refs[:number]:
            raise InvalidInput(path, f"{quoted(other)} is repeated", "each ref once")
    return {places[other] for other in refs}
