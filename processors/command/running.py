"""One attempt: run the child, end it in the way that the occasion asks for, and judge how it ended."""

import asyncio
from typing import Any

from hascheduler.model.values.durations import format_duration
from hascheduler.processor import JobContext
from hascheduler.processor.process_group import signal_name
from processors.command.child import Child, CommandFailed, Invocation
from processors.command.payload import CommandPayload
from processors.texts import one_line

GRACE_S = 5.0
# Revoked, fenced or drained: another processor may start the next attempt, and the SDK asks a second time after 2 s.
_GRACE_GIVEN_UP_S = 0.5


async def run(invocation: Invocation, payload: CommandPayload, job: JobContext) -> dict[str, Any]:
    """Its result, or a `CommandFailed`; when this returns or raises, nothing of its process group is left.

    A second cancellation ends the grace of the first.
    """
    child = Child(invocation)
    timed_out = False
    try:
        try:
            async with asyncio.timeout(payload.timeout / 1000):
                await child.exited()
        except TimeoutError:
            timed_out = True
            await child.terminate(GRACE_S)
        except asyncio.CancelledError:
            await child.terminate(GRACE_S if job.cancel_requested else _GRACE_GIVEN_UP_S)
            raise
        finally:
            child.kill()
            await child.gone()
    finally:
        child.close()
    return _judged(child, payload, timed_out=timed_out)


def _judged(child: Child, payload: CommandPayload, *, timed_out: bool) -> dict[str, Any]:
    code, said = child.exit_code, one_line(child.stderr.last_line())
    if not timed_out and code in payload.ok_codes:
        stdout, stdout_cut = child.stdout.text()
        stderr, stderr_cut = child.stderr.text()
        return {"exit_code": code, "stdout": stdout, "stderr": stderr, "truncated": stdout_cut or stderr_cut}
    if timed_out:
        how = f"timed out after {format_duration(payload.timeout)}"
    elif code < 0:
        how = f"ended by {signal_name(-code)}"
    else:
        how = f"exit code {code}"
    raise CommandFailed(f"{how}: {said}" if said else how)
