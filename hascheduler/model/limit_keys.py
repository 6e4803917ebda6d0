"""Keys of jobs: the field of a job that a key names, and its value. Limits per key and unique keys count by them.

A key is ``payload.<field>`` (nested fields joined by dots), ``label.<key>`` or ``target``. Its value is computed once,
when the job is made, and stored with it: so no mirror needs a payload, and a later change of the definition moves no
job to another value. A scalar is its text, so the number 5 and the text "5" are one value; a text that is too long is
its beginning and its hash. A job without a value there (no such field, null, an empty text, a list or an object) has
the empty text: all such jobs are one group, lest a misspelt field lift the limit.

Jobs of one tenant and definition that have the same values at all keys of ``by`` have one *unique key*, which is stored
with the job that holds it. A later submit under that key finds the holder:

============== ======================================== ==========================================================
on_duplicate   the holder keeps its key                 else
============== ======================================== ==========================================================
``keep_first`` until it has ended, and with a           it loses the key, and the new job is submitted
               ``period`` for that long after its
               submission
``replace``    never                                    never dispatched: it is cancelled, and the new job takes its
                                                        place; else it goes on, and the new job waits too
``debounce``   never                                    as ``replace``, and the new job waits for a ``period``;
                                                        once a row of such jobs has waited for ``max_wait``, the
                                                        holder goes on, and the new job begins another row
============== ======================================== ==========================================================

The key is released lazily, by the submit that takes it: no move of a job touches it.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Any

from hascheduler.errors import InvalidInput
from hascheduler.model.values.instants import WallMs

LimitKeys = tuple[tuple[str, str], ...]
"""The keys of a job, each with its value."""
KEY_CHARACTERS_MAX = 160
VALUE_CHARACTERS_MAX = 128
KEY_LIMITS_MAX = 4
"""The most limits of one definition: each costs every dispatch of its jobs a lookup."""
_BEGINNING = 63
_HASH_CHARACTERS = 64
_PAYLOAD, _LABEL, _TARGET = "payload.", "label.", "target"
_SEGMENT = r"[A-Za-z0-9_-]+"
LIMIT_KEY_PATTERN = rf"{_TARGET}|payload(\.{_SEGMENT})+|label\.[A-Za-z0-9][A-Za-z0-9._-]*"
_KEY = re.compile(LIMIT_KEY_PATTERN)
_EXPECTED = "payload.<field>, label.<key> or target, such as payload.customer"


def checked_limit_key(key: object) -> str:
    """Return ``key``; raise `InvalidInput` if it is not a valid key."""
    if not isinstance(key, str) or len(key) > KEY_CHARACTERS_MAX or not _KEY.fullmatch(key):
        raise InvalidInput((), f"{str(key)[:64]!r} is not a key of a job", _EXPECTED)
    return key


def limit_keys(keys: Iterable[str], payload: Any, target: str, labels: Mapping[str, Any]) -> LimitKeys:
    """Return the value at each of ``keys`` of a job with that payload, target and labels."""
    return tuple((key, _text(_found(key, payload, target, labels))) for key in keys)


def _found(key: str, payload: Any, target: str, labels: Mapping[str, Any]) -> Any:
    if key == _TARGET:
        return target
    if key.startswith(_LABEL):
        return labels.get(key.removeprefix(_LABEL))
    for field in key.removeprefix(_PAYLOAD).split("."):
        if not isinstance(payload, Mapping):
            return None
        payload = payload.get(field)
    return payload


def _text(value: Any) -> str:
    match value:
        case str():
            return _bounded(value)
        case bool():
            return "true" if value else "false"
        case int():
            return _bounded(_digits(value))
        case float():
            return _digits(int(value)) if value.is_integer() else repr(value)
        case _:
            return ""


def _digits(value: int) -> str:
    # Python does not write numbers of more than 4,300 digits in base ten.
    return str(value) if value.bit_length() <= 512 else f"{value:#x}"


def _bounded(text: str) -> str:
    if len(text) <= VALUE_CHARACTERS_MAX:
        return text
    return f"{text[:_BEGINNING]}…{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:_HASH_CHARACTERS]}"


class OnDuplicate(StrEnum):
    KEEP_FIRST = "keep_first"
    REPLACE = "replace"
    DEBOUNCE = "debounce"


@dataclass(frozen=True, slots=True)
class UniqueKey:
    """The key that a new job is to hold, and the rule by which it gets it.

    ``period_ms`` is None for ``replace`` and may be for ``keep_first``; only ``debounce`` has ``max_wait_ms``.
    ``since_ms`` is when the first job of its row was submitted, among those that it replaces; None: it is the first.
    """

    digest: str
    on_duplicate: OnDuplicate
    period_ms: int | None = None
    max_wait_ms: int | None = None
    since_ms: WallMs | None = None

    @property
    def replaces(self) -> bool:
        """Return True if the new job may replace another one."""
        return self.on_duplicate is not OnDuplicate.KEEP_FIRST

    def not_before_ms(self, own_ms: WallMs | None, submitted_at_ms: WallMs) -> WallMs | None:
        """Return when the job submitted then may begin; ``own_ms`` is the time that its submit asked for."""
        if self.on_duplicate is not OnDuplicate.DEBOUNCE or self.period_ms is None or self.max_wait_ms is None:
            return own_ms
        since_ms = submitted_at_ms if self.since_ms is None else self.since_ms
        return WallMs(max(own_ms or 0, min(submitted_at_ms + self.period_ms, since_ms + self.max_wait_ms)))
