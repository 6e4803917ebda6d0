"""The processes of one test, on a database of its own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.system.processes import Processes, environment_of


@pytest.fixture
async def processes(tmp_path: Path, mongodb_uri: str, amqp_url: str, database_name: str) -> AsyncIterator[Processes]:
    environment = environment_of(mongodb_uri, amqp_url, database_name)
    async with Processes(tmp_path, environment, mongodb_uri, database_name) as running:
        yield running
