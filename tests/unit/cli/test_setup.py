"""What ``hascheduler bootstrap mongodb`` and ``hascheduler shards`` take, refuse and show."""

from pathlib import Path
from typing import Any

import pytest

from hascheduler.bootstrap import is_same_member
from hascheduler.cli.setup.bootstrap import parse_members, read_key, read_password
from hascheduler.cli.setup.shards import _moves, shown
from hascheduler.errors import InvalidInput
from hascheduler.shards.layout import Layout

# Bootstrap


@pytest.mark.parametrize("text", ["a:b", "a:0", "a:00", "a/b", "a,a:27017", ",", ""])
def test_what_is_no_list_of_members_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="--members"):
        parse_members(text)


def test_members_have_one_order_in_whatever_order_they_are_given() -> None:
    assert parse_members("c, a:2,b") == parse_members("b,c,a:2") == ["a:2", "b:27017", "c:27017"]


@pytest.mark.parametrize(
    ("own", "same"),
    [
        ("mongodb-1.mongodb:27017", True),
        ("mongodb-1.mongodb.hascheduler.svc.cluster.local:27017", True),
        ("mongodb-1.mongodb.hascheduler.svc.cluster.local:27018", False),
        ("mongodb-10.mongodb.hascheduler.svc.cluster.local:27017", False),
        ("mongodb-1.mongodbs:27017", False),
    ],
)
def test_a_full_name_is_that_of_the_short_one(own: str, same: bool) -> None:
    assert is_same_member("mongodb-1.mongodb:27017", own) is same


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("abc def\nghi\n", "abcdefghi"),
        ("- firstkey\n- secondkey\n", "firstkey"),
        ("abcde", None),
        ("", None),
        ("abc*defg", None),
    ],
)
def test_a_key_is_read_as_the_members_read_it(tmp_path: Path, text: str, key: str | None) -> None:
    file = tmp_path / "keyfile"
    file.write_text(text)
    if key is not None:
        assert read_key(file) == key
        return
    with pytest.raises(InvalidInput, match="contains no key"):
        read_key(file)


@pytest.mark.parametrize("content", [b"", b"\n", b"two\nlines", b"tab\there", b"\xff", None])
def test_a_file_without_a_password_is_refused(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "password").write_bytes(content)
    with pytest.raises(InvalidInput, match=r"--users-from: .*password"):
        read_password(tmp_path / "password")


# Shards

LAYOUT = Layout.even(("default", "0001", "0002")).beginning({0: 1, 1: 2, 2: 0}).arrived(2)


def test_partitions_that_move_and_those_that_have_arrived_are_told_apart() -> None:
    told = str(shown(LAYOUT, {4: 0}).picture)
    assert "2 partitions move now" in told
    assert "1 partition has moved; its finished jobs follow" in told
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
        ({"partitions": [0], "to": "0002"}, "--partition: 0 already moves to 0001; expected"),
        ({"partitions": [1]}, "--to: is missing; expected one of"),
        ({"to": "0001"}, "--to: no partitions to move are given; expected --tenant or --partition"),
        ({"even": True, "to": "0001"}, "--even: excludes --tenant, --partition and --to"),
    )
    for asked, said in rows:
        with pytest.raises(InvalidInput) as refused:
            _moves(LAYOUT, **(nothing | asked))
        assert said in str(refused.value)
