"""The end of a handler's traceback, as it may be kept beside the error: without secrets, and never large."""

from hascheduler.model.redaction import redacted

TRACEBACK_BYTES_MAX = 16 * 1024
TRACEBACKS_KEPT_MAX = 3
"""Of so many newest attempts of a job; with all of them a job of many attempts would take megabytes."""
_LOOKED_AT_MAX = 4 * TRACEBACK_BYTES_MAX


def kept_traceback(text: str | None) -> str | None:
    """The last `TRACEBACK_BYTES_MAX` bytes of ``text``, redacted, from the beginning of a line where one is near; None
    where there is none. What was cut off is marked by …, and a secret that the cut would divide is left out whole."""
    tail = (text or "").replace("\0", "").encode("utf-8", "replace").decode().strip()
    if len(tail) > _LOOKED_AT_MAX:
        # Up to the next blank: what is left of the word before it may be half a secret, which nothing would recognise.
        _, _, tail = tail[-_LOOKED_AT_MAX:].replace("\n", " \n").partition(" ")
        tail = f"…{tail}".replace(" \n", "\n")
    encoded = redacted(tail).encode()
    if len(encoded) <= TRACEBACK_BYTES_MAX:
        return encoded.decode() or None
    end = encoded[-(TRACEBACK_BYTES_MAX - 4) :].decode("utf-8", "ignore")
    _, newline, lines = end.partition("\n")
    return f"…\n{lines if newline and lines else end}"
