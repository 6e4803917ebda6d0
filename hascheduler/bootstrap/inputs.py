"""What the operator gives: the addresses of the members in an option, their key and the users' passwords in mounted
files."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hascheduler.bootstrap.secret_files import ADMIN_PASSWORD, PROCESSOR_PASSWORD, SCHEDULER_PASSWORD
from hascheduler.bootstrap.secret_values import PUBLISHED_KEY
from hascheduler.errors import InvalidInput
from hascheduler.model.values.error_texts import quoted
from hascheduler.settings import INSTEAD_OF_PUBLISHED, PUBLISHED, is_published

_KEY = re.compile(r"[A-Za-z0-9+/=]{6,1024}")
PORT_DEFAULT = 27017
MEMBERS_MAX = 7
"""More can't vote in MongoDB."""
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,250}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class Passwords:
    scheduler: str
    processor: str
    admin: str


def read_key(path: Path) -> str:
    """The key as the members use it, without white space; of a list, which is how a key is changed, the first."""
    text = _read(path, "--keyfile")
    first = re.match(r"- *(\S+)", text)
    key = first[1] if first else "".join(text.split())
    if not _KEY.fullmatch(key):
        raise InvalidInput(("--keyfile",), f"{path} holds no key", "6 to 1,024 characters of base64")
    return key


def read_passwords(folder: Path) -> Passwords:
    """One file for each; a line break at its end is not part of the password."""
    return Passwords(*(_password(folder / name) for name in (SCHEDULER_PASSWORD, PROCESSOR_PASSWORD, ADMIN_PASSWORD)))


def refuse_published(key: str, passwords: Passwords) -> None:
    """`InvalidInput` for what `hascheduler secrets --development` writes, which is in the repository."""
    if key == PUBLISHED_KEY:
        raise InvalidInput(("--keyfile",), PUBLISHED, INSTEAD_OF_PUBLISHED)
    if any(map(is_published, (passwords.scheduler, passwords.processor, passwords.admin))):
        raise InvalidInput(("--users-from",), f"one of the passwords {PUBLISHED}", INSTEAD_OF_PUBLISHED)


def _password(path: Path) -> str:
    password = _read(path, "--users-from").rstrip("\r\n")
    if not password or not password.isprintable():
        raise InvalidInput(("--users-from",), f"{path} holds no password", "a line of printable characters")
    return password


def _read(path: Path, option: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput((option,), f"{path}: {error.strerror}", "a readable file") from None
    except UnicodeDecodeError:
        raise InvalidInput((option,), f"{path} is no text", "a file of text") from None


def parse_members(texts: Sequence[str]) -> tuple[str, ...]:
    """``host:port`` of each, from texts with commas, sorted, so that concurrent runs begin with the same member."""
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
