"""A tenant: the owner of jobs and schedules, and its quotas on their number and rate. An unknown one has no quota."""

from pydantic import Field

from hascheduler.schema.definition import RateLimit
from hascheduler.schema.forms import Count
from hascheduler.schema.noun import Noun, Owner, Part

DEFAULT_TENANT = "default"
"""The owner of jobs and schedules that a caller for all tenants submits without naming a tenant."""


class RunningLimit(Part):
    """The limit of a tenant that decides when its jobs may start."""

    max_running: Count | None = Field(default=None, examples=[10])
    """How many of its jobs run at once; null: no limit"""


class TenantBody(RunningLimit):
    """The quotas of a tenant; an omitted field gets its default."""

    max_pending: Count | None = Field(default=None, examples=[10_000])
    """How many of its jobs wait at once, including those of its schedules; null: no limit"""
    submit_rate: RateLimit | None = Field(default=None, examples=[{"count": 100, "per": "1s"}])
    """How fast its jobs are accepted; null: no limit"""
    max_schedules: Count | None = Field(default=None, examples=[200])
    """How many schedules it may have; null: the deployment's limit"""
    fire_rate: RateLimit | None = Field(default=None, examples=[{"count": 600, "per": "1m"}])
    """How fast all its schedules together fire; times beyond the rate are throttled; null: no limit"""
    owner: Owner = None


class Tenant(TenantBody, Noun):
    """The owner of jobs and schedules, with its quotas."""
