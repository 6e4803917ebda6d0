"""However a snapshot and the stream overlap, and however often batches are repeated, the mirror ends the same.

A random history of documents is the truth. A replica takes its snapshot at any point, slice by slice, while the
history goes on; its stream begins at any earlier point; whatever it asks to have read is read at any later moment.
"""

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hascheduler.mirror.changes import Change, Operation
from hascheduler.mirror.mirror import Mirror
from hascheduler.model.collection import Collection
from hascheduler.model.documents.lean_fields import LEAN_FIELDS
from hascheduler.model.job import LIVE, TRANSITIONS, Move
from tests.tiers import examples
from tests.unit.mirror.nouns import delete, job_fields, patch, processor_fields, put, schedule_fields

JOBS, SCHEDULES, PROCESSORS = Collection.JOBS, Collection.SCHEDULES, Collection.PROCESSORS
Key = tuple[Collection, str]


class History:
    """Documents and the stream of their changes, written only by `write`."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.stream: list[Change] = []
        self.versions: list[dict[Key, dict[str, Any]]] = [{}]

    @property
    def documents(self) -> dict[Key, dict[str, Any]]:
        return self.versions[-1]

    def write(self) -> None:
        collection = self.random.choice([JOBS, JOBS, SCHEDULES, PROCESSORS])
        key = (collection, f"{collection.value[0]}{self.random.randrange(4)}")
        present = self.documents.get(key)
        match collection:
            case Collection.JOBS:
                self._write_job(key, present)
            case Collection.SCHEDULES:
                self._write_schedule(key, present)
            case _:
                self._write_processor(key, present)

    def _write_job(self, key: Key, present: dict[str, Any] | None) -> None:
        if present is None:
            self._insert(key, job_fields(priority=self.random.randrange(11)))
        elif present["state"] not in LIVE:
            if self.random.random() < 0.3:  # the TTL monitor
                self._delete(key)
        elif self.random.random() < 0.1:
            self._update(key, {"rev": present["rev"] + 1, "priority": self.random.choice(["high", None, 1.5])})
        else:
            rows = [TRANSITIONS[move] for move in Move if present["state"] in TRANSITIONS[move].sources]
            state = self.random.choice(sorted(self.random.choice(rows).targets))
            dispatched = {"attempt": present["attempt"] + 1, "processor": "p0"} if state == "dispatched" else {}
            self._update(key, {"rev": present["rev"] + 1, "state": state.value, "priority": 5, **dispatched})

    def _write_schedule(self, key: Key, present: dict[str, Any] | None) -> None:
        fate = self.random.random()
        if present is None:
            self._insert(key, schedule_fields(cursor_ms=len(self.stream)))
        elif fate < 0.15:
            self._delete(key)
        elif fate < 0.4:
            self._update(key, {"rev": present["rev"] + 1, "trigger": {"type": "once", "at_ms": len(self.stream)}})
        else:
            self._update(key, {"cursor_ms": present["cursor_ms"] + 1})

    def _write_processor(self, key: Key, present: dict[str, Any] | None) -> None:
        if present is None:
            self._insert(key, processor_fields())
        elif self.random.random() < 0.2:
            self._delete(key)
        else:
            self._update(key, {"beat": present["beat"] + 1, "draining": self.random.random() < 0.5})

    def _insert(self, key: Key, fields: dict[str, Any]) -> None:
        self.versions.append({**self.documents, key: fields})
        self.stream.append(put(*key, lean(key, fields)))

    def _update(self, key: Key, fields: dict[str, Any]) -> None:
        whole = {**self.documents[key], **fields}
        self.versions.append({**self.documents, key: whole})
        # A pipeline update of a small document arrives as a replace.
        told_whole = self.random.random() < 0.3
        self.stream.append(put(*key, lean(key, whole)) if told_whole else patch(*key, **fields))

    def _delete(self, key: Key) -> None:
        self.versions.append({other: fields for other, fields in self.documents.items() if other != key})
        self.stream.append(delete(*key))


def lean(key: Key, fields: dict[str, Any]) -> dict[str, Any]:
    return {name: fields[name] for name in LEAN_FIELDS[key[0]] if name in fields}


def present(key: Key, documents: dict[Key, dict[str, Any]]) -> Change:
    return put(*key, lean(key, documents[key])) if key in documents else delete(*key)


def replica_of(history: History) -> Mirror:
    """A mirror that was filled in some way that the protocol allows."""
    random, end = history.random, len(history.stream)
    begin = random.randint(0, end)
    mirror = Mirror()
    at = begin
    for key in sorted({key for version in history.versions[begin:] for key in version}):
        # Each slice of the snapshot is read at or after the moment the stream begins, and none before the last one.
        at = random.randint(at, end) if random.random() < 0.5 else at
        fields = history.versions[at].get(key)
        if fields is not None and (key[0] is not JOBS or fields["state"] in LIVE):
            mirror.fold([put(*key, lean(key, fields))])
    place = begin
    while place < end:
        batch = history.stream[place : place + random.randint(1, 5)]
        place += len(batch)
        for _ in range(random.choice([1, 1, 1, 2])):
            mirror.fold(batch)
            answer(mirror, history, place)
    while mirror.fold([]).wanted:
        answer(mirror, history, end, surely=True)
    return mirror


def answer(mirror: Mirror, history: History, place: int, *, surely: bool = False) -> None:
    """Read what is wanted, at any moment from ``place`` on; or have the read fail."""
    wanted = mirror.fold([]).wanted
    if surely or history.random.random() < 0.8:
        at = history.random.randint(place, len(history.stream))
        mirror.fold_fetched(wanted, [present(key, history.versions[at]) for key in wanted])


def known(mirror: Mirror) -> dict[Collection, dict[str, Any]]:
    return {collection: dict(mirror.nouns(collection)) for collection in (JOBS, SCHEDULES, PROCESSORS)}


@given(st.integers(0, 2**32))
@settings(max_examples=examples(300))
def test_every_replica_ends_with_the_same_documents_and_digest(seed: int) -> None:
    random = Random(seed)
    history = History(random)
    for _ in range(random.randint(1, 60)):
        history.write()
    straight = Mirror()
    straight.fold(history.stream)
    while straight.fold([]).wanted:
        answer(straight, history, len(history.stream), surely=True)
    truth = Mirror()
    truth.fold(
        put(*key, lean(key, fields))
        for key, fields in history.documents.items()
        if key[0] is not JOBS or fields["state"] in LIVE
    )
    replica = replica_of(history)
    assert known(straight) == known(truth)
    assert known(replica) == known(truth)
    assert replica.digest == straight.digest == truth.digest
    assert set(replica.quarantine) == set(straight.quarantine) == set(truth.quarantine)


def test_planted_a_snapshot_older_than_the_stream_leaves_a_gap_that_shows() -> None:
    """Find-then-watch: what is written between the two is never seen."""
    history = History(Random(1))
    for _ in range(20):
        history.write()
    gap = len(history.stream)
    while history.stream[-1].operation is not Operation.DELETE or len(history.stream) == gap:
        history.write()
    missed = Mirror()
    missed.fold(put(*key, lean(key, fields)) for key, fields in history.versions[gap].items())
    whole = Mirror()
    whole.fold(history.stream)
    assert known(missed) != known(whole)
