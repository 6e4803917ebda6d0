"""The command line as a user meets it: help, completion, one line for each mistake, quick starts."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from hascheduler import __main__ as entry
from hascheduler import __version__
from hascheduler.cli.app import app
from hascheduler.cli.commands import COMMANDS
from hascheduler.cli.input.values import coming_instant, past_instant
from hascheduler.cli.lazy_groups import CommandTable
from hascheduler.clock import SystemClock
from hascheduler.errors import Conflict, InvalidInput, InvariantBroken, StoreUnavailable
from hascheduler.model.values.instants import parse_instant
from hascheduler.settings import Settings, described, variable
from tests.unit.cli.invoking import Replica, invoke

ROOT = Path(__file__).parents[3]


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    """What is imported can be told in a process of its own alone: this one has imported it all."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd=ROOT)


_ROOMS = tuple(f"hascheduler.cli.{room}" for room in ("schedules", "jobs", "resources", "run", "setup", "simulate"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("runs", "left_out"),
    [
        ("import hascheduler.__main__",
         ("pydantic", "fastapi", "pymongo", "aio_pika", "uvicorn", "httpx2", "uvloop", "structlog")),
        ("sys.argv[1:] = ['--help']; from hascheduler.__main__ import main; main()", _ROOMS),
        ("sys.argv[1:] = ['schedule', '--help']; from hascheduler.__main__ import main; main()", _ROOMS),
        ("import hascheduler.__main__, hascheduler.cli.run.whole_system, hascheduler.assembly",
         ("rich", "pygments", "httpx2", "hascheduler.client")),
        ("import hascheduler.assembly", ("fastapi", "httpx2")),
        ("import hascheduler.client; from hascheduler.client.exchange import Exchange",
         ("fastapi", "pymongo", "aio_pika", "pydantic", "structlog", "uvicorn", "orjson", "opentelemetry")),
    ],
    ids=["the command line", "a list of commands", "a list of a group", "a replica", "a processor", "the SDK"],
)  # fmt: skip
def test_what_has_no_use_for_a_module_does_not_import_it(runs: str, left_out: tuple[str, ...]) -> None:
    loaded = python("-c", f"import sys\ntry: {runs}\nfinally: print('loaded', *sys.modules)").stdout
    _, _, modules = loaded.partition("\nloaded " if "help" in runs else "loaded ")
    assert "hascheduler" in modules.split()
    met = {name for name in left_out for module in modules.split() if f"{module}.".startswith(f"{name}.")}
    assert not met


@pytest.mark.slow
def test_the_command_runs_as_a_module_and_says_its_version() -> None:
    assert python("-m", "hascheduler", "--version").stdout == f"hascheduler {__version__}\n"
    assert "--install-completion" in invoke("--help").out


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [(["shedule"], "schedule"), (["schedule", "prevew"], "preview"), (["definition", "lst"], "list")],
)
def test_a_misspelt_command_names_the_closest_one(arguments: list[str], meant: str) -> None:
    ended = invoke(*arguments)
    assert ended.status == 2
    assert f"Did you mean {meant}?" in ended.err


@pytest.mark.parametrize("command", ["serve", "processor"])
def test_help_lists_every_variable_with_description_and_default(command: str) -> None:
    shown = " ".join(invoke(command, "--help", COLUMNS="100").out.split())
    for name in Settings.model_fields:
        text, default = described(name)
        assert f"{variable(name)}: {text} [{default}]" in shown


def test_a_line_in_a_list_of_commands_is_the_first_sentence_of_the_commands_own_help() -> None:
    root = get_command(app)
    for group, table, context in _tables(root, COMMANDS, root.make_context("hascheduler", [], resilient_parsing=True)):
        for name, line in table.items():
            alone = group.get_command(context, name)
            assert alone.get_short_help_str(1_000) == line.summary or line.hidden, name


def _tables(group: Any, table: CommandTable, context: Any) -> Iterator[tuple[Any, CommandTable, Any]]:
    yield group, table, context
    for name, line in table.items():
        if line.commands:
            below = group.get_command(context, name)
            yield from _tables(
                below, line.commands, below.make_context(name, [], parent=context, resilient_parsing=True)
            )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["serve", "--http-port", "70000"], "HASCHEDULER_HTTP_PORT"),
        (["serve", "--lease-duration", "soon"], "HASCHEDULER_LEASE_DURATION"),
        (["serve", "--lease-duration", "1s"], "LEASE_DURATION: must exceed RENEW_DEADLINE"),
        (["serve", "--http-host", "0.0.0.0", "--auth", "none"], "not loopback"),
        (["processor", "hascheduler.handlers.log", "--slots", "0"], "HASCHEDULER_SLOTS"),
        (["cluster", "--url", "nonsense"], "--url"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(arguments: list[str], said: str) -> None:
    answer = invoke(*arguments)
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith("hascheduler: ")
    assert answer.err.count("\n") == 1
    assert said in answer.err


@pytest.mark.parametrize("command", ["cluster", "events", "job wait job:0001", "schedule list"])
def test_no_replica_there_is_one_line_and_status_1(command: str) -> None:
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        answer = invoke(*command.split(), HASCHEDULER_URL=url)
    said = f"hascheduler: nothing answers at {url}; is a replica running there?\n"
    assert (answer.status, answer.err) == (1, said)


def test_a_url_whose_host_has_no_address_says_so() -> None:
    answer = invoke("cluster", HASCHEDULER_URL="http://no-such-host.invalid:8080")
    assert (answer.status, answer.err.count("\n")) == (1, 1)
    assert "http://no-such-host.invalid:8080: no address for this host; set --url" in answer.err


def test_a_command_without_its_extra_names_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(entry, "app", _raising(ModuleNotFoundError("", name="pymongo")))
    monkeypatch.setattr(sys, "argv", ["hascheduler", "--utc", "migrate"])
    with pytest.raises(SystemExit, match="2"):
        entry.main()
    expected = "hascheduler: migrate needs pymongo, which is not installed: pip install 'hascheduler[server]'\n"
    assert capsys.readouterr().err == expected
    monkeypatch.setattr(sys, "argv", ["hascheduler", "job", "list"])
    with pytest.raises(ModuleNotFoundError):  # a defect of ours
        entry.main()


@pytest.mark.parametrize(
    ("raised", "status", "line"),
    [
        (InvalidInput(("a", "b"), "wrong", "right"), 2, "hascheduler: a.b: wrong; expected right\n"),
        (Conflict("taken"), 2, "hascheduler: taken\n"),
        (StoreUnavailable("first\nsecond"), 1, "hascheduler: first second\n"),
        (ExceptionGroup("", [ExceptionGroup("", [StoreUnavailable("away")])]), 1, "hascheduler: away\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_whose_fault_it_was_decides_the_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], raised: BaseException, status: int, line: str
) -> None:
    monkeypatch.setattr(entry, "app", _raising(raised))
    with pytest.raises(SystemExit) as ended:
        entry.main()
    assert ended.value.code == status
    assert capsys.readouterr().err == line


@pytest.mark.parametrize(
    "raised", [InvariantBroken("ours"), ExceptionGroup("", [StoreUnavailable("away"), InvariantBroken("ours")])]
)
def test_a_defect_of_ours_is_not_made_small(monkeypatch: pytest.MonkeyPatch, raised: Exception) -> None:
    monkeypatch.setattr(entry, "app", _raising(raised))
    with pytest.raises(type(raised)):
        entry.main()


def _raising(error: BaseException):  # type: ignore[no-untyped-def]
    def app(**_: object) -> None:
        raise error

    return app


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2030-01-31T09:30:00+02:00", "2030-01-31T09:30:00+02:00"),
        ("2030-07-31", "2030-07-30T22:00:00.000Z"),
        ("2030-01-31 09:30", "2030-01-31T08:30:00.000Z"),
    ],
)
def test_an_instant_without_an_offset_is_one_of_the_readers_zone(
    monkeypatch: pytest.MonkeyPatch, text: str, expected: str
) -> None:
    monkeypatch.setenv("TZ", "Europe/Paris")
    assert past_instant("--from", text) == coming_instant("--from", text) == expected


@pytest.mark.parametrize("text", ["soon", "", "1950-01-01T00:00:00Z", "1950-01-01", "2200-01-01", "-1h", "9999999w"])
def test_what_is_not_an_instant_is_refused_with_examples(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"--from: .* is not an instant; expected such as 2030-01-31T09:30:00Z"):
        past_instant("--from", text)


def test_a_span_is_counted_from_now_in_the_direction_of_the_option() -> None:
    now_ms = SystemClock().wall_ms()
    assert parse_instant(past_instant("--from", "7d")) <= now_ms - 7 * 86_400_000 + 60_000
    assert parse_instant(coming_instant("--not-before", "10m")) >= now_ms + 600_000


# Completion


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


async def test_names_are_completed_from_the_replica(replica: Replica, tmp_path: Path) -> None:
    contexts = {"HASCHEDULER_CONFIG": str(tmp_path / "contexts.toml")}
    await replica.done("context", "set", "prod", "--url", replica.url, **contexts)
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
        ("context use p", {"prod"}),
        ("lane get --context prod b", {"bulk"}),
        ("lane get --context none b", set()),
    ):
        url = {} if "--url" in line or "--context" in line else {"HASCHEDULER_URL": replica.url}
        assert set(await asyncio.to_thread(completed, f"hascheduler {line}", **url, **contexts)) == expected, line


@pytest.mark.parametrize("listening", [True, False], ids=["nobody answers", "nobody is there"])
def test_where_there_is_no_answer_nothing_is_offered(listening: bool) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        if listening:
            taken.listen()
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        assert completed("hascheduler schedule get n", HASCHEDULER_URL=url) == []
    assert completed("hascheduler schedule get n", HASCHEDULER_URL="file:///etc/passwd") == []
