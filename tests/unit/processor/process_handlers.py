"""Handlers whose attempts run in processes of their own, which import this module."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import structlog

from hascheduler.processor import Handlers, JobContext, PermanentError, RetryLater

handlers = Handlers()
log = structlog.get_logger(__name__)


@handlers.handler("tell", process=True)
def tell(job: JobContext) -> dict[str, Any]:
    job.progress(40, "half")
    logging.getLogger(__name__).warning("plain %d", 7)
    log.warning("structured", width=3)
    return {
        "pid": os.getpid(),
        "leads": os.getpgrp() == os.getpid(),
        "payload": job.payload,
        "labels": dict(job.labels),
        "job": [job.id, job.attempt, job.definition, job.deadline_ms, job.fencing_token],
        "asked": [job.stop_requested, job.cancel_requested],
    }


@handlers.handler("fail", process=True)
def fail(job: JobContext) -> object:
    match job.payload:
        case "raise":
            raise ValueError("no answer of http://me:secret@there/")
        case "permanent":
            raise PermanentError("never")
        case "later":
            raise RetryLater("90s")
        case "percent":
            job.progress(101)
        case "no json":
            return {"at": object()}
        case "exit":
            sys.exit(7)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case _:
            os._exit(0)
    return None


@handlers.handler("hold", process=True)
def hold(job: JobContext) -> None:
    """Notes its own process and one that it starts in the payload's file, and heeds nothing where that is ``deaf``.

    Where it is ``late``, SIGTERM comes to another thread: as one that comes just before the sleep, it does not end it.
    """
    payload: Mapping[str, Any] = job.payload
    place = Path(payload["file"])
    if payload.get("deaf"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    started = subprocess.Popen(["/bin/sleep", "600"])  # a fixed program
    if payload.get("late"):
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    place.with_suffix(".new").write_text(f"{os.getpid()} {started.pid}", encoding="utf-8")
    try:
        place.with_suffix(".new").rename(place)
        while True:
            time.sleep(600)
    finally:
        place.with_suffix(".end").write_text(f"{job.stop_requested} {job.cancel_requested}", encoding="utf-8")
