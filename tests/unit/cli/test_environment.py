"""Variables with our prefix that nothing reads are refused at the start of every command, with the nearest name."""

import re
from pathlib import Path

import pytest

from hascheduler.cli.environment import READ_ELSEWHERE, require_known_variables
from hascheduler.errors import InvalidInput
from hascheduler.settings import variables
from tests.unit.cli.invoking import invoke

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    "command", ["serve", "processor processors.log", "migrate", "job list", "schedule preview --cron @daily", "dev"]
)
def test_every_command_refuses_a_misspelt_setting(command: str) -> None:
    ended = invoke(*command.split(), HASCHEDULER_LEASE_DURATON="20s")
    assert ended.status == 2
    assert ended.err == "hascheduler: HASCHEDULER_LEASE_DURATON: unknown setting; expected HASCHEDULER_LEASE_DURATION\n"
    assert not ended.out


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("HASCHEDULER_LEASE_DURATION_MS", "HASCHEDULER_LEASE_DURATION"),
        ("HASCHEDULER_MONGO_URI", "HASCHEDULER_MONGODB_URI"),
        ("hascheduler_shrad", "HASCHEDULER_SHARD"),
        ("HASCHEDULER_QQQ", "the settings in `hascheduler serve --help`"),
    ],
)
def test_the_nearest_name_is_told(given: str, expected: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        require_known_variables({"PATH": "/bin", given: "8080"})
    assert str(refusal.value) == f"{given}: unknown setting; expected {expected}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HASCHEDULER_SERVICE_HOST", "10.0.0.1"),
        ("HASCHEDULER_PORT", "tcp://10.0.0.1:8080"),
        ("HASCHEDULER_PORT_8080_TCP_ADDR", "10.0.0.1"),
        ("hascheduler_shard", "default"),
        ("_HASCHEDULER_COMPLETE", "complete_bash"),
        ("MY_HASCHEDULER_THING", "1"),
    ],
)
def test_what_kubernetes_makes_of_services_passes(name: str, value: str) -> None:
    require_known_variables({name: value})


def test_every_variable_of_the_manifests_scripts_tests_and_documents_is_known() -> None:
    """So that none of them is refused where it is set, and none is explained that does not exist."""
    known = {*variables(), *(f"HASCHEDULER_{name}" for name in READ_ELSEWHERE)}
    folders = ("k8s", "kind", "scripts", "docs", "tests/system", "tests/chaos", "tests/integration", "hascheduler/demo")
    found: dict[str, Path] = {}
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()):
        if path.suffix in (".py", ".yaml", ".md", ".sh", ".env", ""):
            text = path.read_text(encoding="utf-8", errors="ignore")
            if not re.search(r"\nStatus:.*proposed", text):  # names what there is not yet
                names = re.findall(r"\bHASCHEDULER_[A-Z_]*[A-Z]\b(?!_)", text)
                found.update(dict.fromkeys(names, path))
    examples = {"HASCHEDULER_PORT", "HASCHEDULER_SERVICE_HOST"}
    require_known_variables(dict.fromkeys(known, "1"))
    unknown = {name: path for name, path in found.items() if name not in known and name not in examples}
    assert not unknown


@pytest.mark.parametrize("command", ["serve", "processor processors.log", "migrate", "check"])
def test_a_uri_that_is_none_is_refused_in_one_line_without_its_password(command: str) -> None:
    ended = invoke(*command.split(), HASCHEDULER_MONGODB_URI="mongodb://me:sEc@ret@127.0.0.1/")
    assert (ended.status, ended.err.count("\n")) == (2, 1)
    assert ended.err.startswith("hascheduler: HASCHEDULER_MONGODB_URI: not a MongoDB URI (InvalidURI); expected ")
    assert "ret@" not in ended.err
