"""What is in the wrong shard, and whose name a schedule has: the rules alone."""

from dataclasses import replace

import pytest

from hascheduler.check.finding import FindingKind
from hascheduler.check.shards import (
    CheckedShard,
    NamedSchedule,
    check_name,
    check_place_of_job,
    check_place_of_schedule,
    check_routing,
    is_kept_for_long,
    unused_name,
)
from hascheduler.model.routing import slot_of
from tests.unit.sharding.deployment import HOME, ONE, ROUTING, SHARDS, TWO, tenant_in

HERE = CheckedShard(ROUTING, 1, "hascheduler-0001")


def schedule(tenant: str = ONE, created_at_ms: object = 5) -> NamedSchedule:
    return NamedSchedule("tick", tenant, created_at_ms)


def of_one_slot() -> tuple[str, str]:
    slots: dict[int, str] = {}
    for number in range(1_000):
        other = slots.setdefault(slot_of(f"n{number}"), f"n{number}")
        if other != f"n{number}":
            return other, f"n{number}"
    raise AssertionError("there are more names than slots")


def test_what_is_in_the_shard_of_its_tenant_is_no_finding() -> None:
    for number in range(2):
        tenant = tenant_in(1, number)
        assert list(check_place_of_job("job:x", tenant, HERE)) == []
        assert list(check_place_of_schedule(schedule(tenant), HERE)) == []


@pytest.mark.parametrize(("tenant", "right"), [(HOME, "default"), (TWO, "0002")])
def test_what_is_in_another_shard_is_misplaced_and_the_finding_tells_both(tenant: str, right: str) -> None:
    job = list(check_place_of_job("job:x", tenant, HERE))
    found = [*job, *check_place_of_schedule(schedule(tenant), HERE)]
    assert [(finding.kind, finding.document) for finding in found] == [
        (FindingKind.MISPLACED, "jobs/job:x"),
        (FindingKind.MISPLACED, "schedules/tick"),
    ]
    for finding in found:
        assert "in shard 0001" in finding.what
        assert f"tenant {tenant!r}'s in shard {right}" in finding.what
        assert "hascheduler-0001" in finding.hint
        assert f"shard {right} does not have it" in finding.hint
        # A slot may just have moved: the second look is by another routing then.
        assert finding.witness == f"{tenant} {HERE.routing.epoch}"


def test_what_is_of_a_slot_that_moves_is_misplaced_in_no_shard() -> None:
    moving = replace(HERE, routing=HERE.routing.beginning({slot_of(TWO): 1}))
    assert list(check_place_of_job("job:x", TWO, HERE)) != []
    assert list(check_place_of_job("job:x", TWO, moving)) == []
    there = replace(HERE, routing=HERE.routing.beginning({slot_of(ONE): 2}).arrived(slot_of(ONE)))
    assert list(check_place_of_job("job:x", ONE, there)) == [], "the rest is to follow"
    emptied = replace(there, routing=there.routing.emptied(slot_of(ONE)))
    assert list(check_place_of_job("job:x", ONE, emptied)) != []


def test_a_name_is_reserved_for_the_tenant_of_its_schedule() -> None:
    assert list(check_name(schedule(), ONE)) == []
    for reserved_for, said in ((None, "for nobody"), (TWO, f"for {TWO!r}"), (tenant_in(1, 1), "reserved for")):
        [finding] = check_name(schedule(), reserved_for)
        assert (finding.kind, finding.document) == (FindingKind.NAME_UNRESERVED, "schedules/tick")
        assert said in finding.what


def test_a_name_that_is_reserved_for_a_tenant_of_the_same_slot_tells_the_same_shard() -> None:
    """An edit gives a schedule to another tenant of its slot, and the reservation comes after it."""
    before, after = of_one_slot()
    assert list(check_name(schedule(after), before)) == []


def test_another_schedule_of_that_name_or_another_reservation_is_another_suspect() -> None:
    witnesses = {
        finding.witness
        for suspect, reserved_for in (
            (schedule(), None),
            (schedule(), TWO),
            (schedule(created_at_ms=6), None),
            (schedule(TWO), None),
        )
        for finding in check_name(suspect, reserved_for)
    }
    assert len(witnesses) == 4
    assert None not in witnesses


@pytest.mark.parametrize(
    ("at_ms", "long"), [(1_000, True), (8_999, True), (9_000, False), (11_000, False), (11_001, True)]
)
def test_a_reservation_has_time_to_get_its_schedule(at_ms: int, long: bool) -> None:
    """By the clock of a replica; one that is far ahead makes nobody wait for it."""
    assert is_kept_for_long(at_ms, now=10_000, kept_ms=1_000) is long


def test_an_unused_name_says_how_it_is_given_up() -> None:
    finding = unused_name("tick", ONE, 3, 5_000)
    assert (finding.kind, finding.document, finding.since_ms) == (FindingKind.NAME_UNUSED, "names/tick", 5_000)
    assert "db.names.deleteOne({_id: 'tick', at_ms: 5000})" in finding.hint
    assert (
        len({finding.witness, unused_name("tick", ONE, 4, 5_000).witness, unused_name("tick", ONE, 3, 6_000).witness})
        == 3
    )


def test_the_routing_is_there_and_has_the_shards_of_the_settings() -> None:
    assert list(check_routing(ROUTING, SHARDS)) == []
    [missing] = check_routing(None, SHARDS)
    assert (missing.kind, missing.document) == (FindingKind.UNREADABLE, "routing/routing")
    for settings in (SHARDS[:2], ("moon", *SHARDS[1:])):
        [other] = check_routing(ROUTING, settings)
        assert (other.kind, other.document) == (FindingKind.UNKNOWN_SHARD, "routing/routing")
        assert "HASCHEDULER_SHARDS=3" in other.hint
