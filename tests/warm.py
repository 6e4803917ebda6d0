"""Processes of Python that begin with modules imported: to import them takes ten times as long as what a test asks of
the process.

One process imports them and does nothing else. Each program is a fork of it with an environment, standard descriptors
and a session of its own, and ends as any interpreter does. It is not for tests of what is imported, nor for those that
compare two runs: the objects that forks begin with have the same addresses.
"""

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

from hascheduler.embedded.children import die_with_parent

ROOT = Path(__file__).parents[1]
_SERVE = "import sys; from tests.warm import next_program; exec(next_program(int(sys.argv[1]), sys.argv[2:]))"
_REQUEST_BYTES_MAX = 100_000
_PATIENCE_S = 60


class WarmProcess:
    """A started program: its id, its signals and its end."""

    def __init__(self, told: socket.socket, patience_s: float) -> None:
        told.settimeout(patience_s)
        self._told = told
        self.pid = int(told.recv(32))

    def fileno(self) -> int:
        """Return a descriptor that is readable once the program has ended."""
        return self._told.fileno()

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self) -> int:
        """Return the exit status, or the negative number of the signal that ended the program."""
        with self._told:
            return os.waitstatus_to_exitcode(int(self._told.recv(32)))


@dataclass(frozen=True, slots=True)
class Ended:
    returncode: int
    stdout: str
    stderr: str


class Warm:
    """Owner of the process that has imported ``modules``. All programs have the ``hash_seed`` that it began with."""

    def __init__(self, *modules: str, hash_seed: str = "random") -> None:
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _SERVE, str(theirs.fileno()), *modules],
                pass_fds=[theirs.fileno()],
                cwd=ROOT,
                env={**os.environ, "PYTHONHASHSEED": hash_seed},
                start_new_session=True,
            )

    def close(self) -> None:
        """End the importing process, which also ends if this process is killed."""
        with self._ours:
            self._ours.shutdown(socket.SHUT_RDWR)
        self._process.wait()

    def start(
        self,
        code: str,
        *arguments: str,
        environment: Mapping[str, str],
        descriptors: Sequence[int],
        patience_s: float = _PATIENCE_S,
    ) -> WarmProcess:
        """Run ``code`` as the main module, with these descriptors as its input and outputs."""
        request = json.dumps([code, arguments, dict(environment)]).encode()
        assert len(request) <= _REQUEST_BYTES_MAX
        told, tells = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with tells:
            socket.send_fds(self._ours, [request], [tells.fileno(), *descriptors])
        return WarmProcess(told, patience_s)

    def run(
        self, code: str, *arguments: str, environment: Mapping[str, str] | None = None, patience_s: float = _PATIENCE_S
    ) -> Ended:
        """Run to the end without input, in this process's environment unless another is given."""
        environment = os.environ if environment is None else environment
        outputs = [os.memfd_create(name) for name in ("stdout", "stderr")]
        nothing = os.open(os.devnull, os.O_RDONLY)
        try:
            program = self.start(
                code, *arguments, environment=environment, descriptors=[nothing, *outputs], patience_s=patience_s
            )
            try:
                status = program.wait()
            except TimeoutError:
                with suppress(ProcessLookupError):
                    os.killpg(program.pid, signal.SIGKILL)  # else it would slow down what comes after it
                raise
            return Ended(status, *(os.pread(output, os.fstat(output).st_size, 0).decode() for output in outputs))
        finally:
            for descriptor in (nothing, *outputs):
                os.close(descriptor)


@cache
def warm(*modules: str, hash_seed: str = "random") -> Warm:
    """Return the one owner for all tests of this process, which ends with it."""
    kept = Warm(*modules, hash_seed=hash_seed)
    atexit.register(kept.close)
    return kept


def next_program(control: int, modules: Sequence[str]) -> str:
    """In the process that imports: forks for as long as programs are asked for. Returns in each fork, with its code."""
    for name in modules:
        import_module(name)
    with socket.socket(fileno=control) as asked:
        while True:
            request, descriptors, _, _ = socket.recv_fds(asked, _REQUEST_BYTES_MAX, 4)
            if not request:
                _bury()
                sys.exit()
            if os.fork() == 0:
                die_with_parent()
                break
            for descriptor in descriptors:
                os.close(descriptor)
            _bury()
    _keep(socket.socket(fileno=descriptors[0]))
    for number, descriptor in enumerate(descriptors[1:]):
        os.dup2(descriptor, number)
        os.close(descriptor)
    code, arguments, environment = json.loads(request)
    os.setsid()
    # A job in the background of a shell does not hear Ctrl-C, and neither would its children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[1:] = arguments
    return str(code)


def _keep(tells: socket.socket) -> None:
    """Returns in the program's process, which is a child of this one: that stays, to tell its id and how it ended."""
    program = os.fork()
    if program == 0:
        die_with_parent()
        tells.close()
        return
    tells.send(str(program).encode())
    _, status = os.waitpid(program, 0)
    with suppress(BrokenPipeError):  # it was given up
        tells.send(str(status).encode())
    os._exit(0)


def _bury() -> None:
    """Reap the keepers that have ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
