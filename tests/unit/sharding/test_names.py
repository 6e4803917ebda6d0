"""A schedule's name is unique in the deployment: in every order of the exchanges of two requests, and after crashes.

The orders are gone through one by one in full; after each edit some of them are tried by chance.
"""

from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Any

import pytest

from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.routing import slot_of
from hascheduler.ports.sharding import UNUSED_FOR_MS, ReservedName
from hascheduler.sharding.reservations import Reservations
from tests.doubles.shards import MemoryNameStore
from tests.factories import make_job, make_schedule, make_template
from tests.tiers import TIER, in_tier
from tests.unit.sharding.deployment import HOME, ONE, ROUTING, TWO, Deployment, tenant_in
from tests.unit.sharding.interleaving import Order, Turns, interleaved

ONE_TOO = tenant_in(1, 1)
"""Another tenant of the shard of `ONE`."""
SEED = 20_261_125
SAMPLE = in_tier(check=30, test=400, long=4_000)
IN_FULL = TIER != "check"
IMPATIENT_MS = 2 * UNUSED_FOR_MS
"""A clock that goes on by this at each look at it: each reservation is an old one, whatever its age."""

Request = Callable[[Deployment, Turns], Awaitable[Any]]
Judge = Callable[[Deployment, list[Any]], Awaitable[None]]


def of(tenant: str, name: str = "tick", **only_what_matters: Any) -> dict[str, Any]:
    return make_schedule(name, template=make_template(tenant=tenant), **only_what_matters)


def create(tenant: str) -> Request:
    return lambda deployment, turns: deployment.schedule_store(turns.through).create(of(tenant))


def delete(rev: int | None = None) -> Request:
    return lambda deployment, turns: deployment.schedule_store(turns.through).delete("tick", rev)


def shards_of_tick(deployment: Deployment) -> list[int]:
    return deployment.shards_with(Collection.SCHEDULES, "tick")


async def require_one_name(deployment: Deployment) -> int | None:
    """The shard that has the schedule; its reservation tells that one."""
    shards = shards_of_tick(deployment)
    assert len(shards) <= 1, shards
    reserved = await deployment.names.get("tick")
    if shards:
        assert reserved is not None
        assert [ROUTING.index_of(reserved.tenant)] == shards
    return shards[0] if shards else None


async def prepared(before: str | None, step_ms: int = 0) -> Deployment:
    deployment = Deployment()
    if before is not None:
        assert await deployment.schedules.create(of(before)) is not None
    deployment.clock.now += 10 * UNUSED_FOR_MS
    deployment.clock.step_ms = step_ms
    return deployment


async def in_one_order(
    before: str | None, step_ms: int, requests: Sequence[Request], judge: Judge, choose: Callable[[int], int]
) -> None:
    deployment = await prepared(before, step_ms)
    bound = [lambda turns, one=one: one(deployment, turns) for one in requests]
    await judge(deployment, await interleaved(bound, choose))


async def in_all_orders(before: str | None, step_ms: int, requests: Sequence[Request], judge: Judge) -> None:
    order: Order | None = Order()
    while order is not None:
        await in_one_order(before, step_ms, requests, judge, order.choose)
        order = order.following()


async def in_orders_of_the_tier(before: str | None, step_ms: int, requests: Sequence[Request], judge: Judge) -> None:
    await (in_all_orders if IN_FULL else in_some_orders)(before, step_ms, requests, judge)


async def in_some_orders(before: str | None, step_ms: int, requests: Sequence[Request], judge: Judge) -> None:
    random = Random(SEED)
    for number in range(SAMPLE):
        try:
            await in_one_order(before, step_ms, requests, judge, random.randrange)
        except BaseException as error:
            error.add_note(f"in order {number} of seed {SEED}")
            raise


@pytest.mark.parametrize("step_ms", [0, IMPATIENT_MS], ids=["patient", "impatient"])
@pytest.mark.parametrize("other", [TWO, HOME, ONE, ONE_TOO], ids=["another shard", "home", "same tenant", "same shard"])
async def test_of_two_creates_one_succeeds_and_never_both(other: str, step_ms: int) -> None:
    async def judge(deployment: Deployment, answers: list[Any]) -> None:
        made = [answer for answer in answers if answer is not None]
        shard = await require_one_name(deployment)
        # Where both take over from each other for want of patience, both may be refused.
        assert len(made) == 1 or (step_ms and not made), answers
        assert (shard is not None) == bool(made)
        if made:
            assert shard == ROUTING.index_of(made[0]["job"]["tenant"])
            assert await deployment.schedules.get("tick") == made[0]

    await in_orders_of_the_tier(None, step_ms, [create(ONE), create(other)], judge)


@pytest.mark.parametrize("step_ms", [0, IMPATIENT_MS], ids=["patient", "impatient"])
@pytest.mark.parametrize("other", [ONE, TWO], ids=["same tenant", "another shard"])
async def test_a_create_and_a_delete_leave_one_schedule_or_none(other: str, step_ms: int) -> None:
    async def judge(deployment: Deployment, answers: list[Any]) -> None:
        made, deleted = answers
        shard = await require_one_name(deployment)
        assert deleted is True
        assert (shard is not None) == (made is not None)

    await in_orders_of_the_tier(ONE, step_ms, [create(other), delete()], judge)


@pytest.mark.parametrize("step_ms", [0, IMPATIENT_MS], ids=["patient", "impatient"])
async def test_three_requests_at_once_leave_one_schedule_or_none(step_ms: int) -> None:
    async def judge(deployment: Deployment, answers: list[Any]) -> None:
        await require_one_name(deployment)

    await in_some_orders(ONE, step_ms, [delete(1), create(ONE), create(TWO)], judge)


@pytest.mark.parametrize("planted", ["confirm", "release"])
async def test_a_planted_bug_is_caught_by_some_order(planted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def confirmed(*_: object) -> bool:
        return True

    async def released_as_it_is(self: MemoryNameStore, reserved: ReservedName) -> bool:
        now = await self.get(reserved.name)
        return now is not None and await released(self, now)

    released = MemoryNameStore.release
    if planted == "confirm":
        monkeypatch.setattr(Reservations, "confirm", confirmed)
    else:
        monkeypatch.setattr(MemoryNameStore, "release", released_as_it_is)

    async def judge(deployment: Deployment, answers: list[Any]) -> None:
        await require_one_name(deployment)

    before, requests = (None, [create(ONE), create(TWO)]) if planted == "confirm" else (ONE, [create(ONE), delete()])
    with pytest.raises(AssertionError):
        await in_all_orders(before, IMPATIENT_MS, requests, judge)


async def crashed(deployment: Deployment, request: Request, after: int) -> bool:
    """Whether it ended before it was done."""
    bound = [lambda turns: request(deployment, turns)]
    [answer] = await interleaved(bound, lambda _: 0, [after])
    return isinstance(answer, BaseException)


async def test_a_create_that_broke_off_keeps_its_name_for_its_tenant_and_for_a_minute() -> None:
    seen = set()
    for after in range(30):
        deployment = await prepared(None)
        if not await crashed(deployment, create(ONE), after):
            break
        inserted = shards_of_tick(deployment) == [1]
        is_reserved = await deployment.names.get("tick") is not None
        seen.add((is_reserved, inserted))
        assert (await deployment.schedules.create(of(TWO)) is None) == is_reserved
        assert (await deployment.schedules.create(of(ONE)) is None) == (inserted or not is_reserved)
        await require_one_name(deployment)
    assert seen == {(False, False), (True, False), (True, True)}


async def test_after_a_minute_a_name_without_its_schedule_is_free_for_others() -> None:
    for after in range(30):
        deployment = await prepared(None)
        if not await crashed(deployment, create(ONE), after):
            return
        inserted = shards_of_tick(deployment) == [1]
        deployment.clock.now += UNUSED_FOR_MS
        assert (await deployment.schedules.create(of(TWO)) is None) == inserted
        await require_one_name(deployment)
    raise AssertionError("it never ended")


async def test_a_delete_that_broke_off_leaves_a_name_that_others_may_take() -> None:
    for after in range(10):
        deployment = await prepared(ONE)
        if not await crashed(deployment, delete(), after):
            break
        is_gone = not shards_of_tick(deployment)
        assert (await deployment.schedules.create(of(TWO)) is not None) == is_gone
        await require_one_name(deployment)
        assert await deployment.schedules.delete("tick") is True
        assert await deployment.names.get("tick") is None


async def test_a_crash_of_one_request_beside_another_leaves_one_schedule_at_most() -> None:
    random = Random(SEED)
    for number in range(SAMPLE):
        deployment = await prepared(random.choice([None, ONE]))
        bound = [
            lambda turns, one=one, deployment=deployment: one(deployment, turns)
            for one in random.sample([create(ONE), create(TWO), create(ONE_TOO), delete()], 2)
        ]
        await interleaved(bound, random.randrange, [random.randrange(8)])
        assert len(shards_of_tick(deployment)) <= 1, (SEED, number)
        deployment.clock.now += UNUSED_FOR_MS
        made = await deployment.schedules.create(of(HOME))
        assert (made is None) == (shards_of_tick(deployment) != [0]), (SEED, number)
        await require_one_name(deployment)


async def test_a_name_without_its_reservation_is_met_wherever_its_schedule_is_and_gets_one() -> None:
    deployment = await prepared(None)
    deployment.insert(2, Collection.SCHEDULES, of(TWO))
    assert await deployment.schedules.get("tick") == of(TWO)
    assert await deployment.schedules.create(of(ONE)) is None
    reserved = await deployment.names.get("tick")
    assert reserved is not None
    assert (reserved.tenant, shards_of_tick(deployment)) == (TWO, [2])
    assert await deployment.schedules.delete("tick") is True
    assert await deployment.names.get("tick") is None


async def test_a_schedule_without_its_reservation_is_edited_and_deleted() -> None:
    deployment = await prepared(None)
    deployment.insert(1, Collection.SCHEDULES, of(ONE))
    edited = await deployment.schedules.edit("tick", 1, {"payload": "other"})
    assert edited is not None
    assert await deployment.schedules.edit("tick", 1, {"payload": "third"}) is None
    assert await deployment.schedules.delete("tick", 1) is False
    assert await deployment.schedules.delete("tick", 2) is True


async def test_a_name_comes_back_in_another_shard() -> None:
    deployment = await prepared(ONE)
    assert await deployment.schedules.delete("tick") is True
    assert await deployment.schedules.create(of(TWO)) is not None
    assert await require_one_name(deployment) == 2
    assert await deployment.schedules.get("tick") == of(TWO)


async def test_what_can_not_be_stored_keeps_no_name() -> None:
    deployment = await prepared(None)
    with pytest.raises(InvalidInput):
        await deployment.schedules.create(of(ONE, payload=2**70))
    assert await deployment.names.get("tick") is None
    assert await deployment.schedules.create(of(TWO)) is not None


async def test_a_schedule_goes_to_a_tenant_of_its_slot_alone() -> None:
    same = next(f"u{n}" for n in range(9_999) if slot_of(f"u{n}") == slot_of(ONE))
    deployment = await prepared(ONE)
    job = of(ONE)["job"]
    with pytest.raises(InvalidInput, match=f"{ONE_TOO}.* in shard 0001") as refused:
        await deployment.schedules.edit("tick", 1, {"job": {**job, "tenant": ONE_TOO}})
    assert refused.value.path == ("job", "tenant")
    assert await deployment.schedules.edit("tick", 7, {"job": {**job, "tenant": TWO}}) is None
    assert await deployment.schedules.edit("tick", 1, {"job": {**job, "tenant": same}}) is not None
    reserved = await deployment.names.get("tick")
    assert isinstance(reserved, ReservedName)
    assert reserved.tenant == same


async def test_a_shard_that_is_down_keeps_new_names_back_and_no_schedule_of_another() -> None:
    """It may have a schedule of that name, or jobs of one."""
    deployment = await prepared(ONE)
    deployment.connections[2].cut()
    with pytest.raises(StoreUnavailable, match="shard 0002: "):
        await deployment.schedules.create(of(ONE, name="new"))
    assert await deployment.schedules.create(of(HOME)) is None
    assert await deployment.schedules.edit("tick", 1, {"payload": "other"}) is not None
    assert await deployment.schedules.delete("tick", 1) is False
    assert await deployment.schedules.delete("tick", 2) is True
    with pytest.raises(StoreUnavailable, match="shard 0002: "):
        await deployment.schedules.list(None, 9)
    assert await deployment.schedules.list(None, 9, tenant=HOME) == []
    deployment.connections[2].mend()
    assert await deployment.schedules.create(of(TWO, name="new")) is None, "it is reserved for the other tenant"
    assert await deployment.schedules.create(of(ONE, name="new")) is not None


async def test_a_name_of_which_another_shard_has_jobs_is_taken_and_not_kept() -> None:
    deployment = await prepared(None)
    deployment.insert(1, Collection.JOBS, new_job_document(make_job("fire:tick:1", tenant=ONE, schedule="tick")))
    assert await deployment.schedules.create(of(TWO)) is None
    assert await deployment.names.get("tick") is None
    assert await deployment.schedules.create(of(ONE)) is not None


async def test_names_are_in_the_home() -> None:
    deployment = await prepared(ONE)
    deployment.connections[0].cut()
    for ask in (deployment.schedules.get, deployment.schedules.delete):
        with pytest.raises(StoreUnavailable, match=r"shard default: names\.get"):
            await ask("tick")
    assert await deployment.schedules.list(None, 9, tenant=ONE) == [of(ONE)]
