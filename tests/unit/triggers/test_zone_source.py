"""Zones come from the package ``tzdata``, whatever files the machine has and wherever its settings point."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hascheduler.errors import InvalidInput
from hascheduler.model.values.zone_data import ZONE_DATA_VERSION
from hascheduler.triggers.zones import zone_of
from tests.zone_data import fixed_zone, write_zone_data

ROOT = Path(__file__).parents[3]
_ZONE = "America/Vancouver"
_ASKED = f"""
from hascheduler.cli.output.instants import instant_text
from hascheduler.cli.schedules.preview import zone_or_default
from hascheduler.dispatch.schedules.previews import finished, make_preview
from hascheduler.schema.trigger import Cron, Trigger
from hascheduler.model.values.instants import parse_instant
from hascheduler.model.values.zone_data import ZONE_DATA_VERSION
from hascheduler.triggers import next_nominal, upcoming

trigger, after_ms = Trigger(Cron("0 9 * * *", "{_ZONE}")), parse_instant("2027-01-04T00:00Z")
print(next_nominal(trigger, after_ms) - after_ms)
preview = finished(make_preview("s", trigger, after_ms, [next(upcoming("s", trigger, after_ms))]))
print(preview["fires"][0]["local"])
print(zone_or_default("{_ZONE}").utcoffset(None))
print(instant_text("2027-01-04T17:00:00.000Z"))
print(ZONE_DATA_VERSION)
"""
_BY_THE_MACHINE = f"""
import datetime, zoneinfo
print(datetime.datetime(2027, 1, 4, tzinfo=zoneinfo.ZoneInfo("{_ZONE}")))
"""


def _told(code: str, **environment: str) -> list[str]:
    settings = {**os.environ, "TZ": _ZONE, **environment}
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=settings, capture_output=True, text=True, check=True
    )
    return run.stdout.splitlines()


def test_older_files_of_the_machine_change_no_time(tmp_path: Path) -> None:
    stale = tmp_path / _ZONE
    stale.parent.mkdir(parents=True)
    stale.write_bytes(fixed_zone(-8 * 3_600))
    assert _told(_BY_THE_MACHINE, PYTHONTZPATH=f"{tmp_path}") == ["2027-01-04 00:00:00-08:00"]
    told = _told(_ASKED, PYTHONTZPATH=f"{tmp_path}")
    assert told == _told(_ASKED, PYTHONTZPATH="")
    assert told[:2] == ["57600000", "2027-01-04T09:00:00-07:00"]
    assert told[-1] == ZONE_DATA_VERSION


def test_other_data_are_another_package(tmp_path: Path) -> None:
    write_zone_data(tmp_path, {_ZONE: -8 * 3_600})
    told = _told(_ASKED, PYTHONPATH=f"{tmp_path}")
    assert told[:2] == ["61200000", "2027-01-04T09:00:00-08:00"]
    assert told[-1] == "2099z"


@pytest.mark.parametrize("name", ["Factory", "localtime", "posixrules", "Nowhere/Land", "../etc/passwd", ""])
def test_a_name_that_the_package_lacks_is_no_zone(name: str) -> None:
    with pytest.raises(InvalidInput, match="is not a time zone"):
        zone_of(name)
