"""W3C trace headers from any client: valid ones are read, malformed ones are none."""

import pytest

from hascheduler.model.trace import TraceContext, trace_context, trace_from_headers

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GOOD = f"00-{TRACE}-{SPAN}-01"

GARBAGE = [
    None, 7, True, b"00-", GOOD.encode(), ["00"], {"traceparent": GOOD}, "", "00", "-" * 55, "x" * 10_240, GOOD.upper(),
    f" {GOOD}", f"{GOOD}\n", f"{GOOD}-more", GOOD[:-1], f"{GOOD}0",
    f"00-{'0' * 32}-{SPAN}-01", f"00-{TRACE}-{'0' * 16}-01", f"ff-{TRACE}-{SPAN}-01", f"00-{TRACE}-{SPAN}-0g",
    f"00_{TRACE}_{SPAN}_01", f"cc-{TRACE}-{SPAN}-01.more", f"cc-{TRACE}-{SPAN}-01-" + "x" * 10_240,
    f"00-{TRACE[:-1]}é-{SPAN}-01", f"00-{TRACE[:-1]}٣-{SPAN}-01",
]  # fmt: skip


@pytest.mark.parametrize("value", GARBAGE, ids=lambda value: repr(value)[:40])
def test_a_malformed_header_is_no_trace(value: object) -> None:
    assert trace_context(value, "vendor=1") is None
    assert trace_from_headers({"traceparent": value}) is None


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (GOOD, GOOD),
        (f"00-{TRACE}-{SPAN}-00", f"00-{TRACE}-{SPAN}-00"),
        (f"00-{TRACE}-{SPAN}-ff", f"00-{TRACE}-{SPAN}-03"),  # unknown flags are sent as 0
        (f"cc-{TRACE}-{SPAN}-01", GOOD),
        (f"cc-{TRACE}-{SPAN}-01-what-may-come", GOOD),
    ],
)
def test_a_trace_of_a_later_version_is_passed_on_as_version_00(given: str, read: str) -> None:
    found = trace_context(given)
    assert found == TraceContext(read)
    assert found is not None
    assert found.trace_id == TRACE
    assert trace_from_headers(found.headers()) == found


@pytest.mark.parametrize(
    ("state", "kept"),
    [
        ("a=1,b=2", "a=1,b=2"), ("x" * 512, "x" * 512), ("x" * 513, ""), (None, ""), (b"a=1", ""), (7, ""),
        ("a=1\r\nX-Evil: 1", ""), ("a=é", ""), ("", ""),
    ],
)  # fmt: skip
def test_an_unusable_tracestate_is_left_out_and_the_traceparent_stays(state: object, kept: str) -> None:
    found = trace_from_headers({"traceparent": GOOD, "tracestate": state, "other": 1})
    assert found == TraceContext(GOOD, kept)
    assert found.headers() == {"traceparent": GOOD, **({"tracestate": kept} if kept else {})}
