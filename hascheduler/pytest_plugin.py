"""The pytest plugin, with the fixture ``virtual_scheduler``.

Every test run of a project that has this package installed imports this module, so it imports the scheduler only for
a test that uses the fixture.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from hascheduler.testing import VirtualScheduler

_MARKER = (
    "virtual_scheduler(*handlers, start='2030-01-01T00:00:00Z', slots=8, policy='fair'): "
    "options of the scheduler that the fixture virtual_scheduler yields"
)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture
def virtual_scheduler(request: pytest.FixtureRequest) -> "Iterator[VirtualScheduler]":
    """Yield a `hascheduler.testing.VirtualScheduler`, configured by its marker, and close it after the test."""
    from hascheduler.testing import VirtualScheduler  # noqa: PLC0415  # most tests of most projects do not use it

    marker = request.node.get_closest_marker("virtual_scheduler")
    handlers, options = ((), {}) if marker is None else (marker.args, marker.kwargs)
    with VirtualScheduler(*handlers, **options) as scheduler:
        yield scheduler
