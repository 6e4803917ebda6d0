"""The sums of the ledger, what is taken off as rest, its tables and its picture."""

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hascheduler.errors import InvalidInput
from tests.bench.cost import Measured, Rate, figures_by_load, read_loads
from tests.bench.ledger.accounts import NOT_SAMPLED, Span, Spent, as_json, net_of, net_of_all, shared_out, together
from tests.bench.ledger.counters import look_at
from tests.bench.ledger.ledger import Ledger
from tests.bench.ledger.parts import Share
from tests.bench.report import save_ledger

DECIDE, LOOP = Share("decide", "decide"), Share("event loop", "event loop")
FOR_JOURNAL, FOR_APPLY = Share("driver sockets", "journal"), Share("driver sockets", "apply")


def spent(parts_s: Mapping[Share, float], **more: Any) -> Spent:
    return Spent(1, sum(parts_s.values()), parts_s, 10, 5, **more)


def span(label: str, jobs: int, kinds: Mapping[str, Spent], seconds: float = 10) -> Span:
    return Span(label, seconds, jobs, kinds, {"insert": 3 * jobs, "command": 20}, {"insert": 2 * jobs}, 1_000, 2_000)


REST = span("at rest", 0, {"leader": spent({LOOP: 0.2, DECIDE: 0.1})})
LEADER = spent({LOOP: 0.1, DECIDE: 1.0, FOR_JOURNAL: 0.5, FOR_APPLY: 0.4}, turns=500, samples=200, sampling_s=0.1)
BUSY = span("50 jobs/s", 100, {"leader": LEADER, "load": spent({LOOP: 3.0})})


def test_shares_sum_to_the_cpu_that_the_kernel_counted() -> None:
    shared = shared_out(2.0, {DECIDE: 30, LOOP: 10})
    assert shared == {DECIDE: 1.5, LOOP: 0.5}
    assert shared_out(2.0, {}) == {Share(NOT_SAMPLED, NOT_SAMPLED): 2.0}


def test_the_rest_is_taken_off_part_by_part_and_never_more_than_there_is() -> None:
    net = net_of(LEADER, REST.kinds["leader"], scale=1.0)
    assert net.parts_s == pytest.approx({"event loop": 0.0, "decide": 0.9, "driver sockets": 0.9})
    assert net.rest_s == pytest.approx(0.1 + 0.1)


@pytest.mark.parametrize("scale", [0.0, 0.5, 1.0, 30.0])
def test_what_is_left_and_the_rest_sum_to_the_whole(scale: float) -> None:
    net = net_of(LEADER, REST.kinds["leader"], scale)
    assert sum(net.parts_s.values()) + net.rest_s == pytest.approx(LEADER.cpu_s)


def test_a_longer_span_has_more_rest() -> None:
    longer = span("50 jobs/s", 100, {"leader": spent({DECIDE: 4.0})}, seconds=20)
    assert net_of_all(longer, REST)["leader"].rest_s == pytest.approx(0.2)


def test_what_had_no_rest_has_none_taken_off() -> None:
    assert net_of_all(BUSY, REST)["load"].rest_s == 0


def test_processes_of_a_kind_are_summed() -> None:
    both = together([LEADER, LEADER])
    assert (both.processes, both.cpu_s, both.turns, both.voluntary) == (2, 4.0, 1_000, 20)
    assert both.parts_s[DECIDE] == 2.0


def test_figures_are_per_job_and_leave_out_the_load() -> None:
    found = figures_by_load([Measured(None, REST), Measured(Rate(50), BUSY, 2, 7)])
    assert list(found) == ["at rest", "50 jobs/s"]
    figures = found["50 jobs/s"]
    assert figures["cpu_ms_per_job"] == 20
    assert figures["load_cpu_ms_per_job"] == 30
    assert figures["at_rest_cpu_ms_per_job"] == 2
    assert figures["mongodb_ops_per_job"] == 3.2
    assert figures["turns_per_job"] == 5
    assert (figures["failed"], figures["load_late_max_ms"]) == (2, 7)
    assert "cpu_ms_per_job" not in found["at rest"]


def test_growth_is_of_single_submits() -> None:
    half = span("200 jobs/s", 200, BUSY.kinds)
    batches = span("1,000 jobs/s in batches of 500", 1_000, {"leader": LEADER})
    found = figures_by_load(
        [Measured(None, REST), Measured(Rate(50), BUSY), Measured(Rate(200), half), Measured(Rate(1_000, 500), batches)]
    )
    assert found["growth"]["cpu_ms_per_job"] == 0.5


def test_a_load_in_which_no_job_ran_has_no_figures_per_job() -> None:
    none = span("50 jobs/s", 0, {"leader": LEADER})
    figures = figures_by_load([Measured(None, REST), Measured(Rate(50), none)])["50 jobs/s"]
    assert figures["leader_cpu_percent"] == 20
    assert not [name for name in figures if name.endswith("_per_job")]
    assert "What a job costs" not in shown(Ledger(REST, (none,)))


def test_machines_get_all_parts_and_for_whom_libraries_work() -> None:
    leader = as_json(BUSY, REST)["kinds"]["leader"]
    parts = {part: each["per_job"] for part, each in leader["parts_cpu_ms"].items()}
    assert parts == {"event loop": 0, "decide": 9, "driver sockets": 9}
    assert sum(parts.values()) + leader["at_rest_cpu_ms"]["per_job"] == leader["cpu_ms"]["per_job"] == 20
    assert leader["rooms_cpu_ms"]["driver sockets"]["journal"] == {"per_job": 5, "per_second": 50}
    assert leader["sampling_percent"] == 5


def shown(ledger: Ledger) -> str:
    console = Console(file=io.StringIO(), width=200)
    for table in ledger.tables():
        console.print(table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_tables_show_the_whole_and_its_parts() -> None:
    text = shown(Ledger(REST, (BUSY,)))
    assert "What a job costs at 50 jobs/s: 20.00 ms of CPU" in text
    rows = {cells[1].strip(): cells for line in text.splitlines() if len(cells := line.split("│")) == 6}
    assert [cell.strip() for cell in rows["decide"][2:5]] == ["9.000", "9.000", "45.0"]
    assert [cell.strip() for cell in rows["at rest"][2:5]] == ["2.000", "2.000", "10.0"]
    assert [cell.strip() for cell in rows["all"][2:5]] == ["20.000", "20.000", "100.0"]


def test_several_runs_are_one_ledger() -> None:
    ledger = Ledger.of([[REST, BUSY], [REST, BUSY]])
    assert ledger.loads[0].jobs == 200
    assert ledger.as_json()["50 jobs/s"]["kinds"]["leader"]["cpu_ms"]["per_job"] == 20
    assert ledger.loads[0].kinds["leader"].processes == 1


def test_the_picture_is_drawn_from_what_machines_get(tmp_path: Path) -> None:
    ledger = Ledger(REST, (BUSY, span("200 jobs/s", 0, {"leader": LEADER})))
    ledger.write(tmp_path / "ledger.json")
    save_ledger(ledger.as_json(), tmp_path / "cost.png")
    assert (tmp_path / "cost.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InvalidInput, match=r"cost\.docx"):
        save_ledger(ledger.as_json(), tmp_path / "cost.docx")


@pytest.mark.parametrize(
    ("text", "loads"),
    [("50", [Rate(50)]), ("50, 200", [Rate(50), Rate(200)]), ("1000/500", [Rate(1_000, 500)])],
)
def test_loads_are_rates_and_perhaps_batches(text: str, loads: list[Rate]) -> None:
    assert read_loads(text) == loads


@pytest.mark.parametrize("text", ["", "0", "x", "50,", "-1", "1.5", "1/0", "1/2/3", "1000/", "²"])
def test_other_loads_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="--loads"):
        read_loads(text)


def test_the_kernel_is_asked_for_each_thread() -> None:
    if not Path("/proc/self/task").exists():
        pytest.skip("this system has no /proc")
    seen = look_at(os.getpid())
    assert sum(seen.threads_s.values()) > 0
    assert seen.voluntary + seen.involuntary > 0


def test_threads_are_told_apart_by_name_without_their_numbers(tmp_path: Path) -> None:
    for number, name in enumerate(("conn7", "conn12", "WTCheck.tThread", "12")):
        task = tmp_path / str(os.getpid()) / "task" / str(number)
        task.mkdir(parents=True)
        (task / "comm").write_text(f"{name}\n")
        (task / "schedstat").write_text("2000000000 5 3\n")
        (task / "status").write_text("voluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t4\n")
    (tmp_path / str(os.getpid()) / "task" / "9").mkdir()  # it has just ended
    seen = look_at(os.getpid(), proc=tmp_path)
    assert seen.threads_s == {"conn": 4.0, "WTCheck.tThread": 2.0, "12": 2.0}
    assert (seen.voluntary, seen.involuntary) == (12, 16)
