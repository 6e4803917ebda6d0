"""``/v1/simulations``: a scenario or a recording under several policies, side by side; and scenarios to begin with.

A viewer may simulate, by the dashboard where that is read-only too: it changes nothing, and shows nothing that the
caller did not send. What one token can do with it to a replica, which may lead: keep one process busy that has the
lowest priority, rests as long as it runs, and has 256 MiB at most; and hold two of the three places of its queue, so
another token has its turn after two minutes at most, mostly after seconds. Where no core is idle the simulation is
what does not end in time.
"""

from collections.abc import Generator
from functools import cache
from http import HTTPStatus

from fastapi import APIRouter, Request, Response

from hascheduler.api.http.problems import ProblemError, problem_responses
from hascheduler.api.middleware.audit import CHANGES_NOTHING
from hascheduler.api.middleware.auth import Viewer
from hascheduler.api.middleware.pools import held_open, take
from hascheduler.api.routing.body import LargeJsonRoute
from hascheduler.api.routing.long_poll import until_left
from hascheduler.api.routing.queries import PathName
from hascheduler.api.routing.time_slicing import run_in_slices
from hascheduler.api.services import Services
from hascheduler.api.simulations.process import SimulationBroke, Simulations, SimulationTooLarge, SimulationTooSlow
from hascheduler.api.simulations.schemas import (
    PIECES_MAX,
    SimulationBody,
    SimulationExample,
    SimulationExamples,
    SimulationExampleText,
    SimulationResponse,
)
from hascheduler.errors import NotFound
from hascheduler.model.policy import PRESETS
from hascheduler.simulate.examples import example_names, example_note, example_text

SCENARIO_BYTES_MAX = 4 * 1024 * 1024
_RETRY_AFTER_S = 5
_NO_LIMIT = "send less, or run it with `hascheduler simulate`, which has no such limit"


class SimulationRoute(LargeJsonRoute):
    bytes_max = SCENARIO_BYTES_MAX
    values_max = 10 * PIECES_MAX


router = APIRouter(prefix="/simulations", tags=["cluster"], route_class=SimulationRoute)


@router.post(
    "",
    responses={200: {"model": SimulationResponse}, **problem_responses(413, 422, 429)},
    dependencies=[CHANGES_NOTHING],
)
async def simulate(body: SimulationBody, request: Request, services: Services, caller: Viewer) -> Response:
    """Run a scenario, or the work of a recording, on the real dispatch core in virtual time, under each policy: what
    `hascheduler simulate` prints and draws, and its `--json` as `outcome`.

    It takes at most 20,000 jobs, 15 s of CPU and 256 MiB in a process of its own, one at a time on each replica, in
    the order in which they come. A client that disconnects ends its run.
    """
    simulations: Simulations = request.app.state.simulations
    slot = take(services.pools.simulations, request.scope)
    with held_open(slot, request.scope):
        try:
            found = await until_left(
                simulations.run("".join(body.scenario), body.policies), request.receive, lambda: services.view.stopping
            )
        except SimulationTooLarge as error:
            raise ProblemError(
                HTTPStatus.UNPROCESSABLE_ENTITY, "simulation-too-large", f"{error}; {_NO_LIMIT}"
            ) from None
        except SimulationTooSlow as error:
            raise _unavailable(f"{error}, as this replica has little time to spare; try a smaller one") from None
        except SimulationBroke:
            raise ProblemError(
                HTTPStatus.INTERNAL_SERVER_ERROR, "internal-error", "a defect of the server; see its log"
            ) from None
        if found is None:
            raise _unavailable("the replica ends; ask another one")
        return Response(found, media_type="application/json")


def _unavailable(detail: str) -> ProblemError:
    headers = {"Retry-After": str(_RETRY_AFTER_S)}
    return ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, "too-busy", detail, headers=headers)


@router.get("/examples")
async def list_simulation_examples(services: Services, caller: Viewer) -> SimulationExamples:
    """Scenarios to begin with, and the names of policies to compare."""
    return SimulationExamples(items=await run_in_slices(_examples()), policies=list(PRESETS))


def _examples() -> Generator[None, None, list[SimulationExample]]:
    found = []
    for name in example_names():
        found.append(_example(name))
        yield
    return found


@cache
def _example(name: str) -> SimulationExample:
    return SimulationExample(name=name, note=example_note(name))


@router.get("/examples/{name}", responses=problem_responses(404))
async def get_simulation_example(name: PathName, services: Services, caller: Viewer) -> SimulationExampleText:
    """The text of an example, to look at and to change."""
    if name not in example_names():
        raise NotFound("example", name)
    return SimulationExampleText(name=name, note=_example(name).note, scenario=example_text(name))
