"""``hascheduler definition …`` against the real API."""

from typing import Any

import pytest

from tests.cli.invoking import Replica


async def test_a_definition_is_made_shown_listed_edited_and_deleted(replica: Replica) -> None:
    assert "There are no definitions" in (await replica.done("definition", "list")).out
    made: Any = (await replica.done("definition", "put", "repack", "--max-concurrency", "3", "--json")).json
    assert made == {"name": "repack", "rev": 1, "max_concurrency": 3, "retry": {"attempts": 5}}
    edited = await replica.done("definition", "edit", "repack", "--attempts", "9", "--max-concurrency", "none")
    assert edited.out == "name: repack\nretry:\n  attempts: 9\n"
    assert "repack" in (await replica.done("definition", "list")).out
    assert (await replica.done("definition", "delete", "repack", "--yes")).out == "deleted repack\n"
    assert (await replica.run("definition", "get", "repack")).err == "hascheduler: no definition 'repack'\n"


async def test_putting_replaces_the_whole(replica: Replica) -> None:
    await replica.done("definition", "put", "repack", "--max-concurrency", "3", "--attempts", "9")
    assert (await replica.done("definition", "put", "repack")).out == "name: repack\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["put", "repack", "--max-concurrency", "0"], "max_concurrency: 0 is too small"),
        (["put", "repack", "--attempts", "many"], "--attempts: 'many' is not a whole number"),
        (["put", "a/b"], "NAME: 'a/b' is not a name"),
        (["edit", "nobody", "--attempts", "3"], "no definition 'nobody'"),
        (["delete", "nobody", "--yes"], "no definition 'nobody'"),
    ],
)
async def test_a_mistake_is_one_line_and_status_2(replica: Replica, arguments: list[str], said: str) -> None:
    ended = await replica.run("definition", *arguments)
    assert (ended.status, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert said in ended.err
