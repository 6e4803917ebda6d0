"""Texts that others wrote (a response, a program's output), cut so that a result or an error can hold them."""

import orjson

TEXT_JSON_BYTES_MAX = 100 * 1024
"""The largest text in a result. A result is at most 256 KiB of JSON, where one byte of output may become six."""


def beginning(text: str, json_bytes_max: int = TEXT_JSON_BYTES_MAX) -> str:
    """As much of the beginning as fits into so much JSON."""
    while (size := len(orjson.dumps(text))) > json_bytes_max:
        text = text[: len(text) * json_bytes_max // size]
    return text


def end(text: str, json_bytes_max: int = TEXT_JSON_BYTES_MAX) -> str:
    """As much of the end as fits into so much JSON."""
    while (size := len(orjson.dumps(text))) > json_bytes_max:
        text = text[len(text) - len(text) * json_bytes_max // size :]
    return text


def one_line(text: str, length_max: int = 300) -> str:
    """``text`` on one line without control characters, shortened."""
    line = " ".join("".join(character if character.isprintable() else " " for character in text[:4096]).split())
    return line if len(line) <= length_max else f"{line[: length_max - 1]}…"
