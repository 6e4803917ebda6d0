"""What the OpenAPI document promises, held against what is answered to requests that are made from it by chance.

In-process, in a world of memory where some things are; the seed is fixed, so that a failure comes again. Streams are
left out, as they end after an hour, and who waits for a job or for work waits but for a moment. After each edit the
requests are by chance alone; from ``make test`` on, the boundaries of every field come first.
"""

from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import Case

from hascheduler.api.middleware.auth import AuthConfig
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.token import digest_of
from tests.factories import make_job
from tests.tiers import TIER, in_tier
from tests.unit.api.doubles import World, app_of
from tests.unit.api.promises import HEADERS, PROMISES, SECRET, STREAMS, aimed

_EXAMPLES_MAX = in_tier(check=1, test=10, long=25)
_PHASES = [phase for phase in Phase if TIER != "check" or phase is not Phase.explicit]
"""The explicit ones, some seventy requests an operation, are made when tests are collected: seconds in each worker."""

world = World()
world.auth = AuthConfig(required=True, admin_digest=digest_of(SECRET))
schema = schemathesis.openapi.from_asgi("/openapi.json", app_of(world))


@schema.exclude(operation_id=STREAMS).parametrize()
@settings(
    max_examples=_EXAMPLES_MAX,
    phases=_PHASES,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_the_api_keeps_what_its_document_promises(case: Case[Any]) -> None:
    app_of(world)
    world.database.replace(Collection.JOBS, new_job_document(make_job("job:1")))
    aimed(case).call_and_validate(headers=HEADERS, checks=PROMISES)
