"""Which replicas a program or a command asks, and how: from options, variables ``HASCHEDULER_…`` and contexts.

A context is a named set of URLs and credentials in ``~/.config/hascheduler/contexts.toml``, or in the file that
HASCHEDULER_CONFIG names::

    current = "prod"

    [contexts.prod]
    urls = ["https://replica-1:8080", "https://replica-2:8080"]
    token_file = "/home/ann/.hascheduler-token"

An option comes before a variable, a variable before a context, a context before a default. A context that an option
names comes before variables. Any other is left out if a URL is given, so that its token goes to its own URLs alone.
"""

import json
import os
import ssl
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.values.error_texts import expected_name, quoted
from hascheduler.tls import PemFile, client_context

DEFAULT_URL = "http://127.0.0.1:8080"
_VARIABLE = "HASCHEDULER_"


@dataclass(frozen=True, slots=True)
class Context:
    """The values of one context; an empty one is not set."""

    urls: list[str] = field(default_factory=list)
    token: str = ""
    token_file: str = ""
    ca_file: str = ""
    output: str = ""

    @property
    def url(self) -> str:
        return ",".join(self.urls)


@dataclass(frozen=True, slots=True)
class Contexts:
    """What the file holds; ``current`` is the name of the one in use, or ""."""

    current: str
    named: Mapping[str, Context]

    def get(self, name: str, named_by: str) -> Context:
        """Return the context of that name; raise `InvalidInput` if there is none."""
        if name not in self.named:
            problem = f"no context {quoted(name)}" if name else "no context is in use"
            raise InvalidInput((named_by,), problem, expected_name(name, self.named))
        return self.named[name]


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach the replicas: ``url`` is one URL or several with commas, ``url_from`` where it was found."""

    url: str
    url_from: str
    token_from: tuple[str, str]
    """Where the token was found, and the token or the file that holds it."""
    output: str
    certificates: tuple[PemFile, PemFile, PemFile]
    """The authorities, and the client's certificate and its key."""

    def named(self, error: InvalidInput) -> InvalidInput:
        """Return the error of a client, which says where the URL was found if that is wrong."""
        return InvalidInput((self.url_from,), error.problem, error.expected) if error.path == ("urls",) else error

    def token(self) -> str | None:
        """Return the token; None if there is none."""
        place, text = self.token_from
        return checked_token(place, _text_of(place, text) if place.lower().endswith("_file") else text)

    def tls(self) -> ssl.SSLContext | None:
        """Return the context for HTTPS; None if only the authorities of this machine are trusted."""
        ca, cert, key = self.certificates
        if bool(cert) != bool(key):
            raise InvalidInput((cert.name,), f"and {key.name} must be set together", "both, or none")
        return client_context(ca, cert, key) if ca or cert else None


def find_access(url: str | None = None, context: str | None = None, ca_file: str | None = None) -> Access:
    """Return how to reach the replicas, from options, the environment and the contexts.

    It and what it returns raise `InvalidInput`, which names the option, variable or context, for values of no use.
    """
    kept, of = Context(), "context"
    if context or not (url or _set("URL")):
        name, contexts = context or _set("CONTEXT"), read_contexts()
        named_by = "--context" if context else f"{_VARIABLE}CONTEXT" if name else str(contexts_file())
        if name := name or contexts.current:
            kept, of = contexts.get(name, named_by), f"context {name}"

    def first(*what: str, option: str | None = None) -> tuple[str, str]:
        """Return the place of highest rank that has one of these, and the value; two empty texts if there is none."""
        of_variables = [(f"{_VARIABLE}{one.upper()}", _set(one.upper())) for one in what]
        of_context = [(f"{of}: {one}", getattr(kept, one)) for one in what]
        places = of_context + of_variables if context else of_variables + of_context
        by_option = (f"--{what[0].replace('_', '-')}", option or "")
        return next((place for place in (by_option, *places) if place[1]), ("", ""))

    url_from, url = first("url", option=url)
    return Access(
        url or DEFAULT_URL,
        url_from or "url",
        first("token", "token_file"),
        kept.output,
        (
            PemFile(*first("ca_file", option=ca_file)),
            PemFile(f"{_VARIABLE}CLIENT_CERT_FILE", _set("CLIENT_CERT_FILE")),
            PemFile(f"{_VARIABLE}CLIENT_KEY_FILE", _set("CLIENT_KEY_FILE")),
        ),
    )


def checked_token(place: str, text: str) -> str | None:
    """Return the token, or None if there is none; raise `InvalidInput`, which does not show it, if it can't be one."""
    text = text.strip()
    if not text.isascii() or not text.isprintable() or " " in text:
        raise InvalidInput((place,), "contains no token", "only the token, hsk_…")
    return text or None


def contexts_file() -> Path:
    """Return the path of the file with the contexts, which need not exist."""
    folder = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(_set("CONFIG") or os.path.join(folder, "hascheduler", "contexts.toml"))


def read_contexts() -> Contexts:
    """Return what the file holds, nothing if there is none; raise `InvalidInput` of one line if it is damaged."""
    path = contexts_file()
    try:
        held = tomllib.loads(_text_of(str(path), path)) if os.path.exists(path) else {}
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput((str(path),), f"is not TOML: {error}", "a file of `hascheduler context set`") from None
    current, named = held.pop("current", ""), held.pop("contexts", {})
    if held or not isinstance(current, str) or not isinstance(named, dict):
        raise InvalidInput((str(path),), "is not a file of contexts", "only `current` and `[contexts.NAME]`")
    return Contexts(current, {name: _context(f"{path}: contexts.{name}", values) for name, values in named.items()})


def _context(place: str, values: object) -> Context:
    known = [one.name for one in fields(Context)]
    if not isinstance(values, dict):
        raise InvalidInput((place,), quoted(values), f"some of {', '.join(known)}")
    for key, value in values.items():
        if key not in known:
            raise InvalidInput((place, key), "unknown", expected_name(key, known))
        texts: list[Any] = [value] if key != "urls" else value if isinstance(value, list) else [None]
        if not all(isinstance(text, str) and text.isprintable() for text in texts):
            raise InvalidInput((place, key), quoted(value), "a list of texts" if key == "urls" else "a text")
        if key == "urls" and not all(text.startswith(("http://", "https://")) for text in texts):
            raise InvalidInput((place, key), ", ".join(texts), f"URLs, such as {DEFAULT_URL}")
    return Context(**values)


def write_contexts(contexts: Contexts) -> None:
    """Replace the file, which only its owner may read; raise `InvalidInput` if it can't be written."""
    lines = [f"current = {_toml(contexts.current)}"]
    for name, context in contexts.named.items():
        _context(f"context {name}", asdict(context))
        lines += ["", f"[contexts.{_toml(name)}]"]
        lines += [f"{key} = {_toml(value)}" for key, value in asdict(context).items() if value]
    path = contexts_file().resolve()  # of a link the target
    if path.exists() and not path.is_file():
        raise InvalidInput((str(path),), "is not a file", "a file, which this command may replace")
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(new, "x", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.write("\n".join([*lines, ""]))
        new.replace(path)
    except OSError as error:
        raise InvalidInput((str(path),), error.strerror or "can't be written", "a writable file") from None
    finally:
        with suppress(OSError):
            new.unlink()


_toml = partial(json.dumps, ensure_ascii=False)
"""Returns a value as TOML: printable texts are the same there as in JSON."""


def _text_of(place: str, path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not text"
        raise InvalidInput((place,), f"{path}: {reason}", "a readable file") from None


def _set(variable: str) -> str:
    return os.environ.get(f"{_VARIABLE}{variable}", "")
