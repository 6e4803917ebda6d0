"""``hascheduler processor --help``: what a processor has a use for stands before what replicas share with it."""

import re
import subprocess
import sys
from pathlib import Path

from hascheduler.cli.run.processes import _OF_PROCESSORS
from hascheduler.settings import Settings
from tests.unit.cli.invoking import invoke

_ROOT = Path(__file__).parents[3]


def test_the_settings_of_a_processor_stand_first() -> None:
    shown = invoke("processor", "--help").out
    settings = re.findall(r"^  --(?:no-)?([a-z-]+)", shown, re.MULTILINE)
    assert settings[:3] == ["name", "slots", "resources"]
    assert settings.index("log-level") < settings.index("http-host") < settings.index("lease-duration")
    assert len(settings) == len(set(settings)) == len(Settings.model_fields) + 2  # and --name and --help
    assert f"the first {len(_OF_PROCESSORS)};" in " ".join(shown.split())


def test_what_a_processor_reads_stands_among_them() -> None:
    source = (_ROOT / "hascheduler/assembly.py").read_text()
    [work] = re.findall(r"^async def work\(.*?(?=^(?:async )?def )", source, re.MULTILINE | re.DOTALL)
    parts = (_ROOT / "hascheduler/assembly_processor.py").read_text()
    read = set(re.findall(r"(?<!hascheduler\.)settings\.([a-z_]+)", work + parts))
    assert "shards" in read
    assert read <= set(_OF_PROCESSORS)


def test_a_processor_imports_no_route_and_no_client_of_kubernetes() -> None:
    """It would start twice as slowly for what replicas alone have a use for."""
    script = "import sys, hascheduler.assembly; print([name for name in ('fastapi', 'httpx') if name in sys.modules])"
    told = subprocess.run([sys.executable, "-c", script], cwd=_ROOT, capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"
