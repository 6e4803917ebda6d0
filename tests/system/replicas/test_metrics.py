"""What real processes tell of a real run is what the database and the handlers know of it."""

from hascheduler.embedded.children import free_port
from tests.system.processes import Processes, eventually
from tests.unit.telemetry.scraping import Scrape

REPLICAS = ("one", "two")
SUBMITTED = 12
FIRES = 6


async def test_the_figures_are_those_of_the_run(processes: Processes) -> None:
    count = processes.database.jobs.count_documents
    health = {name: f"http://127.0.0.1:{free_port()}" for name in (*REPLICAS, "worker")}

    def port(name: str) -> dict[str, str]:
        return {"HASCHEDULER_HEALTH_PORT": health[name].rpartition(":")[2]}

    for name in REPLICAS:
        await processes.replica(name, **port(name))
    await processes.processor("worker", "processors.log", "tests.system.replicas.handlers", slots=8, **port("worker"))
    leader, term = await processes.leader()
    follower = next(name for name in REPLICAS if name != leader.name)
    # It comes to its end by itself: a fire that meets a deletion is decided, and lost.
    trigger = {"type": "interval", "every": "200ms", "max_fires": FIRES}
    await processes.post("/v1/schedules", {"name": "tick", "trigger": trigger, "job": {"definition": "log"}})
    for number in range(SUBMITTED):
        await processes.post("/v1/jobs", {"definition": "log", "target": f"t{number}", "tenant": "acme"})
    # Tried three times: two attempts fail.
    retry = {"retry": {"attempts": 5, "backoff": "50ms"}}
    await processes.put("/v1/definitions/flaky", retry)
    await processes.post("/v1/jobs", {"definition": "flaky", "payload": {"succeeds_in": 3}})

    async def fired() -> bool:
        return await count({"schedule": "tick"}) == FIRES

    await eventually(fired, "it has fired as often as it may")
    await processes.settled()
    all = await count({})
    logged = await count({"definition": "log", "state": "succeeded"})
    assert all == FIRES + SUBMITTED + 1
    assert logged == all - 1

    async def all_ends_counted() -> Scrape | None:
        told = await processes.metrics(health[leader.name])
        return told if told.total("hascheduler_attempts_total") == all + 2 else None

    told = await eventually(all_ends_counted, "the leader has seen every attempt end")
    assert told.of("hascheduler_verdicts_total", verdict="fired") == FIRES
    assert told["hascheduler_fire_lag_seconds_count"] == FIRES
    assert told.of("hascheduler_decisions_total", kind="fire") == FIRES
    assert told.of("hascheduler_decisions_total", kind="dispatch") == all + 2
    assert told.of("hascheduler_attempts_total", definition="log", outcome="succeeded") == logged
    assert told.of("hascheduler_attempts_total", definition="flaky", outcome="failed") == 2
    assert told.of("hascheduler_attempts_total", definition="flaky", outcome="succeeded") == 1
    assert told["hascheduler_attempts_lost_total"] == told["hascheduler_claims_lost_total"] == 0
    assert told.of("hascheduler_schedule_to_start_seconds_count", definition="log") == logged
    assert told.of("hascheduler_schedule_to_start_seconds_count", definition="flaky") == 1
    assert told.of("hascheduler_publishes_total", outcome="confirmed") >= all + 2
    assert told["hascheduler_step_seconds_count"] > 0
    assert told["hascheduler_journal_append_seconds_count"] == told["hascheduler_journal_apply_seconds_count"] > 0
    assert told["hascheduler_takeovers_total"] == 1
    assert told["hascheduler_takeover_seconds"] > 0

    async def all_gone() -> dict[str, Scrape] | None:
        told = {name: await processes.metrics(health[name]) for name in REPLICAS}
        slots = [of.by("hascheduler_processor_slots", "state") for of in told.values()]
        schedules = [of.by("hascheduler_schedules", "state") for of in told.values()]
        idle = slots == [{"occupied": 0, "free": 8}] * 2 and schedules == [{"active": 0, "paused": 0}] * 2
        return told if idle else None

    both = await eventually(all_gone, "both have seen the last job end and the schedule go")
    for name, of in both.items():
        assert of["hascheduler_leading"] == (name == leader.name)
        assert of["hascheduler_ready"] == of["hascheduler_broker_accepting"] == 1
        assert of["hascheduler_term"] == term
        assert of.by("hascheduler_jobs", "state") == {"pending": 0, "dispatched": 0, "running": 0}
        assert of.get("hascheduler_definition_jobs", definition="flaky", state="pending") == 0
        assert of.get("hascheduler_wait_oldest_seconds", lane="default") == 0
        assert of["hascheduler_wait_bound_seconds"] == 1_920
        assert of["hascheduler_definitions"] == 1
        assert of.by("hascheduler_processors", "state") == {"live": 1, "draining": 0, "lost": 0}
        assert of["hascheduler_scrape_failures_total"] == 0
    for name in ("hascheduler_verdicts_total", "hascheduler_attempts_total", "hascheduler_decisions_total"):
        assert both[follower].total(name) == 0, f"{name} on a replica that never led"
    # `post` asks the first replica.
    made = both["one"].of("hascheduler_http_requests_total", method="POST", route="/v1/jobs", status="201")
    assert made == SUBMITTED + 1

    worker = await processes.metrics(health["worker"])
    assert worker.of("hascheduler_processor_attempts_total", definition="log", outcome="succeeded") == logged
    assert worker.of("hascheduler_processor_attempts_total", definition="flaky", outcome="failed") == 2
    assert worker.of("hascheduler_handler_seconds_count", definition="log") == logged
    assert worker.of("hascheduler_handler_seconds_count", definition="flaky") == 3
    assert worker["hascheduler_processor_running"] == worker["hascheduler_processor_parked_total"] == 0
    assert worker["hascheduler_processor_slots_max"] == 8
    assert worker["hascheduler_processor_fence_open"] == 1
    assert worker["hascheduler_processor_heartbeat_age_seconds"] < 1.5

    # The same on the port of the API, as there is one registry a process.
    through_api = await processes.metrics(processes.replicas["one"].url)
    assert through_api.kinds == both["one"].kinds
