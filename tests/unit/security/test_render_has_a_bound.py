"""A few kilobytes with placeholders do not become megabytes in each job: the limit holds for filled payloads too."""

import json
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hascheduler.model.collection import Collection
from hascheduler.model.documents import fired_job
from hascheduler.model.documents.fired_job import JobMaker, rendered_payload_bytes_max
from hascheduler.model.job import JOB_ID_TAIL_MAX, backfill_job_id, fire_job_id, trigger_job_id
from hascheduler.model.payload import PAYLOAD_BYTES_MAX, rendered_size
from hascheduler.model.values.instants import LATEST_MS, WallMs, format_instant
from tests.factories import make_schedule, make_template
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import TICK, check_problem, create, post

PATH = "/v1/schedules/tick"
LONG = "t" * 256
MANY = PAYLOAD_BYTES_MAX // 256 + 1
"""As many targets of that length as are one too many."""


def filling(payload: Any, target: str = LONG, **more: Any) -> dict[str, Any]:
    return {**TICK, "job": {"definition": "log", "target": target, "payload": payload, "render": True}, **more}


async def too_large(answer: httpx.Response, *path: str) -> None:
    problem = check_problem(answer, 422)
    assert [(error["path"], error["expected"]) for error in problem["errors"]] == [
        (".".join(path), f"at most {PAYLOAD_BYTES_MAX}")
    ]


async def test_no_schedule_is_created_that_grows_too_large(client: httpx.AsyncClient, world: World) -> None:
    before = world.everything()
    await too_large(await client.post("/v1/schedules", json=filling("${target}" * MANY)), "job", "payload")
    await too_large(await client.post("/v1/schedules", json=filling(["${job_id}"] * 10_000)), "job", "payload")
    assert world.everything() == before


async def test_a_schedule_whose_payload_is_too_large_as_it_is_is_refused(client: httpx.AsyncClient) -> None:
    body = {**TICK, "job": {"definition": "log", "payload": "x" * (PAYLOAD_BYTES_MAX - 1)}}
    await too_large(await client.post("/v1/schedules", json=body), "job", "payload")
    body["job"]["payload"] = "x" * (PAYLOAD_BYTES_MAX - 2)
    assert (await client.post("/v1/schedules", json=body)).status_code == 201


async def test_none_is_replaced_by_one_that_does(client: httpx.AsyncClient) -> None:
    await create(client)
    await too_large(await client.put(PATH, json=filling("${target}" * MANY)), "job", "payload")


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param({"job": {"payload": "${target}" * 2_700}}, id="the payload"),
        pytest.param({"job": {"target": "\N{PILE OF POO}" * 256}}, id="the target"),
        pytest.param({"labels": {"team": "\N{PILE OF POO}" * 256}}, id="a label"),
    ],
)
async def test_an_edit_of_the_values_that_fill_a_payload_is_checked(
    client: httpx.AsyncClient, patch: dict[str, Any]
) -> None:
    whole = filling("${target}${label.team}" * 1_000, target="x" * 100, labels={"team": "x"})
    assert (await client.post("/v1/schedules", json=whole)).status_code == 201
    await too_large(await client.patch(PATH, json=patch), "job", "payload")


async def test_a_trigger_with_its_own_payload_is_checked(client: httpx.AsyncClient, world: World) -> None:
    assert (await client.post("/v1/schedules", json=filling("small"))).status_code == 201
    before = world.everything()
    await too_large(await client.post(f"{PATH}/trigger", json={"payload": "${target}" * MANY}), "payload")
    assert world.everything() == before


async def test_what_0_2_0_took_is_neither_triggered_nor_backfilled_nor_filled(
    client: httpx.AsyncClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await create(client, trigger={"type": "interval", "every": "1h"})
    # 0.5 MB that become some 3 MB in each job.
    world.rewrite(Collection.SCHEDULES, "tick", render=True, payload="${job_id}" * 58_000)
    filled: list[Any] = []
    monkeypatch.setattr(fired_job, "render", lambda payload, _: filled.append(payload))
    check_problem(await client.post(f"{PATH}/trigger"), 409)
    span = {"from": format_instant(NOW - 3 * 3_600_000), "to": format_instant(NOW)}
    check_problem(await client.post(f"{PATH}/backfill", json=span), 409)
    assert filled == []
    monkeypatch.undo()
    assert (await post(client, f"{PATH}/trigger", {"payload": "small"}, 201))["payload"] == "small"


TEXTS = st.text(max_size=30)
PIECES = st.sampled_from(
    [
        "${target}", "${job_id}", "${nominal_at}", "${nominal_ms}", "${label.a}", "${x}", "$$", "$", "{", "}", '"',
        "é", "\\",
    ]
)  # fmt: skip
FILLED = st.lists(PIECES | TEXTS, max_size=8).map("".join)
PAYLOADS = st.recursive(
    FILLED | st.integers(-9, 9) | st.none(),
    lambda deeper: st.lists(deeper, max_size=4) | st.dictionaries(FILLED, deeper, max_size=4),
    max_leaves=12,
)


@given(PAYLOADS, st.text(min_size=1, max_size=20), TEXTS, st.integers(0, LATEST_MS - 1))
def test_no_job_is_larger_than_what_was_counted(payload: Any, target: str, label: str, nominal_ms: int) -> None:
    schedule = make_schedule(
        "tick", template=make_template(target=target), payload=payload, labels={"a": label}, render=True
    )
    counted = rendered_payload_bytes_max("tick", schedule)
    for id in (
        fire_job_id("tick", nominal_ms),
        backfill_job_id("tick", nominal_ms),
        trigger_job_id("tick", "0194f3a1b2c3000001deadbeef01"),
    ):
        assert len(id) <= len("backfill:tick:") + JOB_ID_TAIL_MAX
        [job] = JobMaker("tick", schedule).jobs(id, WallMs(nominal_ms), serial=False)
        text = json.dumps(job.payload, ensure_ascii=False, separators=(",", ":"))
        assert len(text.encode()) <= counted


def test_what_is_escaped_or_unknown_does_not_grow() -> None:
    values = {"target": LONG}
    for text in ("$${target}", "${targets}", "$target", "${target", "${ target}"):
        assert rendered_size(text, values).bytes == len(text) + 2
    assert rendered_size("${target}", values).bytes == 258
