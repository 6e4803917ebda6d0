"""The OpenAPI document against the values of a real database."""

import asyncio
from typing import Any

import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case
from schemathesis.core.result import Ok

from tests.system.processes import Processes
from tests.tiers import in_tier
from tests.unit.api.promises import HEADERS, PROMISES, SECRET, STREAMS, aimed

_EXAMPLES_MAX = in_tier(check=3, test=3, long=10)
"""Stores in memory are given more."""


async def test_a_real_replica_keeps_what_the_document_promises(processes: Processes) -> None:
    replica = await processes.replica("one", HASCHEDULER_AUTH="tokens", HASCHEDULER_ADMIN_TOKEN=SECRET)
    await asyncio.to_thread(_hold_to_it, f"{replica.url}/openapi.json")


def _hold_to_it(url: str) -> None:
    schema = schemathesis.openapi.from_url(url)
    found = list(schema.exclude(operation_id=STREAMS).get_all_operations())
    operations = [each.ok() for each in found if isinstance(each, Ok)]
    assert len(operations) == len(found) > 40
    for operation in operations:

        @settings(
            max_examples=_EXAMPLES_MAX,
            derandomize=True,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def holds(case: Case[Any]) -> None:
            aimed(case).call_and_validate(headers=HEADERS, checks=PROMISES)

        holds()
