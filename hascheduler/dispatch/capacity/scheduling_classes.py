"""Jobs that the same rules admit: one scheduling class for each definition, demand for resources, and tenant with a
quota.

Whether a job may run now depends on its class alone, but for the locks on its target. So each class is one bit, and
what may run now is one number: no job that can't run is ever looked at.
"""

from collections.abc import Iterator, Mapping

from hascheduler.dispatch.rules import Rules
from hascheduler.model.job import JobRef
from hascheduler.model.resources import Resources
from hascheduler.schema.definition import Definition


class SchedulingClass:
    """``needs`` are the resources that its jobs take besides a slot; ``tenant`` is None where there is no quota."""

    __slots__ = ("bit", "definition", "needs", "own", "tenant")

    def __init__(self, bit: int, definition: Definition, own: Resources | None, tenant: str | None) -> None:
        self.bit = bit
        self.definition = definition
        self.own = own
        self.needs = definition.needs(own)
        self.tenant = tenant


class SchedulingClasses:
    """Owner of the classes. ``changes`` grows when one is added or forgotten, or its definition changes."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._classes: dict[tuple[str, Resources | None, str | None], SchedulingClass] = {}
        self._of_definition: dict[str, int] = {}
        self._of_tenant: dict[str, int] = {}
        self.changes = 0

    @property
    def of_definition(self) -> Mapping[str, int]:
        """The bits of each definition's classes."""
        return self._of_definition

    @property
    def of_tenant(self) -> Mapping[str, int]:
        """The bits of the classes of each tenant with a quota."""
        return self._of_tenant

    def __len__(self) -> int:
        return len(self._classes)

    def __iter__(self) -> Iterator[SchedulingClass]:
        return iter(self._classes.values())

    def of(self, job: JobRef) -> SchedulingClass:
        tenant = job.tenant if self._rules.tenants and self._rules.quota(job.tenant) is not None else None
        key = (job.definition, job.resources, tenant)
        known = self._classes.get(key)
        if known is None:
            known = SchedulingClass(len(self._classes), self._rules.definition(job.definition), job.resources, tenant)
            self._classes[key] = known
            bit = 1 << known.bit
            self._of_definition[job.definition] = self._of_definition.get(job.definition, 0) | bit
            if tenant is not None:
                self._of_tenant[tenant] = self._of_tenant.get(tenant, 0) | bit
            self.changes += 1
        return known

    def redefined(self, name: str) -> list[SchedulingClass]:
        """The definition has changed; its classes, updated."""
        definition = self._rules.definition(name)
        found = [job_class for job_class in self._classes.values() if job_class.definition.name == name]
        for job_class in found:
            job_class.definition = definition
            job_class.needs = definition.needs(job_class.own)
        self.changes += 1
        return found

    def forget(self) -> None:
        """Drop all of them; each comes back with its next job."""
        for table in (self._classes, self._of_definition, self._of_tenant):
            table.clear()
        self.changes += 1
