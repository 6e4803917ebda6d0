"""A name under which a processor could never be given work is refused when it starts, in one line."""

import pytest

from hascheduler.model.processor import NAME_BYTES_MAX, require_name, tenure_id
from hascheduler.rabbitmq.topology import ROUTING_KEY_BYTES_MAX, bundle_key, queue_name
from tests.unit.cli.invoking import invoke

LONGEST = "é" * (NAME_BYTES_MAX // 2)


@pytest.mark.parametrize(
    "name",
    ["n" * 300, f"{LONGEST}n", "a\nb", "a\x00b", "a\udcffb", "\u202ea", "http:mine"],
    ids=lambda name: ascii(name)[:20],
)
def test_a_processor_whose_queue_could_not_have_that_name_does_not_start(name: str) -> None:
    ended = invoke("processor", "processors.log", "--name", name)
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.count("\n") == 1
    assert f"at most {NAME_BYTES_MAX} bytes" in ended.err


@pytest.mark.parametrize("name", [LONGEST, "a b/c@d", "host-1.example.org", "é"])
def test_every_other_name_leaves_room_for_its_queue_and_its_keys(name: str) -> None:
    require_name(name)
    id = tenure_id(f"{name}.01234567", 10**10)
    assert max(len(text.encode()) for text in (queue_name(id), bundle_key(id))) <= ROUTING_KEY_BYTES_MAX
