"""The table of all decoders: what calls each, what it is given, and which errors it promises."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from pydantic import TypeAdapter, ValidationError

from hascheduler.api.http import strict_json
from hascheduler.api.ops.events import EventId
from hascheduler.api.routing.queries import LabelsQuery
from hascheduler.api.routing.revisions import merge_patch
from hascheduler.cli.input.documents import read_documents
from hascheduler.errors import InvalidInput
from hascheduler.model.documents.job import decode_job, decode_job_patch, new_job_document
from hascheduler.model.documents.leadership import decode_lease, encode_lease
from hascheduler.model.documents.processor import decode_processor, encode_processor
from hascheduler.model.documents.schedule import decode_schedule
from hascheduler.model.documents.trigger import decode_trigger
from hascheduler.model.message import decode_bundle, decode_message
from hascheduler.model.payload import missing_placeholders, render
from hascheduler.model.resources import parse_resources
from hascheduler.model.values.instants import parse_duration, parse_instant
from hascheduler.model.values.redaction import redacted
from hascheduler.schema.failover import decode_failover, encode_failover
from hascheduler.schema.noun import Part, document_of, read_document
from hascheduler.schema.trigger import Cron
from hascheduler.simulate.parsing import parse_scenario
from hascheduler.triggers import cron, expressions
from tests import factories

_REFUSED_BODIES = tuple(
    getattr(strict_json, name)
    for name in ("MalformedJson", "UnstorableJson", "Oversized")
    if hasattr(strict_json, name)
)
_NOON = 1_893_499_200_000


@dataclass(frozen=True, slots=True)
class Decoder:
    decode: Callable[[Any], object]
    inputs: SearchStrategy[Any]
    refusals: tuple[type[Exception], ...] = (InvalidInput,)


# What decoders are given

_TEXT = st.text(max_size=200)
_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | _TEXT
    | st.sampled_from(
        ["", "\0", "\ud800", "$where", "__proto__", "a" * 5_000, "9" * 5_000, "1e999", "2030-01-01T00:00:00Z"]
    )
)
_VALUES = st.recursive(_SCALARS, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(_TEXT, inner, max_size=5))
_STORED = _VALUES | st.binary(max_size=50) | st.datetimes() | st.just(object())


def _like(*examples: str, alphabet: str) -> SearchStrategy[str]:
    """Texts of one language: the examples, pieces of them put together, and what only looks like it."""
    pieces = st.sampled_from([piece for example in examples for piece in (example, *example.split(), *example)])
    long = st.builds(lambda piece, times: piece * times, pieces, st.integers(1, 3_000))
    return (
        st.lists(pieces, max_size=12).map("".join)
        | st.lists(pieces, max_size=6).map(" ".join)
        | st.text(alphabet, max_size=100)
        | long
        | _TEXT
    )


def _broken(document: Mapping[str, Any]) -> SearchStrategy[dict[str, Any]]:
    """``document`` with some of its fields turned into anything, or left out."""
    changes = st.dictionaries(st.sampled_from(sorted(document)), _STORED, max_size=4)
    gone = st.sets(st.sampled_from(sorted(document)), max_size=2)
    return st.builds(
        lambda new, without: {k: v for k, v in {**document, **new}.items() if k not in without}, changes, gone
    )


_NESTED = st.integers(1, 3_000).map(lambda depth: b"[" * depth + b"]" * depth) | st.integers(1, 3_000).map(
    lambda depth: b'{"a":' * depth + b"1" + b"}" * depth
)
_MANY = st.integers(1, 60_000).map(lambda count: b"[" + b",".join([b"[]"] * count) + b"]")
_BODIES = (
    _VALUES.map(lambda value: orjson.dumps(_sendable(value)))
    | _like(
        '{"a": [1, 2.5e3, null], "b": "\\u00e9\\ud83d\\ude00"}', 'NaN -0 1e400 "\\x"', alphabet='{}[]:,"\\ue0123.+-tfn '
    ).map(lambda text: text.encode("utf-8", "surrogatepass"))
    | st.binary(max_size=300)
    | _NESTED
    | _MANY
)


def _sendable(value: Any) -> Any:
    match value:
        case int() if not isinstance(value, bool) and abs(value) > 2**63 - 1:
            return str(value)
        case str():
            return value.encode("utf-8", "replace").decode()
        case list():
            return [_sendable(each) for each in value]
        case dict():
            return {_sendable(key): _sendable(each) for key, each in value.items()}
        case _:
            return value


# Decoders of more than one step


def _cron(text: str) -> None:
    at = Cron(expressions.normal_form(text), "Europe/Berlin")
    cron.check(at)
    cron.next_nominal(at, _NOON)
    cron.latest_nominal(at, _NOON)


def _rendered(payload: Any) -> None:
    list(missing_placeholders(payload, frozenset({"schedule"})))
    render(payload, {"schedule": "s" * 1_000, "label.a": "b"})


def _each(decode: Callable[..., object]) -> Callable[[Any], object]:
    return lambda fields: decode("an-id", fields)


_YAML = _like(
    "a: &a [1, *a]",
    "<<: *a",
    "- !!python/object:os.system x",
    "jobs:\n- {at: 0s, count: 5}\n",
    "? a\n: b\n",
    "'x' |\n  y",
    alphabet="&*!|>{}[]:,-?#'\" \nab01%@`~",
) | st.integers(1, 2_000).map(lambda depth: "[" * depth)
_TEMPLATES = st.recursive(
    _like("${target}", "$$", "${label.a}", "${", alphabet="${}.abel") | _SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
)
_JOB = new_job_document(factories.make_job())
_SCHEDULE = factories.make_schedule()
_NOUNS: dict[str, Part] = {
    "definitions": factories.make_definition(),
    "pauses": factories.make_pause(),
    "lanes": factories.make_lane(),
    "calendars": factories.make_calendar(),
    "tenants": factories.make_tenant(),
    "replicas": factories.make_replica(),
    "tokens": factories.make_token(),
}

DECODERS: dict[str, Decoder] = {
    "bodies": Decoder(strict_json.read_json, _BODIES, _REFUSED_BODIES),
    "merge patches": Decoder(lambda both: merge_patch(*both), st.tuples(_VALUES, _VALUES)),
    "cron": Decoder(
        _cron,
        _like(
            "*/5 0-23/2 1,15 JAN-DEC MON#2",
            "0 0 L-3,15W * ?",
            "0 0 ? * 5L",
            "@every 90s",
            "@daily",
            "59 23 29 2 *",
            alphabet="0123456789*/,-#LW? ",
        ),
    ),
    "durations": Decoder(
        parse_duration, _like("1d2h3m4s5ms", "1.5h", "-1s", alphabet="0123456789.dhms -") | st.floats() | st.integers()
    ),
    "instants": Decoder(
        parse_instant, _like("2030-02-29T23:59:60.999+14:00", "2030-01-01T00:00:00Z", alphabet="0123456789-:TZ+.")
    ),
    "resources": Decoder(parse_resources, _like("cpu=8,gpu=1", "a=0.5", alphabet="abc=,0123456789.")),
    "cursors and labels": Decoder(
        LabelsQuery.model_validate,
        st.fixed_dictionaries(
            {}, optional={"after": _SCALARS, "limit": _SCALARS, "label": st.lists(_like("a=b", alphabet="ab=$."))}
        ),
        (ValidationError,),
    ),
    "event ids": Decoder(
        TypeAdapter(EventId).validate_python,
        _like("12.1893499200000.3", "0-0", alphabet="0123456789.-:abcdef"),
        (ValidationError,),
    ),
    "messages": Decoder(
        decode_message,
        _BODIES
        | _broken({"v": 1, "kind": "run", "job": "job:1", "attempt": 1}).map(
            lambda fields: repr(fields).encode("utf-8", "replace")
        ),
    ),
    "bundles": Decoder(
        decode_bundle,
        _BODIES | _VALUES.map(lambda runs: orjson.dumps({"v": 1, "kind": "bundle", "runs": _sendable(runs)})),
    ),
    "templates": Decoder(_rendered, _TEMPLATES),
    "redaction": Decoder(
        redacted,
        _like("mongodb://user:pass@host/", "Authorization: Bearer hsk_abc", "a.a.a://:", alphabet="a:/@.hsk_ "),
    ),
    "scenarios": Decoder(parse_scenario, _YAML),
    "manifests": Decoder(lambda text: list(read_documents(text, "f")), _YAML),
    "stored jobs": Decoder(_each(decode_job), _broken(_JOB)),
    "stored changes of jobs": Decoder(decode_job_patch, _broken(_JOB)),
    "stored schedules": Decoder(_each(decode_schedule), _broken(_SCHEDULE)),
    "stored triggers": Decoder(decode_trigger, _STORED | _broken(_SCHEDULE["trigger"])),
    **{
        f"stored {name}": Decoder(_each(partial(read_document, type(one))), _broken(document_of(one)))
        for name, one in _NOUNS.items()
    },
    "stored processors": Decoder(_each(decode_processor), _broken(encode_processor(factories.make_processor()))),
    "stored leases": Decoder(_each(decode_lease), _broken(encode_lease(factories.make_lease()))),
    "stored failovers": Decoder(decode_failover, _broken(encode_failover(factories.make_failover()))),
}
"""By name, for reports and for replays."""
