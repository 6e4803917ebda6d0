"""The command line as a user meets it: help that lists everything, one line for each mistake, quick starts."""

import os
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
from hascheduler.cli.lazy_groups import CommandTable
from hascheduler.errors import Conflict, InvalidInput, InvariantBroken, StoreUnavailable
from hascheduler.settings import Settings, variable
from tests.unit.cli.invoking import invoke

ROOT = Path(__file__).parents[3]


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HASCHEDULER_")}
    return subprocess.run(
        [sys.executable, "-m", "hascheduler", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=ROOT,
        env={**clean, "COLUMNS": "100", **variables},
    )


def test_help_lists_the_commands() -> None:
    shown = run("--help")
    assert shown.returncode == 0
    commands = (
        "serve", "processor", "dev", "demo", "cluster", "schedule", "job", "why", "definition", "lane", "calendar",
        "tenant",
        "apply",
    )  # fmt: skip
    assert all(f"\n  {command} " in shown.stdout for command in commands)
    assert "--install-completion" in shown.stdout


@pytest.mark.parametrize("group", ["schedule", "definition", "lane", "calendar", "tenant", "job", "token"])
def test_each_command_of_a_group_has_a_whole_line_and_an_example(group: str) -> None:
    _, _, commands = invoke(group, "--help").out.partition("Commands:\n")
    told = [line.split(maxsplit=1) for line in commands.splitlines() if line]
    assert len(told) >= 4
    for name, text in told:
        assert not text.endswith("...")
        shown = invoke(group, name, "--help")
        assert f"  hascheduler {group} {name}" in shown.out.partition("Example:")[2]


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
    for name, field in Settings.model_fields.items():
        assert f"{variable(name, field)}: {field.description}" in shown


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


@pytest.mark.parametrize("arguments", [["--help"], ["schedule", "--help"]])
def test_a_list_of_commands_imports_none_of_them(arguments: list[str]) -> None:
    code = (
        f"import sys; sys.argv[1:] = {arguments}; from hascheduler.__main__ import main\n"
        "try: main()\nfinally: print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    rooms = tuple(f"hascheduler.cli.{room}" for room in ("schedules", "jobs", "resources", "run", "setup", "simulate"))
    assert not [module for module in loaded.split() if module.startswith(rooms)]


def test_version() -> None:
    assert run("--version").stdout == f"hascheduler {__version__}\n"


def test_the_command_line_is_light_until_a_command_is_chosen() -> None:
    code = "import sys, hascheduler.__main__; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    heavy = {"pydantic", "fastapi", "pymongo", "aio_pika", "uvicorn", "httpx", "uvloop", "structlog"}
    assert not heavy & set(loaded.split())


def test_a_replica_has_nothing_in_memory_to_draw_with_and_no_http_client() -> None:
    code = (
        "import sys, hascheduler.__main__, hascheduler.cli.run.whole_system, hascheduler.assembly; print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert "structlog" in loaded.split()
    assert not {"rich", "pygments", "httpx", "hascheduler.client"} & set(loaded.split())


def test_a_log_with_a_traceback_is_readable_without_rich() -> None:
    code = (
        "import logging\nfrom hascheduler.cli.output.logs import configure_logging\n"
        "from hascheduler.settings import Settings\nimport structlog, rich\n"
        "configure_logging(Settings(log_format='console'))\n"
        "try: 1 / 0\nexcept ZeroDivisionError: structlog.get_logger('hascheduler').exception('broken')"
    )
    written = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stderr
    assert "broken" in written
    assert "ZeroDivisionError: division by zero" in written


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["serve", "--http-port", "abc"], "HASCHEDULER_HTTP_PORT"),
        (["serve", "--http-port", "70000"], "HASCHEDULER_HTTP_PORT"),
        (["serve", "--lease-duration", "soon"], "HASCHEDULER_LEASE_DURATION"),
        (["serve", "--lease-duration", "1s"], "LEASE_DURATION: must exceed RENEW_DEADLINE"),
        (["serve", "--http-host", "0.0.0.0", "--auth", "none"], "not loopback"),
        (["processor", "processors.log", "--slots", "0"], "HASCHEDULER_SLOTS"),
        (["processor", "processors.log", "--resources", "cpu"], "HASCHEDULER_RESOURCES"),
        (["serve", "--policy", "luck"], "HASCHEDULER_POLICY"),
        (["cluster", "--url", "nonsense"], "--url"),
        (["cluster", "--json", "--watch"], "--json"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(arguments: list[str], said: str) -> None:
    answer = invoke(*arguments)
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith("hascheduler: ")
    assert answer.err.count("\n") == 1
    assert said in answer.err


def test_a_wrong_variable_is_one_line_too() -> None:
    answer = invoke("serve", HASCHEDULER_RETRY_PERIOD="never")
    assert (answer.status, answer.err.count("\n")) == (2, 1)
    assert "HASCHEDULER_RETRY_PERIOD" in answer.err


def test_a_processor_needs_a_module() -> None:
    answer = invoke("processor")
    assert answer.status == 2
    assert "MODULE" in answer.err


def test_a_url_whose_host_has_no_address_says_so() -> None:
    answer = invoke("cluster", HASCHEDULER_URL="http://no-such-host.invalid:8080")
    assert (answer.status, answer.err.count("\n")) == (1, 1)
    assert "http://no-such-host.invalid:8080: there is no address for that host; --url" in answer.err


def test_no_replica_there_is_one_line_and_status_1() -> None:
    with socket.socket() as taken:  # bound, but nobody listens
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        answer = run("cluster", HASCHEDULER_URL=url)
    assert answer.returncode == 1
    assert answer.stderr == f"hascheduler: nothing answers at {url}; is a replica running there?\n"


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
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    raised: BaseException,
    status: int,
    line: str,
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
