"""What a run leaves behind: versions that MongoDB committed, runs of handlers, and when decisions were made.

The oplog is read from the end of a run, or followed beside it where history is short. What was rolled back is not in
it. A document that moves with its partition to another shard is the same document: nothing happens to it, neither when
it is copied nor when it is taken away.
"""

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
from bson import Timestamp
from pymongo import ASCENDING
from pymongo.errors import AutoReconnect

from hascheduler import assembly
from hascheduler.model.collection import Collection
from hascheduler.model.leadership import EntryKind
from hascheduler.mongo.connection import Client
from hascheduler.ports.tenants import VERSION_FIELDS
from hascheduler.settings import read_settings
from tests.checkers.evidence import Commit, Effect

_BATCH = 1_000
"""So few that users are answered meanwhile, and the driver's own heart goes on beating."""
_TRIES_MAX = 5
_WATCHED = {collection.value: collection for collection in Collection}


class Oplog:
    """The history of one database from ``since`` on, and of ``others`` if there are several shards; owner of all
    versions that it has reported. ``commits`` are those of all databases in order, ``commits_of`` those of each."""

    def __init__(
        self, client: Client, database: str, since: Timestamp, epoch_ms: int, others: Sequence[str] = ()
    ) -> None:
        self._client = client
        self._read_through = since
        self._epoch_ms = epoch_ms
        self._present: dict[tuple[str, str, str], dict[str, Any]] = {}
        self._one_at_a_time = asyncio.Lock()
        self.commits: list[Commit] = []
        self.commits_of: dict[str, list[Commit]] = {name: [] for name in (database, *others)}

    async def read(self) -> None:
        """Everything up to now; ``commits`` grows by it."""
        async with self._one_at_a_time:
            for tries in range(_TRIES_MAX):
                try:
                    await self._read()
                    break
                except AutoReconnect:
                    # It goes on behind what it has.
                    if tries == _TRIES_MAX - 1:
                        raise

    async def _read(self) -> None:
        oplog = self._client["local"]["oplog.rs"]
        # Of others' databases at most what is in transactions.
        ours = {"$regex": f"^({'|'.join(map(re.escape, self.commits_of))}|admin)\\."}
        through = (await self._client.admin.command("ping"))["operationTime"]
        oldest: Any = await oplog.find_one({}, {"ts": True}, sort=[("$natural", ASCENDING)])
        assert oldest["ts"] <= self._read_through, "the oplog has forgotten what was not read yet"
        cursor = oplog.find({"ts": {"$gt": self._read_through}, "ns": ours}, batch_size=_BATCH)
        async for entry in cursor.sort("$natural", ASCENDING):
            self._read_through = entry["ts"]
            self._take(entry)
        # Up to there everything has come by, ours or others'.
        self._read_through = max(self._read_through, through)

    def _take(self, entry: Mapping[str, Any]) -> None:
        at_s = (int(entry["wall"].timestamp() * 1_000 + 0.5) - self._epoch_ms) / 1_000
        changes = list(_unpacked(entry))
        moves = _moves_documents(changes)
        for change in changes:
            database, _, name = change["ns"].partition(".")
            if database not in self.commits_of:
                continue
            if change["op"] == "c":
                dropped = change["o"].get("drop")
                if dropped in _WATCHED:
                    for key in [key for key in self._present if key[:2] == (database, dropped)]:
                        self._commit(at_s, key, None)
            elif name in _WATCHED and change["op"] in ("i", "u", "d"):
                document = change["o2"] if change["op"] == "u" else change["o"]
                key = (database, name, repr(document["_id"]))
                after = _after(change, self._present.get(key))
                if moves and name in VERSION_FIELDS:
                    self._change(key, after)
                else:
                    self._commit(at_s, key, after)

    def _change(self, key: tuple[str, str, str], after: dict[str, Any] | None) -> dict[str, Any] | None:
        """Return what was there before."""
        before = self._present.pop(key, None)
        if after is not None:
            self._present[key] = after
        return before

    def _commit(self, at_s: float, key: tuple[str, str, str], after: dict[str, Any] | None) -> None:
        before = self._change(key, after)
        if before is not None or after is not None:
            database, name, _ = key
            commit = Commit(at_s, _WATCHED[name], before, after)
            self.commits.append(commit)
            self.commits_of[database].append(commit)


def _unpacked(entry: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A transaction holds several changes."""
    if entry["op"] == "c" and "applyOps" in entry["o"]:
        for change in entry["o"]["applyOps"]:
            yield from _unpacked(change)
    else:
        yield entry


def _moves_documents(changes: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether it is a mover's transaction, which demands the hold of the partition beside its documents."""
    names = {change["ns"].partition(".")[2] for change in changes}
    return Collection.HOLDS.value in names and len(names) > 1


def _after(change: Mapping[str, Any], before: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if change["op"] == "d":
        return None
    if change["op"] == "i":
        return dict(change["o"])
    difference = change["o"].get("diff")
    if difference is None:
        return {**change["o"], **change["o2"]}
    assert before is not None, f"{change['ns']} {change['o2']} was changed before it was there"
    changed = changed_by(before, difference)
    assert isinstance(changed, dict)
    return changed


def changed_by(before: Any, difference: Mapping[str, Any]) -> Any:
    """``before`` with the difference of an update entry: fields taken away, set, added, changed inside; or items."""
    if difference.get("a"):
        return _changed_items(before, difference)
    after = {name: value for name, value in before.items() if name not in difference.get("d", {})}
    after |= difference.get("u", {})
    after |= difference.get("i", {})
    for name, inside in difference.items():
        if len(name) > 1 and name.startswith("s"):
            after[name[1:]] = changed_by(after[name[1:]], inside)
    return after


def _changed_items(before: list[Any], difference: Mapping[str, Any]) -> list[Any]:
    after = list(before)
    length = difference.get("l")
    if length is not None:
        after = after[:length]
    for name, what in difference.items():
        if name[0] in "us" and name[1:].isdigit():
            place = int(name[1:])
            after.extend([None] * (place + 1 - len(after)))
            after[place] = what if name[0] == "u" else changed_by(after[place], what)
    return after


def read_effects(sink: Path, epoch_ms: int) -> list[Effect]:
    """In the order of their beginnings; times in whole milliseconds, as those of the database are."""
    effects: list[Effect] = []
    running: dict[tuple[str, int, str], Effect] = {}
    if not sink.exists():
        return effects
    for line in sink.read_bytes().splitlines():
        fields = orjson.loads(line)
        key = (fields["job"], fields["attempt"], fields["process"])
        at_s = (fields["wall_ns"] // 1_000_000 - epoch_ms) / 1_000
        if fields["what"] == "begin":
            running[key] = Effect(*key, began_s=at_s)
            effects.append(running[key])
        else:
            running[key].ended_s = at_s
    return effects


def decisions(commits: Iterable[Commit]) -> list[tuple[float, int]]:
    """When decisions were committed, in order, and in which term."""
    return [(at_s, entry["term"]) for at_s, entry in _entries(commits, EntryKind.DECISIONS)]


def dispatches(commits: Iterable[Commit]) -> list[tuple[float, int]]:
    """The same of those that give a job to a processor."""
    decided = _entries(commits, EntryKind.DECISIONS)
    return [(at_s, entry["term"]) for at_s, entry in decided if any(row[0] == "dispatch" for row in entry["decisions"])]


def worst_gap_s(decided: Iterable[tuple[float, int]], from_s: float, to_s: float) -> float:
    """The longest span between ``from_s`` and ``to_s`` in which nothing was decided."""
    inside = [from_s, *(at_s for at_s, _ in decided if from_s <= at_s <= to_s), to_s]
    return max(after - before for before, after in pairwise(inside))


def took_over_s(decided: Iterable[tuple[float, int]], moment_s: float, term: int) -> float:
    """How long after that moment the first of a later term came; infinite if none did."""
    return min((at_s - moment_s for at_s, later in decided if later > term and at_s >= moment_s), default=float("inf"))


def terms(commits: Iterable[Commit]) -> int:
    """How many have begun."""
    return sum(1 for _ in _entries(commits, EntryKind.TERM_BEGAN))


def _entries(commits: Iterable[Commit], kind: EntryKind) -> Iterator[tuple[float, Mapping[str, Any]]]:
    for commit in commits:
        entry = commit.after
        if commit.collection is not Collection.JOURNAL or commit.before is not None or entry is None:
            continue
        if entry["kind"] == kind:
            yield commit.at_s, entry


async def what_needs_a_person(mongodb_uri: str, database: str, shards: int = 1) -> list[str]:
    """Each finding as a text; what may still be in motion it has looked at twice."""
    settings = read_settings(mongodb_uri=mongodb_uri, database=database, shards=shards)
    report = await assembly.audit(settings, lambda *_: None)
    assert report is not None
    return [f"{finding.kind} {finding.document}: {finding.what}" for finding in report.findings]
