"""Log lines: one JSON object each where there is no terminal, for our own rooms and for libraries alike."""

import json

import pytest

from tests.tiers import spread
from tests.warm import Ended, warm

SCRIPT = """
import logging, structlog
from hascheduler.cli.output.logs import configure_logging
from hascheduler.settings import read_settings
configure_logging(read_settings(log_format={format!r}, log_level={level!r}))
ours = structlog.get_logger("hascheduler.daemon.leadership.leader")
ours.debug("detail")
ours.info("leading", term=7)
try:
    1 / 0
except ZeroDivisionError:
    ours.exception("failed")
logging.getLogger("somebody.else").info("chatter")
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
    assert [line["event"] for line in said] == ["leading", "failed", "heed this"]
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
