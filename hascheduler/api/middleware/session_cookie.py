"""The cookie of the dashboard's sessions: found in a request, set and cleared.

No script reads it (``HttpOnly``), and a browser sends it only with requests of this site's own pages
(``SameSite=Strict``); if the page came over TLS, so must they (``Secure``). Cookies know no ports: those
of another port of this host are sent too, and may have the same name. So two of that name count as none.
"""

from starlette.types import Scope

NAME = "hascheduler_session"
_OF_NAME = f"{NAME}=".encode()
_ATTRIBUTES = "Path=/; HttpOnly; SameSite=Strict"


def session_secrets(scope: Scope) -> list[str]:
    """Return the values of all cookies of that name. There should be one, and it may hold anything."""
    headers = [header for name, header in scope["headers"] if name == b"cookie" and _OF_NAME in header]
    cookies = [cookie.strip() for header in headers for cookie in header.split(b";")]
    return [cookie[len(_OF_NAME) :].decode("latin-1") for cookie in cookies if cookie.startswith(_OF_NAME)]


def set_cookie(secret: str, life_s: int, scope: Scope) -> str:
    """Return the ``Set-Cookie`` header that begins a session or, with an empty secret, ends it in the browser."""
    secure = "; Secure" if _came_over_tls(scope) else ""
    return f"{NAME}={secret}; Max-Age={life_s}; {_ATTRIBUTES}{secure}"


def _came_over_tls(scope: Scope) -> bool:
    """Return True if the page came over TLS, which a proxy may end: then the page's own origin shows it."""
    origins = (value for name, value in scope["headers"] if name == b"origin")
    return scope["scheme"] == "https" or any(origin.lower().startswith(b"https://") for origin in origins)
