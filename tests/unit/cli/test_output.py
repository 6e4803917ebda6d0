"""What is written: instants in the zone of their reader, tables that fit, and log lines of one JSON object each."""

import json
import re
from io import StringIO

import pytest

from hascheduler.cli.output.console import console
from hascheduler.cli.output.instants import (
    instant_text,
    with_instants_shown,
)  # fmt: skip
from hascheduler.cli.output.tables import choosing, plain, table_of
from tests.tiers import spread
from tests.warm import Ended, warm

# Instants


@pytest.mark.parametrize(
    ("zone", "instant", "shown"),
    [
        ("UTC", "2030-01-31T09:30:00.000Z", "2030-01-31T09:30:00Z"),
        ("", "2030-01-31T10:30:00+01:00", "2030-01-31T09:30:00Z"),
        ("Etc/UTC", "2030-01-31T09:30:00.250Z", "2030-01-31T09:30:00.250Z"),
        ("Europe/Paris", "2030-01-31T09:30:00.000Z", "2030-01-31 10:30:00 CET"),
        (":Europe/Paris", "2030-07-31T09:30:00.000Z", "2030-07-31 11:30:00 CEST"),
        ("Asia/Dubai", "2030-01-31T09:30:00.000Z", "2030-01-31 13:30:00 +04"),
        ("Nowhere/At/All", "2030-01-31T09:30:00.000Z", "2030-01-31T09:30:00Z"),
        ("../etc/passwd", "2030-01-31T09:30:00.000Z", "2030-01-31T09:30:00Z"),
        ("Europe/Paris", "in a while", "in a while"),
    ],
)
def test_an_instant_is_shown_in_the_zone_of_its_reader_and_names_it(
    monkeypatch: pytest.MonkeyPatch, zone: str, instant: str, shown: str
) -> None:
    monkeypatch.setenv("TZ", zone)
    assert instant_text(instant) == shown
    assert with_instants_shown(f"not before {instant}.") == f"not before {shown if 'Z' in instant else instant}."


# Tables

ID = "fire:a-rather-long-name-of-a-schedule:1893456000000"
ERROR = "ConnectionRefusedError: nobody listens at 127.0.0.1:5432 any more, says the database's client"
CELLS = {"job": ID, "state": "succeeded", "tenant": "acme", "host": "host-a.8f3e", "error": ERROR}


def shown(*, width: int) -> str:
    table = table_of("", [CELLS], plain(*CELLS), spare=("host", "tenant", "state"), wraps=("error",))
    out = console()
    out.file, out.width = StringIO(), width
    with choosing(None, wide=False):
        out.print(table)
    return out.file.getvalue()


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 120, 200])
def test_no_id_is_cut_and_no_word_is_broken(width: int) -> None:
    text = shown(width=width)
    assert ID in text
    words = re.findall(r"[A-Za-z'-]+", text.partition("not shown")[0])
    assert set(words) <= set(re.findall(r"[A-Za-z'-]+", " ".join([*CELLS, *CELLS.values()])))
    assert set(ERROR.split()) <= set(text.split())


def test_columns_are_left_out_the_least_important_first_and_named() -> None:
    assert "not shown: host; --wide shows all" in shown(width=110)
    assert "not shown: state, tenant, host" in " ".join(shown(width=80).split())
    assert "not shown" not in shown(width=200)


# Log lines

SCRIPT = """
import logging, structlog
from hascheduler.cli.output.logs import configure_logging
from hascheduler.settings import read_settings
configure_logging(read_settings(log_format={format!r}, log_level={level!r}), ["shop.tasks:mine"])
ours = structlog.get_logger("hascheduler.daemon.leadership.leader")
ours.debug("detail")
ours.info("leading", term=7)
try:
    1 / 0
except ZeroDivisionError:
    ours.exception("failed")
logging.getLogger("somebody.else").info("chatter")
logging.getLogger("shop.stock").info("counted")
logging.getLogger("somebody.else").warning("heed %s", "this")
logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
"""


def run(script: str) -> Ended:
    ended = warm("hascheduler.cli.output.logs", "hascheduler.settings").run(script)
    assert ended.returncode == 0, ended.stderr
    return ended


def lines(format: str, level: str) -> list[str]:
    ended = run(SCRIPT.format(format=format, level=level))
    assert ended.stdout == ""
    return ended.stderr.splitlines()


@pytest.mark.parametrize("format", spread(["auto", "json"], check=1))
def test_every_line_is_one_json_object(format: str) -> None:
    said = [json.loads(line) for line in lines(format, "info")]
    assert [line["event"] for line in said] == ["leading", "failed", "counted", "heed this"]
    assert said[0]["term"] == 7
    assert said[0]["logger"] == "hascheduler.daemon.leadership.leader"
    assert said[0]["timestamp"].endswith("Z")
    assert "ZeroDivisionError" in said[1]["exception"]


NASTY = """
import logging, structlog
from hascheduler.cli.output.logs import configure_logging
from hascheduler.settings import read_settings
configure_logging(read_settings(log_format={format!r}, log_level="info"))
uri, token = "mongodb://user:hunter2@db:27017/?x=1", "hsk_" + "hunter2" * 7
ours = structlog.get_logger("hascheduler.daemon.leadership.leader")
ours.warning("connect to " + uri, error=ValueError(uri), deep={{"list": [uri, {{token: token}}]}}, raw=token.encode())
logging.getLogger("somebody.else").warning("failed with %s and %s", uri, token)
def fail(secret):
    raise RuntimeError(f"no answer from {{secret}} with Authorization: Bearer hunter2")
try:
    fail(uri)
except RuntimeError:
    ours.exception("failed", to=[uri])
    logging.getLogger("somebody.else").exception("failed with %r", token)
"""


@pytest.mark.parametrize("format", spread(["json", "console"], check=1))
def test_no_line_tells_a_secret_whatever_it_is_made_of(format: str) -> None:
    said = run(NASTY.format(format=format)).stderr
    shown = said.replace('"mongodb://user:hunter2@db:27017/?x=1", "hsk_" + "hunter2"', "")  # its own source
    assert "hunter2" not in shown
    for rest in ("mongodb://***@db:27017/?x=1", "hsk_***", "no answer from", "somebody" if format == "json" else ""):
        assert rest in said


GONE = """
import os, structlog
from hascheduler.cli.output.logs import configure_logging
from hascheduler.settings import read_settings
configure_logging(read_settings(log_format="json", log_level="info"))
os.close(2)
structlog.get_logger("hascheduler.daemon").info("unheard")
print("goes on")
"""


def test_a_line_that_nobody_can_read_ends_nothing() -> None:
    assert run(GONE).stdout == "goes on\n"


def test_lines_are_ascii_and_hold_whatever_is_logged() -> None:
    more = 'ours.info("é\\x9b", huge=2**70, half="\\ud800", kind=object)\n'
    ended = run(SCRIPT.format(format="json", level="info") + more)
    said = json.loads(ended.stderr.splitlines()[-1])
    assert ended.stderr.isascii()
    assert (said["event"], said["huge"], said["half"]) == ("é\x9b", 2**70, "\ud800")
    assert said["kind"] == "<class 'object'>"
