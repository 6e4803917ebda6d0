"""The addresses of a replica set's members, as an option gives them."""

import re
from collections.abc import Sequence

from hascheduler.errors import InvalidInput
from hascheduler.model.repr_limits import quoted

PORT_DEFAULT = 27017
MEMBERS_MAX = 7
"""More can't vote in MongoDB."""
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,250}[A-Za-z0-9])?")


def parse_members(texts: Sequence[str]) -> tuple[str, ...]:
    """``host:port`` of each, from texts with commas, sorted, so that all who are given the same begin at the same."""
    found = [_member(part.strip()) for text in texts for part in text.split(",") if part.strip()]
    if not found:
        raise InvalidInput(("--members",), "there are none", "host:port, with commas")
    doubled = next((member for member in found if found.count(member) > 1), None)
    if doubled is not None:
        raise InvalidInput(("--members",), f"{doubled} is there twice")
    if len(found) > MEMBERS_MAX:
        raise InvalidInput(("--members",), f"{len(found)} members", f"{MEMBERS_MAX} at most")
    return tuple(sorted(found))


def _member(text: str) -> str:
    host, _, port = text.partition(":")
    number = int(port) if port.isascii() and port.isdecimal() and len(port) <= 5 else 0
    if not port and ":" not in text:
        number = PORT_DEFAULT
    if not _HOST.fullmatch(host) or not 0 < number < 65_536:
        raise InvalidInput(("--members",), f"{quoted(text)} is no address", "host:port, with commas")
    return f"{host}:{number}"
