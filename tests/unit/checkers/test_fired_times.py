"""The times that real processes' effects show to have fired."""

from hascheduler.model.job import backfill_job_id, fire_job_id, graph_job_id, trigger_job_id
from tests.system.processes import fired_times


def test_a_fire_is_its_job_of_that_name_the_last_of_a_graph() -> None:
    fires = [fire_job_id("tick", 2_000), fire_job_id("tick", 1_000)]
    others = [
        graph_job_id(fires[0], "extract"), graph_job_id(fire_job_id("tick", 3_000), "load"),
        fire_job_id("tick-tock", 4_000), backfill_job_id("tick", 5_000), trigger_job_id("tick", "6000"), "job:1",
    ]  # fmt: skip
    assert fired_times("tick", [*fires, *others]) == [1_000, 2_000]
