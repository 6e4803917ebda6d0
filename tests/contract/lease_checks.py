"""What must hold of any `LeaseStore`; the planted bugs must fail these."""

from dataclasses import replace

from hascheduler.ports import LeaseStore
from tests.contract.racing import RACERS, raced
from tests.factories import make_lease


async def of_racing_creates_one_wins(leases: LeaseStore) -> None:
    records = [make_lease(f"r{number}") for number in range(RACERS)]
    answers = await raced(leases.create(record) for record in records)
    assert answers.count(True) == 1
    assert await leases.get("default") == records[answers.index(True)]


async def of_racing_updates_one_wins(leases: LeaseStore) -> None:
    first = make_lease("r0")
    await leases.create(first)
    proposals = [replace(first, holder=f"r{number}", term=2) for number in range(RACERS)]
    answers = await raced(leases.update(first, proposal) for proposal in proposals)
    assert answers.count(True) == 1
    assert await leases.get("default") == proposals[answers.index(True)]


async def an_update_of_another_version_changes_nothing(leases: LeaseStore) -> None:
    stored = make_lease("r1", term=3, renewals=7)
    await leases.create(stored)
    proposed = make_lease("r2", term=4)
    for outdated in (replace(stored, holder="r9"), replace(stored, term=2), replace(stored, renewals=6)):
        assert await leases.update(outdated, proposed) is False
        assert await leases.get("default") == stored
