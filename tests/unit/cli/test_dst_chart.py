"""The picture of a night in which clocks change."""

import pytest

from hascheduler.cli.schedules.dst_chart import draw_dst_chart
from hascheduler.model.values.instants import parse_instant

_H = 3_600_000


@pytest.mark.parametrize(
    ("at", "before", "after", "fires", "picture"),
    [
        (
            "2027-03-28T01:00:00Z", 1, 2, ["2027-03-28T01:00:00Z"],
            "23    00    01    ┃03    04    05\n┼─────┼─────┼─────┃●─────┼─────┼─────",
        ),
        (
            "2027-10-31T01:00:00Z", 2, 1, ["2027-10-31T00:30:00Z"],
            "00    01    02    ┃02    03    04\n┼─────┼─────┼──●──┃┼──○──┼─────┼─────",
        ),
        (
            "2027-10-31T01:00:00Z", 2, 1, ["2027-10-31T00:00:00Z", "2027-10-31T01:00:00Z", "2027-10-31T02:00:00Z"],
            "00    01    02    ┃02    03    04\n┼─────┼─────●─────┃●─────●─────┼─────",
        ),
        (
            "2027-04-03T15:00:00Z", 11, 10.5, ["2027-04-03T14:45:00Z"],
            "23    00    01    ┃   02    03    04\n┼─────┼─────┼───●─┃─○─┼─────┼─────┼──",
        ),
        (
            "2011-12-30T10:00:00Z", -10, 14, [],
            "21    22    23    ┃00    01    02\n┼─────┼─────┼─────┃┼─────┼─────┼─────",
        ),
    ],
    ids=["a gap", "a fold", "real time in a fold", "half an hour", "a day that was not"],
)  # fmt: skip
def test_six_hours_as_they_really_pass(at: str, before: float, after: float, fires: list[str], picture: str) -> None:
    fires_ms = [parse_instant(fire) for fire in fires]
    labels, axis = draw_dst_chart(parse_instant(at), round(before * _H), round(after * _H), fires_ms)
    assert f"{labels.plain.rstrip()}\n{axis.plain}" == picture


def test_fires_of_other_hours_are_left_out() -> None:
    at_ms = parse_instant("2027-03-28T01:00:00Z")
    far = [at_ms - 3 * _H - 1, at_ms + 3 * _H]
    assert draw_dst_chart(at_ms, _H, 2 * _H, far)[1].plain == draw_dst_chart(at_ms, _H, 2 * _H, [])[1].plain
