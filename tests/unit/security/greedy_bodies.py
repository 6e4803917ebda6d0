"""Bodies of at most the size limit that are made to cost as much as they can, each by its name."""

from collections.abc import Callable

from hascheduler.api.routing.route_rules import BODY_BYTES_MAX, LARGE_BODY_BYTES_MAX

LARGE, SMALL = LARGE_BODY_BYTES_MAX, BODY_BYTES_MAX
Fill = Callable[[int], bytes]


def times(piece: bytes, size: int, opened: bytes = b"[", closed: bytes = b"]") -> bytes:
    """A list, or whatever ``opened`` and ``closed`` make of it, of as many of ``piece`` as fit into ``size``."""
    count = max((size - len(opened) - len(closed) + 1) // (len(piece) + 1), 1)
    return opened + b",".join([piece] * count) + closed


def _distinct(count: int, form: bytes, size: int, opened: bytes, closed: bytes) -> bytes:
    room = size - len(opened) - len(closed)
    one = len(form % (min(count, room) - 1)) + 1
    return opened + b",".join([form % n for n in range(min(count, room // one))]) + closed


FILLS: dict[str, Fill] = {
    "lists nested thirty deep": lambda size: times(b"[" * 30 + b"]" * 30, size - 1, b"[", b",0]"),
    "small numbers": lambda size: times(b"1", size),
    "as many objects as are read": lambda size: _distinct(33_000, b'{"a":1%05d}', size, b"[", b"]"),
    "empty objects": lambda size: times(b"{}", size),
    "empty lists": lambda size: times(b"[]", size),
    "short keys": lambda size: _distinct(10**6, b'"%06x":0', size, b"{", b"}"),
    "as many keys as are read": lambda size: _distinct(49_000, b'"%06d":0', size, b"{", b"}"),
    "one key again and again": lambda size: times(b'"a":0', size, b"{", b"}"),
    "keys with a dollar": lambda size: times(b'"$a":0', size, b"{", b"}"),
    "escaped keys": lambda size: _distinct(10**6, b'"\\u0041%06x\\n":"\\n"', size, b"{", b"}"),
    "one long text": lambda size: b'"' + b"x" * (size - 2) + b'"',
    "a text of escapes": lambda size: b'"' + b"\\n" * (size // 2 - 1) + b'"',
    "a text of escaped quotes": lambda size: b'"' + b'\\"' * (size // 2 - 1) + b'"',
    "a text of surrogate pairs": lambda size: b'"' + b"\\ud83d\\ude00" * (size // 12 - 1) + b'"',
    "a text that becomes four times as large": lambda size: b'"' + b"x" * (size - 8) + "😀".encode() + b'"',
    "texts of sixty-three KiB": lambda size: times(b'"' + b"\\n" * 32_000 + b'"', size),
    "texts of nine KiB": lambda size: times(b'"' + b"x" * 9_000 + b'"', size),
    "texts of eighty": lambda size: times(b'"' + b"x" * 78 + b'"', size),
    "long fractions": lambda size: times(b"0.1234567890123456789012345678901234567890123456789e-300", size),
    "numbers of five thousand digits": lambda size: times(b"0." + b"7" * 4_990, size),
    "one endless number": lambda size: b"0." + b"1" * (size - 2),
    "one endless integer": lambda size: b"9" * size,
    "blanks": lambda size: b" " * (size - 2) + b"{}",
    "blanks behind": lambda size: b"{}" + b" " * (size - 2),
    "blanks between": lambda size: times(b" " * 1_000 + b"1", size),
    "open brackets": lambda size: b"[" * size,
    "open braces": lambda size: b'{"a":' * (size // 5),
    "lists that are a little larger than a window": lambda size: times(
        b"[" * 20 + b"1," * 4_200 + b"1" + b"]" * 20, size
    ),
    "windows that are not closed": lambda size: (
        b"[" * 20 + times(b"[" + b'{"a":1},' * 1_100 + b"{}]", size - 40) + b"]" * 20
    ),
    "no UTF-8 at the end": lambda size: b'"' + b"x" * (size - 3) + b'\xff"',
    "a fault at the end": lambda size: b"[" + b"\n" * (size - 2) + b"}",
    "a fault at the end of one line": lambda size: b"[" + b" " * (size - 2) + b"}",
}  # fmt: skip


def batch(job: bytes, count: int = 1_000) -> bytes:
    body = b'{"jobs":[' + b",".join([job] * count) + b"]}"
    assert len(body) <= LARGE, len(body)
    return body


def _job(payload: bytes) -> bytes:
    return b'{"definition":"log","payload":' + payload + b"}"


def _nested(depth: int, key: bytes, inner: bytes) -> bytes:
    return (b'{"' + key + b'":') * depth + inner + b"}" * depth


BATCHES: dict[str, Callable[[], bytes]] = {
    "650 small numbers each": lambda: batch(_job(times(b"1", 1_300))),
    "650 numbers of two digits each": lambda: batch(_job(times(b"12", 1_950))),
    "as many values as are read": lambda: batch(_job(times(b"12", 270))),
    "as much text as there is room": lambda: batch(_job(b'"' + b"x" * 2_000 + b'"')),
    "texts of escapes": lambda: batch(_job(b'"' + b"\\u0007" * 340 + b'"')),
    "texts that become four times as large": lambda: batch(_job(b'"' + b"x" * 2_000 + "😀".encode() + b'"')),
    "fifty unknown fields each": lambda: batch(_distinct(48, b'"%d":0', 8_000, b"{", b"}")),
    "fifty unknown fields with long names each": lambda: batch(
        _distinct(48, b'"' + b"k" * 30 + b'%d":0', 2_000, b"{", b"}")
    ),
    "twelve thousand unknown fields in each of four": lambda: batch(
        _distinct(12_000, b'"%d":0', 200_000, b"{", b"}"), 4
    ),
    "ten thousand wrong labels in one": lambda: batch(
        b'{"definition":"log","labels":' + _distinct(10_000, b'"a b%d":0', 200_000, b"{", b"}") + b"}", 1
    ),
    "ten thousand wrong resources in one": lambda: batch(
        b'{"definition":"log","resources":' + _distinct(10_000, b'"a b%d":0', 200_000, b"{", b"}") + b"}", 1
    ),
    "long error texts": lambda: batch(_job(b"1")[:-1] + b',"priority":"' + b"x" * 2_000 + b'"}'),
    "credentials that never end": lambda: batch(b'{"definition":"' + b"a://b:" * 325 + b'"}'),
    "names of authorities": lambda: batch(_nested(1, b"a." * 250 + b"://:" + b"a." * 250, b"0")),
    "a thousand texts to wait for in each of a hundred": lambda: batch(
        b'{"definition":"log","depends_on":' + times(b'"job:x"', 7_900) + b"}", 95
    ),
    "waiting for all that came before": lambda: b'{"jobs":['
    + b",".join(
        b'{"definition":"log","ref":"r%d","depends_on":[%b]}' % (n, b",".join(b'"ref:r%d"' % m for m in range(n)))
        for n in range(400)
    )
    + b"]}",
    "numbers and no jobs": lambda: batch(b"1"),
    "lists nested in lists": lambda: batch(_job(b"[" * 28 + b"]" * 28)),
}  # fmt: skip
REDACTIONS: dict[str, bytes] = {
    "nested keys of authorities": _nested(
        29, (b"a." * 32 + b"://:" + b"a." * 30)[:128], _distinct(50, b'"$%d":0', 4_000, b"{", b"}")
    ),
    "one key of authorities": _nested(1, b"a://b:" * 40_000, b'{"$0":0}'),
}
"""Of a few kB, for any route: their texts go into the problem."""
