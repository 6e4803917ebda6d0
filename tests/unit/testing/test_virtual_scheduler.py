"""`hascheduler.testing` as a user sees it: time that leaps, real handlers, failures on demand, the pytest plugin."""

import asyncio
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Awaitable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import Queue

import pytest

from hascheduler.client import Refused
from hascheduler.errors import InvalidInput
from hascheduler.model.job import JobState
from hascheduler.processor import Handlers, JobContext
from hascheduler.testing import StillWaiting, VirtualScheduler


@pytest.fixture
def scheduler() -> Iterator[VirtualScheduler]:
    with VirtualScheduler() as scheduler:
        yield scheduler


def add_minutely(scheduler: VirtualScheduler, **rest: object) -> None:
    trigger = {"type": "interval", "every": "1m", "anchor": "2030-01-01T00:00:00Z"}
    scheduler.add_schedule("minutely", trigger=trigger, **rest)


def test_a_job_is_submitted_now_and_runs_when_time_passes(scheduler: VirtualScheduler) -> None:
    scheduler.handle("double", lambda job: 2 * job.payload)
    job = scheduler.submit("double", 21)
    assert (job.state, scheduler.calls()) == (JobState.PENDING, [])
    [ended] = scheduler.drain()
    assert (ended.id, ended.state, scheduler.job(job.id).result) == (job.id, JobState.SUCCEEDED, 42)


def test_the_registry_of_a_program_is_taken_as_it_is() -> None:
    handlers = Handlers()
    handlers.handler("one")(lambda job: 1)
    handlers.handler("*")(lambda job: job.definition)
    with VirtualScheduler(handlers) as scheduler:
        assert scheduler.wait(scheduler.submit("one")).result == 1
        assert scheduler.wait(scheduler.submit("any")).result == "any"
        scheduler.handle("one", lambda job: "another, which stands in for it")
        assert scheduler.wait(scheduler.submit("one")).result == "another, which stands in for it"


def test_time_passes_to_the_second_and_stands_still_between_calls(scheduler: VirtualScheduler) -> None:
    before = scheduler.now
    assert before == datetime(2030, 1, 1, tzinfo=UTC)
    for _ in range(24):
        scheduler.advance("1h")
    assert timedelta(0) <= scheduler.now - before - timedelta(days=1) < timedelta(seconds=6)
    stands_at = scheduler.now
    scheduler.submit("nothing")
    assert scheduler.now == stands_at


def test_the_instant_that_an_advance_ends_at_belongs_to_it(scheduler: VirtualScheduler) -> None:
    scheduler.handle("tick", lambda job: None)
    add_minutely(scheduler, job={"definition": "tick"})
    scheduler.advance("1h")
    assert len(scheduler.calls("tick")) == 60
    scheduler.advance("1h")
    assert len(scheduler.calls("tick")) == 120


def test_a_coroutine_sleeps_in_virtual_time(scheduler: VirtualScheduler) -> None:
    scheduler.put_definition("nap", timeout="1d")

    @scheduler.handler("nap")
    async def nap(job: JobContext) -> float:
        began = asyncio.get_running_loop().time()
        await asyncio.sleep(8 * 3_600)
        return asyncio.get_running_loop().time() - began

    job = scheduler.wait(scheduler.submit("nap"))
    assert job.result == pytest.approx(8 * 3_600, abs=1)
    assert job.attempt == 1


def test_the_clock_stands_still_while_a_plain_function_works(scheduler: VirtualScheduler) -> None:
    worked = threading.Event()

    @scheduler.handler("work")
    def work(job: JobContext) -> None:
        threading.Timer(0.2, worked.set).start()
        assert worked.wait(30)

    scheduler.put_definition("work", timeout="100ms", retry={"attempts": 1})
    assert scheduler.wait(scheduler.submit("work")).state is JobState.SUCCEEDED


def test_a_handler_that_speaks_to_a_real_socket_gets_its_answer(scheduler: VirtualScheduler) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with server.accept()[0] as line:
                line.sendall(line.recv(64))

        @scheduler.handler("ask")
        async def ask(job: JobContext) -> str:
            async with asyncio.timeout(3_600):
                reader, writer = await asyncio.open_connection("127.0.0.1", server.getsockname()[1])
                writer.write(b"hello\n")
                line = await reader.readline()
                writer.close()
            return line.decode().strip()

        server.settimeout(30)
        thread = threading.Thread(target=answer)
        thread.start()
        assert scheduler.wait(scheduler.submit("ask")).result == "hello"
        thread.join(30)


def test_a_failure_is_retried_by_the_rule_of_the_definition(scheduler: VirtualScheduler) -> None:
    scheduler.handle("charge", lambda job: "done")
    scheduler.put_definition("charge", retry={"attempts": 3, "backoff": "1m", "factor": 2})
    scheduler.fail_next("charge", ValueError("no"), times=2)
    job = scheduler.wait(scheduler.submit("charge"))
    assert (job.state, job.result) == (JobState.SUCCEEDED, "done")
    assert [attempt.error for attempt in job.attempts] == ["ValueError: no", "ValueError: no", None]
    assert scheduler.now - job.submitted_at > timedelta(minutes=1)


@pytest.mark.parametrize(("when", "calls"), [("before", 1), ("after", 2)])
def test_a_job_whose_processor_dies_runs_again(scheduler: VirtualScheduler, when: str, calls: int) -> None:
    scheduler.handle("charge", lambda job: job.attempt)
    scheduler.crash_next("charge", when)  # type: ignore[arg-type]  # one of the two
    job = scheduler.wait(scheduler.submit("charge"))
    assert (job.state, [attempt.outcome for attempt in job.attempts]) == (JobState.SUCCEEDED, ["lost", "succeeded"])
    assert len(scheduler.calls("charge")) == calls
    assert len({call.job.idempotency_key for call in scheduler.calls("charge")}) == 1
    assert (job.failures, job.losses) == (0, 1)


def test_a_lost_answer_neither_fails_nor_doubles_an_attempt(scheduler: VirtualScheduler) -> None:
    scheduler.handle("charge", lambda job: None)
    for of in ("start", "finish"):
        scheduler.lose_answers(of)
        job = scheduler.wait(scheduler.submit("charge"))
        assert (job.state, job.attempt) == (JobState.SUCCEEDED, 1)
    assert len(scheduler.calls("charge")) == 2


def test_who_waits_too_long_learns_what_for(scheduler: VirtualScheduler) -> None:
    job = scheduler.submit("nobody-runs-this")
    with pytest.raises(StillWaiting, match=r"(?s)within 1:00:00: 1.*nobody-runs-this.*processor") as caught:
        scheduler.drain(within="1h")
    assert [one.id for one in caught.value.jobs] == [job.id]
    assert "processor" in scheduler.why(job)


def test_what_the_api_refuses_is_refused_here_with_the_place(scheduler: VirtualScheduler) -> None:
    with pytest.raises(Refused, match=r"trigger\.expression"):
        scheduler.add_schedule("x", trigger={"type": "cron", "expression": "nonsense"}, job={"definition": "a"})
    with pytest.raises(Refused, match="no job"):
        scheduler.wait("job:unknown")
    assert scheduler.request("GET", "/v1/definitions")["items"] == []


@pytest.mark.parametrize(
    "nonsense",
    [
        lambda scheduler: scheduler.advance("soon"),
        lambda scheduler: scheduler.advance(timedelta(seconds=-1)),
        lambda scheduler: scheduler.advance_to("2029-12-31T00:00:00Z"),
        lambda scheduler: scheduler.advance_to(datetime(2031, 1, 1)),  # noqa: DTZ001  # on purpose
        lambda scheduler: scheduler.crash_next("work", "during"),
        lambda scheduler: scheduler.fail_next("work", times=0),
        lambda scheduler: scheduler.lose_answers("register"),
        lambda _: VirtualScheduler(slots=0),
        lambda _: VirtualScheduler(start="yesterday"),
    ],
)
def test_nonsense_is_an_invalid_input(scheduler: VirtualScheduler, nonsense: object) -> None:
    assert callable(nonsense)
    with pytest.raises(InvalidInput):
        nonsense(scheduler)


async def test_inside_a_running_loop_it_says_so(scheduler: VirtualScheduler) -> None:
    with pytest.raises(RuntimeError, match="plain test"):
        scheduler.advance("1s")


def test_a_closed_one_says_so() -> None:
    scheduler = VirtualScheduler()
    scheduler.close()
    scheduler.close()
    with pytest.raises(RuntimeError, match="closed"):
        scheduler.submit("work")


def test_the_same_test_gives_the_same_history() -> None:
    def history() -> list[tuple[object, ...]]:
        with VirtualScheduler(slots=2) as scheduler:
            scheduler.handle("work", lambda job: None)
            scheduler.take("work", "7s")
            for n in range(20):
                scheduler.submit("work", n, priority=n % 3)
            scheduler.crash_next("work")
            scheduler.drain()
            return [(call.at, call.payload, call.job.attempt) for call in scheduler.calls()]

    assert history() == history()


def test_what_plain_functions_return_is_taken_in_the_order_in_which_they_began(scheduler: VirtualScheduler) -> None:
    second: Queue[threading.Thread] = Queue()
    taken: list[object] = []

    def work(job: JobContext) -> Awaitable[None]:
        if job.payload == "first":
            second.get(timeout=30).join()
        else:
            second.put(threading.current_thread())

        async def take() -> None:
            taken.append(job.payload)

        return take()

    scheduler.handle("work", work)
    for payload in ("first", "second"):
        scheduler.submit("work", payload, not_before="2030-01-01T00:00:10Z")
    scheduler.drain()
    assert [call.payload for call in scheduler.calls()] == taken == ["first", "second"]


ROOT = next(parent for parent in Path(__file__).parents if (parent / "pyproject.toml").exists())


_PLUGINS_OF_OURS = ("anyio", "asyncio", "hypothesispytest", "schemathesis", "timeout", "xdist")
"""What this environment has beside the package: a project without them imports none of it."""


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A pytest of a project that has nothing but this package."""
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n", encoding="utf-8")
    without = [word for name in _PLUGINS_OF_OURS for word in ("-p", f"no:{name}")]
    command = [sys.executable, "-m", "pytest", "-q", *without, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, check=False)


@pytest.mark.slow
def test_the_documented_tests_pass_as_they_stand(tmp_path: Path) -> None:
    page = (ROOT / "docs/how-to/testing.md").read_text(encoding="utf-8")
    [code] = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "test_documented.py").write_text(code, encoding="utf-8")
    done = run_pytest(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout
