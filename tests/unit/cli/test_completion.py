"""What the shell completes: commands and options without loading more than it must, names as the replica has them."""

import asyncio
import os
import socket
import subprocess
import sys

import pytest

from tests.unit.cli.invoking import Replica, invoke
from tests.warm import ROOT


def asked_for(line: str) -> dict[str, str]:
    """The environment in which bash asks for the last word of ``line``."""
    return {
        "_HASCHEDULER_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(line.count(" ")),
        "_TYPER_COMPLETE_ARGS": line,
    }


def completed(line: str, **variables: str) -> list[str]:
    """What is offered for the last word of ``line``."""
    ended = invoke(**asked_for(line), **variables)
    assert ended.err == ""
    return ended.out.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("hascheduler sch", {"schedule"}),
        ("hascheduler schedule p", {"preview", "pause", "put"}),
        ("hascheduler schedule preview --ti", {"--timezone"}),
        ("hascheduler schedule add x --catch", {"--catch-up", "--catch-up-limit"}),
        ("hascheduler schedule add x --overlap b", {"buffer_one"}),
        ("hascheduler definition pu", {"put"}),
        ("hascheduler lane e", {"edit"}),
        ("hascheduler definition put x --ra", {"--rate-limit"}),
        ("hascheduler job list --state p", {"pending"}),
        ("hascheduler apply --dry", {"--dry-run"}),
    ],
)
def test_commands_and_options_are_completed(line: str, offered: set[str]) -> None:
    assert set(completed(line)) == offered


def test_the_shell_asks_a_process_of_its_own() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "hascheduler"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=ROOT,
        env={**os.environ, **asked_for("hascheduler sch")},
    )
    assert (ended.stdout.split(), ended.stderr) == (["schedule"], "")


async def test_names_are_completed_from_the_replica(replica: Replica) -> None:
    for name in ("nightly", "nightly-2", "night", "other"):
        await replica.done("schedule", "add", name, "--every", "1s", "--definition", "log")
    for kind, name in (("definition", "repack"), ("lane", "bulk"), ("tenant", "acme")):
        await replica.done(kind, "put", name)

    async def offered(line: str, **variables: str) -> set[str]:
        return set(await asyncio.to_thread(completed, line, **variables))

    assert await offered("hascheduler schedule get n", HASCHEDULER_URL=replica.url) == {"nightly", "nightly-2", "night"}
    assert await offered("hascheduler schedule get nightly", HASCHEDULER_URL=replica.url) == {"nightly", "nightly-2"}
    assert await offered(f"hascheduler schedule pause --url {replica.url} o") == {"other"}
    assert await offered("hascheduler schedule get zz", HASCHEDULER_URL=replica.url) == set()
    assert await offered("hascheduler definition edit r", HASCHEDULER_URL=replica.url) == {"repack"}
    assert await offered("hascheduler lane delete b", HASCHEDULER_URL=replica.url) == {"bulk"}
    assert await offered("hascheduler job submit log --tenant a", HASCHEDULER_URL=replica.url) == {"acme"}
    await replica.done("job", "submit", "log")
    assert await offered("hascheduler job get j", HASCHEDULER_URL=replica.url) == {"job:0001"}
    assert await offered("hascheduler job cancel job:0001 j", HASCHEDULER_URL=replica.url) == {"job:0001"}
    assert await offered("hascheduler job get fire", HASCHEDULER_URL=replica.url) == set()


@pytest.mark.parametrize("listening", [True, False], ids=["nobody answers", "nobody is there"])
def test_where_there_is_no_answer_nothing_is_offered(listening: bool) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        if listening:
            taken.listen()
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        assert completed("hascheduler schedule get n", HASCHEDULER_URL=url) == []
    assert completed("hascheduler schedule get n", HASCHEDULER_URL="file:///etc/passwd") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_its_script(shell: str) -> None:
    ended = invoke("--show-completion", shell, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert ended.status == 0, ended.err
    assert "_HASCHEDULER_COMPLETE" in ended.out
