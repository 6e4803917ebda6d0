"""The explanation of why a job waits, as responses show it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from hascheduler.api.middleware.auth import Caller
from hascheduler.api.routing.published import instant_or_none
from hascheduler.dispatch.explanation import Block, BlockReason, Explanation, QueuePosition
from hascheduler.model.documents.job import decode_job
from hascheduler.model.job import TERMINAL, JobState
from hascheduler.model.policy import Criterion
from hascheduler.ports import StoredDocument
from hascheduler.schema.forms import Instant, Listed, instant_text
from hascheduler.schema.noun import Part, example_of

_STATES = {"waiting": JobState.PENDING, "dispatched": JobState.DISPATCHED, "running": JobState.RUNNING}


class BlockResponse(Part):
    """Something that holds a job back."""

    rule: BlockReason = Field(examples=["rate_limit"])
    """Which kind of thing it is, for programs"""
    because: str = Field(examples=["'repack' is limited to 100 in 60 s"])
    """A sentence, with the numbers in it"""
    unblocked_by: str = Field(examples=["when the next one may go"])
    """What would end it"""
    numbers: dict[str, int | str | list[str]] = Field(examples=[{"count": 100, "per_ms": 60_000}])
    """The figures, names and lists that the sentence is made of, by name"""
    until_ms: Instant | None = Field(examples=["2030-01-01T00:00:12.000Z"])
    """When it ends by itself, if that is known"""


class CriterionResponse(Part):
    """How a job compares with the one that goes next."""

    criterion: Criterion = Field(examples=["lane"])
    """What is compared"""
    value: str = Field(examples=["1/8"])
    """What it makes of this job, with its unit: spans in `s`, a `score` in `points` (16 for a second of waiting, 1024
    for a step of priority), a lane's share of the cluster as a fraction"""
    first: str = Field(examples=["1/8"])
    """What it makes of the job that goes next, likewise"""


class QueuePositionResponse(Part):
    """Where a job stands among those that could go."""

    ahead: int = Field(examples=[2])
    """How many jobs that may go as soon as it may go before it"""
    exact: bool = Field(examples=[True])
    """False: at least so many"""
    first: str = Field(examples=["job:0194f3a1b2c3000000deadbeef01"])
    """The job that goes next"""
    deciding: Criterion | None = Field(examples=["fairness"])
    """The first criterion in which the two differ; null: it is the next"""
    criteria: Annotated[tuple[CriterionResponse, ...], Listed] = Field(
        alias="criteria",  # not `policy`, unlike those of a lane
        examples=[[example_of(CriterionResponse)]],
    )
    """In the order in which they are compared"""


class WhyResponse(Part):
    """A job that waits has `blocks`, a `standing`, or both if all that it waits for is capacity."""

    job: str = Field(examples=["job:0194f3a1b2c3000001deadbeef01"])
    """The job's id"""
    state: JobState = Field(examples=["pending"])
    """`pending` is what has reasons to wait"""
    seen: bool = Field(examples=[True])
    """Whether this replica knows it as a job that has not ended; else it is as stored"""
    summary: str = Field(examples=["it waits: 'repack' is limited to 100 in 60 s"])
    """The answer in one sentence, for people"""
    processor: str | None = Field(examples=[None])
    """Who has it, while dispatched or running"""
    finished_at_ms: Instant | None = Field(examples=[None])
    """When it ended; null before that"""
    error: str | None = None
    """Why it failed, or was cancelled; while it waits, how its last attempt ended; if that is known"""
    blocks: Annotated[tuple[BlockResponse, ...], Listed] = Field(examples=[[example_of(BlockResponse)]])
    """All that holds it back now"""
    standing: QueuePositionResponse | None = Field(examples=[None, example_of(QueuePositionResponse)])
    """Where it stands among those who wait for nothing else"""


def show_explanation(explanation: Explanation, caller: Caller, document: StoredDocument | None = None) -> WhyResponse:
    """Return the explanation. ``document`` is the stored job, for the fields of attempts, which no mirror has."""
    if not caller.sees_payloads:
        explanation = replace(explanation, blocks=tuple(map(_without_values, explanation.blocks)))
    said = _said(explanation, document or {})
    shown = {
        "job": explanation.job_id,
        "state": _STATES[explanation.state],
        "seen": True,
        "summary": _summary(explanation, said),
        "processor": explanation.processor,
        "finished_at_ms": None,
        "error": said if explanation.state == "waiting" else None,
        "blocks": explanation.blocks,
        "standing": explanation.position,
    }
    return WhyResponse.model_validate(shown, from_attributes=True)


def show_unseen(document: StoredDocument, unready_reason: str) -> WhyResponse:
    """Return the explanation of a stored job that this replica does not know.

    Raise `InvalidInput` if the document can't be read.
    """
    job = decode_job(document["_id"], document)
    finished_at_ms = instant_or_none(document, "finished_at_ms")
    stored_error = document.get("error")
    error = str(stored_error) if job.state in TERMINAL and stored_error is not None else None
    if job.state in TERMINAL:
        summary = f"it {_ended(job.state)}" + ("" if finished_at_ms is None else f" at {instant_text(finished_at_ms)}")
        summary += f": {error}" if error else ""
    else:
        because = f": {unready_reason}" if unready_reason else ""
        summary = f"it is {job.state}, and this replica has not seen it yet{because}"
    return WhyResponse(
        job=job.id,
        state=job.state,
        seen=False,
        summary=summary,
        processor=job.processor,
        finished_at_ms=finished_at_ms,
        error=error,
        blocks=(),
        standing=None,
    )


def _said(explanation: Explanation, document: StoredDocument) -> str | None:
    """Return the progress of a running attempt, or the last error of a job that waits."""
    progress, attempts = document.get("progress"), document.get("attempts")
    if explanation.state == "running" and isinstance(progress, Mapping):
        return str(progress.get("text") or "") or None
    if explanation.state == "waiting" and isinstance(attempts, list) and attempts and isinstance(attempts[-1], Mapping):
        return str(attempts[-1].get("error") or "") or None
    return None


def _ended(state: JobState) -> str:
    return "was cancelled" if state is JobState.CANCELLED else state.value


def _summary(explanation: Explanation, said: str | None) -> str:
    if explanation.state == "dispatched":
        return f"it is promised to {explanation.processor}, which has not started it yet"
    if explanation.overdue is not None:
        since_ms = explanation.overdue.since_ms
        since = "" if since_ms is None else f" at {instant_text(since_ms)}"
        return (
            f"attempt {explanation.overdue.attempt} timed out{since}; its thread at {explanation.processor} has not "
            "ended yet: its slot and conflict groups are held until then"
        )
    if explanation.state == "running":
        return f"it runs at {explanation.processor}" + (f": {said}" if said else "")
    place = _place(explanation.position)
    last = f"; its last attempt: {said}" if said else ""
    if explanation.blocks:
        return f"it waits: {'; '.join([*(block.because for block in explanation.blocks), *place])}{last}"
    return ", ".join(["nothing holds it back", *place]) + last


def _place(standing: QueuePosition | None) -> list[str]:
    if standing is None:
        return []
    if standing.ahead == 0:
        return ["and it is next"]
    ahead = f"{'' if standing.exact else 'at least '}{standing.ahead}"
    return [f"{ahead} {'job goes' if standing.ahead == 1 else 'jobs go'} before it"]


def _without_values(block: Block) -> Block:
    """Return ``block`` without the payload's values at the key of a limit."""
    key = block.numbers.get("key")
    if not isinstance(key, str) or not key.startswith("payload."):
        return block
    numbers = {name: figure for name, figure in block.numbers.items() if name != "value"}
    return replace(block, because=f"as many as may with its value at {key} run, or began of late", numbers=numbers)
