"""What the OpenAPI document promises, held against what is answered to requests that are made from it by chance.

In-process, in a world of memory where some things are; the seed is fixed, so that a failure comes again. Streams are
left out, as they end after an hour, and who waits for a job or for work waits but for a moment.
"""

from typing import Any

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case

from hascheduler.api.app import create_app
from hascheduler.api.middleware.auth import AuthConfig
from hascheduler.model.collection import Collection
from hascheduler.model.documents.job import new_job_document
from hascheduler.model.token import digest_of
from tests.factories import make_job
from tests.tiers import in_tier
from tests.unit.api.doubles import World
from tests.unit.api.promises import HEADERS, PROMISES, SECRET, STREAMS, aimed

_EXAMPLES_MAX = in_tier(check=3, test=25)

world = World()
world.auth = AuthConfig(required=True, admin_digest=digest_of(SECRET))
schema = schemathesis.openapi.from_asgi("/openapi.json", create_app(world.services()))


@schema.exclude(operation_id=STREAMS).parametrize()
@settings(
    max_examples=_EXAMPLES_MAX,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_the_api_keeps_what_its_document_promises(case: Case[Any]) -> None:
    world.database.replace(Collection.JOBS, new_job_document(make_job("job:1")))
    aimed(case).call_and_validate(headers=HEADERS, checks=PROMISES)
