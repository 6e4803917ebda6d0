"""Simulations over HTTP: what the command gives, in a process that is bounded and ends with those who want it."""

import asyncio
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from hascheduler.api.http.shares import token_party
from hascheduler.api.middleware.pools import SIMULATIONS_MAX
from hascheduler.api.simulations.limits import SimulationLimits
from hascheduler.api.simulations.process import Simulations
from hascheduler.api.simulations.schemas import SimulationResponse
from hascheduler.dispatch.recording import heading_line, step_line
from hascheduler.simulate.examples import example_names, example_text
from tests.tiers import spread
from tests.unit.api.doubles import World
from tests.unit.api.requests import check_problem, get
from tests.unit.api.test_recording import HEADING, STEPS
from tests.unit.api.tokens import Guarded
from tests.unit.cli.invoking import invoke
from tests.unit.security.crowding import crowded, until
from tests.unit.simulate.scenarios import document, job

PATH = "/v1/simulations"
GOLDEN = {
    path.stem: json.loads(path.read_text("utf-8")) for path in (Path(__file__).parents[2] / "golden").glob("*.json")
}
LONG = json.dumps(document(job("x-{n}", 1, count=20_000, every=0.01), policy="balanced"))
"""Some seconds of CPU."""


@pytest.fixture
def simulations(app: FastAPI) -> Simulations:
    found = app.state.simulations = Simulations()
    return found


@pytest.fixture(autouse=True)
def _with_a_lock_of_this_loop(simulations: Simulations) -> None:
    pass


async def simulate(client: httpx.AsyncClient, text: str, *policies: str) -> dict[str, Any]:
    answer = await client.post(PATH, json={"scenario": [text], "policies": policies})
    assert answer.status_code == 200, answer.text
    SimulationResponse.model_validate(answer.json(), strict=False)
    found: dict[str, Any] = answer.json()
    return found


# The same as the command


@pytest.mark.parametrize("name", spread(example_names(), check=1))
async def test_each_policy_has_the_outcome_that_the_command_gives(client: httpx.AsyncClient, name: str) -> None:
    found = await simulate(client, example_text(name), "fair", "swimlanes")
    shown = invoke("simulate", "--example", name, "--policy", "fair", "--compare", "swimlanes", "--json").json
    assert {run["policy"]: run["outcome"] for run in found["runs"]} == shown


@pytest.mark.parametrize("name", spread(sorted(GOLDEN), check=1))
async def test_a_golden_scenario_comes_out_as_it_must(client: httpx.AsyncClient, name: str) -> None:
    golden = GOLDEN[name]
    [run] = (await simulate(client, json.dumps(golden["scenario"])))["runs"]
    assert run["outcome"] == golden["expect"]
    assert run["moved"] is None


async def test_a_long_text_comes_in_pieces(client: httpx.AsyncClient) -> None:
    text = example_text("rarity")
    whole = await client.post(PATH, json={"scenario": [text]})
    assert (await client.post(PATH, json={"scenario": [*text[:40], text[40:]]})).content == whole.content


async def test_a_recording_is_replayed_and_run_under_its_policy_first(client: httpx.AsyncClient) -> None:
    text = "\n".join(json.dumps(line) for line in (heading_line(HEADING), step_line(STEPS[0]), {"end": "over"}))  # type: ignore[arg-type]
    found = await simulate(client, text, "fair")
    assert found["replay"] == {"steps": 1, "decisions": 0, "end": None, "identical": False, "differs_at_step": 1}
    assert len(found["runs"]) == 2
    assert "as recorded of replica-1.aa" in found["note"]


async def test_examples_can_be_listed_and_read(client: httpx.AsyncClient) -> None:
    listed = await get(client, f"{PATH}/examples")
    assert [each["name"] for each in listed["items"]] == example_names()
    assert {"fair", "swimlanes"} <= set(listed["policies"])
    assert (await get(client, f"{PATH}/examples/rarity"))["scenario"] == example_text("rarity")
    check_problem(await client.get(f"{PATH}/examples/..%2Fsecrets"), 404)


# Nonsense

_ALIASES = "\n".join(
    [
        "a: &a [x, x, x, x, x, x, x, x, x]",
        *(f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
    ]
)
WRONG = {
    "nothing": ("", "scenario"),
    "no object": ("[1]", "scenario"),
    "a broken line": ("jobs:\n  - [", "scenario.line 3"),
    "no such field": ("nodes: []", "scenario.nodes"),
    "no job": ("jobs: [1]", "scenario.jobs.0"),
    "a job of nothing": (json.dumps(document(job("a", definition="y"))), "scenario.jobs.0.definition"),
    "aliases of aliases": (_ALIASES, "scenario.a"),
    "a deep one": ("[" * 10_000, "scenario.line 1"),
    "a deep object": ('{"a":' * 10_000, None),
    "too many jobs": (json.dumps(document(job("a", count=10**6))), "scenario.jobs.0.count"),
    "one job too many": (json.dumps(document(job("a", count=20_000), job("b"))), "scenario.jobs.1"),
    "a number that is none": (json.dumps(document(job("a", float("nan")))), "scenario.jobs.0.duration"),
    "endless": (json.dumps(document(job("a", float("inf")))), "scenario.jobs.0.duration"),
    "digits": ('{"until": ' + "9" * 5_000 + "}", "scenario"),
    "NUL": ("\x00", None),
    "a tag": ("!!python/object/apply:os.system [ls]", "scenario.line 1"),
    "a recording that is none": (json.dumps(heading_line(HEADING)) + "\n[]\n", None),
}


@pytest.mark.parametrize("name", spread(sorted(WRONG), check=1))
async def test_what_is_no_scenario_is_refused_with_its_place(client: httpx.AsyncClient, name: str) -> None:
    text, path = WRONG[name]
    answer = await client.post(PATH, json={"scenario": [text]})
    found = check_problem(answer, 422)
    if path is not None:
        assert found["errors"][0]["path"] == path


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"policies": ["fair"]}, "scenario"),
        ({"scenario": "jobs: []"}, "scenario"),
        ({"scenario": []}, "scenario"),
        ({"scenario": [""] * 65}, "scenario"),
        ({"scenario": ["jobs: []"], "policies": ["fair", "nonsense"]}, "policies.1"),
        ({"scenario": ["jobs: []"], "policies": ["fair"] * 5}, "policies"),
        ({"scenario": ["jobs: []"], "policies": ["a," * 200]}, "policies.0"),
        ({"scenario": ["jobs: []"], "policy": "fair"}, "policy"),
    ],
)
async def test_a_body_that_is_wrong_is_refused_with_its_place(
    client: httpx.AsyncClient, body: dict[str, Any], path: str
) -> None:
    assert check_problem(await client.post(PATH, json=body), 422)["errors"][0]["path"] == path


async def test_four_mebibytes_of_junk_are_refused_and_more_are_not_read(client: httpx.AsyncClient) -> None:
    junk = ["&" * 1_000_000] * 4
    check_problem(await client.post(PATH, json={"scenario": junk}), 422)
    check_problem(await client.post(PATH, json={"scenario": [*junk, "&" * 300_000]}), 413)


# Bounds


@pytest.mark.parametrize(
    ("limits", "words"),
    spread(
        [
            pytest.param(SimulationLimits(cpu_s_max=1), "longer than 1 s of CPU", id="cpu"),
            pytest.param(
                SimulationLimits(memory_bytes_max=64 * 1024 * 1024), "more than 64 MiB of memory", id="memory"
            ),
            pytest.param(
                SimulationLimits(answer_bytes_max=1024 * 1024, jobs_max=10**6), "larger than 1 MiB", id="answer"
            ),
        ],
        check=1,
    ),
)
async def test_one_that_is_too_large_is_told_which_bound_and_what_to_do(
    client: httpx.AsyncClient, app: FastAPI, limits: SimulationLimits, words: str
) -> None:
    app.state.simulations = Simulations(limits)
    ids = "x" * 400 if "MiB" in words else "x"
    large = json.dumps(document(job(ids + "-{n}", 1, count=4_000 if "larger" in words else 20_000, every=1)))
    found = check_problem(await client.post(PATH, json={"scenario": [large]}), 422)
    assert found["type"] == "urn:hascheduler:problem:simulation-too-large"
    assert words in found["detail"]
    assert "`hascheduler simulate`" in found["detail"]


async def test_one_that_does_not_end_in_time_is_killed(client: httpx.AsyncClient, app: FastAPI) -> None:
    app.state.simulations = Simulations(SimulationLimits(run_s_max=1))
    answer = await client.post(PATH, json={"scenario": [LONG]})
    check_problem(answer, 503)
    assert answer.headers["retry-after"]
    assert app.state.simulations.process is None


async def test_the_process_has_no_secret_and_ends_with_its_client(
    app: FastAPI, world: World, simulations: Simulations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HASCHEDULER_ADMIN_TOKEN", "the-secret")
    async with crowded(app, world) as crowd:
        greedy = await crowd.caller("viewer", "acme")
        await greedy.begin("POST", PATH, json.dumps({"scenario": [LONG]}).encode())
        await until(lambda: simulations.process is not None)
        assert simulations.process is not None
        pid = simulations.process.pid
        if sys.platform == "linux":
            assert b"the-secret" not in environment_of(pid)
            # Of all in this container it is the first to go where memory runs out.
            await until(lambda: Path(f"/proc/{pid}/oom_score_adj").read_text("ascii").strip() == "1000")
        assert world.pools.in_flight.in_use == 0, "who simulates is not in flight"
        await crowd.others_get_in()
        await greedy.leave()
        await until(lambda: simulations.process is None and world.pools.simulations.in_use == 0)
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_a_replica_that_stops_ends_it(client: httpx.AsyncClient, world: World, simulations: Simulations) -> None:
    asking = asyncio.create_task(client.post(PATH, json={"scenario": [LONG]}))
    await until(lambda: simulations.process is not None)
    world.view.stopping = True
    check_problem(await asking, 503)
    assert simulations.process is None


async def test_one_token_has_two_places_of_three_and_another_gets_the_last(
    app: FastAPI, world: World, simulations: Simulations
) -> None:
    body = json.dumps({"scenario": [LONG]}).encode()
    async with crowded(app, world) as crowd:
        greedy = await crowd.caller("viewer", "acme")
        for held in (1, 2):
            await greedy.begin("POST", PATH, body)
            await until(lambda: world.pools.simulations.in_use == held)  # noqa: B023  # called before the next
        assert (await greedy.ask("POST", PATH, {"scenario": [""]}))[0] == 429
        other = await crowd.caller("viewer", "umbrella", "127.0.0.2")
        await other.begin("POST", PATH, body)
        await until(lambda: world.pools.simulations.in_use == SIMULATIONS_MAX)
        assert world.pools.simulations.held(token_party(other.id)) == 1
        third = await crowd.caller("viewer", "*", "127.0.0.3")
        assert (await third.ask("POST", PATH, {"scenario": [""]}))[0] == 503
    await until(lambda: world.pools.simulations.in_use == 0 and simulations.process is None)


async def test_the_loop_goes_on_while_it_runs(client: httpx.AsyncClient, simulations: Simulations) -> None:
    asking = asyncio.create_task(client.post(PATH, json={"scenario": [LONG]}))
    await until(lambda: simulations.process is not None)
    assert (await client.get("/v1/cluster")).status_code == 200
    assert not asking.done()
    asking.cancel()
    await asyncio.wait([asking])
    await until(lambda: simulations.process is None)


def environment_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


# Who may


async def test_a_viewer_may_also_by_a_page_that_changes_nothing(guarded: Guarded) -> None:
    body = {"scenario": [example_text("rarity")]}
    async with await guarded.page("viewer", "acme") as page:
        assert (await page.post(PATH, json=body)).status_code == 200
        page.headers["Origin"] = "http://evil.example"
        check_problem(await page.post(PATH, json=body), 403)
    async with await guarded.client("worker") as worker:
        check_problem(await worker.post(PATH, json=body), 403)
    assert not [record for record in guarded.world.everything() if re.search("simulations", str(record))]
