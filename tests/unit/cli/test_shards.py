"""``hascheduler shards``: what it says of slots that are on their way."""

import json

import pytest

from hascheduler.cli.setup.shards import _show
from hascheduler.model.routing import Routing

ROUTING = Routing.even(("default", "0001", "0002")).beginning({0: 1, 1: 2, 2: 0}).arrived(2)


def test_slots_that_move_and_those_that_the_rest_of_follows_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    _show(ROUTING, {4: 0}, as_json=False)
    told = capsys.readouterr().out
    assert "2 slots move now" in told
    assert "1 slot is open there, the rest follows" in told
    assert "1 slot would move" in told
    _show(ROUTING, {}, as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert document["moving"] == [{"slot": 0, "to": "0001"}, {"slot": 1, "to": "0002"}]
    assert document["leaving"] == [{"slot": 2, "from": "0002"}]
    assert document["would_move"] == []
