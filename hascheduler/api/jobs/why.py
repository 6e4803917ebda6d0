"""The explanation of why a job waits, as responses show it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from hascheduler.api.middleware.auth import Caller
from hascheduler.dispatch.explanation import Block, BlockReason, Explanation, QueuePosition
from hascheduler.model.documents.job import decode_job
from hascheduler.model.job import TERMINAL, JobState
from hascheduler.model.policy import Criterion
from hascheduler.model.values.fields import instant_or_none
from hascheduler.ports import StoredDocument
from hascheduler.schema.forms import Instant, Listed, instant_text
from hascheduler.schema.noun import Part, example_of

_STATES = {"waiting": JobState.PENDING, "dispatched": JobState.DISPATCHED, "running": JobState.RUNNING}


class BlockResponse(Part):
    """A reason why a job waits."""

    rule: BlockReason = Field(examples=["rate_limit"])
    """The kind of reason, for programs"""
    because: str = Field(examples=["'repack' is limited to 100 per 60 s"])
    """The reason in a sentence, for people"""
    unblocked_by: str = Field(examples=["when the next one may start"])
    """What would unblock the job"""
    numbers: dict[str, int | str | list[str]] = Field(examples=[{"count": 100, "per_ms": 60_000}])
    """The numbers, names and lists in the sentence, by name"""
    until_ms: Instant | None = Field(examples=["2030-01-01T00:00:12.000Z"])
    """When the block ends by itself; null if unknown"""


class CriterionResponse(Part):
    """A comparison of the job with the one that goes next."""

    criterion: Criterion = Field(examples=["lane"])
    """The criterion of the policy"""
    value: str = Field(examples=["1/8"])
    """The value of this job, with its unit: spans in `s`, a `score` in `points` (16 for a second of waiting, 1024
    for a step of priority), a lane's share of the cluster as a fraction"""
    first: str = Field(examples=["1/8"])
    """The value of the job that goes next"""


class QueuePositionResponse(Part):
    """The position of a job in the queue of jobs that nothing else blocks."""

    ahead: int = Field(examples=[2])
    """How many such jobs go before it"""
    exact: bool = Field(examples=[True])
    """False if `ahead` is a lower bound"""
    first: str = Field(examples=["job:0194f3a1b2c3000000deadbeef01"])
    """The id of the job that goes next"""
    deciding: Criterion | None = Field(examples=["fairness"])
    """The first criterion in which the two jobs differ; null: it goes next"""
    criteria: Annotated[tuple[CriterionResponse, ...], Listed] = Field(
        alias="criteria",  # not `policy`, unlike those of a lane
        examples=[[example_of(CriterionResponse)]],
    )
    """The criteria, in the order of comparison"""


class WhyResponse(Part):
    """Why a job waits: `blocks`, a `standing` in the queue, or both if it waits only for capacity."""

    job: str = Field(examples=["job:0194f3a1b2c3000001deadbeef01"])
    """The job's id"""
    state: JobState = Field(examples=["pending"])
    """The state of the job; only a `pending` one has reasons to wait"""
    seen: bool = Field(examples=[True])
    """True if this replica has it in its mirror of live jobs; false: the response is from the stored job"""
    summary: str = Field(examples=["it waits: 'repack' is limited to 100 per 60 s"])
    """The explanation in one sentence, for people"""
    processor: str | None = Field(examples=[None])
    """Its processor, while dispatched or running"""
    finished_at_ms: Instant | None = Field(examples=[None])
    """When it ended; null before"""
    error: str | None = None
    """Why it failed or was cancelled; while it waits, the error of its last attempt; null if unknown"""
    blocks: Annotated[tuple[BlockResponse, ...], Listed] = Field(examples=[[example_of(BlockResponse)]])
    """All reasons why it waits now"""
    standing: QueuePositionResponse | None = Field(examples=[None, example_of(QueuePositionResponse)])
    """Its position among the jobs that only wait their turn; null if it is blocked otherwise"""


def show_explanation(explanation: Explanation, caller: Caller, document: StoredDocument | None = None) -> WhyResponse:
    """Return the explanation. ``document`` is the stored job, for the fields of attempts, which no mirror has."""
    if not caller.sees_payloads:
        explanation = replace(explanation, blocks=tuple(map(_without_values, explanation.blocks)))
    detail = _detail_of(explanation, document or {})
    shown = {
        "job": explanation.job_id,
        "state": _STATES[explanation.state],
        "seen": True,
        "summary": _summary(explanation, detail),
        "processor": explanation.processor,
        "finished_at_ms": None,
        "error": detail if explanation.state == "waiting" else None,
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
        summary = f"it is {job.state}, but this replica has not seen it yet{because}"
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


def _detail_of(explanation: Explanation, document: StoredDocument) -> str | None:
    """Return the progress of a running attempt, or the last error of a job that waits."""
    progress, attempts = document.get("progress"), document.get("attempts")
    if explanation.state == "running" and isinstance(progress, Mapping):
        return str(progress.get("text") or "") or None
    if explanation.state == "waiting" and isinstance(attempts, list) and attempts and isinstance(attempts[-1], Mapping):
        return str(attempts[-1].get("error") or "") or None
    return None


def _ended(state: JobState) -> str:
    return "was cancelled" if state is JobState.CANCELLED else state.value


def _summary(explanation: Explanation, detail: str | None) -> str:
    if explanation.state == "dispatched":
        return f"it is dispatched to {explanation.processor}, which has not started it yet"
    if explanation.overdue is not None:
        since_ms = explanation.overdue.since_ms
        since = "" if since_ms is None else f" at {instant_text(since_ms)}"
        return (
            f"attempt {explanation.overdue.attempt} timed out{since}; its thread on {explanation.processor} has not "
            "ended yet and still holds its slot and conflict groups"
        )
    if explanation.state == "running":
        return f"it is running on {explanation.processor}" + (f": {detail}" if detail else "")
    place = _place(explanation.position)
    last = f"; its last attempt: {detail}" if detail else ""
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
    return replace(block, because=f"the limit for its {key} is reached", numbers=numbers)
