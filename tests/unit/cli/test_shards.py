"""``hascheduler shards``: what it says of partitions that are on their way."""

from typing import Any

import pytest

from hascheduler.cli.setup.shards import _moves, shown
from hascheduler.errors import InvalidInput
from hascheduler.shards.layout import Layout

LAYOUT = Layout.even(("default", "0001", "0002")).beginning({0: 1, 1: 2, 2: 0}).arrived(2)


def test_partitions_that_move_and_those_that_have_arrived_are_told_apart() -> None:
    told = str(shown(LAYOUT, {4: 0}).picture)
    assert "2 partitions move now" in told
    assert "1 partition has arrived, and the rest of it follows" in told
    assert "1 partition would move" in told
    document = shown(LAYOUT, {}).answer
    assert [(shard["partitions"], shard["then"]) for shard in document["shards"]] == [(87, 86), (85, 85), (84, 85)]
    assert document["moving"] == [{"partition": 0, "to": "0001"}, {"partition": 1, "to": "0002"}]
    assert document["leaving"] == [{"partition": 2, "from": "0002"}]
    assert document["would_move"] == []


def test_what_can_not_be_moved_is_refused() -> None:
    nothing: dict[str, Any] = {"even": False, "tenants": (), "partitions": (), "to": ""}
    rows: tuple[tuple[dict[str, Any], str], ...] = (
        ({"tenants": ["a"], "to": "0009"}, "--to: there is no shard '0009'; expected one of default, 0001, 0002"),
        ({"partitions": [256], "to": "0001"}, "--partition: 256; expected 0 to 255"),
        ({"partitions": [0], "to": "0002"}, "--partition: 0 moves to 0001; expected one that is at rest"),
        ({"partitions": [1]}, "--to: is missing; expected one of"),
        ({"to": "0001"}, "--to: nothing is to go there; expected --tenant or --partition"),
        ({"even": True, "to": "0001"}, "--even: stands beside --tenant, --partition or --to"),
    )
    for asked, said in rows:
        with pytest.raises(InvalidInput) as refused:
            _moves(LAYOUT, **(nothing | asked))
        assert said in str(refused.value)
