"""However many names callers make up, a metric has room for a hundred."""

import pytest

from hascheduler.telemetry.metrics_processor import ProcessorMetrics
from hascheduler.telemetry.metrics_replica import ReplicaMetrics
from hascheduler.telemetry.registry import OTHER, BoundedLabel, BoundedRows
from tests.unit.telemetry.scraping import scrape


def test_the_first_names_keep_their_own_and_all_later_ones_share_one() -> None:
    label = BoundedLabel(2)
    assert [label.of(name) for name in ("a", "b", "c", "a", "c", "b", "d")] == ["a", "b", OTHER, "a", OTHER, "b", OTHER]


def test_a_flood_of_definitions_makes_a_hundred_and_one_series_and_loses_no_count() -> None:
    replica, processor = ReplicaMetrics(), ProcessorMetrics()
    for number in range(250):
        replica.ended(f"d{number}", "succeeded")
        replica.started(f"d{number}", 10)
        processor.ended(f"d{number}", "failed")
    told, by_processor = scrape(replica.registry), scrape(processor.registry)
    for of, name in (
        (told, "hascheduler_attempts_total"),
        (told, "hascheduler_schedule_to_start_seconds_count"),
        (by_processor, "hascheduler_processor_attempts_total"),
    ):
        series = of.by(name, "definition")
        assert (len(series), series[OTHER], sum(series.values())) == (101, 150, 250)


ROW = {"pending": 1}


@pytest.mark.parametrize(
    ("table", "idle", "shown"),
    [
        ({}, (), {}),
        ({"a": ROW}, ("b",), {"a": 1, "b": 0}),
        ({"a": ROW, "b": ROW}, ("c", "d"), {"a": 1, "b": 1, "c": 0}),
        ({"a": ROW, "b": ROW, "c": ROW, "d": ROW, "e": ROW}, ("f",), {"a": 1, "b": 1, "c": 1, OTHER: 2}),
    ],
)
def test_rows_with_something_to_show_go_before_idle_ones(
    table: dict[str, dict[str, int]], idle: tuple[str, ...], shown: dict[str, int]
) -> None:
    rows = BoundedRows(3).of(table, {"pending": len(table)}, idle)
    assert {name: row.get("pending", 0) for name, row in rows} == shown


def test_a_row_that_was_shown_stays_while_it_has_something_to_show() -> None:
    rows = BoundedRows(2)
    assert [name for name, _ in rows.of({"b": ROW, "c": ROW}, {"pending": 2})] == ["b", "c"]
    assert [name for name, _ in rows.of({"a": ROW, "b": ROW, "c": ROW}, {"pending": 3})] == ["b", "c", OTHER]
    assert [name for name, _ in rows.of({"a": ROW, "c": ROW}, {"pending": 2})] == ["c", "a"]


def test_a_million_names_are_not_looked_at() -> None:
    class Endless(dict[str, dict[str, int]]):
        def __iter__(self):  # type: ignore[no-untyped-def]
            for number in range(10**6):
                assert number < 10, "far more than there is room for"
                yield f"d{number}"

        def __contains__(self, name: object) -> bool:
            return True

    assert len(BoundedRows(5).of(Endless(), {"pending": 10**6})) == 6
