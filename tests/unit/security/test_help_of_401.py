"""The answer to 401 says what to send, and the redaction leaves that readable."""

import httpx

from hascheduler.api.edge import Edge
from hascheduler.model.values.redaction import redacted
from tests.unit.api.doubles import World
from tests.unit.api.requests import check_problem
from tests.unit.api.tokens import Guarded


async def test_401_says_what_to_send(app: Edge, world: World) -> None:
    async with Guarded(app, world).showing(None) as stranger:
        problem = check_problem(await stranger.get("/v1/jobs"), 401)
    assert "***" not in problem["detail"]
    assert "header Authorization with the word Bearer, a blank and the token" in problem["detail"]
    assert redacted(problem["detail"]) == problem["detail"]


async def test_what_was_sent_is_hidden_all_the_same(client: httpx.AsyncClient) -> None:
    secret = "hsk_" + "s" * 43
    headers = {"Authorization": f"Basic {secret}"}
    answer = await client.get(f"/v1/jobs?x=Authorization: Bearer {secret}", headers=headers)
    assert secret not in answer.text
