"""The commands ``hascheduler job submit``, ``wait`` and ``batch``.

``submit`` sends one job, and waits for its end if asked to. ``batch`` sends the jobs of a file (JSON lines or a YAML
list), many with each request.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from math import inf
from typing import Annotated, Any
from uuid import uuid4

import typer
from rich.console import RenderableType
from rich.text import Text

from hascheduler.cli.completion import complete_definition, complete_job
from hascheduler.cli.fields import body_of, options_of
from hascheduler.cli.input.documents import read_documents
from hascheduler.cli.input.values import check_job_id, parse_json, read_source, sendable_key
from hascheduler.cli.jobs.show import EXIT_STATUSES, NOT_ENDED_STATUS, STATE_STYLES, ended_job
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import Given, IdempotencyKey, argument, option, with_options
from hascheduler.cli.output.answers import OutputForm, Shown, asks
from hascheduler.cli.output.console import console, new_table, progress_bar
from hascheduler.cli.output.printable import printable
from hascheduler.cli.replica import Job, Scheduler, as_cli_errors, be_patient
from hascheduler.client import StillRunning
from hascheduler.client.bodies import group_key, split_jobs
from hascheduler.errors import HaschedulerError, InvalidInput, WorldError
from hascheduler.model.job import BATCH_PREFIX, TERMINAL, JobState
from hascheduler.model.values.instants import parse_duration
from hascheduler.schema.job import SubmitJobBody

_ARGUMENT = ("definition",)
_PATIENCE_S = 30.0
"""After a first answer: a command waits for a replica that restarts, not for one that never answered."""
_BUSY_MAX_S = 300.0
_SHOWN_EVERY_S = 5.0
"""How late a failed try is shown."""

_DUPLICATE = "not submitted: jobs of {} are unique and this is a duplicate"


@example(
    """hascheduler job submit sleep --payload '{"seconds": 5}' --tenant acme --lane bulk --resources cpu=2""",
    "hascheduler job submit log --wait 30s --idempotency-key order-4711",
)
@asks(name="id")
@with_options("given", options_of(SubmitJobBody, _ARGUMENT))
def submit(
    scheduler: Scheduler,
    definition: Annotated[str, argument("DEFINITION", "Definition of the job", complete_definition)],
    wait: Annotated[str | None, option("--wait SPAN", "How long to wait for its end, then show the result")] = None,
    idempotency_key: IdempotencyKey = None,
    *,
    given: Given,
    output: OutputForm,
) -> Shown:
    """Submit a job.

    With --wait the exit status is 0 if it succeeded, 3 if it failed, 4 if it was cancelled, 5 if it has not ended.
    """
    until = _until(wait, "--wait")
    key = sendable_key(idempotency_key)
    fields = body_of(SubmitJobBody, given, _ARGUMENT)
    job = scheduler.submit(definition, idempotency_key=key, **fields)
    done = "already submitted: " if job.replayed else "submitted "
    if job.is_duplicate:
        done = f"{_DUPLICATE.format(definition)} of "
        if wait is not None or output is not OutputForm.TEXT:
            typer.echo(f"hascheduler: {done}{printable(job.id)}", err=True)
    if wait is not None:
        return ended_job(_end(scheduler, job.id, until).fields)
    return Shown(job.fields, Text.assemble(done, (job.id, "bold green")))


@example("hascheduler job wait job:0194f3a1b2c3 --timeout 5m && echo done", "hascheduler job wait batch:0194f3a1b2c3")
@asks(name="id")
def wait(
    scheduler: Scheduler,
    ids: Annotated[
        list[str], argument("JOB|BATCH...", "Ids of jobs, and of batches for all of their jobs", complete_job)
    ],
    timeout: Annotated[str | None, option("--timeout SPAN", "How long to wait; default: no limit")] = None,
) -> Shown:
    """Wait until jobs have ended.

    The exit status is 0 if all succeeded, 3 if one failed, 4 if one was cancelled, 5 if one has not ended.
    """
    until = _until(timeout, "--timeout")
    for id in ids:
        check_job_id(id)
    if len(ids) == 1 and not ids[0].startswith(BATCH_PREFIX):
        return ended_job(_end(scheduler, ids[0], until).fields)
    return _ended(scheduler, ids, until)


def _until(patience: str | None, flag: str) -> float:
    return inf if patience is None else time.monotonic() + parse_duration(patience, (flag,)) / 1_000


def _ended(scheduler: Scheduler, ids: Sequence[str], until: float) -> Shown:
    """Wait for all of these jobs and batches, with a bar on a terminal, and return the number of jobs by state."""
    known: Counter[JobState] = Counter()
    of_batch: Counter[JobState] = Counter()
    with progress_bar(console()) as bar:
        task = bar.add_task("waiting", total=None)

        def show(counts: Mapping[JobState, int]) -> None:
            nonlocal of_batch
            of_batch = Counter(counts)
            now = known + of_batch
            bar.update(task, total=now.total(), completed=sum(now[state] for state in TERMINAL))
            be_patient(scheduler, min(_PATIENCE_S, _left_s(until)))

        for id in ids:
            if id.startswith(BATCH_PREFIX):
                with suppress(StillRunning):
                    scheduler.wait_all(id, timeout=_left_s(until), progress=show)
                known += of_batch
            else:
                known[_end(scheduler, id, until).state] += 1
    counts = {state.value: known[state] for state in JobState}
    statuses = {EXIT_STATUSES.get(state, NOT_ENDED_STATUS) for state, count in counts.items() if count}
    parts = [Text(f"{count} {state}", style=STATE_STYLES.get(state, "")) for state, count in counts.items() if count]
    return Shown(counts, Text(", ").join(parts), next(one for one in _WORST_FIRST if one in statuses))


_WORST_FIRST = (NOT_ENDED_STATUS, EXIT_STATUSES["failed"], EXIT_STATUSES["cancelled"], 0)


def _left_s(until: float) -> float:
    return max(0.0, until - time.monotonic())


def _end(scheduler: Scheduler, id: str, until: float) -> Job:
    """Return the job once it has ended, or as it is when the time is over; print the error of each failed try."""
    shown = 0
    try:
        while True:
            left_s = _left_s(until)
            try:
                return scheduler.wait(id, min(left_s, _SHOWN_EVERY_S))
            except StillRunning as still:
                job = still.job
            be_patient(scheduler, min(_PATIENCE_S, left_s))
            for one in job["attempts"][shown:]:
                if one["error"]:
                    text = f"hascheduler: try {one['number']} {one['outcome']}: {printable(one['error'])}"
                    typer.echo(text, err=True)
            shown = max(shown, len(job["attempts"]))
            if left_s <= _SHOWN_EVERY_S:
                return job
    except KeyboardInterrupt:
        name = printable(id)
        typer.echo(f"hascheduler: {name} goes on; wait again with hascheduler job wait {name}", err=True)
        raise


_SHOWN_MAX = 50

Result = Mapping[str, Any]
_STYLES = {"submitted": "green", "known already": "", "refused": "bold red"}


@example("hascheduler job batch jobs.jsonl", "hascheduler job batch - --idempotency-key import-2031-01-01 < jobs.yaml")
@asks()
def batch(
    scheduler: Scheduler,
    file: Annotated[str, argument("FILE", "JSON lines or a YAML list; -: standard input")],
    idempotency_key: IdempotencyKey = None,
    atomic: Annotated[bool, option("--atomic", "All or none: if one job is refused, none is submitted")] = False,
    wait: Annotated[str | None, option("--wait SPAN", "How long to wait for the end of all of them")] = None,
    *,
    output: OutputForm,
) -> Shown:
    """Submit the jobs in a file.

    Each job is accepted or refused by itself; the exit status is 1 if any was refused. --atomic submits all or none.
    With --wait it is otherwise that of `job wait`. While the replica has too much to do, it is asked again for up to
    five minutes.
    """
    until = _until(wait, "--wait")
    jobs = read_jobs(file)
    groups = split_jobs(jobs, atomic=atomic)
    key = sendable_key(idempotency_key) or str(uuid4())
    sendable_key(group_key(key, len(groups) - 1))  # the longest key, before anything is sent
    batches: list[str] = []
    results: list[Result] = []
    try:
        with progress_bar(console()) as bar, as_cli_errors():
            task = bar.add_task("submitting", total=len(jobs))
            scheduler.cluster.health(live=True)  # a replica that never answered is not waited for
            be_patient(scheduler, _BUSY_MAX_S)
            for number, group in enumerate(groups):
                answer = scheduler.submit_batch(group, idempotency_key=group_key(key, number), atomic=atomic)
                batches.append(answer["batch"])
                results += answer["results"]
                bar.update(task, completed=len(results))
    except HaschedulerError as error:
        raise _with_hint(error, len(results), len(jobs), key) from None
    refused = any(one["problem"] is not None for one in results)
    page = map(Text, batches) if output is OutputForm.NAME else _page(jobs, batches, results)
    done, parts = {"batches": batches, "results": results}, [*page]
    if wait is None or all(one["problem"] is not None for one in results):
        return Shown(done, parts, int(refused))
    ended = _ended(scheduler, batches, until)
    return Shown({**done, "counts": ended.answer}, [*parts, ended.picture], int(refused) or ended.status)


def _with_hint(error: HaschedulerError, done: int, count: int, key: str) -> HaschedulerError:
    """Return the error; if repeating may help, with the option that repeats the command without doubling a job."""
    if not done and not isinstance(error, WorldError):
        return error
    hint = f"{done} of {count} jobs were answered; to continue without duplicates, repeat with --idempotency-key {key}"
    return WorldError(f"{error}; {hint}")


def _page(jobs: Sequence[Any], batches: Sequence[str], results: Sequence[Result]) -> Iterator[RenderableType]:
    """Return all jobs if they are few; of many only the refused ones."""
    shown = [
        (number, job, result)
        for number, (job, result) in enumerate(zip(jobs, results, strict=True), 1)
        if len(results) <= _SHOWN_MAX or result["problem"] is not None
    ]
    if shown:
        table = new_table("", "ref", "answer", "job")
        for number, job, result in shown:
            ref = job.get("ref", "–") if isinstance(job, Mapping) else "–"
            answer, problem = _answer(result), result["problem"]
            told = Text(str(result["job"] if problem is None else problem["detail"]))
            table.add_row(str(number), Text(str(ref)), Text(answer, style=_STYLES[answer]), told)
        yield table
    counts = Counter(map(_answer, results))
    summary = [Text(f"{counts[answer]} {answer}", style=style) for answer, style in _STYLES.items() if counts[answer]]
    yield Text.assemble(Text(", ").join(summary), f" in {', '.join(batches)}")


def _answer(result: Result) -> str:
    if result["problem"] is not None:
        return "refused"
    return "submitted" if result["status"] == 201 else "known already"


def read_jobs(source: str) -> list[Any]:
    """Return the jobs of a file, or of ``-``; raise an `InvalidInput` if it can't be read or has no jobs."""
    text = read_source(source, "JSON lines or YAML in UTF-8").removeprefix("\ufeff")  # some editors begin files with it
    name = "standard input" if source == "-" else source
    jobs: Any
    if text.lstrip().startswith("{"):
        lines = enumerate(text.split("\n"), 1)
        jobs = [_json(line, f"{name}, line {number}") for number, line in lines if line.strip()]
    elif text.lstrip().startswith("["):
        jobs = _json(text, name)
    else:
        jobs = [document for document in read_documents(text, name) if document is not None]
        jobs = jobs[0] if len(jobs) == 1 else jobs
    if not isinstance(jobs, list):
        raise InvalidInput((name,), "is not a list of jobs", "JSON lines, or a YAML list")
    if not jobs:
        raise InvalidInput(("FILE",), f"{name} contains no jobs", "JSON lines, or a YAML list")
    return jobs


def _json(text: str, where: str) -> Any:
    try:
        return parse_json(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput((where,), f"is not JSON: {error}", "one job a line, as JSON") from None
