"""What equal faults have in common, and what a hostile error makes of it."""

import pytest

from hascheduler.api.jobs.errors import NO_ERROR, PATTERN_LENGTH_MAX, error_pattern, first_line


@pytest.mark.parametrize(
    ("errors", "pattern"),
    [
        (("timed out after 30 s", "timed out after 1.5 s"), "timed out after <n> s"),
        (("Timeout: 10.0.0.1:27017 is away", "Timeout: 192.168.1.20:27018 is away"), "Timeout: <n> is away"),
        (("KeyError: 'user'", "KeyError: 'a \"b'"), 'KeyError: "…"'),
        (('no file "a b.png"', "no file `c`", "no file ''"), 'no file "…"'),
        (("can't open x, it isn't there",), "can't open x, it isn't there"),
        (("object at 0x7f3a9c2d1e50", "object at 0x1"), "object at <id>"),
        (
            ("no job job:0194f3a1b2c3000001deadbeef01", "no job job:0194ffffb2c3000001deadbeef02"),
            "no job job:<id>",
        ),
        (("id 123e4567-e89b-12d3-a456-426614174000", "id deadbeef-e89b-42d3-a456-426614174001"), "id <id>"),
        (("the decade of a facade", ), "the decade of a facade"),
        (("order 20300101000000", "order 7"), "order <n>"),
        (("first\nsecond 1", "first\nthird", "\n \t\r\n first \n"), "first"),
        (("a   b\tc", "a b c"), "a b c"),
        (("", " \n\t", "\x1b[2J", "\u202e\u200b"), NO_ERROR),
    ],
)  # fmt: skip
def test_equal_faults_have_one_pattern(errors: tuple[str, ...], pattern: str) -> None:
    assert {error_pattern(error) for error in errors} == {pattern}


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;a title\x07text", "text"),
        ("\u202egnp.exe\u202c", "gnp.exe"),
        ("a\x00b\x9bc", "a bc"),
        ("\ud800 lone", "lone"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
    ],
)
def test_what_moves_a_cursor_or_turns_a_text_is_left_out(error: str, shown: str) -> None:
    assert first_line(error) == shown


@pytest.mark.parametrize(
    "piece", ["x", "1", "a1", '"', "'a", "\x1b", "\x1b[", "\x1b]", "0x", "1.", "deadbeef-", "\u202e", "\n", "日", "<n>"]
)
def test_a_pattern_is_short_however_long_the_error(piece: str) -> None:
    pattern = error_pattern(piece * (1_000_000 // len(piece)))
    assert 0 < len(pattern) <= PATTERN_LENGTH_MAX
    assert pattern.isprintable()
