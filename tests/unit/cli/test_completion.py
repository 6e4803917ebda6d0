"""What the shell completes: commands and options without loading more than it must, names as the replica has them."""

import asyncio
import socket

import pytest

from tests.unit.cli.invoking import Replica, invoke


def completed(line: str, **variables: str) -> list[str]:
    """What is offered for the last word of ``line``, in the environment in which bash asks for it."""
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" ")), "_TYPER_COMPLETE_ARGS": line}
    ended = invoke(_HASCHEDULER_COMPLETE="complete_bash", **asked, **variables)
    assert ended.err == ""
    return ended.out.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("hascheduler sch", {"schedule"}),
        ("hascheduler schedule p", {"preview", "pause", "put"}),
        ("hascheduler schedule add x --catch", {"--catch-up", "--catch-up-limit"}),
        ("hascheduler schedule add x --overlap b", {"buffer_one"}),
        ("hascheduler job list --state p", {"pending"}),
        ("hascheduler apply --dry", {"--dry-run"}),
        ("hascheduler simulate --example on-d", {"on-demand-crossing"}),
        ("hascheduler simulate --policy a", {"affinity"}),
    ],
)
def test_commands_and_options_are_completed(line: str, offered: set[str]) -> None:
    assert set(completed(line)) == offered


async def test_names_are_completed_from_the_replica(replica: Replica) -> None:
    for name in ("nightly", "nightly-2", "night", "other"):
        await replica.done("schedule", "add", name, "--every", "1s", "--definition", "log")
    for kind, name in (("definition", "repack"), ("lane", "bulk"), ("tenant", "acme")):
        await replica.done(kind, "put", name)

    await replica.done("job", "submit", "log")
    for line, expected in (
        ("schedule get n", {"nightly", "nightly-2", "night"}),
        ("schedule get nightly", {"nightly", "nightly-2"}),
        (f"schedule pause --url {replica.url} o", {"other"}),
        ("schedule get zz", set()),
        ("definition edit r", {"repack"}),
        ("lane delete b", {"bulk"}),
        ("job submit log --tenant a", {"acme"}),
        ("job get j", {"job:0001"}),
        ("job cancel job:0001 j", {"job:0001"}),
        ("job get fire", set()),
    ):
        url = {} if "--url" in line else {"HASCHEDULER_URL": replica.url}
        assert set(await asyncio.to_thread(completed, f"hascheduler {line}", **url)) == expected, line


@pytest.mark.parametrize("listening", [True, False], ids=["nobody answers", "nobody is there"])
def test_where_there_is_no_answer_nothing_is_offered(listening: bool) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        if listening:
            taken.listen()
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        assert completed("hascheduler schedule get n", HASCHEDULER_URL=url) == []
    assert completed("hascheduler schedule get n", HASCHEDULER_URL="file:///etc/passwd") == []
