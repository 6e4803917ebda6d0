"""The fields on every line of the log: which process, and which span it is in."""

import json
import subprocess
import sys

SCRIPT = """
import logging, threading, structlog
from hascheduler.cli.output.logs import configure_logging
from hascheduler.settings import read_settings
from hascheduler.telemetry.log_lines import name_process
from opentelemetry.sdk.trace import TracerProvider
configure_logging(read_settings(log_format="json"))
ours = structlog.get_logger("hascheduler.daemon.leadership.leader")
ours.info("before")
name_process(replica="r1.abcd")
ours.info("named")
logging.getLogger("somebody.else").warning("named too")
other = threading.Thread(target=lambda: logging.getLogger("somebody.else").warning("from a thread"))
other.start()
other.join()
ours.info("said", replica="another")
logging.getLogger("opentelemetry.exporter").error("a line for each batch that is lost")
tracer = TracerProvider(shutdown_on_exit=False).get_tracer("t")
with tracer.start_as_current_span("outer"):
    with tracer.start_as_current_span("inner") as span:
        ours.info("within")
        logging.getLogger("somebody.else").warning("within too")
context = span.get_span_context()
ours.info("after", expected=[f"{context.trace_id:032x}", f"{context.span_id:016x}"])
"""


def test_every_line_names_its_process_and_its_span() -> None:
    ended = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    lines = {line["event"]: line for line in map(json.loads, ended.stderr.splitlines())}
    assert list(lines) == ["before", "named", "named too", "from a thread", "said", "within", "within too", "after"]
    assert "replica" not in lines["before"]
    assert lines["said"]["replica"] == "another"
    assert {lines[event]["replica"] for event in ("named", "named too", "from a thread", "within")} == {"r1.abcd"}
    for event in ("within", "within too"):
        assert [lines[event]["trace_id"], lines[event]["span_id"]] == lines["after"]["expected"]
    assert not {"trace_id", "span_id"} & (lines["named"].keys() | lines["after"].keys())
