"""One exchange with the API server: our token of this moment, its certificate checked, an end to waiting."""

import ssl
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httpx

from hascheduler import __version__
from hascheduler.kubernetes.access import ClusterAccess
from hascheduler.kubernetes.faults import faults, token_unreadable
from hascheduler.tls import PemFile, client_context

_NO_FILE = PemFile("", "")


@dataclass(frozen=True, slots=True)
class ApiServerResponse:
    """``body`` is None where it was not JSON."""

    status: int
    body: Any

    @property
    def succeeded(self) -> bool:
        return 200 <= self.status < 300


class KubernetesApi:
    """Owner of the connections; `close` ends them. A CA file that is none is an `InvalidInput`."""

    def __init__(self, access: ClusterAccess) -> None:
        self.access = access
        self._tls = client_context(access.authorities, _NO_FILE, _NO_FILE)
        self._client = httpx.AsyncClient(
            base_url=access.url,
            verify=self._tls,
            timeout=None,  # noqa: S113  # each exchange has a limit as a whole, in `faults`
            headers={"User-Agent": f"hascheduler/{__version__}", "Accept": "application/json"},
            # No proxy, and no password from a .netrc in the token's place: pods reach the API server directly.
            trust_env=False,
        )

    async def exchange(self, doing: str, method: str, path: str, body: object = None) -> ApiServerResponse:
        """Ask, ``doing`` something; `StoreUnavailable` where there is no answer, and then it may have been done."""
        try:
            token = self.access.bearer()
        except (OSError, ValueError) as error:
            raise token_unreadable(doing, self.access, error) from None
        async with faults(doing):
            try:
                response = await self._client.request(
                    method, path, json=body, headers={"Authorization": f"Bearer {token}"}
                )
            except httpx.ConnectError:
                self._trust_anew()
                raise
        try:
            return ApiServerResponse(response.status_code, response.json())
        except ValueError:
            return ApiServerResponse(response.status_code, None)

    async def close(self) -> None:
        await self._client.aclose()

    def _trust_anew(self) -> None:
        """Perhaps its certificate is of another authority now, and the file has followed: this process need not end."""
        with suppress(OSError, ssl.SSLError):  # what was trusted before still is
            self._tls.load_verify_locations(self.access.authorities.path)
