"""What ``hascheduler bootstrap mongodb`` takes as members, key and passwords."""

from pathlib import Path

import pytest

from hascheduler.bootstrap import is_same_member
from hascheduler.cli.setup.bootstrap import parse_members, read_key, read_password
from hascheduler.errors import InvalidInput


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
    with pytest.raises(InvalidInput, match="holds no key"):
        read_key(file)


@pytest.mark.parametrize("content", [b"", b"\n", b"two\nlines", b"tab\there", b"\xff", None])
def test_a_file_without_a_password_is_refused(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "password").write_bytes(content)
    with pytest.raises(InvalidInput, match=r"--users-from: .*password"):
        read_password(tmp_path / "password")
