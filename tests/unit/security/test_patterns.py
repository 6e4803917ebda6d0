"""Every pattern of the package takes linear time for whatever it is given.

Each is found in the sources with the methods that use it, and tried on the texts below, ever longer: what goes back and
forth takes hundreds of milliseconds for the longest, what does not takes one.
"""

import ast
import importlib
import re
import time
from collections.abc import Callable, Iterable
from functools import cache, partial
from itertools import islice, product
from pathlib import Path
from typing import Any

import pytest

from hascheduler.api.http.problems import path_text, problem_body
from hascheduler.errors import InvalidInput
from hascheduler.model.values.error_patterns import PLACEHOLDERS_MAX, error_regex
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.redaction import redacted, redacted_beginning
from tests.tiers import in_tier

ROOT = Path(__file__).parents[3]
_FUNCTIONS = frozenset({"compile", "match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer"})
LENGTHS = (16, 64, 256, 1_024, 4_096, 16_384)
TOO_LONG_S = 0.05

# Patterns that read texts of at most so many characters; all others get a body, a log line or a file.
BOUNDED: dict[str, int] = {
    "hascheduler/model/values/error_patterns.py:_ESCAPE_SEQUENCE": 512,
    "hascheduler/model/values/error_patterns.py:_HEX_ID": 512,
    "hascheduler/model/values/error_patterns.py:_NUMBER": 512,
    "hascheduler/model/values/error_patterns.py:_QUOTED": 512,
    "hascheduler/model/values/error_patterns.py:_CUT_PLACEHOLDER": 256,
    "hascheduler/model/values/error_patterns.py:_PIECE": 256,
    "hascheduler/model/values/error_patterns.py:PLACEHOLDER": 256,
    "hascheduler/model/limit_keys.py:_KEY": 160,
    "hascheduler/cli/environment.py:_OF_A_SERVICE": 4_096,
    "hascheduler/model/values/instants.py:_PART": 64,
    "hascheduler/model/token.py:SECRET": 1_024,
    "hascheduler/model/trace.py:_FORM": 256,
    "hascheduler/rabbitmq/connection.py:_TEMPORARY": 1_024,
    "hascheduler/triggers/expressions.py:_DAY_OF_MONTH": 256,
    "hascheduler/triggers/expressions.py:_DAY_OF_WEEK": 256,
    "hascheduler/triggers/expressions.py:_ITEM": 256,
    "hascheduler/handlers/command.py:_VERSION": 256,
    "hascheduler/handlers/webhook.py:_HOST": 4_096,
}
# In the settings, which pydantic judges: its engine knows no way back. By their text.
OF_SETTINGS = {
    r"^[A-Za-z0-9_-]{1,38}$", r"^[A-Za-z0-9._:-]{0,127}$", r"^[A-Za-z0-9 ._-]{0,32}$", r"^[a-z0-9-]{1,32}$",
    r"^[A-Za-z0-9._-]{1,128}$", r"^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?$",
    r"^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)?$",
}  # fmt: skip

_BEGINNINGS = ("", "a", "${", "a://", '"', "authorization: bearer", "0-")
_REPEATED = (
    "a", "0", ".", "-", "a.", "a-", " ", "\t", "$", "${", "${a", "{", ":", "://", "a://", "a.://:", "a://b:", "a://b@",
    "a.a.a://:", "@", "hsk_", "hsk_a", "authorization: bearer ", "authorization ", '"', "/", "1s", "0.0", "\\",
    "*/", "[", "1e",
)  # fmt: skip
_ENDS = ("", "\x01", "@", " ", '"', "!")


@cache
def texts(length: int, pool: int) -> list[str]:
    """Each ``pool``-th of them: about so long, each made to be read again and again."""
    return [
        beginning + repeated * (length // len(repeated)) + end
        for beginning, repeated, end in islice(product(_BEGINNINGS, _REPEATED, _ENDS), 0, None, pool)
    ]


def demand_linear(
    use: Callable[[str], object],
    length_max: int | None = None,
    *,
    pool: int = in_tier(check=7, test=1),
    lengths: Iterable[int] = LENGTHS,
) -> None:
    """Goes on to longer texts only where the shorter ones were quick, so that nothing hangs."""
    for length in lengths:
        if length_max is not None and length > length_max:
            return
        for text in texts(length, pool):
            assert _least_seconds(use, text) < TOO_LONG_S, f"{text[:40]!r}… of {len(text)} characters"


def _least_seconds(use: Callable[[str], object], text: str) -> float:
    """The machine may be busy: the best of up to five."""
    best = float("inf")
    for _ in range(5):
        begin = time.thread_time()
        use(text)
        best = min(best, time.thread_time() - begin)
        if best < TOO_LONG_S:
            break
    return best


def _used(pattern: re.Pattern[Any], how: str, text: str) -> None:
    given: Any = text.encode() if isinstance(pattern.pattern, bytes) else text
    if how == "search":
        for _ in pattern.finditer(given):
            pass
    else:
        getattr(pattern, how)(given)


_MAY_USE_ONE = re.compile(r"\bre\.|\bpattern=|\.(full)?match\(")


@cache
def _found() -> tuple[dict[str, tuple[re.Pattern[Any], set[str]]], set[str]]:
    """Return the patterns of the sources, each by its place and with the methods that use it, and those of settings."""
    found: dict[str, tuple[re.Pattern[Any], set[str]]] = {}
    fields: set[str] = set()
    used: dict[str, set[str]] = {}
    compiled = 0
    for path in sorted((ROOT / "hascheduler").rglob("*.py")):
        shown, source = path.relative_to(ROOT).as_posix(), path.read_text()
        if not _MAY_USE_ONE.search(source):
            continue  # to parse them all would take seconds
        for node in ast.walk(ast.parse(source)):
            match node:
                case ast.Call(ast.Attribute(ast.Name("re"), str() as how), [text, *_]) if how in _FUNCTIONS:
                    if how == "compile":
                        compiled += 1
                    else:
                        literal = ast.literal_eval(text)
                        found[f"{shown}: {literal!r}"] = (re.compile(literal), {how})
                case ast.Assign([ast.Name(name)], ast.Call(ast.Attribute(ast.Name("re"), "compile"))):
                    module = importlib.import_module(shown.removesuffix(".py").replace("/", "."))
                    found[f"{shown}:{name}"] = (getattr(module, name), used.setdefault(_owner(shown, name), set()))
                case ast.Attribute(ast.Name(name), how) if how in _FUNCTIONS:
                    used.setdefault(_owner(shown, name), set()).add(how)
                case ast.Call(ast.Name() | ast.Attribute(), _, keywords) if ast.unparse(node.func) != "replace":
                    fields |= {ast.literal_eval(each.value) for each in keywords if each.arg == "pattern"}
    assert compiled == sum(": " not in place for place in found), "one that is compiled has no name of its own"
    return found, fields


def _owner(shown: str, name: str) -> str:
    """A name with an underscore is one of its module, any other of whoever imports it."""
    return f"{shown}:{name}" if name.startswith("_") else name


@pytest.mark.parametrize("place", _found()[0])
def test_a_pattern_takes_linear_time(place: str) -> None:
    pattern, methods = _found()[0][place]
    for how in {method if method in ("match", "fullmatch") else "search" for method in methods or {"search"}}:
        demand_linear(partial(_used, pattern, how), BOUNDED.get(place))


@pytest.mark.parametrize(
    "use",
    [
        redacted,
        lambda text: redacted_beginning(text, 1_000),
        lambda text: redacted_beginning(text, 128),
        quoted,
        *(error_regex(text * PLACEHOLDERS_MAX).search for text in ("<n>", "<id>", '"…"')),
        error_regex("^" + "<id> <n>." * 12 + "$").search,
        lambda text: path_text((text,) * 32),
        lambda text: problem_body(422, "invalid-request", text, [InvalidInput((text,) * 31, text, text)] * 5),
    ],
    ids=[
        "redacted",
        "the beginning",
        "a short beginning",
        "quoted",
        *("numbers", "ids", "quoted texts", "a line"),
        "a path",
        "a problem",
    ],
)
def test_what_shows_the_texts_of_others_takes_linear_time(use: Callable[[str], object]) -> None:
    demand_linear(use, pool=in_tier(check=11, test=5))


def test_what_was_there_before_is_caught() -> None:
    before = re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]{0,31}://)(?:[^\s/?#:@]{0,512}:\S{0,2048}|[^\s/?#]{0,2048})@")
    # Its constant is what is too large, so a longer text is what tells on a quick machine.
    with pytest.raises(AssertionError, match="characters"):
        demand_linear(partial(_used, before, "search"), pool=11, lengths=(4 * max(LENGTHS),))


def test_no_pattern_is_overlooked() -> None:
    found, fields = _found()
    assert len(found) > 50
    assert set(BOUNDED) <= set(found)
    assert fields <= OF_SETTINGS


def test_of_a_secret_that_is_cut_nothing_is_shown() -> None:
    for length in range(60, 200):
        key = "x" * length + " amqp://user:" + "s3c" * 60 + "@host"
        told = problem_body(422, "invalid-request", key, [InvalidInput((key, "a"), key, key)])
        for text in (str(told), quoted(key[length + 1 :]), redacted_beginning(key, length)):
            assert "s3c" not in text


def test_a_problem_is_bounded_as_a_whole() -> None:
    errors = [InvalidInput(("k" * 128,) * 31, "p" * 5_000, "e" * 5_000)] * 50
    told = problem_body(422, "invalid-request", "d" * 10_000, errors)
    assert 1 <= len(told["errors"]) < 50
    assert len(str(told)) < 24_000
