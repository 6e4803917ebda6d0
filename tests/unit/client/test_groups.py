"""Many jobs go in as few requests as they fit into."""

from datetime import UTC, datetime

import pytest

from hascheduler.client import bodies
from hascheduler.client.bodies import split_jobs
from hascheduler.errors import InvalidInput


def test_jobs_that_name_each_other_stay_in_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "REQUEST_JOBS_MAX", 2)
    plain = [{"definition": "log"}] * 5
    assert [len(group) for group in split_jobs(plain)] == [2, 2, 1]
    with pytest.raises(InvalidInput, match="3 jobs need 2 requests"):
        split_jobs([{"depends_on": ["ref:a"]}, *plain[:2]])
    assert split_jobs([{"depends_on": ["ref:a"]}, {"depends_on": "?"}]) == [
        [{"depends_on": ["ref:a"]}, {"depends_on": "?"}]
    ]


@pytest.mark.parametrize("payload", [{1, 2}, datetime(2031, 1, 1, tzinfo=UTC), float("nan")])
def test_what_json_cannot_hold_is_in_no_request(payload: object) -> None:
    with pytest.raises(InvalidInput, match="is nothing that JSON can hold"):
        split_jobs([bodies.plain(definition="log", payload=payload)])


def test_large_jobs_fill_a_request_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "REQUEST_BYTES_MAX", 100)
    assert [len(group) for group in split_jobs(["x" * 60] * 3)] == [1, 1, 1]
    with pytest.raises(InvalidInput, match=r"3 requests, and are to be all or none; .* 1\.5 MiB if"):
        split_jobs(["x" * 60] * 3, atomic=True)
