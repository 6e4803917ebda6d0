"""Real processes that are sampled: a known burner, the price of a sample, the turns of a loop."""

import asyncio
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.bench.ledger.parts import Frame, Share
from tests.bench.ledger.samples import Mark, SampledProcess, module_of, read_stacks, sampling
from tests.bench.sampled.sitecustomize import INTERVAL_S, TURNS, counting_loop

ROOT = Path(__file__).parents[3]
CODING, OWN = Share("driver encode/decode", "driver encode/decode"), Share("event loop", "event loop")
SAMPLER = Share("sampler", "sampler")
"""A hundred samples at the start show what one costs."""

BURNER = """
import os, time
from pathlib import Path
from bson import decode_all, encode

STACKS = Path(os.environ["BENCH_SAMPLES"], f"{os.getpid()}.stacks")

DOCUMENTS = encode({"text": "x" * 100, "numbers": list(range(200))}) * 20

def burn(seconds, work):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        work()

def own():
    for _ in range(10_000):
        pass

while STACKS.read_bytes().count(b"Stack") < 300:
    burn(0.034, lambda: decode_all(DOCUMENTS))
    burn(0.017, own)
"""
"""In turns, so that a machine which is busy for a while loses samples of both alike; together they take no multiple of
the interval, so that these fall on every part of a turn. For so many samples, as a busy machine takes a few of a second
of CPU: a third of them would know the share to a tenth only.
"""

LATE = "class Kept: pass\nKept.all = [Kept() for _ in range(500_000)]"
"""Most of its CPU is spent after the interpreter has begun to end."""

SLEEPER = "import asyncio, uvloop; uvloop.run(asyncio.sleep(0))"

TEXT = f"""\
  File "{ROOT}/hascheduler/dispatch/timers.py", line 7 in add
Stack (most recent call first):
  File "<string>", line 1 in <lambda>
  File "{ROOT}/hascheduler/mirror/__init__.py", line ??? in fold
  File "{asyncio.__file__}", line 118 in run
Stack (most recent call first):
Stack (most recent call first):
  File "{ROOT}/hascheduler/mirror/mirror.py", line 118 in _fold_docu"""


def sampled(folder: Path, program: str) -> SampledProcess:
    """The files of a process that has ended."""
    environment = {**os.environ, **sampling(folder)}
    with subprocess.Popen([sys.executable, "-c", program], env=environment, cwd=ROOT) as process:
        assert process.wait() == 0
    return SampledProcess(folder, process.pid)


@pytest.fixture(scope="module")
def burner(tmp_path_factory: pytest.TempPathFactory) -> SampledProcess:
    return sampled(tmp_path_factory.mktemp("burner") / "samples", BURNER)


def test_a_known_burner_is_charged_with_what_it_burns(burner: SampledProcess) -> None:
    phase = burner.between(Mark(0, 0), burner.mark())
    coding, own = phase.shares[CODING], phase.shares[OWN]
    burnt = phase.shares.total() - phase.shares[SAMPLER]
    assert burnt >= 200
    assert coding + own > 0.8 * burnt
    assert 0.5 < coding / (coding + own) < 0.8


def test_sampling_does_not_kill_a_process_that_is_ending(tmp_path: Path) -> None:
    assert sampled(tmp_path / "samples", LATE).mark().stacks_bytes > 0


def test_the_price_of_sampling_is_told(burner: SampledProcess) -> None:
    phase = burner.between(Mark(0, 0), burner.mark())
    assert 0 < phase.cost_s < 0.5 * phase.shares.total() * INTERVAL_S


def test_a_phase_has_what_was_added_in_it_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "7.stacks"
    (tmp_path / "7.price").write_text('{"sample_us": 10, "frame_us": 2}')
    path.write_text(TEXT)
    process = SampledProcess(tmp_path, 7)
    begin = process.mark()
    with path.open("a") as file:
        file.write('ment\nStack (most recent call first):\n  File "<string>", line 1 in f\n')
    phase = process.between(begin, process.mark())
    assert phase.shares == Counter({OWN: 1})
    assert phase.cost_s == pytest.approx(12e-6)
    assert phase.turns == 0


def test_without_the_variable_a_process_is_left_alone(tmp_path: Path) -> None:
    environment = {name: value for name, value in sampling(tmp_path / "samples").items() if name == "PYTHONPATH"}
    program = (
        "import signal, sys; assert signal.getitimer(signal.ITIMER_PROF)[0] == 0; assert 'uvloop' not in sys.modules"
    )
    with subprocess.Popen([sys.executable, "-c", program], env={**os.environ, **environment}) as process:
        assert process.wait() == 0
    assert list((tmp_path / "samples").iterdir()) == []


def test_the_loop_of_a_sampled_process_counts_its_turns(tmp_path: Path) -> None:
    process = sampled(tmp_path / "samples", SLEEPER)
    begin, end = process.mark(), process.mark()
    assert process.between(begin, end).turns == 0  # it was over before the second count
    (turns,) = (tmp_path / "samples").glob("*.turns")
    assert len(turns.read_bytes()) == TURNS.size


def test_turns_are_those_of_the_loop(tmp_path: Path) -> None:
    path = tmp_path / "8.turns"

    async def counted() -> None:
        for _ in range(1_000):
            await asyncio.sleep(0)
        # The next count follows within a millisecond of the loop's time.
        await asyncio.sleep(0.05)

    loop = counting_loop(path, every_s=0.001)
    try:
        loop.run_until_complete(counted())
    finally:
        loop.close()
    counts = [turns for _, turns in TURNS.iter_unpack(path.read_bytes())]
    assert counts == sorted(counts)
    assert counts[-1] - counts[0] >= 1_000


def test_turns_in_a_phase_go_on_as_between_its_first_and_last_count(tmp_path: Path) -> None:
    (tmp_path / "9.stacks").touch()
    (tmp_path / "9.price").write_text('{"sample_us": 0, "frame_us": 0}')
    counts = [(9.5, 0), (10.5, 100), (11.5, 150), (12.5, 300), (13.5, 9_000)]
    # The last one is still being written.
    (tmp_path / "9.turns").write_bytes(b"".join(TURNS.pack(*count) for count in counts) + b"\0\0")
    process = SampledProcess(tmp_path, 9)
    assert process.between(Mark(10, 0), Mark(13, 0)).turns == pytest.approx(300)
    assert process.between(Mark(10, 0), Mark(11, 0)).turns == 0


def test_stacks_are_read_as_a_sampled_process_writes_them() -> None:
    assert list(read_stacks(TEXT)) == [
        [Frame("", "<lambda>"), Frame("hascheduler.mirror", "fold"), Frame("asyncio", "run")],
        [],
        [Frame("hascheduler.mirror.mirror", "_fold_docu")],
    ]


def test_compiled_packages_have_the_names_that_they_are_imported_by() -> None:
    for folder in (ROOT, ROOT / "build" / "compiled"):
        assert module_of(f"{folder}/hascheduler/mirror/mirror.py") == "hascheduler.mirror.mirror"
    assert module_of(f"{ROOT}/tests/bench/handlers.py") == "tests.bench.handlers"


@pytest.mark.parametrize("path", ["<frozen runpy>", "/elsewhere/module.py", ""])
def test_what_is_not_on_the_path_has_no_name(path: str) -> None:
    assert module_of(path) == ""
