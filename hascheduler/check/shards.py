"""Each job and schedule is in the shard of its tenant's slot, and each schedule's name is reserved for it in the home.

Only of deployments of several shards. A restore of one database alone, or of a backup into the wrong one, breaks it,
and so does what people write by hand. Of one schedule in two shards at most one is in its place and has the name; of
one job at most one is in its place, unless the two are of different tenants: such a pair is not found.

What is found and harms nobody: the name of a schedule whose creation or deletion broke off. Any tenant may take it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hascheduler.check.finding import Finding, FindingKind, short_id
from hascheduler.model.collection import Collection
from hascheduler.model.routing import Routing, slot_of
from hascheduler.model.values.error_texts import quoted


@dataclass(frozen=True, slots=True)
class CheckedShard:
    """The shard that is looked at: its index in ``routing``, and its database, which people need to mend it."""

    routing: Routing
    index: int
    database: str

    @property
    def name(self) -> str:
        return self.routing.shards[self.index]

    def shard_of(self, tenant: str) -> str:
        return self.routing.shards[self.routing.index_of(tenant)]


@dataclass(frozen=True, slots=True)
class NamedSchedule:
    """``created_at_ms`` tells two of one name apart; whatever is stored there."""

    name: str
    tenant: str
    created_at_ms: object


def check_routing(routing: Routing | None, shards: Sequence[str]) -> Iterator[Finding]:
    """Whether the stored ``routing`` has the ``shards`` that the settings tell, the home first."""
    document = f"{Collection.ROUTING}/routing"
    if routing is None:
        yield Finding(
            FindingKind.UNREADABLE,
            document,
            "there is none, so no process knows which shard has what",
            "put it back from a backup of the home's database; in a new deployment the first replica makes it",
        )
    elif routing.shards != tuple(shards):
        yield Finding(
            FindingKind.UNKNOWN_SHARD,
            document,
            f"it has the shards {short_id(', '.join(routing.shards))}, and the settings {', '.join(shards)}",
            f"set HASCHEDULER_SHARDS={len(routing.shards)} and HASCHEDULER_SHARD={short_id(routing.shards[0])}, as the"
            " replicas have it",
        )


def check_place_of_job(id: object, tenant: str, here: CheckedShard) -> Iterator[Finding]:
    yield from _check_place(
        f"{Collection.JOBS}/{short_id(id)}", tenant, here, "and it may run twice", "submit it again"
    )


def check_place_of_schedule(schedule: NamedSchedule, here: CheckedShard) -> Iterator[Finding]:
    yield from _check_place(
        f"{Collection.SCHEDULES}/{schedule.name}",
        schedule.tenant,
        here,
        "and it fires",
        "make it again (hascheduler schedule add)",
    )


def check_name(schedule: NamedSchedule, reserved_for: str | None) -> Iterator[Finding]:
    """``schedule`` is in its shard; ``reserved_for``: the tenant that its name is reserved for, if it is.

    A tenant of the same slot is as good: an edit may change the tenant within it, before it changes the reservation.
    """
    if reserved_for is not None and slot_of(reserved_for) == slot_of(schedule.tenant):
        return
    whose = f"its tenant is {quoted(schedule.tenant)}, and its name is reserved for "
    hint = "make one of that name (hascheduler schedule add): it is refused, and the name reserved for this one"
    if reserved_for is not None:
        hint = (
            f"if {quoted(reserved_for)} has a schedule of that name too, the API shows this one only in lists: delete"
            f" the one that is not wanted, in MongoDB. Else {hint}"
        )
    yield Finding(
        FindingKind.NAME_UNRESERVED,
        f"{Collection.SCHEDULES}/{schedule.name}",
        f"{whose}{'nobody' if reserved_for is None else quoted(reserved_for)}",
        hint,
        witness=f"{short_id(schedule.created_at_ms)} {schedule.tenant} {reserved_for}",
    )


def is_kept_for_long(reserved_at_ms: int, now: int, kept_ms: int) -> bool:
    """Whether the schedule of a reservation must be there by now; an instant in the future is no reason to wait."""
    return abs(now - reserved_at_ms) > kept_ms


def unused_name(name: str, tenant: str, use: int, reserved_at_ms: int) -> Finding:
    """The finding that no shard has a schedule of a name that has been reserved for long, or jobs of one."""
    return Finding(
        FindingKind.NAME_UNUSED,
        f"{Collection.NAMES}/{name}",
        f"it is reserved for tenant {quoted(tenant)}, and no shard has a schedule of that name, or a job of one",
        "harmless if a creation or a deletion broke off: any tenant may take the name. If the schedule should be there,"
        " its shard lost it: make it again. Else make one and delete it, or in the home's database"
        f" db.names.deleteOne({{_id: {name!r}, at_ms: {reserved_at_ms}}})",
        since_ms=reserved_at_ms,
        witness=f"{use} {reserved_at_ms}",
    )


def _check_place(document: str, tenant: str, here: CheckedShard, harm: str, again: str) -> Iterator[Finding]:
    """Of a slot that moves, each document is in one of two shards; right after it, some may be on their way."""
    right = here.shard_of(tenant)
    if right != here.name and here.routing.is_at_rest(slot_of(tenant)):
        yield Finding(
            FindingKind.MISPLACED,
            document,
            f"it is in shard {here.name}, and what is tenant {quoted(tenant)}'s in shard {right}",
            f"the lists of its tenant leave it out, {harm}: delete it in MongoDB from the database {here.database};"
            f" then, if shard {right} does not have it, {again}",
            witness=f"{tenant} {here.routing.epoch}",
        )
