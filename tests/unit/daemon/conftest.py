import pytest

from hascheduler.daemon.leadership import liveness as liveness_room


@pytest.fixture
def briskly(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for a proof of death looks again at once."""
    monkeypatch.setattr(liveness_room, "_PAUSE_MIN_S", 0.001)
    monkeypatch.setattr(liveness_room, "_PAUSE_MAX_S", 0.001)
    monkeypatch.setattr(liveness_room, "_CONNECT_TIMEOUT_S", 0.2)
