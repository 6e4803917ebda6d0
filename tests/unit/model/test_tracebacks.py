"""What is kept of a traceback: its end, without secrets, within its limit whatever it holds."""

import pytest

from hascheduler.model.values.redaction import TRACEBACK_BYTES_MAX, kept_traceback

LINE = "  File 'mine.py', line 7, in resize\n"


@pytest.mark.parametrize("text", [None, "", " \n\0"])
def test_nothing_is_kept_of_nothing(text: str | None) -> None:
    assert kept_traceback(text) is None


def test_a_short_one_is_kept_whole_and_a_long_one_from_the_beginning_of_a_line() -> None:
    assert kept_traceback(f"Traceback:\n{LINE}ValueError: no\n") == f"Traceback:\n{LINE}ValueError: no"
    kept = kept_traceback(f"Traceback:\n{LINE * 10_000}ValueError: no") or ""
    first, *lines, last = kept.split("\n")
    assert (first, set(lines), last) == ("…", {LINE.rstrip("\n")}, "ValueError: no")
    assert TRACEBACK_BYTES_MAX - 2 * len(LINE) < len(kept.encode()) <= TRACEBACK_BYTES_MAX


@pytest.mark.parametrize("filler", ["x", "ä", "x ", "\n", "\ud800", "\U0001f642"])
def test_none_exceeds_the_limit(filler: str) -> None:
    for count in (TRACEBACK_BYTES_MAX // 4, TRACEBACK_BYTES_MAX - 3, 5 * TRACEBACK_BYTES_MAX):
        kept = kept_traceback(f"begin {filler * count} end") or ""
        assert len(kept.encode()) <= TRACEBACK_BYTES_MAX
        assert kept.endswith("end")


@pytest.mark.parametrize("limit", [TRACEBACK_BYTES_MAX, 4 * TRACEBACK_BYTES_MAX])
def test_no_cut_leaves_half_a_secret(limit: int) -> None:
    secret = "postgres://me:hunter2-hunter2@there/"
    for after in range(limit - len(secret) - 8, limit + 8):
        text = f"{'before ' * 20_000}{secret} {'y' * (after - 1)}"
        assert "hunter2" not in (kept_traceback(text) or "")
