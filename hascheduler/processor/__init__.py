"""The processor SDK: write handlers, and this room runs them for the jobs that the leader dispatches to this process.

::

    from hascheduler.processor import Handlers, JobContext

    handlers = Handlers()

    @handlers.handler("resize")
    async def resize(job: JobContext) -> object:
        return await resize_image(job.payload["image"], key=job.idempotency_key)

What comes in, and where it goes::

    Deliveries ─► Intake ─► HeldAttempts ─► Runner ─► WorkStore
                    │ parks     │ holds       │ start, handler, finish
                    ▼ garbage   ▼             ▼
          attempt_loops                Heartbeat ─► SelfFence: no heartbeat written in time, all handlers stop

The protocol of one attempt. A message names a job and an attempt; nothing else in it is trusted. The processor waits
for one of its slots, *starts* the attempt by compare-and-set (which returns the payload, or that it no longer holds the
attempt), acknowledges the message, runs the handler, and *finishes* by compare-and-set. A duplicate message finds an
attempt that is already held here, or loses the start.

If a handler raises, its job is retried after a growing pause, as often and as long as the definition allows;
`PermanentError` ends it, `RetryLater` chooses the pause. An attempt that exceeds the definition's timeout is stopped
and has failed, whatever its handler returns later. A thread can't be stopped: its attempt is *overdue*, which the
processor reports to the leader. It fails when the thread has ended; its slot and the job's locks are held until then.
`JobContext.progress` shows how far an attempt has come.

All coroutine handlers run in one event loop, in a thread of its own (`handler_loop`). A handler that blocks it is
named, and delays only the other coroutines.

A handler declared with ``process=True`` runs each attempt in a process of its own (`child_process`), which is killed
when the attempt must stop, or when this process ends.

What must hold:

* One start for each (job, attempt) in this process: the attempt is held from its message until the database has
  answered how it ended.
* A handler runs only while the leader takes this processor for alive. The heartbeat deadline is shorter than the
  leader's heartbeat timeout and counts from the *beginning* of the last written heartbeat. When it passes, all handlers
  are stopped and their results dropped (`self_fence`), before the leader gives their jobs to others. The attempts are
  then given back, as the leader may never have noticed.
* No failure of one job or one message stops the others; no outage stops the process.

A process that serves several schedulers has all this once for each, and one set of slots.

Each line that a handler logs carries its job and attempt, through ``structlog`` or ``logging``. If tracing is on, the
attempt's span is current in it, so that the handler's own spans are part of its job's trace.

Delivery is at least once. A handler that must have its effect once passes ``job.idempotency_key`` and
``job.fencing_token`` to whatever it changes.
"""

from hascheduler.processor.config import ProcessorConfig
from hascheduler.processor.handlers import Handlers, JobContext, load_handlers
from hascheduler.processor.outcomes import PermanentError, RetryLater
from hascheduler.processor.processor import Processor

__all__ = [
    "Handlers",
    "JobContext",
    "PermanentError",
    "Processor",
    "ProcessorConfig",
    "RetryLater",
    "load_handlers",
]
