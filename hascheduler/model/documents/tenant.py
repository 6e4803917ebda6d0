"""Stored tenants."""

from typing import Any

from hascheduler.model.documents.definition import decode_rate_limit, encode_rate_limit
from hascheduler.model.schema_version import WRITTEN_VERSION, require_known_version
from hascheduler.model.tenant import Tenant
from hascheduler.model.values.fields import (
    Document,
    identifier,
    integer,
    positive_or_none,
    text_or_none,
)

TENANT_FIELDS = ("v", "rev", "max_running", "max_pending", "submit_rate", "max_schedules", "fire_rate", "owner")


def encode_tenant(tenant: Tenant) -> dict[str, Any]:
    return {
        "_id": tenant.name,
        "v": WRITTEN_VERSION,
        "rev": tenant.rev,
        "max_running": tenant.max_running,
        "max_pending": tenant.max_pending,
        "submit_rate": encode_rate_limit(tenant.submit_rate),
        "max_schedules": tenant.max_schedules,
        "fire_rate": encode_rate_limit(tenant.fire_rate),
        "owner": tenant.owner,
    }


def decode_tenant(id: object, fields: Document) -> Tenant:
    require_known_version(fields)
    return Tenant(
        name=identifier(id),
        rev=integer(fields, "rev"),
        max_running=positive_or_none(fields, "max_running"),
        max_pending=positive_or_none(fields, "max_pending"),
        submit_rate=decode_rate_limit(fields, "submit_rate"),
        max_schedules=positive_or_none(fields, "max_schedules"),
        fire_rate=decode_rate_limit(fields, "fire_rate"),
        owner=text_or_none(fields, "owner"),
    )
