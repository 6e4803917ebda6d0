"""What a webhook's payload may say, field by field."""

import re
from typing import Annotated, Any, Literal, Self

import httpx
from pydantic import AfterValidator, Field, model_validator

from processors.payloads import DurationMs, Payload, shown, within, wrong

_URL_LENGTH_MAX = 4_096
_HEADERS_MAX = 64
_HEADER_LENGTH_MAX = 8_192
# A name (the underscore is for names in clusters), or an address; no zone, as what that means differs by machine.
_HOST = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9._-]{0,252}|[0-9A-Fa-f:.]{2,45})\Z")
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}\Z")
# RFC 9110: visible characters, spaces and tabs between them. Latin-1 is left out: receivers disagree about it.
_HEADER_VALUE = re.compile(r"(?:[!-~](?:[ \t!-~]*[!-~])?)?\Z")
_OURS = frozenset(
    {"host", "content-length", "transfer-encoding", "accept-encoding", "idempotency-key", "user-agent"}
    | {"connection", "keep-alive", "upgrade", "te", "trailer", "expect", "proxy-authorization", "proxy-connection"}
)


def destination(text: str) -> httpx.URL:
    """The URL that ``text`` is, if a request may be sent to it by its form; else a ``wrong`` that says why not.

    It is never quoted: people put passwords and tokens into URLs.
    """
    expected = "http:// or https://, and a host"
    if len(text) > _URL_LENGTH_MAX:
        raise wrong(f"{len(text)} characters", f"at most {_URL_LENGTH_MAX}")
    try:
        url = httpx.URL(text)
        host = url.host and url.raw_host.decode("ascii")
    except (httpx.InvalidURL, ValueError) as error:  # the second for a name that IDNA can't have
        raise wrong(f"not a URL: {error}", expected) from None
    if url.userinfo:
        raise wrong("the URL has credentials in it", "an Authorization header instead")
    if url.scheme not in ("http", "https"):
        raise wrong(f"the scheme is {shown(url.scheme)}", expected)
    if not _HOST.match(host):
        raise wrong(f"the host is {shown(host)}", expected)
    if url.port is not None and not 1 <= url.port <= 65_535:
        raise wrong(f"port {url.port}", "1 to 65535")
    return url


def _url(text: str) -> str:
    destination(text)
    return text


def _headers(headers: dict[str, str]) -> dict[str, str]:
    if len(headers) > _HEADERS_MAX:
        raise wrong(f"{len(headers)} headers", f"at most {_HEADERS_MAX}")
    for name in headers:
        if not _TOKEN.match(name):
            raise wrong(f"{shown(name)} is not the name of a header", "letters, digits and '-'")
        if name.lower() in _OURS or name.lower().startswith("x-hascheduler-"):
            raise wrong(f"{name} is not for the payload to set", "other headers")
    if len({name.lower() for name in headers}) < len(headers):
        raise wrong("a name comes twice", "each header once, in whatever case")
    return headers


def _header_value(text: str) -> str:
    if len(text) > _HEADER_LENGTH_MAX:
        raise wrong(f"{len(text)} characters", f"at most {_HEADER_LENGTH_MAX}")
    if not _HEADER_VALUE.match(text):
        # Not quoted: it may be a secret.
        raise wrong("characters that a header can't hold", "printable ASCII, with no space at either end")
    return text


_HeaderValue = Annotated[str, AfterValidator(_header_value)]
_Status = Annotated[int, Field(ge=200, le=599)]


class WebhookPayload(Payload):
    url: Annotated[str, AfterValidator(_url)]
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] = "POST"
    headers: Annotated[dict[str, _HeaderValue], AfterValidator(_headers)] = Field(default={})
    body: Any = None
    body_template: str | None = None
    values: dict[str, Any] = Field(default={})
    timeout: Annotated[DurationMs, within("100ms", "10m")] = 10_000
    expect: list[_Status] = Field(default=list(range(200, 300)), min_length=1)
    retry_on: list[_Status] = Field(default=[408, 425, 429, 500, 502, 503, 504])
    follow_redirects: bool = False

    @property
    def has_json_body(self) -> bool:
        """A body of null is one too."""
        return "body" in self.model_fields_set

    @model_validator(mode="after")
    def _one_body(self) -> Self:
        if self.has_json_body and self.body_template is not None:
            raise wrong("both body and body_template", "one of them")
        if self.method in ("GET", "HEAD") and (self.has_json_body or self.body_template is not None):
            raise wrong(f"{self.method} with a body", "POST, PUT or PATCH, or no body")
        return self
