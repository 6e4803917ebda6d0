"""Replicas of which each has time-zone data of its own, and a schedule in the zone in which these differ."""

from pathlib import Path
from typing import Any

from tests.chaos.cluster import ROOT
from tests.chaos.row import STRAY
from tests.checkers.evidence import LocalFire
from tests.zone_data import write_zone_data

ZONE = "Pacific/Kiritimati"
OFFSETS_S = {"r1": 14 * 3_600, "r2": 14 * 3_600 + 6, "r3": 14 * 3_600 - 6}
"""By replica; r1 has the data that are installed. So near each other that each leader decides something in its time."""
EVERY_S = 4
SCHEDULE = f"{STRAY}-local"
# Not every hour by a star, which would follow instants.
BODY = {
    "name": SCHEDULE,
    "trigger": {"type": "cron", "expression": f"* 0-23 * * * */{EVERY_S}", "timezone": ZONE},
    "misfire": {"grace": "1h", "catch_up": "all"},
    "job": {"definition": "quick", "target": "local"},
}


def settings_of(name: str, folder: Path) -> dict[str, str]:
    """With which a replica of that name has its data."""
    if OFFSETS_S.get(name, OFFSETS_S["r1"]) == OFFSETS_S["r1"]:
        return {}
    data = folder / "zone-data" / name
    write_zone_data(data, {ZONE: OFFSETS_S[name]}, version=f"2099{name}")
    return {"PYTHONPATH": f"{data}:{ROOT}"}


async def local_fires(database: Any) -> list[LocalFire]:
    """The fires of the schedule, each by the data of the replica that was the first to put it into the journal."""
    found: dict[int, LocalFire] = {}
    async for entry in database["journal"].find().sort("_id.seq"):
        for kind, *fields in entry["decisions"]:
            if kind == "fire" and fields[0] == SCHEDULE and fields[1] not in found:
                name = entry["holder"].rpartition(".")[0]
                found[fields[1]] = LocalFire(fields[1], fields[1] // 1_000 + OFFSETS_S[name], name)
    made = {job["nominal_ms"] async for job in database["jobs"].find({"_id": {"$regex": f"^fire:{SCHEDULE}:"}})}
    fires = [fire for nominal_ms, fire in found.items() if nominal_ms in made]
    assert len({fire.holder for fire in fires}) > 1, "leaders of one set of data alone decided"
    return fires
