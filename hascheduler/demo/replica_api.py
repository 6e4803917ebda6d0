"""The HTTP API by any replica that answers: some are being killed."""

from collections.abc import Callable, Mapping
from typing import Any

import httpx

from hascheduler.demo.environment import ClusterSnapshot
from hascheduler.errors import CallerError, StoreUnavailable

_REFUSED = (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN)


class ReplicaApi:
    """``urls`` has the addresses of those that may answer now, by name."""

    def __init__(self, http: httpx.AsyncClient, urls: Callable[[], Mapping[str, str]]) -> None:
        self._http = http
        self._urls = urls

    async def ask(self, method: str, path: str, body: object = None, *, avoid: str = "") -> httpx.Response:
        """The first answer that is not the replica's own trouble; ``avoid`` is asked last.

        `StoreUnavailable` where none answers, `CallerError` where the token is refused.
        """
        troubles = ["no replica to ask"]
        for _, url in sorted(self._urls().items(), key=lambda one: one[0] == avoid):
            try:
                answer = await self._http.request(method, f"{url}{path}", json=body)
            except httpx.HTTPError as error:
                troubles.append(f"{method} {url}{path}: {type(error).__name__}")
                continue
            if answer.status_code in _REFUSED:
                raise CallerError(f"{method} {url}{path} was answered {answer.status_code}: {_detail(answer)}")
            if not answer.is_server_error:
                return answer
            troubles.append(f"{method} {url}{path} was answered {answer.status_code}: {_detail(answer)}")
        raise StoreUnavailable(troubles[-1])

    async def get(self, path: str, *, avoid: str = "") -> dict[str, Any]:
        """An answer that is an object; anything else is `StoreUnavailable`."""
        answer = await self.ask("GET", path, avoid=avoid)
        try:
            content = answer.json()
        except ValueError:
            content = None
        if not answer.is_success or not isinstance(content, dict):
            raise StoreUnavailable(f"GET {path} was answered {answer.status_code}: {_detail(answer)}")
        return content

    async def create(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The schedule as it was created; also where an earlier answer got lost."""
        answer = await self.ask("POST", "/v1/schedules", body)
        if answer.status_code == httpx.codes.CONFLICT:
            return await self.get(f"/v1/schedules/{body['name']}")
        if answer.status_code != httpx.codes.CREATED:
            raise CallerError(f"POST /v1/schedules was answered {answer.status_code}: {_detail(answer)}")
        created: Mapping[str, Any] = answer.json()
        return created

    async def snapshot(self, *, avoid: str = "") -> ClusterSnapshot | None:
        """What a replica sees that is ready; None where none is."""
        try:
            cluster = await self.get("/v1/cluster", avoid=avoid)
            processors = await self.get("/v1/processors", avoid=avoid)
        except StoreUnavailable:
            return None
        return ClusterSnapshot(cluster, processors["items"]) if cluster["ready"] else None


def _detail(answer: httpx.Response) -> str:
    return answer.text[:200]
