"""Clients with tokens, of a replica that requires them."""

from dataclasses import replace
from typing import Any

import httpx2

from hascheduler.api.edge import Edge
from hascheduler.model.token import Role, digest_of
from tests.factories import make_token
from tests.unit.api.doubles import NOW, World
from tests.unit.api.requests import Client

ADMIN_TOKEN = "an-admin-token-of-the-settings"
OF_PAGE = {"Origin": "http://api", "Sec-Fetch-Site": "same-origin"}
"""What a browser adds to the requests of the replica's own page."""


def cookie_in(answer: httpx2.Response) -> str:
    """The cookie that the answer sets, as a browser sends it."""
    return answer.headers["set-cookie"].partition(";")[0]


class Guarded:
    """The application where tokens are required; `client` makes a token and a client that shows it."""

    def __init__(self, app: Edge, world: World, *, required: bool = True) -> None:
        self.app = app
        self.world = world
        auth = replace(world.auth, required=required, admin_digest=digest_of(ADMIN_TOKEN))
        app.services = replace(world.services(), auth=auth)
        self._count = 0

    async def token(self, role: str = "admin", tenant: str = "*", **only_what_matters: Any) -> str:
        """Its secret; ids and names go up: ``token-1``, ``viewer-1``."""
        self._count += 1
        secret = f"hsk_{self._count:043d}"
        plain = make_token(
            f"token-{self._count}", digest=digest_of(secret), name=f"{role}-{self._count}", role=Role(role),
            tenant=tenant, created_at_ms=NOW, created_by="test",
        )  # fmt: skip
        await self.world.tokens.create(plain.model_copy(update=only_what_matters))
        return secret

    def showing(self, secret: str | None) -> Client:
        headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        return httpx2.AsyncClient(transport=httpx2.ASGITransport(self.app), base_url="http://api", headers=headers)

    async def page(self, role: str = "admin", tenant: str = "*", **only_what_matters: Any) -> Client:
        """A page of the dashboard, with a session of a new token."""
        return await self.page_of(await self.token(role, tenant, **only_what_matters))

    async def page_of(self, secret: str) -> Client:
        async with self.showing(None) as login:
            answer = await login.post("/ui/session", json={"token": secret}, headers=OF_PAGE)
        assert answer.status_code == 200, answer.text
        page = self.showing(None)
        page.headers.update({**OF_PAGE, "Cookie": cookie_in(answer)})
        return page

    async def client(self, role: str = "admin", tenant: str = "*", **only_what_matters: Any) -> Client:
        return self.showing(await self.token(role, tenant, **only_what_matters))
