"""The reports of shards in the heartbeat of a replica, as one text: the stream may deliver a part of a document, and
what a later release adds must never make the heartbeat unreadable.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from hascheduler.model.replica import LedShard, ShardReport

_OF_LED = {each.name for each in fields(LedShard)}
_TUPLES = ("unschedulable", "calendars", "short_of")


def encode_shard_reports(reports: Mapping[str, ShardReport]) -> str:
    return json.dumps({shard: _encoded(report) for shard, report in reports.items()}, separators=(",", ":"))


def decode_shard_reports(value: object) -> Mapping[str, ShardReport] | None:
    """None where there is none; a report that can't be read is one of a shard that is followed, and nothing more."""
    if not isinstance(value, str):
        return None
    try:
        stored = json.loads(value)
    except ValueError:
        return {}
    return {str(shard): _decoded(each) for shard, each in stored.items()} if isinstance(stored, dict) else {}


def _encoded(report: ShardReport) -> dict[str, Any]:
    encoded: dict[str, Any] = {"ready": report.ready}
    if report.leaving:
        encoded["leaving"] = True
    if report.led is not None:
        encoded["led"] = {name: value for name, value in asdict(report.led).items() if value not in (None, {}, ())}
    return encoded


def _decoded(stored: object) -> ShardReport:
    if not isinstance(stored, dict):
        return ShardReport(ready=False)
    led = stored.get("led")
    try:
        known = None if not isinstance(led, dict) else {name: led[name] for name in led.keys() & _OF_LED}
        whole = None if known is None else LedShard(**{name: _value(name, each) for name, each in known.items()})
    except TypeError:
        whole = None
    return ShardReport(bool(stored.get("ready")), bool(stored.get("leaving")), whole)


def _value(name: str, stored: Any) -> Any:
    return tuple(stored) if name in _TUPLES else stored
