"""Programs that begin with modules imported are processes like any other."""

import os
import signal
import sys
from collections.abc import Iterator

import pytest

from tests.warm import Warm


@pytest.fixture(scope="module")
def warm() -> Iterator[Warm]:
    kept = Warm("colorsys")
    yield kept
    kept.close()


def test_what_is_imported_is_there_and_each_program_has_its_own(warm: Warm) -> None:
    program = "import os, sys; print('colorsys' in sys.modules, hasattr(sys, 'mine'), os.getpid()); sys.mine = 1"
    first, second = (warm.run(program).stdout.split() for _ in range(2))
    assert first[:2] == second[:2] == ["True", "False"]
    assert len({first[2], second[2], str(os.getpid())}) == 3


def test_outputs_status_and_environment_are_those_of_the_program(warm: Warm) -> None:
    said = {"SAID": "yes", "PYTHONUTF8": "1"}
    ended = warm.run(
        "import os, sys; print(dict(os.environ)); print('ä', file=sys.stderr); sys.exit(7)", environment=said
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (7, f"{said}\n", "ä\n")


def test_what_is_left_for_the_end_of_the_interpreter_is_done(warm: Warm) -> None:
    ended = warm.run("import atexit; atexit.register(print, 'last'); 1 / 0")
    assert (ended.returncode, ended.stdout) == (1, "last\n")
    assert "ZeroDivisionError" in ended.stderr


def test_a_signal_ends_it_and_the_status_says_so(warm: Warm) -> None:
    told, tells = os.pipe()
    process = warm.start(
        "import os, time; os.write(1, b'x'); time.sleep(600)",
        environment=os.environ,
        descriptors=[sys.__stderr__.fileno() if sys.__stderr__ else 2, tells, tells],
    )
    os.close(tells)
    assert os.read(told, 1) == b"x"
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert os.read(told, 1) == b"", "nothing holds its output"
    os.close(told)
