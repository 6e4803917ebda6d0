"""A database that nobody else uses meanwhile, without any defect."""

import pytest

from hascheduler.mongo.connection import Database
from tests.integration.check.healthy import Healthy


@pytest.fixture
async def healthy(database: Database) -> Healthy:
    return await Healthy.make(database)
