# Written by scripts/generate-client from hascheduler/client/asynchronous/tokens.py: change that one.
"""``scheduler.tokens``: who may ask for what."""

from collections.abc import Iterator

from hascheduler.client.answers import NewTokenResponse, TokenResponse
from hascheduler.client.bodies import plain
from hascheduler.client.options import Role
from hascheduler.client.requests import asked, delete, delete_again, named, take_back
from hascheduler.client.synchronous.asking import Ask, each


class TokensApi:
    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def create(
        self, name: str, role: Role, tenant: str = "*", *, expires_in: str | float | None = None
    ) -> NewTokenResponse:
        """The only answer that shows the token itself. If it is unknown whether a try made one, and its id is told,
        that is revoked before the next; without an id it is sent once: after `Unavailable` look with `list` for one to
        revoke."""
        body = plain(name=name, role=role, tenant=tenant, expires_in=expires_in)
        return self._ask(asked(NewTokenResponse, "POST", "/v1/tokens", body=body, look=take_back("tokens")))

    def list(self) -> Iterator[TokenResponse]:
        for token in each(self._ask, "/v1/tokens", [], TokenResponse):
            yield token

    def revoke(self, token_id: str) -> bool:
        """False if there was none."""
        path = named("tokens", token_id)
        return self._ask(delete(path, look=delete_again(path)))
