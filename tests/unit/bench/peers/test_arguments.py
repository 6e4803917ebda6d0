"""What is asked of the comparison with other systems."""

import runpy
import sys

import pytest


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--systems", "agenda,quartz"], "--systems: unknown 'quartz'; expected some of hascheduler, agenda, "),
        (["--workloads", "speed"], "--workloads: unknown 'speed'; expected some of throughput, fires, failover"),
        (["--schedules", "10,ten"], "--schedules: 'ten' is no number of schedules; expected whole numbers"),
    ],
)
def test_a_wrong_argument_is_one_line_and_exit_code_2(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["peers", *arguments])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("tests.bench.peers", run_name="__main__")
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert told.startswith(message)
    assert told.count("\n") == 1
