"""A fleet on a database of its own, and the releases that may run in it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.system.upgrade.fleet import Fleet
from tests.system.upgrade.releases import Release, next_release, previous_release, this_release


@pytest.fixture(scope="session")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return previous_release(tmp_path_factory.mktemp("previous"))


@pytest.fixture(scope="session")
def present() -> Release:
    return this_release()


@pytest.fixture(scope="session")
def following(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return next_release(tmp_path_factory.mktemp("following"))


@pytest.fixture
async def fleet(tmp_path: Path, mongodb_uri: str, amqp_url: str, database_name: str) -> AsyncIterator[Fleet]:
    running = Fleet(
        tmp_path,
        {
            "HASCHEDULER_MONGODB_URI": mongodb_uri,
            "HASCHEDULER_AMQP_URL": amqp_url,
            "HASCHEDULER_DATABASE": database_name,
            "HASCHEDULER_LEASE_DURATION": "3s",
            "HASCHEDULER_RENEW_DEADLINE": "2s",
            "HASCHEDULER_RETRY_PERIOD": "500ms",
            "HASCHEDULER_HEARTBEAT_INTERVAL": "300ms",
            "HASCHEDULER_HEARTBEAT_TIMEOUT": "2500ms",
        },
        mongodb_uri,
        database_name,
    )
    try:
        yield running
    finally:
        await running.stop()
