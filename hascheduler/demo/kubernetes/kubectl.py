"""Runs ``kubectl``. Every call has a time limit, and every failure becomes an error of one line."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from hascheduler.errors import InvalidInput, StoreUnavailable, WorldError
from hascheduler.model.values.error_texts import quoted

PATIENCE_S = 20.0
_LINE_BYTES_MAX = 4 * 1024 * 1024
_ERROR_LENGTH_MAX = 300


class KubectlFailed(WorldError):
    """It ended with an error, which is ``said``."""

    def __init__(self, call: str, said: str) -> None:
        self.said = said
        super().__init__(f"{call}: {said}")

    @property
    def not_found(self) -> bool:
        return "(NotFound)" in self.said

    @property
    def forbidden(self) -> bool:
        return "(Forbidden)" in self.said


class Kubectl:
    """Against one context (None: the current one) and, where ``namespace`` is given, in that namespace.

    `InvalidInput` where there is no kubectl on the path.
    """

    def __init__(self, context: str | None, namespace: str | None, patience_s: float = PATIENCE_S) -> None:
        found = shutil.which("kubectl")
        if found is None:
            raise InvalidInput(("kubectl",), "is not on the PATH", "https://kubernetes.io/docs/tasks/tools/")
        self._command = [
            found,
            *(() if context is None else ("--context", context)),
            *(() if namespace is None else ("--namespace", namespace)),
        ]
        self._patience_s = patience_s
        self.shown = " ".join(["kubectl", *self._command[1:]])
        """As a person would begin to type it."""

    async def run(self, *arguments: str, input: str | None = None, also_good: Collection[int] = ()) -> str:
        """What it printed; `KubectlFailed` for an exit status that is not 0 or ``also_good``."""
        process = await self._spawn(arguments, stdin=DEVNULL if input is None else PIPE, stderr=PIPE)
        try:
            async with asyncio.timeout(self._patience_s):
                out, err = await process.communicate(None if input is None else input.encode())
        except TimeoutError:
            raise WorldError(
                f"{self._call(arguments)} did not end within {self._patience_s:g} s; does the cluster answer?"
            ) from None
        finally:
            await _stop(process)
        if process.returncode not in (0, *also_good):
            raise KubectlFailed(self._call(arguments), _last_line(err) or f"ended with {process.returncode}")
        return out.decode(errors="replace")

    async def json(self, *arguments: str) -> dict[str, Any]:
        """As `run`, with ``-o json``; a `WorldError` where that is no JSON object."""
        text = await self.run(*arguments, "-o", "json")
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise WorldError(f"{self._call(arguments)} answered no JSON object, but {quoted(text)}")
        return answer

    async def items(self, *arguments: str) -> list[dict[str, Any]]:
        """The items of a list, as `json`."""
        items = (await self.json(*arguments)).get("items")
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise WorldError(f"{self._call(arguments)} answered a list without items")
        return items

    @asynccontextmanager
    async def follow(self, *arguments: str) -> AsyncIterator[asyncio.StreamReader]:
        """The output, errors among it, of a call that goes on until it ends by itself or the block is left."""
        process = await self._spawn(arguments, stdin=DEVNULL, stderr=STDOUT)
        try:
            assert process.stdout is not None, "it was asked for"
            yield process.stdout
        finally:
            await _stop(process)

    async def _spawn(self, arguments: tuple[str, ...], *, stdin: int, stderr: int) -> Process:
        # A session of its own: Ctrl-C must not end what the cleaning up still needs.
        return await asyncio.create_subprocess_exec(
            *self._command,
            *arguments,
            stdin=stdin,
            stdout=PIPE,
            stderr=stderr,
            start_new_session=True,
            limit=_LINE_BYTES_MAX,
            env=os.environ,
        )

    def _call(self, arguments: tuple[str, ...]) -> str:
        # Enough to know which call it was; a script that is handed to a shell would fill the line.
        return " ".join(("kubectl", *arguments[:3]))


async def _stop(process: Process) -> None:
    if process.returncode is None:
        # Not `Process.kill`, which may take the exit status away from the task that waits for it.
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        await process.wait()


def _last_line(output: bytes) -> str:
    lines = [line.strip() for line in output.decode(errors="replace").splitlines() if line.strip()]
    return lines[-1][:_ERROR_LENGTH_MAX] if lines else ""


Found = TypeVar("Found")


async def poll_until(
    look: Callable[[], Awaitable[Found | None]], what: str, *, patience_s: float, every_s: float
) -> Found:
    """The first result of ``look`` that is not None; a failure counts as None. `StoreUnavailable` after the limit."""
    trouble = ""
    try:
        async with asyncio.timeout(patience_s):
            while True:
                try:
                    found = await look()
                except WorldError as error:
                    found, trouble = None, f" ({error})"
                if found is not None:
                    return found
                await asyncio.sleep(every_s)
    except TimeoutError:
        raise StoreUnavailable(f"not within {patience_s:g} s: {what}{trouble}") from None
