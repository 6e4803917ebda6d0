"""Keeps the beginning and the end of an output of any length, in a room that does not grow."""

import codecs
from dataclasses import dataclass, field

from processors.texts import TEXT_JSON_BYTES_MAX, beginning, end

HALF_BYTES_MAX = 32 * 1024


@dataclass(slots=True)
class Capture:
    """Owns what was kept of one stream."""

    size: int = 0
    _head: bytearray = field(default_factory=bytearray)
    _tail: bytearray = field(default_factory=bytearray)

    def add(self, data: bytes) -> None:
        self.size += len(data)
        room = HALF_BYTES_MAX - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 4 * HALF_BYTES_MAX:  # not at each piece: that would move the whole tail for a byte
            del self._tail[:-HALF_BYTES_MAX]

    def text(self) -> tuple[str, bool]:
        """What was kept, and whether anything is missing; a line in it then says how much. Bytes that are not UTF-8
        are replaced, and no character is cut in two."""
        if self.size <= 2 * HALF_BYTES_MAX:
            whole = (self._head + self._tail).decode("utf-8", "replace")
            if beginning(whole) == whole:
                return whole, False
            half = len(whole) // 2
            head, tail = whole[:half], whole[half:]
        else:
            head = codecs.getincrementaldecoder("utf-8")("replace").decode(bytes(self._head))
            tail = _from_a_character_on(bytes(self._tail[-HALF_BYTES_MAX:])).decode("utf-8", "replace")
        head, tail = beginning(head, TEXT_JSON_BYTES_MAX // 2), end(tail, TEXT_JSON_BYTES_MAX // 2)
        return f"{head}\n[… of {self.size} bytes, only the beginning and the end were kept …]\n{tail}", True

    def last_line(self) -> str:
        """The last line that has something in it, or nothing."""
        lines = (self._tail or self._head)[-4096:].decode("utf-8", "replace").splitlines()
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _from_a_character_on(data: bytes) -> bytes:
    continued = 0
    while continued < min(3, len(data)) and data[continued] & 0xC0 == 0x80:
        continued += 1
    return data[continued:]
