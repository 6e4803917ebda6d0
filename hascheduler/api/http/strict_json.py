"""Strict JSON: reads a text into a value that can be stored and read back unchanged, or names each place that is wrong.

Refused although Python's reader would take it: NaN and infinities, numbers that become infinite, integers beyond
64 bits, duplicate keys, nesting deeper than 32, texts with lone surrogates, keys that begin with ``$`` (MongoDB's
operators) or hold NUL; also texts and numbers of absurd length.

The cost of a text is bounded by its bytes, by its values (an object or a list counts as two, each further item and each
key as one) and by its wide texts, as one character beyond U+FFFF makes every letter of a text four bytes. Small
pieces are read by the C scanner, larger ones token by token, so that reading goes on in steps of a few milliseconds,
never holds a second form of the whole text, and builds nothing beyond the bounds::

    {"jobs": [ {…}, {…}, … ]}       the outer object and the list are walked through,
               └─┘  └─┘             each job is a piece for the scanner, unless it is larger than a window
"""

import codecs
import json
import math
import re
import sys
from collections.abc import Generator
from enum import Enum, auto
from json.decoder import scanstring  # type: ignore[attr-defined]  # the C one, which only its own module exports
from typing import Any

from hascheduler.api.http.problems import ERRORS_SHOWN_MAX, FieldError, Path

DEPTH_MAX = 32
VALUES_MAX = 20_000
WIDE_BYTES_MAX = 1024 * 1024
TEXT_BYTES_MAX = 1024 * 1024
NUMBER_LENGTH_MAX = 5_000
_INTEGER_MIN, _INTEGER_MAX = -(2**63), 2**63 - 1
_INTEGER_DIGITS_MAX = 20  # more can't be 64 bits, and reading thousands of digits is slow and refused by Python
_TOO_DEEP = ("nested too deeply", f"at most {DEPTH_MAX} levels")
_WINDOW_BYTES = 8 * 1024
_TEXT_WINDOWS_BYTES = (_WINDOW_BYTES, 64 * 1024, TEXT_BYTES_MAX + 1)
_BLANKS_BYTES = 64 * 1024
_LINE_BYTES_MAX = 256 * 1024
_STEP = 2_000
"""How many tokens make a step: some two milliseconds."""
_BYTES_A_TOKEN = 256
"""How many bytes of a text or of blanks cost as much as one token."""

_DIGITS = rf"[0-9]{{1,{NUMBER_LENGTH_MAX}}}"
_TOKEN = re.compile(
    rf"""[ \t\n\r]{{0,64}}(?:
        ([]{{}}[,:])
      | "([^"\\\x00-\x1f]{{0,4096}})"
      | (-?(?:0|[1-9][0-9]{{0,{NUMBER_LENGTH_MAX}}}))((?:\.{_DIGITS})?(?:[eE][-+]?{_DIGITS})?)
      | (true|false|null|NaN|-?Infinity)
    )""".encode(),
    re.VERBOSE,
)
_MARK, _TEXT, _INTEGER, _FRACTION, _WORD = range(1, 6)
_BLANKS = re.compile(rb"[ \t\n\r]{1,%d}" % _BLANKS_BYTES)
_WORDS = {b"true": True, b"false": False, b"null": None}
_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))


class MalformedJson(Exception):
    """Not JSON at all; the text says where and why."""


class UnstorableJson(Exception):
    """JSON, but some places of it can't be kept as they are."""

    def __init__(self, errors: list[FieldError]) -> None:
        super().__init__(str(errors[0]))
        self.errors = errors


class Oversized(Exception):
    """Over a limit of the reader; the text says which."""


def read_json(body: bytes, values_max: int = VALUES_MAX, wide_bytes_max: int = WIDE_BYTES_MAX) -> Any:
    """The value of ``body``; raises `MalformedJson`, `UnstorableJson` or `Oversized`."""
    reader = JsonReader(body, values_max, wide_bytes_max)
    for _ in reader.steps():
        pass
    return reader.value


class _Pairs:
    """An object as it was written, duplicate keys and all."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.pairs = pairs


class _HugeInteger:
    __slots__ = ("digits",)

    def __init__(self, digits: int) -> None:
        self.digits = digits


class _Doubtful(Exception):
    """The scanner has met something that only the careful scanner can judge."""


class _Expects(Enum):
    VALUE = auto()
    VALUE_OR_END = auto()
    KEY = auto()
    KEY_OR_END = auto()
    COLON = auto()
    COMMA_OR_END = auto()


def _doubt(_text: str) -> Any:
    raise _Doubtful


def _surely_distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _Doubtful
    return value


def _surely_small(text: str) -> int:
    if len(text) >= _INTEGER_DIGITS_MAX - 1:  # 18 digits and a sign always fit
        raise _Doubtful
    return int(text)


def _surely_finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _Doubtful
    return value


def _integer(text: str) -> int | _HugeInteger:
    return int(text) if len(text) <= _INTEGER_DIGITS_MAX else _HugeInteger(len(text.lstrip("-")))


_SCANNER = json.JSONDecoder(
    object_pairs_hook=_surely_distinct, parse_int=_surely_small, parse_float=_surely_finite, parse_constant=_doubt
)
_CAREFUL_SCANNER = json.JSONDecoder(object_pairs_hook=_Pairs, parse_int=_integer)


class JsonReader:
    """Reads one text; when its `steps` are through, ``value`` is there."""

    def __init__(self, body: bytes, values_max: int = VALUES_MAX, wide_bytes_max: int = WIDE_BYTES_MAX) -> None:
        self.value: Any = None
        self._body = body
        self._values_max = values_max
        self._values = 0
        self._wide_bytes_max = wide_bytes_max
        self._wide_bytes = 0
        self._work = 0
        self._windows_missed_max = 2 * len(body) // _WINDOW_BYTES + DEPTH_MAX
        self._errors: list[FieldError] = []
        self._containers: list[list[Any] | dict[str, Any]] = []
        self._path: list[str | int] = []

    def steps(self) -> Generator[None, None, None]:
        """Read, and yield every few milliseconds; raises as `read_json`."""
        at = yield from self._read_value()
        while at < len(self._body):
            blanks = _BLANKS.match(self._body, at)
            if blanks is None:
                raise self._malformed("Extra data", at)
            at = blanks.end()
            yield
        if self._errors:
            raise UnstorableJson(self._errors)

    def _read_value(self) -> Generator[None, None, int]:
        """Read until the outermost value is complete; returns where it ends."""
        body, containers, path = self._body, self._containers, self._path
        at, expects = 0, _Expects.VALUE
        value: Any
        while True:
            if self._work >= _STEP:
                self._work = 0
                yield
            self._work += 1
            token = _TOKEN.match(body, at)
            kind = None if token is None else token.lastindex
            if token is None:
                blanks = _BLANKS.match(body, at)
                if blanks is not None:
                    at = blanks.end()
                    self._work += len(blanks[0]) // _BYTES_A_TOKEN
                    continue
            if token is not None and kind == _MARK:
                mark, place = token[1], token.end() - 1
                if expects is _Expects.COMMA_OR_END or expects is _Expects.COLON:
                    closes = b"]" if type(containers[-1]) is list else b"}"
                    if expects is _Expects.COLON and mark == b":":
                        self._count(1)
                        expects = _Expects.VALUE
                    elif expects is _Expects.COMMA_OR_END and mark == b",":
                        self._count(1)
                        if type(containers[-1]) is list:
                            path[-1] += 1  # type: ignore[operator]  # a list's place is a number
                            expects = _Expects.VALUE
                        else:
                            expects = _Expects.KEY
                    elif expects is _Expects.COMMA_OR_END and mark == closes:
                        if self._close():
                            return place + 1
                    else:
                        raise self._unexpected(expects, place)
                    at = place + 1
                    continue
                if expects in (_Expects.VALUE, _Expects.VALUE_OR_END) and mark in (b"[", b"{"):
                    piece = self._scanned(place)
                    if piece is None:
                        value = [] if mark == b"[" else {}
                        self._open(value)
                        at = place + 1
                        expects = _Expects.VALUE_OR_END if mark == b"[" else _Expects.KEY_OR_END
                        continue
                    value, at = piece
                    if self._put(value):
                        return at
                    expects = _Expects.COMMA_OR_END
                    continue
                if (expects is _Expects.VALUE_OR_END and mark == b"]") or (
                    expects is _Expects.KEY_OR_END and mark == b"}"
                ):
                    at, expects = place + 1, _Expects.COMMA_OR_END
                    if self._close():
                        return at
                    continue
                raise self._unexpected(expects, place)
            if token is None:
                if body[at : at + 1] != b'"' or expects in (_Expects.COLON, _Expects.COMMA_OR_END):
                    raise self._unexpected(expects, at)
                value, at = yield from self._read_text(at)
            elif expects in (_Expects.COLON, _Expects.COMMA_OR_END):
                raise self._unexpected(expects, _begin(token))
            else:
                at = token.end()
                value = None
                if kind == _TEXT:
                    value = self._decoded(token[_TEXT], token.start(_TEXT))
            if expects in (_Expects.KEY, _Expects.KEY_OR_END):
                if token is not None and kind != _TEXT:
                    raise self._unexpected(expects, _begin(token))
                path[-1] = value
                self._judge_key(value)
                expects = _Expects.COLON
                continue
            if token is None:
                self._judge_text(value)
            elif kind in (_FRACTION, _INTEGER):
                value = self._number(token)
            elif kind == _WORD:
                value = self._word(token[_WORD])
            if type(value) is str and not value.isascii():
                self._count_wide(value)
            if self._put(value):
                return at
            expects = _Expects.COMMA_OR_END

    def _count(self, values: int) -> None:
        self._values += values
        if self._values > self._values_max:
            raise Oversized(f"more than {self._values_max} values and keys")

    def _count_wide(self, value: Any) -> None:
        """The texts in ``value`` that take more room than they had in UTF-8."""
        self._wide_bytes += _wide_bytes(value)
        if self._wide_bytes > self._wide_bytes_max:
            raise Oversized(f"texts beyond ASCII that take more than {self._wide_bytes_max} bytes when they are read")

    def _open(self, container: list[Any] | dict[str, Any]) -> None:
        if len(self._containers) >= DEPTH_MAX:
            self._errors.append(FieldError(tuple(self._path), *_TOO_DEEP))
            raise UnstorableJson(self._errors)  # what is inside can't be passed over without reading it
        self._count(2)
        self._put(container)
        self._containers.append(container)
        self._path.append(0 if isinstance(container, list) else "")

    def _close(self) -> bool:
        """Whether that was the outermost."""
        closed = self._containers.pop()
        self._path.pop()
        if not self._containers:
            self.value = closed
        return not self._containers

    def _put(self, value: Any) -> bool:
        """Where it belongs; whether it is the outermost."""
        if not self._containers:
            self.value = value
            return True
        container = self._containers[-1]
        if isinstance(container, list):
            container.append(value)
        else:
            container[self._path[-1]] = value  # type: ignore[index]  # an object's place is a key
        return False

    def _scanned(self, at: int) -> tuple[Any, int] | None:
        """The object or list at ``at`` and where it ends, if it ends within a window."""
        if self._windows_missed_max < 0:
            return None
        piece = self._body[at : at + _WINDOW_BYTES]
        text = self._decoded(piece, at, is_cut=True)
        try:
            # Only these can be in keys and texts what the scanner lets pass.
            if b"\\" in piece or b'"$' in piece:
                raise _Doubtful
            value, length = _SCANNER.raw_decode(text)
            outside = b"".join(piece[: _bytes_of(text, length)].split(b'"')[::2])
            opened = outside.count(b"[") + outside.count(b"{")
            if len(self._path) + opened > DEPTH_MAX:
                raise _Doubtful
            values = 2 * opened + outside.count(b",") + outside.count(b":")
            self._work += values // 2
        except _Doubtful:
            try:
                raw, length = _CAREFUL_SCANNER.raw_decode(text)
            except (json.JSONDecodeError, RecursionError):
                self._miss()
                return None
            value, values = self._checked(raw, tuple(self._path))
            self._work += 2 * values
        except (json.JSONDecodeError, RecursionError):
            self._miss()
            return None
        self._work += length // _BYTES_A_TOKEN
        self._count(values)
        if not text.isascii():
            self._count_wide(value)
        return value, at + _bytes_of(text, length)

    def _miss(self) -> None:
        # So that the scanner's work for nothing is bounded by the size of the text.
        self._windows_missed_max -= 1
        self._work += _STEP // 8

    def _read_text(self, at: int) -> Generator[None, None, tuple[str, int]]:
        """The text whose quote is at ``at``, with escapes or long, and where it ends."""
        begin = at + 1
        for size in _TEXT_WINDOWS_BYTES:
            piece = self._body[begin : begin + size]
            text = self._decoded(piece, begin, is_cut=True)
            self._work += len(piece) // _BYTES_A_TOKEN
            try:
                value, length = scanstring(text, 0, True)
            except json.JSONDecodeError as error:
                unterminated = error.msg.startswith("Unterminated")
                if len(piece) < size or not (unterminated or error.pos >= len(text) - 12):
                    place = at if unterminated else begin + _bytes_of(text, error.pos)
                    raise self._malformed(error.msg, place) from None
            else:
                return value, begin + _bytes_of(text, length)
            if self._work >= _STEP:
                self._work = 0
                yield
        self._wrong(tuple(self._path), f"a text of more than {TEXT_BYTES_MAX} bytes", "a shorter one")
        raise UnstorableJson(self._errors)

    def _number(self, token: re.Match[bytes]) -> Any:
        body, end = self._body, token.end()
        integer, rest = token[_INTEGER], token[_FRACTION]
        if body[end : end + 1].isdigit() and (rest or integer not in (b"0", b"-0")):
            self._wrong(tuple(self._path), f"a number of more than {NUMBER_LENGTH_MAX} digits", "a 64-bit number")
            raise UnstorableJson(self._errors)
        if rest:
            value = float(integer + rest)
            if not math.isfinite(value):
                self._judge(value, tuple(self._path))
            return value
        found = _integer(integer.decode())
        self._judge(found, tuple(self._path))
        return found

    def _word(self, word: bytes) -> Any:
        if word in _WORDS:
            return _WORDS[word]
        value = float(word)
        self._judge(value, tuple(self._path))
        return value

    def _judge_text(self, value: str) -> None:
        if not _is_unicode(value):
            self._judge(value, tuple(self._path))

    def _judge_key(self, key: str) -> None:
        problem = _key_problem(key, key in self._containers[-1])
        if problem is not None:
            self._wrong(tuple(self._path), *problem)

    def _checked(self, value: Any, path: Path) -> tuple[Any, int]:
        """``value`` as the careful scanner gives it, as it is to be, and how much it counts."""
        if not isinstance(value, _Pairs | list):
            return self._judge(value, path), 0
        if len(path) >= DEPTH_MAX:
            self._wrong(path, *_TOO_DEEP)
            return None, 2
        counted = 2
        if isinstance(value, list):
            items = []
            for index, item in enumerate(value):
                checked, count = self._checked(item, (*path, index))
                items.append(checked)
                counted += count + 1
            return items, counted - bool(value)
        members: dict[str, Any] = {}
        for key, item in value.pairs:
            here = (*path, key)
            problem = _key_problem(key, key in members)
            if problem is not None:
                self._wrong(here, *problem)
            members[key], count = self._checked(item, here)
            counted += count + 2
        return members, counted - bool(value.pairs)

    def _judge(self, value: Any, path: Path) -> Any:
        match value:
            case str() if not _is_unicode(value):
                self._wrong(path, "holds half of a surrogate pair", "Unicode text")
            case _HugeInteger():
                self._wrong(path, f"an integer of {value.digits} digits", "a 64-bit integer, or a text")
            case bool():
                pass
            case int() if not _INTEGER_MIN <= value <= _INTEGER_MAX:
                self._wrong(path, f"{value} does not fit into 64 bits", "a 64-bit integer, or a text")
            case float() if not math.isfinite(value):
                self._wrong(path, f"{value} is not a JSON number", "a finite number")
        return value

    def _wrong(self, path: Path, problem: str, expected: str) -> None:
        self._errors.append(FieldError(path, problem, expected))
        if len(self._errors) >= ERRORS_SHOWN_MAX:
            raise UnstorableJson(self._errors)

    def _decoded(self, piece: bytes, at: int, *, is_cut: bool = False) -> str:
        """Of a truncated piece, the last character may be left out."""
        try:
            return codecs.utf_8_decode(piece, "strict", not is_cut)[0]
        except UnicodeDecodeError as error:
            raise MalformedJson(f"not UTF-8 at byte {at + error.start}") from None

    def _unexpected(self, expects: _Expects, at: int) -> MalformedJson:
        match expects:
            case _Expects.KEY | _Expects.KEY_OR_END:
                return self._malformed("Expecting property name enclosed in double quotes", at)
            case _Expects.COLON:
                return self._malformed("Expecting ':' delimiter", at)
            case _Expects.COMMA_OR_END:
                return self._malformed("Expecting ',' delimiter", at)
            case _:
                return self._malformed("Expecting value", at)

    def _malformed(self, message: str, at: int) -> MalformedJson:
        body, message = self._body, message.removesuffix(" at")
        if at < len(body) and body[at] >= 0x80:
            self._decoded(body[at : at + 4], at, is_cut=True)  # that it is not UTF-8 is the better reason
        line_begin = body.rfind(b"\n", max(at - _LINE_BYTES_MAX, 0), at) + 1
        if at - line_begin > _LINE_BYTES_MAX:
            return MalformedJson(f"{message} at byte {at}")
        line = body.count(b"\n", 0, at) + 1
        column = len(body[line_begin:at].translate(None, _CONTINUATION_BYTES)) + 1
        return MalformedJson(f"{message} at line {line}, column {column}")


def _begin(token: re.Match[bytes]) -> int:
    """Where ``token`` begins, after its blanks."""
    return token.end() - len(token[0].lstrip(b" \t\n\r"))


def _key_problem(key: str, is_there: bool) -> tuple[str, str] | None:
    if is_there:
        return "the key is there twice", "each key once"
    if not _is_unicode(key):
        return "the key holds half of a surrogate pair", "Unicode text"
    if key.startswith("$"):
        return "the key begins with $", "keys that begin otherwise"
    if "\0" in key:
        return "the key holds NUL", "keys without NUL"
    return None


def _wide_bytes(value: Any) -> int:
    match value:
        case str():
            return 0 if value.isascii() else sys.getsizeof(value)
        case list():
            return sum(map(_wide_bytes, value))
        case dict():
            return sum(map(_wide_bytes, value)) + sum(map(_wide_bytes, value.values()))
    return 0


def _bytes_of(text: str, length: int) -> int:
    """How many bytes the first ``length`` characters are."""
    return length if text.isascii() else len(text[:length].encode())


def _is_unicode(text: str) -> bool:
    # The common case costs nothing: ASCII is marked on the string.
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
