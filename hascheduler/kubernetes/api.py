"""The API server: its address, our credentials, and one exchange with it, bounded in time.

Errors of the API server and of the connection to it become `StoreUnavailable` here.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from hascheduler import __version__
from hascheduler.errors import InvalidInput, StoreUnavailable
from hascheduler.tls import PemFile, client_context

HOST, PORT = "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"
SERVICE_ACCOUNT = "HASCHEDULER_SERVICE_ACCOUNT_DIR"
NAMESPACE = "HASCHEDULER_LEASE_NAMESPACE"

# Shorter than the renew deadline: a leader must learn in time that it could not renew.
EXCHANGE_LIMIT_S = 3.0
_MESSAGE_CHARACTERS_MAX = 200
_NO_FILE = PemFile("", "")


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """Address and credentials. ``token`` is a file, read for each exchange, as its content changes every hour or so."""

    url: str
    namespace: str
    token: Path
    authorities: PemFile


def in_cluster(environment: Mapping[str, str], service_account: str, namespace: str = "") -> ClusterAccess:
    """Return the access of a pod, with the files of the folder ``service_account``.

    Its namespace is the given one or the pod's own. Raise `InvalidInput` if this is no pod, or a pod without a token.
    """
    host = environment.get(HOST, "")
    if not host:
        raise InvalidInput((HOST,), "is not set", "to run in a pod, or HASCHEDULER_LEASE_STORE=mongodb")
    address = f"[{host}]" if ":" in host else host
    folder = Path(service_account)
    access = ClusterAccess(
        url=f"https://{address}:{environment.get(PORT) or '443'}",
        namespace=namespace or _read(NAMESPACE, folder / "namespace", "the namespace's name, or a file that holds it"),
        token=folder / "token",
        authorities=PemFile(SERVICE_ACCOUNT, str(folder / "ca.crt")),
    )
    _read(SERVICE_ACCOUNT, access.token, "a folder with a token: automountServiceAccountToken: true mounts it")
    return access


def _read(setting: str, file: Path, expected: str) -> str:
    try:
        found = file.read_text(encoding="ascii").strip()
    except OSError as error:
        raise InvalidInput((setting,), f"{file}: {error.strerror}", expected) from None
    except ValueError:
        found = ""
    if not found:
        raise InvalidInput((setting,), f"{file}: is empty, or not ASCII", expected)
    return found


class KubernetesApi:
    """Owner of the connections; `close` ends them. An invalid CA file raises `InvalidInput`."""

    def __init__(self, access: ClusterAccess) -> None:
        self.access = access
        self._tls = client_context(access.authorities, _NO_FILE, _NO_FILE)
        self._client = httpx.AsyncClient(
            base_url=access.url,
            verify=self._tls,
            timeout=None,  # noqa: S113  # each exchange has a limit as a whole, in `_faults`
            headers={"User-Agent": f"hascheduler/{__version__}", "Accept": "application/json"},
            # No proxy, and no password from a .netrc in the token's place: pods reach the API server directly.
            trust_env=False,
        )

    async def exchange(self, doing: str, method: str, path: str, body: object = None) -> httpx.Response:
        """Send a request, ``doing`` something; raise `StoreUnavailable` without an answer: it may have been applied."""
        try:
            token = self.access.token.read_text(encoding="ascii").strip()
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "no token"
            raise StoreUnavailable(f"{doing}: {self.access.token}: {why}") from None
        async with _faults(doing):
            try:
                headers = {"Authorization": f"Bearer {token}"}
                return await self._client.request(method, path, json=body, headers=headers)
            except httpx.ConnectError:
                # Perhaps its certificate is of another authority now, and the file has followed: no need to end.
                with suppress(OSError, ssl.SSLError):  # what was trusted before still is
                    self._tls.load_verify_locations(self.access.authorities.path)
                raise

    async def close(self) -> None:
        await self._client.aclose()


@asynccontextmanager
async def _faults(doing: str) -> AsyncIterator[None]:
    """Bound an exchange, ``doing`` something, by `EXCHANGE_LIMIT_S`, or raise `StoreUnavailable`."""
    try:
        async with asyncio.timeout(EXCHANGE_LIMIT_S):
            yield
    except (TimeoutError, httpx.TimeoutException) as error:
        raise StoreUnavailable(f"{doing}: the API server did not answer in time") from error
    except httpx.ConnectError as error:
        raise StoreUnavailable(f"{doing}: no connection to the API server: {_short(error)}") from error
    except httpx.HTTPError as error:
        # Their texts may quote headers, and one of those is the token.
        raise StoreUnavailable(f"{doing}: no answer from the API server ({type(error).__name__})") from None


def refused(doing: str, access: ClusterAccess, status: int, body: Any, *, verb: str, lease: str) -> StoreUnavailable:
    """Return the error for an answer that is neither success nor expected.

    Its ``Retry-After`` is not kept: one request in a retry period is patient, and a leader that waits longer has lost
    its lease.
    """
    message = f" ({_short(body['message'])})" if isinstance(body, Mapping) and body.get("message") else ""
    match status:
        case 401:
            why = f"rejects the token in {access.token}"
        case 403:
            what = "leases.coordination.k8s.io" + ("" if verb == "create" else f" {lease}")
            why = f"denies access: the service account needs the right to {verb} {what} in namespace {access.namespace}"
        case 404:
            why = f"has no namespace {access.namespace}, or no leases"
        case 429:
            why = "is overloaded"
        case _:
            why = f"answered {status}"
    return StoreUnavailable(f"{doing}: the API server {why}{message}")


def _short(message: object) -> str:
    return str(message)[:_MESSAGE_CHARACTERS_MAX]
