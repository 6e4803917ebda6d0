"""The cookie of the dashboard's sessions: how it is found in a request, set and cleared.

No script reads it (``HttpOnly``), and a browser sends it with requests of this site's own pages alone
(``SameSite=Strict``); where the page came over TLS it never travels without (``Secure``). Cookies know no ports: those
of another port of this host come along, and may bear the same name. So two of that name are none.
"""

from collections.abc import Iterator

from starlette.types import Scope

NAME = "hascheduler_session"
_OF_NAME = f"{NAME}=".encode()
_ATTRIBUTES = "Path=/; HttpOnly; SameSite=Strict"


def session_secrets(scope: Scope) -> list[str]:
    """The values of all cookies of that name, of which there should be one; they may be anything."""
    return [value.decode("latin-1") for value in _values(scope)]


def set_cookie(secret: str, life_s: int, scope: Scope) -> str:
    """The header ``Set-Cookie`` that begins a session."""
    secure = "; Secure" if _came_over_tls(scope) else ""
    return f"{NAME}={secret}; Max-Age={life_s}; {_ATTRIBUTES}{secure}"


def clear_cookie(scope: Scope) -> str:
    """The header ``Set-Cookie`` that makes the browser forget the session."""
    return set_cookie("", 0, scope)


def _values(scope: Scope) -> Iterator[bytes]:
    for name, header in scope["headers"]:
        if name == b"cookie" and _OF_NAME in header:
            for cookie in header.split(b";"):
                pair = cookie.strip()
                if pair.startswith(_OF_NAME):
                    yield pair[len(_OF_NAME) :]


def _came_over_tls(scope: Scope) -> bool:
    """A proxy may end TLS before the replica: then the page's own origin says so."""
    origins = (value for name, value in scope["headers"] if name == b"origin")
    return scope["scheme"] == "https" or any(origin.lower().startswith(b"https://") for origin in origins)
