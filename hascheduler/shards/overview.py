"""What runs the whole, of all shards: the cluster, processors, failovers, the live picture.

What all share is the home's: the replicas, leader, journal and stream of an answer are those of the home. Each shard
has a row. A shard that no replica answers for is shown so, and hides no other.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from hascheduler.api.ui.live import BUSIEST_MAX
from hascheduler.shards.answers import Body, Exchange, fitted, part_of, read
from hascheduler.shards.layout import Layout
from hascheduler.shards.place import Place, WholeAnswer, ask_all

_PATIENCE_S = 5.0
_QUARANTINE_MAX = 100
_OF_ROW = ("leader", "unready_reason", "stream_lag_ms", "journal_seq")
_READ = frozenset({*_OF_ROW, "leading", "replicas", "counts", "findings", "mirrors_differ", "quarantine"})
_UNANSWERED = "no replica that hosts it answers"
_NO_LEADER, _NO_LEADER_OF_SHARD = "HaschedulerNobodyLeads", "HaschedulerShardWithoutLeader"
_LIVE = ("pending", "dispatched", "running")


async def cluster(_: Layout, places: Sequence[Place], _body: Any, exchange: Exchange) -> None:
    """Answer as the home does, with a row for each shard."""
    scope, receive, send = exchange
    of_processors = {**scope, "path": "/v1/processors", "raw_path": b"/v1/processors", "query_string": b""}
    answers = await ask_all(
        part_of(place, part, receive, patience_s=_PATIENCE_S) for part in (scope, of_processors) for place in places
    )
    answer = answers[0]
    if answer.status == HTTPStatus.OK:
        names = [place.name for place in places]
        found = [read(each, name) for each, name in zip(answers, [*names, *names], strict=True)]
        bodies = [None if isinstance(each, WholeAnswer) else each for each in found]
        answer = fitted(lambda: cluster_as_one(names, bodies[: len(names)], bodies[len(names) :]))
    await answer.send(send)


def cluster_as_one(names: Sequence[str], told: Sequence[Body | None], served: Sequence[Body | None]) -> Body:
    """Return the cluster of all shards. ``told`` is what each shard answers of itself, ``served`` of its processors,
    None if it does not answer. `KeyError` if the home does not."""
    home: Body = told[0] or {}
    own_name = next((each["name"] for each in home["replicas"] if each["id"] == home["replica_id"]), None)
    known = [each if each is not None and each.keys() >= _READ else None for each in told]
    rows = [_row(*each, own_name) for each in zip(names, known, served, strict=True)]
    answered = [each for each in known if each is not None]
    looked = [each["findings"] for each in answered if each["findings"] is not None]
    counts = {"counts": sums(each["counts"] for each in looked)}
    return {
        **home,
        "leading": any(row["leading"] for row in rows),
        "counts": {**sums(each["counts"] for each in answered), "definitions": home["counts"].get("definitions", 0)},
        "findings": {"at": min(each["at"] for each in looked), **counts} if looked else None,
        "mirrors_differ": sorted({name for each in answered for name in each["mirrors_differ"]}),
        "quarantine": [document for each in answered for document in each["quarantine"]][:_QUARANTINE_MAX],
        "shards": rows,
    }


def _row(name: str, told: Body | None, served: Body | None, own_name: object) -> Body:
    followers = [] if told is None else [each["name"] for each in told["replicas"] if each["alive"]]
    shown = told or {**dict.fromkeys(_OF_ROW), "unready_reason": _UNANSWERED}
    is_here = own_name in followers
    return {
        **{field: shown[field] for field in _OF_ROW},
        "name": name,
        "ready": not shown["unready_reason"],
        # Another replica may have answered, and may lead it.
        "leading": is_here and bool(shown["leading"]),
        "processors": 0 if served is None else sum(bool(each.get("alive")) for each in served["items"]),
        "counts": {state: count for state, count in shown.get("counts", {}).items() if state != "definitions"},
        "followers": followers,
        "followed": is_here,
    }


def sums(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)


def processors(answers: Sequence[Body]) -> Body:
    """Return the processors of all shards. A drained name is absent if no shard has a processor of that name."""
    items = sorted((item for each in answers for item in each["items"]), key=lambda item: str(item["id"]))
    there, drained = {item["name"] for item in items}, answers[0]["absent"]
    return {**answers[0], "items": items, "absent": [each for each in drained if each["name"] not in there]}


def failovers(answers: Sequence[Body], limit: int) -> Body:
    items = [item for answer in answers for item in answer["items"]]
    return {"items": sorted(items, key=lambda item: str(item["deciding_at"]), reverse=True)[:limit]}


def picture_as_one(names: Sequence[str], told: Sequence[Body | None]) -> Body:
    """Return the live picture of all shards. None stands for a picture that is missing or old; `KeyError` if that is
    the home's."""
    home: Body = told[0] or {}
    answered = [each for each in told if each is not None]
    served = [each and each["processors"] for each in told]
    return {
        **home,
        "cluster": cluster_as_one(names, [each and each["cluster"] for each in told], served),
        "processors": home["processors"] and processors([each for each in served if each is not None]),
        "slots": sums(each["slots"] for each in answered),
        "alerts": _alerts(names, told),
        "numbers": sums(each["numbers"] for each in answered),
        "lanes": _busiest([each["lanes"] for each in answered]),
        "tenants": _busiest([each["tenants"] for each in answered]),
    }


def _alerts(names: Sequence[str], told: Sequence[Body | None]) -> Sequence[Body]:
    """Return each alert once, the most urgent first; the text of a shard's own alert begins with its name."""
    found: dict[str, Body] = {}
    for index, (name, each) in enumerate(zip(names, told, strict=True)):
        if each is None:
            text = f"No replica that hosts shard {name} answers: what is of its tenants is not shown."
            found[text] = {"severity": "page", "runbook": _NO_LEADER_OF_SHARD, "text": text}
            continue
        for alert in each["alerts"]:
            if index and alert["runbook"] == _NO_LEADER:
                text = f"No replica leads shard {name}: nothing of its tenants fires or starts."
                found[text] = {**alert, "runbook": _NO_LEADER_OF_SHARD, "text": text}
            elif alert["text"] not in found:
                text = f"Shard {name}: {alert['text']}" if index else alert["text"]
                found[text] = {**alert, "text": text}
    return sorted(found.values(), key=lambda alert: alert["severity"] != "page")


def _busiest(told: Sequence[Body | None]) -> Body | None:
    known = [each for each in told if each is not None]
    if len(known) < len(told):
        return None
    by_name: dict[str, dict[str, Any]] = {}
    for item in (item for each in known for item in each["items"]):
        total = by_name.setdefault(item["name"], {**item, **dict.fromkeys(_LIVE, 0)})
        total |= {state: total[state] + item[state] for state in _LIVE}
        if "waited_ms" in item:
            total["waited_ms"] = max((total["waited_ms"], item["waited_ms"]), key=lambda ms: -1 if ms is None else ms)
    items = sorted(by_name.values(), key=lambda item: (-sum(item[state] for state in _LIVE), item["name"]))
    whole = len(items) <= BUSIEST_MAX and all(each["whole"] for each in known)
    return {"items": items[:BUSIEST_MAX], "whole": whole}
