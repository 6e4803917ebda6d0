"""``hascheduler simulate``: sources, refusals in one line, figures, JSON, pictures."""

import json
import re
import sys
from pathlib import Path
from unittest.mock import patch

import pytest

from hascheduler.simulate.examples import example_names
from tests.tiers import spread
from tests.unit.cli.invoking import invoke
from tests.unit.cli.terminal import Terminal
from tests.unit.cli.test_completion import completed
from tests.unit.simulate.scenarios import document, job, processor


def scenario(path: Path, *jobs: dict[str, object], **rest: object) -> str:
    file = path / "scenario.json"
    file.write_text(json.dumps(document(*jobs, **rest)), "utf-8")
    return str(file)


def test_json_is_exactly_what_happened(tmp_path: Path) -> None:
    file = scenario(tmp_path, job("a", 2.5, fairness_key="k"), job("b", 1), job("c", 1, submit_at=9), until=3)
    ended = invoke("simulate", file, "--json")
    assert (ended.status, ended.err) == (0, "")
    assert ended.json == {
        "dispatched": [[0.0, "a", "p"], [2.5, "b", "p"]],
        "completed": [[2.5, "a"]],
        "accumulated_cost": {"k": 1.0, "": 1.0},
        "pending": [],
    }


def test_a_scenario_is_read_from_standard_input() -> None:
    yaml = "{definitions: {x: {}}, processors: [{id: p}], jobs: [{id: j, definition: x, duration: 1}]}"
    ended = invoke("simulate", "-", "--json", input=yaml)
    assert ended.json["completed"] == [[1.0, "j"]]


def test_the_summary_has_the_figures(tmp_path: Path) -> None:
    there = [processor("p", leave_at=5), processor("q", types=["y"], join_at=5)]
    jobs = (job("a", 4, fairness_key="k"), job("b", 4, lane="fast"), job("c", 1, definition="y"))
    file = scenario(tmp_path, *jobs, processors=there, definitions={"x": {"tier": 3}, "y": {}}, note="a short day")
    ended = invoke("simulate", file)
    assert ended.status == 0
    assert ended.out.startswith("a short day\n")
    for row in ("completed +2", "still waiting +1", "attempts lost +1", "mean, lane fast", "used of p +100%"):
        assert re.search(f"^ {row}", ended.out, re.MULTILINE), row
    assert "no processor that was there at the end could run: b" in ended.out
    assert "\x1b" not in ended.out


def test_what_no_processor_could_run_is_counted(tmp_path: Path) -> None:
    file = scenario(tmp_path, job("a", resources={"cpu": 9}), job("b"))
    alone = invoke("simulate", file)
    assert alone.status == 0
    assert "no processor that was there at the end could run: a" in alone.out
    beside = invoke("simulate", file, "--compare", "fair")
    assert re.search(r"^ *unschedulable +1 +1", beside.out, re.MULTILINE)
    assert invoke("simulate", file, "--json").json["unschedulable"] == ["a"]


def test_many_keys_are_not_all_shown(tmp_path: Path) -> None:
    file = scenario(tmp_path, job("g", count=50, fairness_key=[f"k{n}" for n in range(50)]))
    ended = invoke("simulate", file)
    assert "30 more, which waited less" in ended.out
    assert "k49" in ended.out
    assert "k10 " not in ended.out


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "FILE: missing; expected a scenario file, - or --example NAME"),
        (["x.yaml", "--example", "rarity"], "FILE: given, and --example too"),
        (["nowhere.yaml"], "FILE: nowhere.yaml: No such file or directory"),
        (["."], "FILE: .: Is a directory"),
        (["--example", "rare"], "--example: 'rare' is unknown; expected one of conflict-exclusion, "),
        (["--example", "rarity", "--policy", "best"], "--policy: 'best' is unknown; expected a preset"),
        (["--example", "rarity", "--compare", "fair,best"], "--compare: 'fair' is unknown"),
        (["--example", "rarity", "--plot", "out.pdf"], "--plot: 'out.pdf' is no kind of picture"),
        (["--example", "rarity", "--plot", "/nowhere/out.png"], "--plot: /nowhere/out.png: No such file or directory"),
    ],
)
def test_an_impossible_request_is_one_line(arguments: list[str], line: str) -> None:
    ended = invoke("simulate", *arguments)
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith(f"hascheduler: {line}")
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"jobs": [{"id": "a", "definition": "y", "duration": 1}]}', "jobs.0.definition: 'y' is not defined"),
        ('{"polizy": "fair"}', "polizy: no such field; expected policy"),
        ("until: -1", "until: '-1' is not between 0 and 100 years"),
        ("processors:\n- {id: p, resources: {cpu: -1}}", "processors.0.resources.cpu: -1 is too small"),
        ("jobs:\n  - {id: [}\n", "line 2: "),
        ("7", "7 is not an object"),
    ],
)
def test_an_error_in_a_file_names_its_place(text: str, line: str, tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(text, "utf-8")
    for given, source in ((str(file), str(file)), ("-", "standard input")):
        ended = invoke("simulate", given, input=text)
        assert (ended.status, ended.out) == (2, "")
        between = ": " if line.startswith("7") else ", "
        assert ended.err.startswith(f"hascheduler: {source}{between}{line}")
        assert ended.err.count("\n") == 1


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "noise").write_bytes(b"\xff\xfe\x00")
    assert "is not UTF-8" in invoke("simulate", str(tmp_path / "noise")).err


def test_another_policy_instead_of_the_files(tmp_path: Path) -> None:
    file = scenario(tmp_path, job("a", 1, priority=1), job("b", 1, priority=9), policy="affinity")
    order = {"affinity": ["b", "a"], "fair": ["a", "b"], "score": ["b", "a"]}
    for policy, expected in order.items():
        found = invoke("simulate", file, "--policy", policy, "--json").json["dispatched"]
        assert isinstance(found, list)
        assert [row[1] for row in found] == expected


def test_policies_are_compared_side_by_side(tmp_path: Path) -> None:
    file = scenario(tmp_path, job("a", 1, priority=1), job("b", 1, priority=9), policy="affinity")
    ended = invoke("simulate", file, "--compare", "fair,swimlanes", "--compare", "lane,score", "--compare", "fair")
    assert ended.status == 0
    assert re.search(r"affinity +fair +swimlanes +lane,score", ended.out)
    assert re.search(r"completed +2 +2 +2 +2", ended.out)
    assert set(invoke("simulate", file, "--compare", "fair", "--json").json) == {"affinity", "fair"}


@pytest.mark.parametrize(("name", "begins"), spread([("out.SVG", b"<?xml"), ("out.png", b"\x89PNG")], check=1))
def test_a_picture_is_written(name: str, begins: bytes, tmp_path: Path) -> None:
    out = tmp_path / name
    ended = invoke("simulate", "--example", "rarity", "--plot", str(out), "--compare", "fair")
    assert (ended.status, ended.err) == (0, "")
    assert out.read_bytes().startswith(begins)


def test_without_matplotlib_a_picture_is_refused_in_one_line(tmp_path: Path) -> None:
    ours = [name for name in sys.modules if name.startswith("hascheduler.simulate.plot")]
    gone = dict.fromkeys(name for name in sys.modules if name.partition(".")[0] == "matplotlib")
    with patch.dict(sys.modules, {**gone, "matplotlib": None}):
        for name in ours:
            del sys.modules[name]
        ended = invoke("simulate", "--example", "rarity", "--plot", str(tmp_path / "out.png"))
    assert ended.status == 2
    assert ended.err == "hascheduler: --plot: matplotlib is not installed; expected pip install 'hascheduler[plot]'\n"
    assert not list(tmp_path.iterdir())


def test_the_examples_are_listed() -> None:
    ended = invoke("simulate", "--list-examples")
    assert ended.status == 0
    for name in example_names():
        assert name in ended.out


def test_examples_and_policies_are_completed() -> None:
    assert completed("hascheduler simulate --example on-d") == ["on-demand-crossing"]
    assert completed("hascheduler simulate --policy a") == ["affinity"]


async def test_a_long_run_shows_how_far_it_is_on_a_terminal(tmp_path: Path) -> None:
    file = scenario(tmp_path, job("g", count=30_000, every=0.5, duration=[1, 2]), processors=[processor(slots=3)])
    terminal = Terminal("simulate", file, "--json")
    await terminal.until("/30000")
    assert await terminal.interrupted() == 130
