"""Does anything need a person? What ``hascheduler check`` would say of the databases, once there is peace again."""

from hascheduler import assembly
from hascheduler.settings import read_settings


async def what_needs_a_person(mongodb_uri: str, database: str, shards: int = 1) -> list[str]:
    """Each finding as a text; what may still be in motion it has looked at twice."""
    settings = read_settings(mongodb_uri=mongodb_uri, database=database, shards=shards)
    report = await assembly.audit(settings, lambda *_: None)
    assert report is not None
    return [f"{finding.kind} {finding.document}: {finding.what}" for finding in report.findings]
