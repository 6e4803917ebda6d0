"""The registry of handlers, how it is loaded, and the handlers that come with the package."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.model.job import JobState
from hascheduler.ports import AttemptOutcome
from hascheduler.processor import Handlers, JobContext, ProcessorConfig, load_handlers
from tests.unit.processor.world import staged, until


def nothing(job: JobContext) -> None:
    pass


def test_a_handler_is_found_by_its_definition_and_a_star_takes_the_rest() -> None:
    handlers = Handlers()
    handlers.handler("a")(nothing)
    assert handlers.find("b") is None
    star = handlers.handler("*")(lambda job: None)
    assert handlers.find("a") is nothing
    assert handlers.find("b") is star
    assert handlers.definitions == {"a", "*"}


@pytest.mark.parametrize("name", ["", " ", "a b", "-a", "a" * 129, "ü", "a\n", nothing, None, 7])
def test_a_name_that_no_definition_can_have_is_refused(name: Any) -> None:
    with pytest.raises(InvalidInput, match="is not a definition's name"):
        Handlers().handler(name)


def test_a_second_handler_of_one_definition_is_refused() -> None:
    handlers = Handlers()
    handlers.handler("a")(nothing)
    with pytest.raises(InvalidInput, match="already has a handler"):
        handlers.handler("a")(lambda job: None)


@pytest.mark.parametrize(
    ("modules", "problem"),
    [
        ([], "they register no handler"),
        (["no.such.module"], "can't be imported: ModuleNotFoundError"),
        (["json"], "has no `handlers`"),
        (["processors.log"], "there is no such module; expected hascheduler.handlers.log"),
        (["hascheduler.handlers.log", "hascheduler.handlers.log"], "already has a handler"),
        (["broken_module"], "can't be imported"),
    ],
)
def test_what_can_not_be_loaded_is_refused_in_one_line(
    modules: list[str], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "broken_module", None)
    with pytest.raises(InvalidInput, match=problem) as refusal:
        load_handlers(modules)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("import os\n\nraise KeyError('SMTP_HOST')\n", r"shop\.py:3: KeyError: 'SMTP_HOST'"),
        ("import no_such_library\n", r"shop\.py:1: ModuleNotFoundError: No module named 'no_such_library'"),
        ("def handler(:\n", r"shop\.py:1: SyntaxError: "),
    ],
)
def test_a_module_that_fails_is_refused_with_file_and_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, problem: str
) -> None:
    (tmp_path / "shop.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InvalidInput, match=f"shop: can't be imported: .*{problem}"):
        load_handlers(["shop"])


def test_a_module_may_name_its_handlers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "from hascheduler.processor import Handlers\nmine = Handlers()\nmine.handler('sell')(print)\n"
    (tmp_path / "shelf.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    assert load_handlers(["shelf:mine"]).definitions == {"sell"}
    for wrong, name in (("shelf", "handlers"), ("shelf:", "handlers"), ("shelf:yours", "yours")):
        with pytest.raises(InvalidInput, match=f"shelf: has no `{name}`"):
            load_handlers([wrong])


async def test_log_writes_one_whole_line_for_each_attempt(capfd: pytest.CaptureFixture[str]) -> None:
    async with staged(load_handlers(["hascheduler.handlers.log"]), slots=8, deadline_ms=60_000) as stage:
        jobs = [stage.world.dispatch(f"j{n}", "log", {"n": n, "text": "ü" * 5_000}) for n in range(20)]
        await until(lambda: all(job.state is JobState.SUCCEEDED for job in jobs))
    # What is logged goes to the same output in tests, and may end without its own line's end when one of these begins.
    written = [line.partition('{"effect"') for line in capfd.readouterr().out.splitlines()]
    lines = [json.loads(effect + rest) for _, effect, rest in written if effect]
    assert sorted(line["payload"]["n"] for line in lines) == list(range(20))
    assert {"effect", "job", "attempt", "target", "schedule", "nominal_ms", "at_ms", "payload"} == set(lines[0])


@pytest.mark.parametrize("seconds", [0, "1", -1, True, 1e9])
async def test_sleep_returns_how_long_it_slept_or_refuses_a_payload_that_makes_no_sense(seconds: Any) -> None:
    async with staged(load_handlers(["hascheduler.handlers.sleep"])) as stage:
        outcome = await stage.world.dispatch("a", "sleep", {"seconds": seconds}).ended()
        if seconds == 0:
            assert outcome == AttemptOutcome(JobState.SUCCEEDED, result={"slept": 0})
        else:
            assert outcome.state is JobState.FAILED
            assert (outcome.error or "").startswith("PermanentError: the payload must be")


@pytest.mark.parametrize(
    "wrong",
    [{"id": ""}, {"slots": 0}, {"heartbeat_interval_ms": 0}, {"heartbeat_deadline_ms": 1_000}, {"drain_grace_ms": -1}],
)
def test_settings_that_can_not_work_are_refused(wrong: dict[str, Any]) -> None:
    right = ProcessorConfig(
        "p.1", "p", "default", 1, heartbeat_interval_ms=1_000, heartbeat_deadline_ms=4_000, drain_grace_ms=0
    )
    with pytest.raises(InvalidInput):
        replace(right, **wrong)
