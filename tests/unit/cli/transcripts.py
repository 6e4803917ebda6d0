"""Golden transcripts of the command line: what is typed, what happens meanwhile, what is printed, and the status.

A transcript is a text file of steps, each after an empty line::

    # A remark.

    > wanted.yaml
    kind: Lane
    name: bulk

    % rewrite jobs job:0001 {"state": "failed"}

    $ TZ=Europe/Paris job get job:0001 < wanted.yaml
    what is printed on standard output
    ! what is printed on standard error
    [2]

``>`` writes a file. ``%`` is what happens behind the back of the API (`_HAPPENINGS`). ``$`` is a command, in which
``{url}`` is the replica's; after it comes all that it prints, an empty line as ``.``, and its status if that is not 0.
Run the tests with ``TRANSCRIPTS=write`` in the environment to write what commands print now, and read the difference.
"""

import os
import re
import shlex
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from hascheduler.dispatch.decisions import ResetCursor
from hascheduler.dispatch.explanation import Block, BlockReason, CriterionValue, Explanation, QueuePosition
from hascheduler.model.collection import Collection
from hascheduler.model.event import EventType, position
from hascheduler.model.policy import Criterion
from hascheduler.model.processor import Rest
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import Verdict
from hascheduler.schema.failover import Failover
from tests.factories import make_failover
from tests.unit.api.doubles import NOW, World
from tests.unit.cli.invoking import Ended, Replica
from tests.unit.daemon.happenings import happened

WRITES = os.environ.get("TRANSCRIPTS") == "write"
_RANDOM = (
    (re.compile(r"hsk_[A-Za-z0-9_-]{43}"), "hsk_…"),
    (re.compile(r"token-[0-9a-f]{12}"), "token-…"),
    (re.compile(r"batch:[0-9a-f]{8,}"), "batch:…"),
    (re.compile(r"(--idempotency-key )[0-9a-f-]{16,}"), r"\1…"),
    (re.compile(r"127\.0\.0\.1:\d{4,5}"), "127.0.0.1:PORT"),
)


async def played(text: str, replica: Replica, world: World, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the transcript with what its commands print now."""
    return "\n".join([await _step(step, replica, world, monkeypatch) for step in text.split("\n\n")]).rstrip() + "\n"


async def _step(step: str, replica: Replica, world: World, monkeypatch: pytest.MonkeyPatch) -> str:
    first, *more = step.strip("\n").splitlines()
    if first.startswith("> "):
        Path(first[2:]).write_text("\n".join([*more, ""]), "utf-8")  # noqa: ASYNC240  # a few lines
    elif first.startswith("% "):
        for line in (first, *more):
            what, _, rest = line[2:].partition(" ")
            await _HAPPENINGS[what](world, monkeypatch, rest)
    elif first.startswith("$ "):
        return "\n".join([first, *_printed(await _command(first[2:], replica))]) + "\n"
    else:
        assert first.startswith("#"), first
    return step.strip("\n") + "\n"


async def _command(line: str, replica: Replica) -> Ended:
    line, _, source = line.replace("{url}", replica.url).partition(" < ")
    words = shlex.split(line)
    variables: dict[str, str] = {}
    while "=" in words[0] and words[0].partition("=")[0].isupper():
        name, _, value = words.pop(0).partition("=")
        variables[name] = value
    text = Path(source).read_text("utf-8") if source else ""  # noqa: ASYNC240  # a few lines
    return await replica.run(*words, input=text, **variables)


def _printed(ended: Ended) -> Iterator[str]:
    out, err = ended.out, ended.err
    for pattern, shown in _RANDOM:
        out, err = pattern.sub(shown, out), pattern.sub(shown, err)
    yield from (line.rstrip() or "." for line in out.splitlines())
    yield from (f"! {line}".rstrip() for line in err.splitlines())
    if ended.status:
        yield f"[{ended.status}]"


# What happens meanwhile

Happening = Callable[[World, pytest.MonkeyPatch, str], Awaitable[object]]


async def _rewrite(world: World, _: pytest.MonkeyPatch, rest: str) -> None:
    collection, id, fields = rest.split(" ", 2)
    world.rewrite(Collection(collection), id, **orjson.loads(fields))


async def _fire(world: World, _: pytest.MonkeyPatch, rest: str) -> None:
    """``NAME SECONDS``: it fires so many seconds from now."""
    name, seconds = rest.split()
    await world.fire(NOW + int(seconds) * 1_000, name)


async def _verdict(world: World, _: pytest.MonkeyPatch, rest: str) -> None:
    """``NAME VERDICT SECONDS SECONDS COUNT [BECAUSE]``."""
    name, verdict, first, last, count, *because = rest.split()
    first_ms, last_ms = (NOW + int(seconds) * 1_000 for seconds in (first, last))
    await world.pass_over(
        Verdict(verdict), first_ms, last_ms, count=int(count), because_of=because[0] if because else None, name=name
    )


async def _reset(world: World, _: pytest.MonkeyPatch, name: str) -> None:
    await world.decide(ResetCursor(name, NOW, NOW))


async def _clock(world: World, _: pytest.MonkeyPatch, seconds: str) -> None:
    world.clock.now = WallMs(NOW + int(seconds) * 1_000)


async def _constant(_: World, monkeypatch: pytest.MonkeyPatch, rest: str) -> None:
    """``hascheduler.module.NAME VALUE``."""
    name, value = rest.split()
    monkeypatch.setattr(name, int(value))


async def _view(world: World, _: pytest.MonkeyPatch, rest: str) -> None:
    for name, value in orjson.loads(rest).items():
        setattr(world.view, name, set(value) if name == "never_to_run" else value)


async def _resting(world: World, _: pytest.MonkeyPatch, processor: str) -> None:
    world.view.rests = {processor: Rest(3, 1, NOW)}


async def _failover(world: World, _: pytest.MonkeyPatch, rest: str) -> None:
    """``TERM [unmeasured]``."""
    term, *unmeasured = rest.split()
    gone: dict[str, Any] = {"gap_ms": None, "first_decision_at_ms": None} if unmeasured else {}
    await world.failovers.save(make_failover(int(term), **gone))


async def _failovers_of_shards(world: World, monkeypatch: pytest.MonkeyPatch, _: str) -> None:
    """Of two shards, as the gateway of several tells them."""

    async def newest(shard: str, limit: int) -> Sequence[Failover]:
        return [make_failover(8, shard=name) for name in ("0001", "default")]

    monkeypatch.setattr(world.failovers, "newest", newest)


async def _away(world: World, _: pytest.MonkeyPatch, __: str) -> None:
    world.go_away()


async def _events(world: World, _: pytest.MonkeyPatch, __: str) -> None:
    """A job is dispatched and returned, another one reprioritized; two schedules miss times."""
    log = world.events
    log.begin(position(10, 1))
    jobs = [
        happened(11, "job:1"),
        happened(12, "job:1", type=EventType.DISPATCHED, attempt=1, processor="p-1"),
        happened(13, "job:1", type=EventType.RETURNED, attempt=1, processor="p-1", failures=1, retry_at_ms=15_000),
        happened(14, "job:[2]", type=EventType.REPRIORITIZED, priority=9),
    ]
    missed: dict[str, Any] = {"type": EventType.SCHEDULE_MISSED, "nominal_ms": 1_000}
    schedules = [
        happened(20, None, schedule="tick", count=3, through_ms=3_000, **missed),
        happened(21, None, schedule="tock", count=1, through_ms=1_000, **missed),
    ]
    log.append([*jobs, *schedules], position(21, 1))


_EXPLAINED: Mapping[str, Explanation] = {
    "capped": Explanation(
        "job:0001", "waiting", blocks=(
            Block(BlockReason.DEFINITION, "the limit of 'log' is reached: 3 of 3 jobs running",
                  "when one of them ends"),
            Block(BlockReason.NOT_BEFORE, "it is not to run before 2030-01-01T00:00:01.000Z", "time passes", {},
                  WallMs(NOW + 1_000)),
        ),
    ),
    "behind": Explanation(
        "job:0001", "waiting", position=QueuePosition(
            2, True, "job:0000", Criterion.FAIRNESS,
            (CriterionValue(Criterion.LANE, "1/8", "1/8"), CriterionValue(Criterion.FAIRNESS, "40 s", "3 s")),
        ),
    ),
    "next": Explanation(
        "job:0001", "waiting",
        blocks=(Block(BlockReason.NO_SLOT, "no slot is free: p-1 has 8 of 8 slots taken", "when a job there ends"),),
        position=QueuePosition(0, True, "job:0001", None, (CriterionValue(Criterion.TIER, "1", "1"),)),
    ),
}  # fmt: skip


async def _explained(world: World, _: pytest.MonkeyPatch, how: str) -> None:
    world.view.explanations = {"job:0001": _EXPLAINED[how]} if how != "not" else {}


_HAPPENINGS: Mapping[str, Happening] = {
    "away": _away,
    "clock": _clock,
    "constant": _constant,
    "events": _events,
    "explained": _explained,
    "failover": _failover,
    "failovers_of_shards": _failovers_of_shards,
    "fire": _fire,
    "reset": _reset,
    "resting": _resting,
    "rewrite": _rewrite,
    "verdict": _verdict,
    "view": _view,
}
