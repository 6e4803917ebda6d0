"""What runs the whole, of all shards: the cluster, processors, failovers, the live picture.

What all share is the home's: the replicas, leader, journal and stream of an answer are those of the home. Each shard
has a row. A shard of which no replica answers is shown so, and hides no other.
"""

from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from starlette.types import Receive, Scope, Send

from hascheduler.api.ui.live import BUSIEST_MAX
from hascheduler.shards.answers import Body, fitted, part_of, read
from hascheduler.shards.layout import Layout
from hascheduler.shards.place import Place, WholeAnswer, ask_all

_PATIENCE_S = 5.0
_QUARANTINE_MAX = 100
_OF_ROW = ("leader", "unready_reason", "stream_lag_ms", "journal_seq")
_READ = frozenset({*_OF_ROW, "leading", "replicas", "counts", "findings", "mirrors_differ", "quarantine"})
_UNANSWERED = "no replica that hosts it answers"
_NO_LEADER, _NO_LEADER_OF_SHARD = "HaschedulerNobodyLeads", "HaschedulerShardWithoutLeader"
_LIVE = ("pending", "dispatched", "running")


async def cluster(
    layout: Layout, places: Sequence[Place], _body: Any, scope: Scope, receive: Receive, send: Send
) -> None:
    """Answer as the home does, with a row for each shard."""
    path = {"path": "/v1/processors", "raw_path": b"/v1/processors", "query_string": b""}
    asked = [part_of(place, scope, receive, patience_s=_PATIENCE_S) for place in places]
    others = [part_of(place, {**scope, **path}, receive, patience_s=_PATIENCE_S) for place in places]
    answers = await ask_all([*asked, *others])
    home = answers[0]
    if home.status != HTTPStatus.OK:
        await home.send(send)
        return
    names = [place.name for place in places]
    told = [_body_of(answer, name) for answer, name in zip(answers, [*names, *names], strict=True)]
    whole, served = told[: len(names)], told[len(names) :]
    await fitted(lambda: cluster_as_one(names, whole, served))(scope, receive, send)


def _body_of(answer: WholeAnswer, shard: str) -> Body | None:
    body = read(answer, shard)
    return None if isinstance(body, WholeAnswer) else body


def cluster_as_one(names: Sequence[str], told: Sequence[Body | None], served: Sequence[Body | None]) -> Body:
    """Return the cluster of all shards: ``told`` is what each says of itself, ``served`` of its processors; None: it
    does not answer, or not to this caller."""
    home = told[0]
    if home is None:
        raise ValueError("the home does not answer")
    own_name = next((each["name"] for each in home["replicas"] if each["id"] == home["replica_id"]), None)
    known = [each if each is not None and each.keys() >= _READ else None for each in told]
    rows = [_row(*each, own_name) for each in zip(names, known, served, strict=True)]
    answered = [each for each in known if each is not None]
    return {
        **home,
        "leading": any(row["leading"] for row in rows),
        "counts": {**sums(each["counts"] for each in answered), "definitions": home["counts"].get("definitions", 0)},
        "findings": _findings([each["findings"] for each in answered if each["findings"] is not None]),
        "mirrors_differ": sorted({name for each in answered for name in each["mirrors_differ"]}),
        "quarantine": [document for each in answered for document in each["quarantine"]][:_QUARANTINE_MAX],
        "shards": rows,
    }


def _row(name: str, told: Body | None, served: Body | None, own_name: object) -> Body:
    followers = [] if told is None else [each["name"] for each in told["replicas"] if each["alive"]]
    shown = told or {"leader": None, "unready_reason": _UNANSWERED, "stream_lag_ms": None, "journal_seq": None}
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


def _findings(looked: Sequence[Body]) -> Body | None:
    if not looked:
        return None
    return {"at": min(each["at"] for each in looked), "counts": sums(each["counts"] for each in looked)}


def sums(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for each in counts:
        for name, value in each.items():
            total[name] = total.get(name, 0) + value
    return total


def processors(_: Layout, answers: Sequence[Body], scope: Scope) -> Body:
    """Return the processors of all shards. A drained name is absent if no shard has a processor of that name."""
    return _served(answers)


def _served(told: Sequence[Body]) -> Body:
    items = sorted((item for each in told for item in each["items"]), key=lambda item: str(item["id"]))
    there = {item["name"] for item in items}
    return {**told[0], "items": items, "absent": [each for each in told[0]["absent"] if each["name"] not in there]}


def failovers(answers: Sequence[Body], limit: int) -> Body:
    items = [item for answer in answers for item in answer["items"]]
    return {"items": sorted(items, key=lambda item: str(item["deciding_at"]), reverse=True)[:limit]}


# The live picture


def picture_as_one(names: Sequence[str], told: Sequence[Body | None]) -> Body:
    """Return the picture of all shards; None: one has not told lately."""
    home = told[0]
    if home is None:
        raise ValueError("the home does not answer")
    answered = [each for each in told if each is not None]
    served = [None if each is None else each["processors"] for each in told]
    known = [each for each in served if each is not None]
    return {
        **home,
        "cluster": cluster_as_one(names, [each and each["cluster"] for each in told], served),
        "processors": _served(known) if home["processors"] is not None else None,
        "slots": sums(each["slots"] for each in answered),
        "alerts": _alerts(names, told),
        "numbers": sums(each["numbers"] for each in answered),
        "lanes": _busiest([each["lanes"] for each in answered]),
        "tenants": _busiest([each["tenants"] for each in answered]),
    }


def _alerts(names: Sequence[str], told: Sequence[Body | None]) -> Sequence[Body]:
    """Each alert once, the most urgent first; of what is one shard's own, the text says whose."""
    found: dict[str, Body] = {}
    for index, (name, each) in enumerate(zip(names, told, strict=True)):
        if each is None:
            text = f"No replica that hosts shard {name} answers: what is of its tenants is not shown."
            found[text] = {"severity": "page", "runbook": _NO_LEADER_OF_SHARD, "text": text}
        for alert in () if each is None else each["alerts"]:
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
    return {
        "items": items[:BUSIEST_MAX],
        "whole": len(items) <= BUSIEST_MAX and all(each["whole"] for each in known),
    }
