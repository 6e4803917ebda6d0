"""``webhook``: sends one HTTP request for each attempt; its payload and the settings are in docs/how-to/processors.md.

A name is resolved once, its addresses are judged, and the connection goes to exactly one of those: the URL of the
request is rewritten to the address, so no code below can resolve the name again, while the Host header and the TLS
server name (and with it the check of the certificate) keep the name. Redirects, and proxies and credentials of the
environment, are not followed.
"""

import asyncio
import os
import re
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Annotated, Any, Literal, Self
from urllib.parse import quote

import httpx2
import orjson
from pydantic import AfterValidator, Field, model_validator

from hascheduler.errors import CallerError, InvalidInput, WorldError
from hascheduler.handlers.texts import cut, one_line
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.instants import format_duration, format_instant
from hascheduler.processor import Handlers, JobContext, RetryLater
from hascheduler.schema.forms import span, wrong
from hascheduler.schema.noun import Part, read_request

handlers = Handlers()
Address = IPv4Address | IPv6Address
Resolve = Callable[[str, int], Awaitable[Sequence[Address]]]

ALLOW = "HASCHEDULER_WEBHOOK_ALLOW"
ALLOW_PRIVATE = "HASCHEDULER_WEBHOOK_ALLOW_PRIVATE"
URL, BODY = "HASCHEDULER_WEBHOOK_URL", "HASCHEDULER_WEBHOOK_BODY"
_URL = ("payload", "url")
_CONNECT_LIMIT_S = 10.0
"""The limit for each address, so that one that does not answer leaves time for the next."""
# The IANA special-purpose registries (RFC 6890 and its updates), written out because the judgement of the standard
# library differs from one Python release to the next. Of networks that overlap, the first decides.
_SPECIAL = {
    ip_network(network): kind
    for kind, networks in {
        "unspecified": "0.0.0.0/8 ::/128",
        "loopback": "127.0.0.0/8 ::1/128",
        "private": "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7",
        "link-local": "169.254.0.0/16 fe80::/10",  # where clouds keep their metadata and credentials
        "the platform's own (Azure)": "168.63.129.16/32",  # a public number, but in fact the host's agent
        "carrier-grade NAT": "100.64.0.0/10",
        "documentation": "192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 2001:db8::/32 3fff::/20",
        "multicast": "224.0.0.0/4 ff00::/8",
        "broadcast": "255.255.255.255/32",
        "benchmarking": "198.18.0.0/15",
        "6to4 relay": "192.88.99.0/24",
        "IPv4-compatible": "::/96",
        "NAT64 of a private network": "64:ff9b:1::/48",
        "discard-only": "100::/64",
        "Teredo": "2001::/32",
        "site-local": "fec0::/10",
        "reserved": "192.0.0.0/24 240.0.0.0/4 2001::/23",
    }.items()
    for network in networks.split()
}
_trusted = lru_cache(httpx2.create_ssl_context)  # reading the authorities takes longer than a request
_GLOBAL_6, _NAT64 = IPv6Network("2000::/3"), IPv6Network("64:ff9b::/96")
_BODY_BYTES_MAX = 64 * 1024
_FILLED_MAX = 4 * 1024 * 1024
"""A value may be used many times, so a small payload could ask for a body of any size."""
_HEADERS_KEPT = ("content-type", "content-encoding", "content-length", "date", "etag", "location", "retry-after")
# A name (the underscore is for names in clusters), or an address without a zone, as zones differ by machine.
_HOST = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9._-]{0,252}|[0-9A-Fa-f:.]{2,45})\Z")
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}\Z")
# RFC 9110: visible characters, spaces and tabs between them. Latin-1 is left out: receivers disagree about it.
_HEADER_VALUE = re.compile(r"(?:[!-~](?:[ \t!-~]{0,8190}[!-~])?)?\Z")
_OURS = frozenset(
    {"host", "content-length", "transfer-encoding", "accept-encoding", "idempotency-key", "user-agent"}
    | {"connection", "keep-alive", "upgrade", "te", "trailer", "expect", "proxy-authorization", "proxy-connection"}
)
_PLACEHOLDER = re.compile(r"\$(?P<literal>\$\{)|\$\{(?P<name>[^{}|]*)(?P<form>[^{}]*)(?P<closed>\}?)")
_TEMPLATE = ("payload", "body_template")


class WebhookRefused(CallerError):
    """The receiver's answer is final."""


class WebhookUndelivered(WorldError):
    """There was no answer, or one that asks to retry later."""


def special_kind(address: Address) -> str | None:
    """Return the kind of an address that is not on the public internet; None for a public one."""
    inner = _unwrapped(address)
    kind = next((kind for network, kind in _SPECIAL.items() if inner in network), None)
    return kind or ("reserved" if isinstance(inner, IPv6Address) and inner not in _GLOBAL_6 else None)


def _unwrapped(address: Address) -> Address:
    """Return the IPv4 address inside (IPv4-mapped, 6to4, NAT64), if any, or else the address without its zone."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour or IPv6Address(int(address))


@dataclass(frozen=True, slots=True)
class Destinations:
    """The allowed destinations.

    ``hosts`` are names and patterns, none for every name; ``networks`` are allowed although they are not public.
    """

    hosts: tuple[str, ...] = ()
    networks: tuple[IPv4Network | IPv6Network, ...] = ()

    @classmethod
    def of_environment(cls, environment: Mapping[str, str]) -> Self:
        """Read the operator's settings; an `InvalidInput` names the one that can't be read."""
        hosts = tuple(name.lower().rstrip(".") for name in _listed(environment.get(ALLOW, "")))
        for name in hosts:
            if "*" in name.removeprefix("*.") and name != "*":
                raise InvalidInput((ALLOW,), f"{name!r} is not a pattern of hosts", "a name, '*.example.com' or '*'")
        try:
            return cls(hosts, tuple(map(ip_network, _listed(environment.get(ALLOW_PRIVATE, "")))))
        except ValueError as error:
            raise InvalidInput((ALLOW_PRIVATE,), f"{error}", "networks such as '10.96.0.0/12, fd00::/8'") from None

    def check_host(self, host: str) -> None:
        """Raise `InvalidInput` if no entry allows ``host``, in lower case as the connection will name it."""
        if self.hosts and not any(_matches(host, pattern) for pattern in self.hosts):
            raise InvalidInput(_URL, f"the host {host!r} is not allowed", f"one that the processor's {ALLOW} lists")

    def allowed(self, host: str, addresses: Sequence[Address]) -> list[Address]:
        """Return the addresses that may be connected to, in their order; raise `InvalidInput` if there is none."""
        networks = self.networks
        allowed = [each for each in addresses if not special_kind(each) or any(_unwrapped(each) in n for n in networks)]
        if not allowed:
            found = ", ".join(f"{address} ({special_kind(address)})" for address in addresses[:3])
            expected = f"a public address, or one that the processor's {ALLOW_PRIVATE} lists"
            raise InvalidInput(_URL, f"{host!r} resolves to {found}, which is not allowed", expected)
        return allowed


def _listed(setting: str) -> list[str]:
    return [text for part in setting.split(",") if (text := part.strip())]


def _matches(host: str, pattern: str) -> bool:
    return pattern == "*" or (host.endswith(pattern[1:]) if pattern.startswith("*.") else host == pattern)


async def resolved(host: str, port: int) -> list[Address]:
    """Return all addresses of ``host``, in this machine's order of preference."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise httpx2.ConnectError(f"{host!r} can't be resolved: {error}") from None
    return list(dict.fromkeys(ip_address(entry[4][0]) for entry in found))


def _destination(text: str) -> str:
    """Return a valid URL, or raise an error that does not quote it: people put passwords and tokens into URLs."""
    expected = "http:// or https:// and a host"
    if len(text) > 4_096:
        raise wrong(f"{len(text)} characters", "at most 4096")
    try:
        url = httpx2.URL(text)
        host = url.host and url.raw_host.decode("ascii")
    except (httpx2.InvalidURL, ValueError) as error:  # ValueError for a name that IDNA can't encode
        raise wrong(f"not a URL: {error}", expected) from None
    if url.userinfo:
        raise wrong("the URL has credentials in it", "an Authorization header instead")
    if url.scheme not in ("http", "https"):
        raise wrong(f"the scheme {quoted(url.scheme)} is not supported", expected)
    if not _HOST.match(host):
        raise wrong(f"{quoted(host)} is not a host", expected)
    if url.port is not None and not 1 <= url.port <= 65_535:
        raise wrong(f"port {url.port}", "1 to 65535")
    return text


def _headers(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not _TOKEN.match(name):
            raise wrong(f"{quoted(name)} is not the name of a header", "letters, digits and '-'")
        if name.lower() in _OURS or name.lower().startswith("x-hascheduler-"):
            raise wrong(f"the payload can't set {name}", "other headers")
        if not _HEADER_VALUE.match(value):  # not quoted: it may be a secret
            raise wrong(f"{name} has characters that are invalid in a header", "printable ASCII, at most 8192")
    if len({name.lower() for name in headers}) < len(headers):
        raise wrong("a header is set twice", "each header once, whatever its case")
    return headers


_Status = Annotated[int, Field(ge=200, le=599)]


class WebhookPayload(Part):
    null_is_value = ("body",)

    url: Annotated[str, AfterValidator(_destination)]
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] = "POST"
    headers: Annotated[dict[str, str], Field(max_length=64), AfterValidator(_headers)] = Field(default={})
    body: Any = None
    body_template: str | None = None
    values: dict[str, Any] = Field(default={})
    timeout_ms: Annotated[int, span(100, 600_000)] = 10_000
    expect: list[_Status] = Field(default=list(range(200, 300)), min_length=1)
    retry_on: list[_Status] = Field(default=[408, 425, 429, 500, 502, 503, 504])
    follow_redirects: Literal[False] = False  # 0.2.0 could follow them

    @model_validator(mode="after")
    def _one_body(self) -> Self:
        bodies = {"body", "body_template"} & self.model_fields_set
        if len(bodies) > 1:
            raise wrong("both body and body_template are set", "one of them")
        if self.method in ("GET", "HEAD") and bodies:
            raise wrong(f"{self.method} with a body", "POST, PUT or PATCH, or no body")
        return self


@handlers.handler("webhook")
async def webhook(job: JobContext) -> dict[str, Any]:
    return await deliver(job, Destinations.of_environment(os.environ))


async def deliver(job: JobContext, destinations: Destinations, resolve: Resolve = resolved) -> dict[str, Any]:
    """Return the receiver's answer if it is a success; else raise one of the errors above, or `InvalidInput`."""
    payload = read_request(WebhookPayload, _with_url(job.payload, os.environ), ("payload",))
    request = _request(payload, job)
    place = _place(request.url)
    # Keep no connection: one that was opened for one name must not serve another at the same address.
    limits = httpx2.Limits(max_keepalive_connections=0)
    pool = httpx2.AsyncHTTPTransport(verify=_trusted(), trust_env=False, limits=limits)
    try:
        async with asyncio.timeout(payload.timeout_ms / 1000), pool as transport:
            response = await _answered(transport, request, destinations, resolve)
            body = bytearray()
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > _BODY_BYTES_MAX:
                    break
            await response.aclose()
    except TimeoutError:
        raise WebhookUndelivered(f"no answer from {place} within {format_duration(payload.timeout_ms)}") from None
    except (httpx2.LocalProtocolError, httpx2.InvalidURL) as error:
        raise InvalidInput(("payload",), f"the request can't be sent: {one_line(str(error))}") from None
    except (httpx2.TransportError, OSError) as error:
        reason = one_line(str(error)) or type(error).__name__
        raise WebhookUndelivered(f"no answer from {place}: {reason}") from None
    return _judged(payload, response, bytes(body))


def _with_url(payload: Any, environment: Mapping[str, str]) -> Any:
    """Return ``payload``; if it names no URL, such as that of a failed job's report, the request that sends it."""
    url, template = environment.get(URL), environment.get(BODY)
    if not url or (isinstance(payload, Mapping) and "url" in payload):
        return payload
    return {"url": url} | ({"body_template": template} if template else {"body": payload})


def _request(payload: WebhookPayload, job: JobContext) -> httpx2.Request:
    headers = {"Idempotency-Key": quote(job.idempotency_key, safe=":._~/-"), "X-Hascheduler-Attempt": f"{job.attempt}"}
    # Ask for an uncompressed body: a small compressed one may hold a huge one.
    headers |= {"User-Agent": "hascheduler-webhook", "Accept": "*/*", "Accept-Encoding": "identity"}
    content: bytes | None = None
    if payload.body_template is not None:
        content = filled(payload.body_template, job).encode()
        headers["Content-Type"] = "text/plain; charset=utf-8"
    elif "body" in payload.model_fields_set:  # a body of null is a body too
        content = orjson.dumps(payload.body, default=str)
        headers["Content-Type"] = "application/json"
    merged = httpx2.Headers(headers)
    merged.update(payload.headers)
    return httpx2.Request(payload.method, payload.url, headers=merged, content=content)


async def _answered(
    transport: httpx2.AsyncHTTPTransport, request: httpx2.Request, destinations: Destinations, resolve: Resolve
) -> httpx2.Response:
    url = request.url
    asked_for = url.raw_host.decode("ascii")  # with the dot at its end, if any: it matters to a resolver
    host = asked_for.lower().rstrip(".")
    destinations.check_host(host)
    addresses = await resolve(asked_for, url.port or (443 if url.scheme == "https" else 80))
    request.extensions = {"sni_hostname": host, "timeout": {"connect": _CONNECT_LIMIT_S}}
    failed: httpx2.TransportError = httpx2.ConnectError(f"{host!r} has no address")
    for address in destinations.allowed(host, addresses) if addresses else ():
        request.url = url.copy_with(host=str(address))
        try:
            return await transport.handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:  # nothing has been sent yet
            failed = error
    raise failed


def _judged(payload: WebhookPayload, response: httpx2.Response, body: bytes) -> dict[str, Any]:
    status, text = response.status_code, body[:_BODY_BYTES_MAX].decode("utf-8", "replace")
    if status in payload.expect:
        kept = cut(text)
        headers = {name: response.headers[name][:1_024] for name in _HEADERS_KEPT if name in response.headers}
        is_cut = len(body) > _BODY_BYTES_MAX or kept != text
        return {"status": status, "headers": headers, "body": kept, "truncated": is_cut}
    answered = f"{_place(httpx2.URL(payload.url))} answered {status}" + (f": {one_line(text)}" if text.strip() else "")
    if status in payload.retry_on:
        after = response.headers.get("Retry-After", "")
        if after.isascii() and after.isdecimal() and len(after) < 10 and int(after) <= 86_400:
            raise RetryLater(int(after), answered)
        raise WebhookUndelivered(answered)
    raise WebhookRefused(answered)


def _place(url: httpx2.URL) -> str:
    """Return the URL for messages, without the query, in which people put tokens."""
    return one_line(str(url.copy_with(query=None, fragment=None)), 200)


def filled(template: str, job: JobContext) -> str:
    """Return the template with the values of the job in it; inserted values are not read as templates again."""
    payload = job.payload if isinstance(job.payload, dict) else {}
    known = {"job_id": job.id, "attempt": job.attempt, "definition": job.definition, "target": job.target}
    known |= {} if job.schedule is None else {"schedule": job.schedule}
    known |= {} if job.nominal_ms is None else {"nominal_at": format_instant(job.nominal_ms)}
    known |= {"payload": payload, "values": payload.get("values", {})}
    parts: list[str] = []
    size = position = 0
    for found in _PLACEHOLDER.finditer(template):
        parts += (template[position : found.start()], "${" if found["literal"] else _value(found, known))
        position = found.end()
        size += len(parts[-1]) + len(parts[-2])
        if size > _FILLED_MAX:
            raise InvalidInput(_TEMPLATE, "too long when filled in", f"at most {_FILLED_MAX} characters")
    return "".join((*parts, template[position:]))


def _value(found: re.Match[str], known: Mapping[str, Any]) -> str:
    name, form = found["name"], found["form"]
    if not found["closed"]:
        raise InvalidInput(_TEMPLATE, f"{quoted(found[0][:40])} is not closed", "${name}, or $${ for a literal ${")
    if form not in ("", "|json"):
        raise InvalidInput(_TEMPLATE, f"the format {quoted(form[1:])} is unknown", "|json or none")
    value: Any = known
    for part in name.split("."):
        is_index = isinstance(value, list) and part.isascii() and part.isdecimal() and len(part) < 9
        if is_index and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, Mapping) and part in value:
            value = value[part]
        else:
            expected = f"one of {', '.join(sorted(known))}, or a field of payload or values"
            raise InvalidInput(_TEMPLATE, f"${{{name[:100]}}} has no value in this job", expected)
    return value if isinstance(value, str) and not form else orjson.dumps(value, default=str).decode()
