"""The strings on the processes: failpoints, clocks, and what is almost a message or a document."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hascheduler.clock import SystemClock
from tests.chaos import strings
from tests.chaos.strings import SkewedClock, faketime_environment, why_no_faketime

DAY_MS = 86_400_000


@pytest.mark.slow
def test_a_process_dies_at_the_failpoint_that_is_armed_and_no_other(tmp_path: Path) -> None:
    file = tmp_path / "failpoint"
    file.write_text("journal.insert:after:die")
    program = (
        "import sys; from pathlib import Path; from tests.chaos.strings import Failpoints, When\n"
        "points = Failpoints(Path(sys.argv[1]))\n"
        "points.pass_by('jobs.insert', When.AFTER); points.pass_by('journal.insert', When.BEFORE)\n"
        "print('here', flush=True)\n"
        "points.pass_by('journal.insert', When.AFTER)\n"
        "print('and on')\n"
    )
    command = [sys.executable, "-c", program, str(file)]
    run = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False)
    assert run.stdout == "here\n", run.stderr
    assert run.returncode == -signal.SIGKILL
    assert not file.exists()


def test_a_clock_is_wrong_by_so_much_and_right_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strings, "_POLL_EVERY_S", 0.0)
    file, true = tmp_path / "clock", SystemClock()
    clock = SkewedClock(file)
    assert abs(clock.wall_ms() - true.wall_ms()) < DAY_MS / 2
    mono_ms = clock.mono_ms()
    file.write_text(f'{{"offset_ms": {DAY_MS}}}')
    assert clock.wall_ms() - true.wall_ms() > DAY_MS / 2
    assert 0 <= clock.mono_ms() - mono_ms < DAY_MS / 2
    file.unlink()
    assert abs(clock.wall_ms() - true.wall_ms()) < DAY_MS / 2


def test_a_fast_clock_keeps_what_it_has_gained_and_never_goes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strings, "_POLL_EVERY_S", 0.0)
    file = tmp_path / "clock"
    clock = SkewedClock(file)
    file.write_text('{"rate": 1000000}')
    fast = [clock.mono_ms() for _ in range(2_000)]
    file.unlink()
    assert fast == sorted(fast)
    assert clock.mono_ms() >= fast[-1] > fast[0] + 1_000
    assert abs(clock.wall_ms() - SystemClock().wall_ms()) < 1_000


@pytest.mark.skipif(bool(why_no_faketime()), reason=why_no_faketime())
def test_of_a_process_that_lives_a_day_ahead_every_wall_clock_does_and_no_wait_is_longer(tmp_path: Path) -> None:
    file = tmp_path / "faketime"
    file.write_text("+86400")
    program = (
        "import datetime, threading, time\n"
        "began = time.monotonic(); threading.Event().wait(0.05); waited = time.monotonic() - began\n"
        "print(int(time.time()), int(datetime.datetime.now(datetime.UTC).timestamp()), waited < 10)\n"
    )
    environment = {**os.environ, **faketime_environment(file)}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    first, second, is_short = run.stdout.split()
    ahead_s = DAY_MS // 1_000 - 60
    assert int(first) - time.time() > ahead_s
    assert int(second) - time.time() > ahead_s
    assert is_short == "True"
