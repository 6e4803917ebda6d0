"""Refuses what a page of another site makes a browser send: forged requests, DNS rebinding, costly reads.

A browser sends requests wherever a page directs it, also to ports that only its own machine reaches. It adds headers
that no page can change: the requested name (``Host``), the site of the page (``Origin``, not with every GET) and the
relation of the two (``Sec-Fetch-Site``).

==================================  =====================  ==============================
refused                             if                     against
==================================  =====================  ==============================
a ``Host`` that is not ours         no token is required   a name that was made to resolve
                                                           to this replica (DNS rebinding)
a change requested by another site  always                 forged requests
anything requested by another site  no token is required,  costly reads, waits that hold a
                                    but for public pages   place open
the same                            a session is shown     the same, in its name
a change that does not name the     a session is shown     forged requests from clients
site that requested it                                     that add neither header
==================================  =====================  ==============================

If tokens are required any ``Host`` is accepted: no page can add a token. A browser adds the cookie of a session by
itself, so with one the first column is as strict as without tokens; public pages and the login ignore cookies.
Another port of the same host is another site, though cookies do not tell the two apart. Programs send neither
``Origin`` nor ``Sec-Fetch-Site``, so nothing changes for them. No response allows other sites to read it (there are no
CORS headers), and ``nosniff`` keeps browsers from guessing another type than the stated one.
"""

import re
from collections.abc import Collection
from functools import lru_cache
from http import HTTPStatus
from ipaddress import IPv4Address, ip_address

from fastapi import Response
from starlette.types import Scope

from hascheduler.api.http.problems import problem
from hascheduler.api.middleware.auth import AuthConfig
from hascheduler.model.values.error_texts import quoted

_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9._-]{1,253})(?::([0-9]{1,5}))?", re.ASCII)
_ORIGIN = re.compile(r"(https?)://(.{1,300})", re.ASCII)
READING = frozenset({"GET", "HEAD", "OPTIONS"})
_SAME_ORIGIN = "same-origin"
_OWN_SITES = frozenset({_SAME_ORIGIN, "none"})
"""With ``none`` the user opened it, by typing the address or from a bookmark."""
_PORTS = {"http": 80, "https": 443}


def refusal_of(
    scope: Scope, config: AuthConfig, public_pages: Collection[str], *, by_session: bool = False
) -> Response | None:
    """Return the refusal of a request; None if it may go on.

    It comes before `hascheduler.api.middleware.auth`, so that a refusal reveals nothing about tokens. ``by_session`` is
    True if a cookie would identify the caller.
    """
    hosts, origins, sites = (_values_of(name, scope) for name in (b"host", b"origin", b"sec-fetch-site"))
    # No browser omits Host.
    if hosts and not config.required and not (len(hosts) == 1 and _is_ours(hosts[0], config)):
        detail = (
            f"the Host {quoted(', '.join(hosts))} is not a name of this replica, which requires no tokens; expected "
            "localhost, 127.0.0.1, or a name in HASCHEDULER_HTTP_ALLOWED_HOSTS"
        )
        return problem(HTTPStatus.MISDIRECTED_REQUEST, "foreign-host", detail)
    reads = scope["method"] in READING
    if reads and not by_session and (config.required or scope["path"] in public_pages):
        return None
    for origin in origins:
        if not (len(hosts) == 1 and _is_same(origin, hosts[0], scope["scheme"])):
            return _foreign("Origin", origin, "the origin of this replica")
    for site in sites:
        if site not in _OWN_SITES:
            return _foreign("Sec-Fetch-Site", site, "same-origin or none")
    if by_session and not reads and not origins and _SAME_ORIGIN not in sites:
        detail = (
            "a session of the dashboard can make changes only from its page; expected the header Origin, or "
            "Sec-Fetch-Site: same-origin; programs send a token in the header Authorization"
        )
        return problem(HTTPStatus.FORBIDDEN, "foreign-origin", detail)
    return None


def _values_of(header: bytes, scope: Scope) -> list[str]:
    return [value.decode("latin-1").lower() for name, value in scope["headers"] if name == header]


def _is_ours(host: str, config: AuthConfig) -> bool:
    found = _HOST.fullmatch(host)
    return found is not None and _is_our_name(found[1].strip("[]").removesuffix("."), config)


@lru_cache(maxsize=64)
def _is_our_name(name: str, config: AuthConfig) -> bool:
    try:
        address = ip_address(name)
    except ValueError:
        return name == "localhost" or name.endswith(".localhost") or name in config.hosts
    # Unlike a name, an address can't be made to resolve elsewhere.
    mapped = None if isinstance(address, IPv4Address) else address.ipv4_mapped
    return config.any_address or (mapped or address).is_loopback or address.compressed in config.hosts


def _is_same(origin: str, host: str, scheme: str) -> bool:
    """Return True if both name one host and port. The schemes may differ, as a proxy may speak TLS."""
    given = _ORIGIN.fullmatch(origin)
    theirs, ours = _HOST.fullmatch(given[2]) if given else None, _HOST.fullmatch(host)
    if given is None or theirs is None or ours is None:
        return False
    their_port = int(theirs[2] or _PORTS[given[1]])
    our_port = int(ours[2] or _PORTS["https" if scheme == "https" else given[1]])
    return (theirs[1], their_port) == (ours[1], our_port)


def _foreign(header: str, value: str, expected: str) -> Response:
    detail = f"cross-site request ({header} is {quoted(value)}); expected {expected}, or no such header from a program"
    return problem(HTTPStatus.FORBIDDEN, "foreign-origin", detail)
