"""``command``: runs one program for each attempt, and returns how it ended and what it wrote.

The payload::

    {"argv": ["/usr/local/bin/backup", "--full"],   never given to a shell
     "env": {"TZ": "UTC"},       added to the child's environment, which is otherwise minimal
     "cwd": "/srv",              default /
     "stdin": "a text",          default nothing
     "timeout": "10m",           the default; 100ms to 24h
     "ok_codes": [0]}            what is a success

The result is ``{"exit_code", "stdout", "stderr", "truncated"}``; of each output the first and the last 32 KiB are
kept. Another exit code, a signal and the time-out fail the attempt, with the last line of stderr in the error. They
are a `WorldError`, as the next attempt may succeed; what can never run is an `InvalidInput`.

The operator of the processor says what may run: ``HASCHEDULER_COMMAND_ALLOW`` lists absolute paths of programs,
comma-separated, each with what its arguments have to begin with (`processors.command.allowed`). Unset, nothing runs.
A program that starts others (a shell, an interpreter, env, find, git) is not taken without such a beginning. The safest
is a script of your own that takes no arguments.

The child sees PATH and LANG of the processor, ``HASCHEDULER_JOB_ID`` (the same for every attempt: an idempotency key),
``HASCHEDULER_ATTEMPT`` (grows with each: a fencing token), and of a scheduled job ``HASCHEDULER_SCHEDULE`` and
``HASCHEDULER_NOMINAL_AT`` (RFC 3339); and of ``env`` the names that ``HASCHEDULER_COMMAND_ENV`` lists, which are TZ,
LANG and LC_* unless it is set (`processors.command.environment`).

It runs in a session of its own. At the time-out, when the job is cancelled, and when the processor gives it up,
all of its process group gets SIGTERM, and SIGKILL after a grace: 5 s, or half a second when the processor gives the
job up, as another may have it by then. What a program leaves running in its group when it ends is killed too. A
program that makes a session of its own (a daemon) escapes, and if the processor itself is killed, the program lives
on: the next attempt carries a higher ``HASCHEDULER_ATTEMPT``.
"""

import os
from typing import Any

from hascheduler.processor import Handlers, JobContext
from processors.command.allowed import allowed_executable
from processors.command.child import Invocation
from processors.command.environment import child_environment
from processors.command.payload import CommandPayload
from processors.command.running import run
from processors.payloads import read_payload

handlers = Handlers()


@handlers.handler("command")
async def command(job: JobContext) -> dict[str, Any]:
    payload = read_payload(CommandPayload, job.payload)
    executable = allowed_executable(payload.argv, os.environ)
    invocation = Invocation(
        executable=executable,
        argv=[executable, *payload.argv[1:]],
        environment=child_environment(payload.env, job, os.environ),
        cwd=payload.cwd,
        stdin=payload.stdin,
    )
    return await run(invocation, payload, job)
