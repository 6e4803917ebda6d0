"""The parts of the dashboard that are computed: triggers in words, differences of texts, edits on top of others.

They are modules of the page, so node runs them; without one there is nothing to run.
"""

import json
import shutil
import subprocess
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

_STATIC = Path(str(files("hascheduler.api.ui") / "static"))
_PATIENCE_S = 60
_RUN = """
import { readFileSync } from "node:fs";
const calls = JSON.parse(readFileSync(0, "utf8"));
const answers = [];
for (const [path, name, values] of calls) {
  const module = await import(path);
  answers.push((await module[name](...values)) ?? null);
}
process.stdout.write(JSON.stringify(answers));
"""


@cache
def _node() -> str:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed here")
    return node


def _called(module: str, name: str, *arguments: Any) -> Any:
    return _all_called([(module, name, arguments)])[0]


def _all_called(calls: list[tuple[str, str, tuple[Any, ...]]]) -> list[Any]:
    given = [((_STATIC / module).as_uri(), name, values) for module, name, values in calls]
    done = subprocess.run(
        [_node(), "--no-warnings", "--experimental-default-type=module", "--input-type=module", "-e", _RUN],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers: list[Any] = json.loads(done.stdout)
    return answers


_CRON = [
    ("30 2 * * *", "every day at 02:30 in Europe/Paris"),
    ("@daily", "every day at 00:00 in Europe/Paris"),
    ("@hourly", "every hour, on the hour in Europe/Paris"),
    ("*/5 * * * *", "every 5 minutes"),
    ("* * * * * */10", "every 10 seconds"),
    ("30 2 * * * 15", "every day at 02:30:15 in Europe/Paris"),
    ("30 2 * * MON-FRI", "Monday to Friday at 02:30 in Europe/Paris"),
    ("0 8,20 * * sun,sat", "every Saturday and Sunday at 08:00 and 20:00 in Europe/Paris"),
    ("0 0 * * 7", "every Sunday at 00:00 in Europe/Paris"),
    ("0 12 * * fri#2", "on the second Friday of the month at 12:00 in Europe/Paris"),
    ("0 12 * * 5L", "on the last Friday of the month at 12:00 in Europe/Paris"),
    ("0 9 LW * ?", "on the last weekday of the month at 09:00 in Europe/Paris"),
    ("0 0 15W * *", "on the weekday nearest to the 15th of the month at 00:00 in Europe/Paris"),
    ("0 0 L-3 * *", "3 days before the last of the month at 00:00 in Europe/Paris"),
    ("0 0 1,15 * *", "on the 1st and 15th of the month at 00:00 in Europe/Paris"),
    ("0 0 1 1 *", "on the 1st of January at 00:00 in Europe/Paris"),
    ("0 0 13 * 5", "on the 13th of the month, and every Friday at 00:00 in Europe/Paris"),
    ("*/15 9-17 * * 1-5", "every 15 minutes from 09:00 to 17:59, Monday to Friday in Europe/Paris"),
    ("15 */6 * * *", "every 6 hours from 00:15 on in Europe/Paris"),
]
_ODD = [
    "*/7 * * * *", "0 22-2 * * *", "0 0 */2 * 0-6", "0 */5 * * *", "1-5 3 * * *", "* 3,5 * * *", "nonsense", "", "0",
]  # fmt: skip


def test_cron_expressions_are_said_in_words() -> None:
    words = _all_called([("parts/trigger.js", "cronWords", (expression, "Europe/Paris")) for expression, _ in _CRON])
    assert words == [expected for _, expected in _CRON]


def test_expressions_too_odd_for_a_sentence_are_shown_as_they_are_written() -> None:
    words = _all_called([("parts/trigger.js", "cronWords", (expression, "UTC")) for expression in _ODD])
    assert words == [None] * len(_ODD)
    trigger = {"type": "cron", "expression": "*/7 * * * *", "timezone": "UTC"}
    assert _called("parts/trigger.js", "triggerWords", trigger) == "cron */7 * * * * in UTC"


def test_other_triggers_and_what_narrows_them_are_said_in_words() -> None:
    interval = {"type": "interval", "every": "1m30s", "jitter": "10s", "max_fires": 3}
    several = {
        "type": "any",
        "of": [{"type": "interval", "every": "1h"}, {"type": "cron", "expression": "30 2 * * *", "timezone": "UTC"}],
        "calendars": {"only": ["work"], "except": ["holidays-de", "holidays-fr"]},
    }
    past = {"type": "times", "at": ["2001-01-01T00:00:00Z", "2002-01-01T00:00:00Z"]}
    assert _all_called([("parts/trigger.js", "triggerWords", (each,)) for each in (interval, several, past)]) == [
        "every 1 min 30 s, up to 10 s later, at most 3 fires",
        "every hour or every day at 02:30 in UTC, only on days of work, not on days of holidays-de and holidays-fr",
        "2 times, all of them over",
    ]


_BASE = {
    "trigger": {"type": "cron", "expression": "1 * * * *", "jitter": "0s"},
    "labels": {"a": "1"},
    "overlap": "allow",
}


def test_an_edit_goes_on_top_of_what_others_changed_meanwhile() -> None:
    mine = {**_BASE, "trigger": {**_BASE["trigger"], "expression": "2 * * * *"}, "labels": {}}  # type: ignore[dict-item]
    theirs = {**_BASE, "overlap": "skip", "labels": {"a": "1", "b": "2"}}
    assert _called("parts/difference.js", "merged", _BASE, mine, theirs) == {
        "trigger": {"type": "cron", "expression": "2 * * * *", "jitter": "0s"},
        "labels": {"b": "2"},
        "overlap": "skip",
    }


def test_a_patch_of_an_edit_removes_with_null_and_sends_a_trigger_of_another_type_whole() -> None:
    mine = {"trigger": {"type": "interval", "every": "5s", "jitter": "0s"}, "labels": {"b": "2"}, "overlap": "allow"}
    assert _called("parts/difference.js", "patchOf", _BASE, mine) == {
        "trigger": {"type": "interval", "every": "5s", "jitter": "0s"},
        "labels": {"a": None, "b": "2"},
    }
