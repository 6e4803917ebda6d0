"""``/v1/calendars``, and schedules that use them."""

from typing import Any

import httpx
import pytest

from hascheduler.model.collection import Collection
from hascheduler.schema.calendar import CalendarBody
from tests.unit.api.doubles import World
from tests.unit.api.requests import check_problem, complete, create, get

ON = {"type": "cron", "expression": "0 9 * * *", "timezone": "Europe/Berlin"}
USE = {"only": ["business-days"], "except": ["holidays-de"]}


async def put(client: httpx.AsyncClient, name: str, **body: Any) -> dict[str, Any]:
    answer = await client.put(f"/v1/calendars/{name}", json=body)
    assert answer.status_code in (200, 201), answer.text
    shown: dict[str, Any] = answer.json()
    return shown


@pytest.fixture
async def calendars(client: httpx.AsyncClient) -> None:
    await put(client, "business-days", weekdays=["mon-fri"])
    await put(client, "holidays-de", include=["01-01", "--12-25", "2026-01-05/2026-01-06"])


@pytest.mark.usefixtures("calendars")
async def test_a_calendar_is_shown_in_one_form(client: httpx.AsyncClient) -> None:
    assert await get(client, "/v1/calendars/holidays-de") == complete(
        CalendarBody,
        {
            "name": "holidays-de", "rev": 1, "weekdays": [], "exclude": [], "owner": None,
            "include": ["2026-01-05/2026-01-06", "--01-01", "--12-25"],
        },
    )  # fmt: skip
    assert (await get(client, "/v1/calendars/business-days"))["weekdays"] == ["mon", "tue", "wed", "thu", "fri"]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"weekdays": ["monday"]}, "weekdays"), ({"weekdays": "mon"}, "weekdays"), ({"weekdays": ["mon-"]}, "weekdays"),
        ({"weekdays": ["mon"] * 15}, "weekdays"), ({"include": ["2030-02-30"]}, "include"),
        ({"exclude": ["2030-01-01"] * 1_001}, "exclude"), ({"exclude": [7]}, "exclude"), ({"days": []}, "days"),
    ],
)  # fmt: skip
async def test_what_is_no_calendar_is_refused(client: httpx.AsyncClient, body: dict[str, Any], path: str) -> None:
    problem = check_problem(await client.put("/v1/calendars/a", json=body), 422)
    assert [error["path"] for error in problem["errors"]] == [path]


@pytest.mark.usefixtures("calendars")
async def test_a_schedule_on_calendars_shows_them_and_when_it_fires(client: httpx.AsyncClient) -> None:
    shown = await create(client, name="s", trigger={**ON, "calendars": USE})
    assert shown["trigger"]["calendars"] == {**USE, "timezone": None}
    preview = await get(client, "/v1/schedules/s/preview?count=14")
    left_out = [fire for fire in preview["fires"] if fire["weekday"] in ("Sat", "Sun")]
    assert left_out
    assert all(fire["excluded"] and fire["note"] == "the day is not in business-days" for fire in left_out)
    first = next(fire for fire in preview["fires"] if not fire["excluded"])
    assert shown["next_at"] == first["nominal_at"]
    # Sent back, it changes nothing; without calendars, each day counts.
    patched = await client.patch("/v1/schedules/s", json={"trigger": {"calendars": USE}})
    assert patched.json()["rev"] == 1
    compared = await client.post("/v1/schedules/s/preview?count=14", json={"trigger": {"calendars": None}})
    assert {fire["nominal_at"] for fire in left_out} <= {fire["nominal_at"] for fire in compared.json()["added"]}
    patched = await client.patch("/v1/schedules/s", json={"trigger": {"calendars": None}})
    assert patched.json()["trigger"]["calendars"] is None


@pytest.mark.usefixtures("calendars")
@pytest.mark.parametrize(
    ("use", "path", "expected"),
    [
        ({"only": ["busines-days"]}, "trigger.calendars.only.0", "business-days"),
        ({"except": ["holidays-de", "zzz"]}, "trigger.calendars.except.1", "a calendar of /v1/calendars"),
        ({}, "trigger.calendars", "names in only or except, or to be left out"),
        ({"only": ["business-days"], "timezone": "Europe/Berlim"}, "trigger.calendars.timezone", "Europe/Berlin"),
        ({"only": [f"c{n}" for n in range(11)]}, "trigger.calendars.only", "at most 10"),
    ],
)
async def test_a_use_that_makes_no_sense_is_refused(
    client: httpx.AsyncClient, use: dict[str, Any], path: str, expected: str
) -> None:
    body = {"name": "s", "trigger": {**ON, "calendars": use}, "job": {"definition": "log"}}
    problem = check_problem(await client.post("/v1/schedules", json=body), 422)
    assert [(error["path"], error["expected"]) for error in problem["errors"]] == [(path, expected)]
    check_problem(await client.post("/v1/schedules/preview", json={"trigger": body["trigger"]}), 422)


@pytest.mark.usefixtures("calendars")
async def test_a_calendar_that_is_used_is_not_deleted(client: httpx.AsyncClient, world: World) -> None:
    await create(client, name="s", trigger={**ON, "calendars": USE})
    problem = check_problem(await client.delete("/v1/calendars/holidays-de"), 409)
    assert "used by the schedules s;" in problem["detail"]
    assert (await client.delete("/v1/schedules/s")).status_code == 204
    world.view.schedules_on = lambda _: ["s"]  # the stream lags behind
    assert (await client.delete("/v1/calendars/holidays-de")).status_code == 204


@pytest.mark.usefixtures("calendars")
async def test_a_calendar_that_the_stream_has_not_shown_yet_may_be_used(
    client: httpx.AsyncClient, world: World
) -> None:
    world.view.calendars = dict
    await create(client, name="s", trigger={**ON, "calendars": USE})
    answer = await client.post("/v1/schedules/preview", json={"trigger": {**ON, "calendars": USE}})
    assert answer.status_code == 200


@pytest.mark.usefixtures("calendars")
async def test_a_schedule_whose_calendar_is_gone_says_so_and_can_be_edited(
    client: httpx.AsyncClient, world: World
) -> None:
    await create(client, name="s", trigger={**ON, "calendars": USE})
    world.database.delete(Collection.CALENDARS, "holidays-de")  # as a backup of before would
    shown = await get(client, "/v1/schedules/s")
    assert (shown["next_at"], shown["warnings"]) == (None, ["it does not fire: there is no calendar 'holidays-de'"])
    assert [one["name"] for one in (await get(client, "/v1/schedules"))["items"]] == ["s"]
    assert (await get(client, "/v1/schedules/s/verdicts"))["undecided"]["count"] == 0
    check_problem(await client.get("/v1/schedules/s/preview"), 422)
    assert (await client.patch("/v1/schedules/s", json={"overlap": "skip"})).status_code == 200
    patched = await client.patch("/v1/schedules/s", json={"trigger": {"calendars": {"except": None}}})
    assert patched.status_code == 200
    assert patched.json()["next_at"] is not None
