"""A cap below the number of shards goes round: never in two shards, and in the end in each that wants it."""

from collections.abc import Awaitable, Callable, Iterable
from itertools import pairwise, product
from typing import Any

import pytest

from hascheduler.model.partition import Hold
from hascheduler.shards.turns import CapTurn
from tests.tiers import spread
from tests.unit.shards.rounds import ForgetfulHolds, HastyTurns, Rounds

X, Y, Z = "cap/all", "cap/definition/x", "cap/tier/2"
JOB = frozenset({X})


def led(processes: int = 1, **options: Any) -> Rounds:
    """The first process leads all shards."""
    world = Rounds(processes=processes, **options)
    for seen in world.processes[0].shards:
        seen.leading = True
    return world


async def test_the_first_shard_has_the_cap_until_another_wants_it_and_nothing_is_written_for_that() -> None:
    world = led()
    world.cores[0].waiting = [JOB] * 3
    await world.settle()
    assert world.turns.stored == {}
    assert all(core.store.stored == {} for core in world.cores)


async def test_a_shard_that_wants_the_cap_gets_it_once_the_owner_has_released_it() -> None:
    world = led()
    world.cores[0].waiting, world.cores[2].waiting = [JOB], [JOB]
    for _ in range(5):
        await world.fast_round(ends=False)
    assert world.turns.stored[X] == CapTurn(X, 2, "s0", is_giving=True, wanted=frozenset({"s2"}))
    assert world.cores[0].store.stored[X] == Hold(X, 2, is_held=True)
    assert [len(core.running) for core in world.cores] == [1, 0, 0]
    await world.settle()
    assert world.turns.stored[X] == CapTurn(X, 3, "s2")
    assert world.cores[0].store.stored[X] == Hold(X, 2, is_held=True, released=2)
    assert world.cores[2].store.stored[X] == Hold(X, 3, is_held=False)
    assert world.done == {"s0": 1, "s2": 1}


async def test_an_owner_whose_jobs_wait_keeps_the_cap_for_a_while_and_then_it_goes_round() -> None:
    world = led()
    for core in world.cores:
        core.waiting = [JOB] * 200
    owners = [("s0", 0)]
    while len(owners) < 8:
        await world.fast_round()
        turn = world.turns.stored.get(X)
        if turn is not None and turn.owner != owners[-1][0]:
            owners.append((turn.owner, world.ms))
    assert [owner for owner, _ in owners] == ["s0", "s1", "s2", "s0", "s1", "s2", "s0", "s1"]
    assert all(5_000 <= after - before <= 6_500 for (_, before), (_, after) in pairwise(owners)), owners


@pytest.mark.parametrize("keys", [(X, Y), (X, Y, Z)])
async def test_of_shards_that_each_have_what_the_others_lack_one_gets_all(keys: tuple[str, ...]) -> None:
    world = led(shards=len(keys))
    for key, core in zip(keys, world.cores, strict=True):  # each has one of them
        world.turns.stored[key] = CapTurn(key, 1, core.name)
        for other in world.cores:
            await other.store.put(Hold(key, 1, is_held=other is not core))
            other.fold()
            other.step()
        core.waiting = [frozenset(keys)] * 4
    await world.settle()
    assert world.done == {core.name: 4 for core in world.cores}


async def test_a_hold_that_is_ahead_of_the_document_stays_as_it_is() -> None:
    world = led()
    world.turns.stored[X] = CapTurn(X, 3, "s1", is_giving=True, wanted=frozenset({"s2"}))
    ahead = Hold(X, 9, is_held=True, released=9)
    world.cores[1].store.write(ahead)
    world.cores[2].waiting = [JOB]
    for _ in range(20):
        await world.fast_round()
    assert world.cores[1].store.stored[X] == ahead
    assert world.turns.stored[X].owner == "s1"


# A process that stands still and believes that it leads; whatever else goes wrong is told by the simulator


async def asleep(before: int, exchanges: int, rounds: int, **options: Any) -> None:
    """One process leads all shards, and so does, it believes, another that falls asleep between two exchanges."""
    world = Rounds(**options)
    for core in world.cores:
        core.waiting = [JOB] * 300
    for process in world.processes:
        for seen in process.shards:
            seen.leading = True
    try:
        await world.asleep(before, exchanges, rounds)
    finally:
        world.stop()


SLEEPS = list(product(range(2, 16), (2, 3), (3, 6, 9)))


@pytest.fixture
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hascheduler.shards.turns._KEPT_MS", 200)


@pytest.mark.parametrize("first", spread(range(0, len(SLEEPS), 10), check=3))
async def test_a_process_that_was_asleep_between_two_exchanges_gives_no_cap_to_two_shards(
    first: int, short_turns: None
) -> None:
    for sleep in SLEEPS[first : first + 10]:
        await asleep(*sleep)


async def late_change(**options: Any) -> None:
    """A process falls asleep before it makes s1 the owner; meanwhile the cap goes by s1 to s3, and s2 wants it."""
    world = led(shards=4, processes=2, **options)
    sleeper = world.processes[1]
    world.cores[1].waiting, world.cores[3].waiting = [JOB], [JOB]
    while not (world.cores[0].store.stored.get(X) or Hold(X, 1, is_held=True)).is_released:
        await world.fast_round()
        for core in world.cores:
            core.fold()
            core.step()
    for seen in sleeper.shards:
        seen.fold()
        seen.leading = True
    for _ in range(2):  # it reads, and stops before its change
        await sleeper.begin_or_go_on()
    try:
        while not world.cores[3].running:
            await world.fast_round(ends=not world.cores[3].store.stored)
        world.cores[2].waiting = [JOB]
        for number in range(12):
            await world.fast_round(ends=False)
            if number == 3:
                await sleeper.begin_or_go_on()
    finally:
        world.stop()


async def test_a_process_that_was_asleep_takes_back_no_change_of_another(short_turns: None) -> None:
    await late_change()


BUGS: dict[str, Callable[[], Iterable[Awaitable[Any]]]] = {
    "an earlier revision put": lambda: (asleep(*sleep, holds=ForgetfulHolds) for sleep in SLEEPS),
    "changed without comparing": lambda: [late_change(turns=HastyTurns)],
}


@pytest.mark.parametrize("bug", BUGS)
async def test_a_planted_bug_brings_a_cap_of_one_into_two_shards(bug: str, short_turns: None) -> None:
    async def all_stories() -> None:
        for each in BUGS[bug]():
            await each

    with pytest.raises(AssertionError, match="each is a cap of one"):
        await all_stories()
