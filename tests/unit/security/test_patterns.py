"""Every pattern of the package is listed here with how it is used, and takes linear time for whatever it is given.

A new pattern that is not listed fails; a listed one is tried on the texts below, ever longer: what goes back and forth
takes hundreds of milliseconds for the longest, what does not takes one.
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
from hascheduler.model.values.error_texts import quoted
from hascheduler.model.values.redaction import redacted, redacted_beginning
from tests.tiers import in_tier

ROOT = Path(__file__).parents[3]
PACKAGES = ("hascheduler", "processors")
_FUNCTIONS = frozenset({"compile", "match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer"})
LENGTHS = (16, 64, 256, 1_024, 4_096, 16_384)
TOO_LONG_S = 0.05

# The pattern: how it is used, and how long its texts may be; None is as long as a body, a log line or a file.
NAMED: dict[str, tuple[str, int | None]] = {
    "hascheduler/api/jobs/errors.py:_ESCAPE_SEQUENCE": ("search", 512),
    "hascheduler/api/jobs/errors.py:_HEX_ID": ("search", 512),
    "hascheduler/api/jobs/errors.py:_NUMBER": ("search", 512),
    "hascheduler/api/jobs/errors.py:_QUOTED": ("search", 512),
    "hascheduler/api/middleware/audit.py:_REQUEST_ID": ("fullmatch", 16_384),
    "hascheduler/api/middleware/cross_site.py:_HOST": ("fullmatch", 16_384),
    "hascheduler/api/middleware/cross_site.py:_ORIGIN": ("fullmatch", 16_384),
    "hascheduler/api/routing/revisions.py:_TAG": ("fullmatch", 16_384),
    "hascheduler/schema/forms.py:NAME": ("match", None),
    "hascheduler/model/limit_keys.py:_KEY": ("fullmatch", 160),
    "hascheduler/schema/schedule.py:_REF": ("match", None),
    "hascheduler/cli/setup/bootstrap.py:_KEY": ("fullmatch", None),
    "hascheduler/cli/setup/bootstrap.py:_MEMBER": ("fullmatch", None),
    "hascheduler/cli/environment.py:_OF_A_SERVICE": ("fullmatch", 4_096),
    "hascheduler/cli/output/instants.py:_INSTANT": ("search", None),
    "hascheduler/cli/input/values.py:_JOB_ID": ("fullmatch", None),
    "hascheduler/cli/input/values.py:_NAME": ("fullmatch", None),
    "hascheduler/cli/resources/token.py:_ID": ("fullmatch", None),
    "hascheduler/client/requests.py:_JOB_ID": ("fullmatch", None),
    "hascheduler/demo/kubernetes.py:_OPENED": ("match", None),
    "hascheduler/schema/calendar.py:_DAY": ("fullmatch", None),
    "hascheduler/schema/calendar.py:_YEARLY": ("fullmatch", None),
    "hascheduler/model/values/instants.py:_PART": ("match", 64),
    "hascheduler/model/documents/schedule.py:_OFFSET": ("fullmatch", None),
    "hascheduler/model/event.py:_POSITION": ("match", None),
    "hascheduler/model/partition.py:_PARTITION_AT_END": ("search", None),
    "hascheduler/model/payload.py:_PLACEHOLDER": ("search", None),
    "hascheduler/model/values/redaction.py:_BEARER": ("search", None),
    "hascheduler/model/values/redaction.py:_BLANK": ("search", None),
    "hascheduler/model/values/redaction.py:_PATH": ("search", None),
    "hascheduler/model/values/redaction.py:_SPECIAL": ("search", None),
    "hascheduler/model/values/redaction.py:_TOKEN": ("search", None),
    "hascheduler/model/resources.py:_NAME": ("match", None),
    "hascheduler/model/token.py:SECRET": ("fullmatch", 1_024),
    "hascheduler/api/work/schemas.py:_DEFINITION": ("fullmatch", None),
    "hascheduler/model/trace.py:_FORM": ("fullmatch", 256),
    "hascheduler/processor/handlers.py:_NAME": ("fullmatch", None),
    "hascheduler/rabbitmq/connection.py:_PASSES": ("search", 1_024),
    "hascheduler/settings.py:_HOST_NAME": ("fullmatch", None),
    "hascheduler/settings.py:_SHARD_SPAN": ("fullmatch", None),
    "hascheduler/triggers/expressions.py:_DAY_OF_MONTH": ("fullmatch", 256),
    "hascheduler/triggers/expressions.py:_DAY_OF_WEEK": ("fullmatch", 256),
    "hascheduler/triggers/expressions.py:_ITEM": ("fullmatch", 256),
    "processors/command.py:_NAME": ("match", None),
    "processors/command.py:_NAME_PATTERN": ("fullmatch", None),
    "processors/command.py:_VERSION": ("search", 256),
    "processors/webhook.py:_HEADER_VALUE": ("match", None),
    "processors/webhook.py:_HOST": ("match", 4_096),
    "processors/webhook.py:_PLACEHOLDER": ("search", None),
    "processors/webhook.py:_TOKEN": ("match", None),
}
# Those without a name of their own, by their text.
INLINE: dict[str, tuple[re.Pattern[Any], str]] = {
    "hascheduler/api/middleware/audit.py: '[/=]'": (re.compile(r"[/=]"), "search"),
    "hascheduler/cli/setup/bootstrap.py: '- *(\\\\S+)'": (re.compile(r"- *(\S+)"), "match"),
    """hascheduler/rabbitmq/connection.py: "'[^']*'\"""": (re.compile(r"'[^']*'"), "search"),
    "hascheduler/triggers/expressions.py: '\\\\s+'": (re.compile(r"\s+"), "search"),
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


def _pattern(key: str) -> re.Pattern[Any]:
    path, _, name = key.partition(":")
    found: Any = importlib.import_module(path.removesuffix(".py").replace("/", "."))
    for part in name.split("."):
        found = getattr(found, part)
    assert isinstance(found, re.Pattern)
    return found


@pytest.mark.parametrize("key", NAMED)
def test_a_pattern_takes_linear_time(key: str) -> None:
    how, length_max = NAMED[key]
    demand_linear(partial(_used, _pattern(key), how), length_max)


@pytest.mark.parametrize("key", INLINE)
def test_a_pattern_without_a_name_takes_linear_time(key: str) -> None:
    pattern, how = INLINE[key]
    demand_linear(partial(_used, pattern, how))


@pytest.mark.parametrize(
    "use",
    [
        redacted,
        lambda text: redacted_beginning(text, 1_000),
        lambda text: redacted_beginning(text, 128),
        quoted,
        lambda text: path_text((text,) * 32),
        lambda text: problem_body(422, "invalid-request", text, [InvalidInput((text,) * 31, text, text)] * 5),
    ],
    ids=["redacted", "the beginning", "a short beginning", "quoted", "a path", "a problem"],
)
def test_what_shows_the_texts_of_others_takes_linear_time(use: Callable[[str], object]) -> None:
    demand_linear(use, pool=in_tier(check=11, test=5))


def test_what_was_there_before_is_caught() -> None:
    before = re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]{0,31}://)(?:[^\s/?#:@]{0,512}:\S{0,2048}|[^\s/?#]{0,2048})@")
    # Its constant is what is too large, so a longer text is what tells on a quick machine.
    with pytest.raises(AssertionError, match="characters"):
        demand_linear(partial(_used, before, "search"), pool=11, lengths=(4 * max(LENGTHS),))


def test_every_pattern_is_listed() -> None:
    named, inline, fields = _found()
    assert named == set(NAMED)
    assert inline == set(INLINE)
    assert fields <= OF_SETTINGS


_MAY_HOLD_ONE = re.compile(r"import\b.*\bre\b|\bTemplate\b|\bpattern=")


def _found() -> tuple[set[str], set[str], set[str]]:
    """What the sources hold: those with names, those without, and the texts of ``pattern=…``."""
    named: set[str] = set()
    inline: set[str] = set()
    fields: set[str] = set()
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            shown = path.relative_to(ROOT).as_posix()
            source = path.read_text()
            if not _MAY_HOLD_ONE.search(source):
                continue
            nodes = list(ast.walk(ast.parse(source)))
            of_names = {id(node.value): node for node in nodes if isinstance(node, ast.Assign)}
            for node in nodes:
                if isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "Template" for base in node.bases):
                    named.add(f"{shown}:{node.name}.pattern")
                if not isinstance(node, ast.Call):
                    continue
                if ast.unparse(node.func) != "replace":  # that is a trigger's pattern
                    fields |= {ast.literal_eval(each.value) for each in node.keywords if each.arg == "pattern"}
                if not _is_of_re(node.func):
                    continue
                if id(node) in of_names and ast.unparse(node.func) == "re.compile":
                    named.add(f"{shown}:{ast.unparse(of_names[id(node)].targets[0])}")
                else:
                    text = node.args[0]
                    inline.add(f"{shown}: {ast.unparse(text) if isinstance(text, ast.Constant) else 'computed'}")
    return named, inline, fields


def _is_of_re(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "re"
        and function.attr in _FUNCTIONS
    )


# Secrets that are cut.


@pytest.mark.parametrize("at", range(1, 60))
def test_of_a_secret_that_is_cut_nothing_is_shown(at: int) -> None:
    for secret in ("amqp://user:s3cr3t/w0rd@host/x", "amqp://s3cr3t@host", "hsk_s3cr3tabcdefghijkl"):
        text = "." * 20 + " " + secret + " and more" * 20
        assert "s3c" not in redacted_beginning(text, at)
        assert "s3c" not in quoted(text, max(at, 8))
        assert "s3c" not in redacted_beginning(text, 200)


def test_a_key_that_holds_a_secret_is_not_shown_by_half() -> None:
    for length in range(60, 200):
        key = "x" * length + " amqp://user:" + "s3c" * 60 + "@host"
        told = problem_body(422, "invalid-request", key, [InvalidInput((key, "a"), key, key)])
        assert "s3c" not in str(told)
        assert "s3c" not in quoted(key[length + 1 :])


def test_a_problem_is_bounded_as_a_whole() -> None:
    errors = [InvalidInput(("k" * 128,) * 31, "p" * 5_000, "e" * 5_000)] * 50
    told = problem_body(422, "invalid-request", "d" * 10_000, errors)
    assert 1 <= len(told["errors"]) < 50
    assert len(str(told)) < 24_000
