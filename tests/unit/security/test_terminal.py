"""A terminal obeys what it is given; what others said is shown to it and never obeyed."""

import json
import re
from typing import Any

import httpx2
import pytest
import yaml
from rich.text import Text

from hascheduler.cli.output.console import console, new_table
from hascheduler.cli.output.printable import printable_json
from hascheduler.cli.output.yaml_text import as_yaml
from hascheduler.client.exchange import Exchange
from tests.unit.cli.conftest import replica, url
from tests.unit.cli.invoking import Replica

__all__ = ["replica", "url"]

HOSTILE = {
    "clear": "\x1b[2J\x1b[H",
    "title": "\x1b]0;owned\x07",
    "clipboard": "\x1b]52;c;cm0gLXJmIC8=\x1b\\",
    "csi as C1": "\x9b31m",
    "osc as C1": "\x9d0;owned\x9c",
    "back": "a\bb\rc\x0bd\x0ce",
    "nul and del": "\x00\x7f",
    "direction": "\u202egnp.exe\u202c\u2066\u2069\u200f\u061c",
    "invisible": "\u200b\u2060\ufeff\U000e0041\xad",
    "lines": "\x85\u2028\u2029",
    "half": "\ud800",
}
MARKUP = "[bold]x[/bold][link=http://evil.example]y[/link][/nothing] :smile:"
ALL = "".join(HOSTILE.values())
_OBEYED = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
_OWN = re.compile(r"^(?:\d{4}-\d\d-\d\dT.*|[\d.]+(?:ms|s|m|h|d).*)$")
_CHOICES = frozenset(
    {"state", "type", "role", "kind", "answer", "misfire", "overlap", "verdict", "status", "gate", "tier", "result"}
)


def check(shown: str) -> None:
    assert not _OBEYED.search(shown), shown


def turned(value: Any, poison: str) -> Any:
    """``value`` with ``poison`` in each of its texts, but for instants, spans and what is one of a few words."""
    match value:
        case str():
            return value if _OWN.match(value) else f"{value}{poison}"
        case list():
            return [turned(each, poison) for each in value]
        case dict():
            return {
                key: each if key in _CHOICES and isinstance(each, str) else turned(each, poison)
                for key, each in value.items()
            }
        case _:
            return value


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_documents_mean_what_they_meant(hostile: str) -> None:
    document = {"a": [hostile, {"k" + hostile: f"x {hostile} y\n{hostile}"}], "plain": "ü 😀 \n"}
    as_json = printable_json(json.dumps(document, ensure_ascii=False, indent=2))
    check(as_json)
    assert json.loads(as_json) == document
    if hostile != HOSTILE["half"]:  # YAML has no way to write it
        shown = as_yaml(document)
        check(shown)
        assert yaml.safe_load(shown) == document


def test_no_cell_or_title_gets_through_or_is_markup(capsys: pytest.CaptureFixture[str]) -> None:
    table = new_table(ALL + MARKUP, "two")
    table.add_row(ALL + MARKUP, Text(ALL + MARKUP))
    console().print(table)
    out = capsys.readouterr().out
    check(out)
    assert "[bold]x[/bold][link=http://evil.example]y[/link]" in re.sub(r"[\s│┃━─┏┓┗┛┡┩└┘┴┬┼╇]", "", out)


JOB = '{"definition": "log", "labels": {"a": "b"}, "tenant": "acme", "target": "t"}'
COMMANDS = [
    ("job", "list"), ("job", "get", "{job}"), ("why", "{job}"), ("schedule", "list"), ("schedule", "get", "tick"),
    ("schedule", "get", "tick", "--yaml"), ("schedule", "preview", "tick"), ("schedule", "verdicts", "tick"),
    ("definition", "list"), ("lane", "list"), ("tenant", "list"), ("token", "list"), ("token", "whoami"),
    ("audit-log",), ("cluster",), ("cluster", "failovers"), ("job", "cancel", "{job}", "--yes"),
    ("schedule", "trigger", "tick"), ("schedule", "pause", "tick"),
]  # fmt: skip


@pytest.fixture
async def job(replica: Replica) -> str:
    made = await replica.done("job", "submit", "log", "--json")
    await replica.done("schedule", "add", "tick", "--every", "1h", "--definition", "log", "--json")
    await replica.done("token", "create", "ops", "--role", "viewer", "--tenant", "acme", "--json")
    return str(made.json["id"])


@pytest.fixture
def hostile_replica(replica: Replica, job: str, monkeypatch: pytest.MonkeyPatch) -> Replica:
    """It turns each text of its answers into more than was asked for."""
    read = Exchange.read_response
    poison = ALL.replace("\ud800", "") + MARKUP

    def hostile(self: Exchange, request: Any, number: int, response: httpx2.Response) -> Any:
        said = httpx2.Response(response.status_code, content=json.dumps(turned(response.json(), poison)))
        return read(self, request, number, said)

    monkeypatch.setattr(Exchange, "read_response", hostile)
    return replica


async def test_nothing_that_a_replica_says_moves_the_terminal(hostile_replica: Replica, job: str) -> None:
    shown = 0
    for command in COMMANDS:
        for more in ((), ("--json",)):
            if more and "--yaml" in command:
                continue
            ended = await hostile_replica.run(*(part.format(job=job) for part in command), *more)
            assert ended.status == 0, (command, ended)
            check(ended.out)
            check(ended.err)
            shown += "x1b" in ended.out or "u001b" in ended.out
    assert shown > len(COMMANDS)


async def test_neither_do_its_refusals(hostile_replica: Replica, monkeypatch: pytest.MonkeyPatch) -> None:
    read = Exchange.read_response
    for status in (400, 401, 403, 404, 409, 412, 422, 429, 500):
        problem = {"type": "t", "title": ALL, "detail": f"no\nhascheduler: done{ALL}", "errors": [
            {"path": f"a{ALL}", "problem": ALL, "expected": ALL}, {"path": f"a{ALL}", "problem": ALL, "expected": ALL}
        ]}  # fmt: skip

        refusal = httpx2.Response(status, content=json.dumps(problem))
        monkeypatch.setattr(
            Exchange, "read_response", lambda self, request, number, _, said=refusal: read(self, request, number, said)
        )
        ended = await hostile_replica.run("job", "list")
        assert ended.status in (1, 2)
        check(ended.err)
        assert ended.err.count("\n") == 1, ended.err
