"""Texts from outside (a response, a program's output), cut to fit into a result or an error."""

import orjson

TEXT_JSON_BYTES_MAX = 100 * 1024
"""The largest text in a result. A result is at most 256 KiB of JSON, where one byte of output may become six."""


def cut(text: str, json_bytes_max: int = TEXT_JSON_BYTES_MAX, *, keep_end: bool = False) -> str:
    """Return as much of the beginning (or of the end) as fits into that much JSON."""
    while (size := len(orjson.dumps(text))) > json_bytes_max:
        kept = len(text) * json_bytes_max // size
        text = text[len(text) - kept :] if keep_end else text[:kept]
    return text


def one_line(text: str, length_max: int = 300) -> str:
    """Return the text on one line, without control characters, shortened."""
    line = " ".join("".join(character if character.isprintable() else " " for character in text[:4096]).split())
    return line if len(line) <= length_max else f"{line[: length_max - 1]}…"
