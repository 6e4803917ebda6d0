"""Servers before any bootstrap; each test has its own."""

import gc
import warnings
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.integration.bootstrap.members import Members


@pytest.fixture(autouse=True)
def _driver_sockets_end_here() -> Iterator[None]:
    """The driver leaves the socket of a connection that was being made to the collector; here, not in another test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture
async def members(tmp_path: Path) -> AsyncIterator[Members]:
    started = Members(tmp_path)
    yield started
    await started.stop_all()
