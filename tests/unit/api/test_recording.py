"""The leader's inputs and decisions, line by line."""

import httpx
import pytest

from hascheduler.dispatch.config import DispatchConfig
from hascheduler.dispatch.decisions import Dispatch
from hascheduler.dispatch.inputs import TransportSeen
from hascheduler.dispatch.recording import RecordedStep, RecordingEnd, RecordingHeading, read_recording
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import check_problem

PATH = "/v1/cluster/recording"
HEADING = RecordingHeading(NOW, "replica-1.aa", 7, DispatchConfig())
STEPS: list[RecordedStep | RecordingEnd] = [
    RecordedStep(NOW, (TransportSeen(True),), (Dispatch("a", 1, "p"),)),
    RecordingEnd("over"),
]


async def test_a_recording_can_be_read_back(client: httpx.AsyncClient, world: World) -> None:
    world.view.heading, world.view.recorded = HEADING, [*STEPS]
    answer = await client.get(PATH, params={"for": "90s"})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/x-ndjson")
    heading, steps = read_recording(answer.text.splitlines())
    assert (heading, list(steps)) == (HEADING, STEPS)
    assert world.view.recorded_for_ms == 90_000


async def test_a_replica_that_does_not_lead_cannot_be_recorded(client: httpx.AsyncClient) -> None:
    check_problem(await client.get(PATH), 409)


@pytest.mark.parametrize("span", ["forever", "-1s", "0", "2h", ""])
async def test_a_span_that_makes_no_sense_is_refused(client: httpx.AsyncClient, world: World, span: str) -> None:
    world.view.heading = HEADING
    check_problem(await client.get(PATH, params={"for": span}), 422)
