"""The setting for how often the leader checks the invariants."""

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.settings import read_settings


@pytest.mark.parametrize(
    ("value", "interval_ms"), [(None, 600_000), ("30s", 30_000), ("none", None), ("10", 10_000), ("1h", 3_600_000)]
)
def test_the_interval_is_a_duration_or_none(
    monkeypatch: pytest.MonkeyPatch, value: str | None, interval_ms: int | None
) -> None:
    if value is not None:
        monkeypatch.setenv("HASCHEDULER_AUDIT_INTERVAL", value)
    assert read_settings().audit_interval_ms == interval_ms


@pytest.mark.parametrize(("value", "said"), [("9s", "at least 10s, or none"), ("often", "often"), ("-1s", "-1s")])
def test_an_interval_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, value: str, said: str) -> None:
    monkeypatch.setenv("HASCHEDULER_AUDIT_INTERVAL", value)
    with pytest.raises(InvalidInput) as refusal:
        read_settings()
    assert refusal.value.path == ("HASCHEDULER_AUDIT_INTERVAL",)
    assert said in str(refusal.value)
