"""Rows take minutes, so they are told only when asked for: ``pytest -m chaos``. The engine's own tests always run."""

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "chaos" in config.getoption("markexpr", ""):
        return
    told = [item for item in items if item.get_closest_marker("chaos")]
    config.hook.pytest_deselected(items=told)
    items[:] = [item for item in items if item not in told]
