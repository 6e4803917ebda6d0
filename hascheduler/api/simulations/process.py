"""Runs simulations, each in a process of its own, one at a time.

What must hold: the replica does nothing for a simulation but pass on its bytes; the child has no secret of the replica
(neither its environment nor its descriptors); and it is gone when `Simulations.run` returns, is cancelled or raises.
"""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict

import structlog

from hascheduler.api.simulations.limits import TOO_LARGE, WRONG, SimulationLimits
from hascheduler.errors import InvalidInput

log = structlog.get_logger(__name__)

_BOOTSTRAP = (
    "import os, sys, json; os.nice(19); limits = json.loads(sys.argv.pop()); sys.path[:] = json.loads(sys.argv.pop()); "
    "from hascheduler.api.simulations.child import main; main(limits)"
)
_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "PYTHONHOME", "LANG")
"""All that the child gets of the replica's, which holds passwords."""
_PIECE_BYTES = 64 * 1024
_ERRORS_BYTES_MAX = 4 * 1024


class SimulationTooLarge(Exception):
    """It met a limit, which the text names."""


class SimulationTooSlow(Exception):
    """The machine has no time for it now."""


class SimulationBroke(Exception):
    """A defect; it is in the log."""


class Simulations:
    """Owner of the one process that simulates. Those who ask meanwhile get their turn in the order in which they
    came; how many may wait is up to the pool."""

    def __init__(self, limits: SimulationLimits | None = None) -> None:
        self.limits = limits or SimulationLimits()
        self.process: Process | None = None
        """The one that runs; None: none does."""
        self._turn = asyncio.Lock()

    async def run(self, text: str, policies: Sequence[str]) -> bytes:
        """The comparison as JSON. `InvalidInput` names the place in ``scenario`` or ``policies`` that is wrong."""
        asked = json.dumps({"text": text, "policies": list(policies)}).encode()
        async with self._turn:
            try:
                async with asyncio.timeout(self.limits.run_s_max):
                    status, answer, errors = await self._exchange(asked)
            except TimeoutError:
                raise SimulationTooSlow(f"it did not end within {self.limits.run_s_max} s") from None
        return self._read(status, answer, errors)

    async def _exchange(self, asked: bytes) -> tuple[int, bytes, bytes]:
        process = self.process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-B", "-c", _BOOTSTRAP, json.dumps(sys.path), json.dumps(asdict(self.limits))),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=_environment(os.environ),
            start_new_session=True,
        )
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stderr is not None
            reading = asyncio.gather(
                _read_bounded(process.stdout, self.limits.answer_bytes_max),
                _read_bounded(process.stderr, _ERRORS_BYTES_MAX),
            )
            try:
                with suppress(ConnectionError):  # it ended before it had read all
                    process.stdin.write(asked)
                    await process.stdin.drain()
                process.stdin.close()
                answer, errors = await reading
            finally:
                reading.cancel()
            return await process.wait(), answer, errors
        finally:
            if process.returncode is None:
                process.kill()
                await asyncio.shield(process.wait())
            self.process = None

    def _read(self, status: int, answer: bytes, errors: bytes) -> bytes:
        limits = self.limits
        if status == 0:
            return answer
        if status == WRONG:
            wrong = json.loads(answer)
            raise InvalidInput(tuple(wrong["path"]), wrong["problem"], wrong["expected"])
        if status == TOO_LARGE and answer:
            raise SimulationTooLarge(f"its answer would be larger than {limits.answer_bytes_max >> 20} MiB")
        if status == -signal.SIGXCPU:
            raise SimulationTooLarge(f"it takes longer than {limits.cpu_s_max} s of CPU")
        is_short = status == TOO_LARGE or b"MemoryError" in errors  # it may have had no room to say so
        if is_short or status in (-signal.SIGKILL, -signal.SIGABRT, -signal.SIGSEGV):
            raise SimulationTooLarge(f"it takes more than {limits.memory_bytes_max >> 20} MiB of memory")
        log.error("simulation_broke", status=status, errors=errors.decode("utf-8", "replace"))
        raise SimulationBroke


async def _read_bounded(stream: asyncio.StreamReader, bytes_max: int) -> bytes:
    """To the end of the stream; of more than ``bytes_max`` the last ones, so that its writer never waits."""
    found = bytearray()
    while piece := await stream.read(_PIECE_BYTES):
        found += piece
        del found[:-bytes_max]
    return bytes(found)


def _environment(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: environment[name] for name in _ENVIRONMENT if name in environment}
