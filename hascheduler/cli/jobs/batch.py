"""``hascheduler job batch``: the jobs of a file (JSON lines or a YAML list), many with each request."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any
from uuid import uuid4

import typer
from rich.console import RenderableType
from rich.progress import Progress
from rich.text import Text

from hascheduler.cli.input.documents import read_documents
from hascheduler.cli.input.values import parse_json, read_source, sendable_key
from hascheduler.cli.lazy_groups import example
from hascheduler.cli.options import IdempotencyKey
from hascheduler.cli.output.answers import Shown, asks
from hascheduler.cli.output.console import console, new_table
from hascheduler.cli.replica import Scheduler, as_cli_errors
from hascheduler.client.bodies import group_key, split_jobs
from hascheduler.errors import HaschedulerError, InvalidInput, WorldError

_SHOWN_MAX = 50

Result = Mapping[str, Any]
_STYLES = {"submitted": "green", "known already": "", "refused": "bold red"}


@example("hascheduler job batch jobs.jsonl", "hascheduler job batch - --idempotency-key import-2031-01-01 < jobs.yaml")
@asks()
def batch(
    scheduler: Scheduler,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="JSON lines, or a YAML list; - is standard input", show_default=False)
    ],
    idempotency_key: IdempotencyKey = None,
    atomic: Annotated[
        bool, typer.Option("--atomic", help="All or none: where one is refused, nothing is submitted.")
    ] = False,
) -> Shown:
    """Submit the jobs of a file.

    Each is submitted or refused by itself; the exit status is 1 if any was refused. With --atomic all or none.
    """
    jobs = read_jobs(file)
    groups = split_jobs(jobs, atomic=atomic)
    key = sendable_key(idempotency_key) or str(uuid4())
    sendable_key(group_key(key, len(groups) - 1))  # the longest of them, before anything is sent
    batches: list[str] = []
    results: list[Result] = []
    bar = Progress(console=console(), transient=True, disable=len(groups) == 1 or not console().is_terminal)
    with bar:
        task = bar.add_task("submitting", total=len(jobs))
        for number, group in enumerate(groups):
            try:
                with as_cli_errors():
                    answer = scheduler.submit_batch(group, idempotency_key=group_key(key, number), atomic=atomic)
            except HaschedulerError as error:
                raise _with_hint(error, len(results), len(jobs), key) from None
            batches.append(answer["batch"])
            results += answer["results"]
            bar.update(task, completed=len(results))
    refused = any(one["problem"] is not None for one in results)
    return Shown({"batches": batches, "results": results}, [*_page(jobs, batches, results)], int(refused))


def _with_hint(error: HaschedulerError, done: int, count: int, key: str) -> HaschedulerError:
    """The error with the option that repeats the command without doubling a job, where repeating may help."""
    if not done and not isinstance(error, WorldError):
        return error
    hint = f"{done} of {count} jobs were answered; repeated with --idempotency-key {key}, none comes twice"
    return WorldError(f"{error}; {hint}")


def _page(jobs: Sequence[Any], batches: Sequence[str], results: Sequence[Result]) -> Iterator[RenderableType]:
    """All jobs where they are few; of many only the refused ones."""
    shown = [
        (number, job, result)
        for number, (job, result) in enumerate(zip(jobs, results, strict=True), 1)
        if len(results) <= _SHOWN_MAX or result["problem"] is not None
    ]
    if shown:
        table = new_table("", "", "ref", "answer", "job")
        for number, job, result in shown:
            ref = job.get("ref", "–") if isinstance(job, Mapping) else "–"
            table.add_row(str(number), Text(str(ref)), *_cells(result))
        yield table
    counts = {answer: sum(1 for one in results if _answer(one) == answer) for answer in _STYLES}
    summary = [Text(f"{counts[answer]} {answer}", style=style) for answer, style in _STYLES.items() if counts[answer]]
    yield Text.assemble(Text(", ").join(summary), f" in {', '.join(batches)}")


def _answer(result: Result) -> str:
    if result["problem"] is not None:
        return "refused"
    return "submitted" if result["status"] == 201 else "known already"


def _cells(result: Result) -> tuple[Text, Text]:
    answer = _answer(result)
    what = result["job"] if result["problem"] is None else result["problem"]["detail"]
    return Text(answer, style=_STYLES[answer]), Text(str(what))


def read_jobs(source: str) -> list[Any]:
    """The jobs of a file, or of ``-``; `InvalidInput` says where it can't be read, and where there are none."""
    text = read_source(source, "JSON lines or YAML in UTF-8").removeprefix(
        "\ufeff"
    )  # with which some editors begin a file
    name = "standard input" if source == "-" else source
    jobs = list(_json_lines(text, name)) if text.lstrip().startswith("{") else _list(text, name)
    if not jobs:
        raise InvalidInput(("FILE",), f"{name} holds no jobs", "JSON lines, or a YAML list")
    return jobs


def _json_lines(text: str, name: str) -> Iterator[Any]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield _json(line, f"{name}, line {number}")


def _json(text: str, where: str) -> Any:
    try:
        return parse_json(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput((where,), f"is not JSON: {error}", "one job a line, as JSON") from None


def _list(text: str, name: str) -> list[Any]:
    if text.lstrip().startswith("["):
        jobs = _json(text, name)
    else:
        documents = [document for document in read_documents(text, name) if document is not None]
        jobs = documents[0] if len(documents) == 1 else documents
    if not isinstance(jobs, list):
        raise InvalidInput((name,), "is no list of jobs", "JSON lines, or a YAML list")
    return jobs
