"""A replica's API on memory stores, served on a port of this machine."""

from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from tests.unit.api.doubles import World, app_of
from tests.unit.api.served import *  # noqa: F403  # fixtures are found by their names in this module
from tests.unit.cli.invoking import Replica


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def url(served: str, world: World) -> Iterator[str]:
    app_of(world)
    with capture_logs():  # what a replica says is no part of what a command does, which has the same streams here
        yield served


@pytest.fixture
def replica(url: str) -> Replica:
    return Replica(url)
