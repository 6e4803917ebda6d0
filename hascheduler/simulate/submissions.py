"""The jobs of a scenario, one by one or in groups.

A job has ``id``, ``definition`` and ``duration``, and may have ``target`` (default: its id), ``tenant`` ("default"),
``lane`` ("default"), ``fairness_key`` (""), ``priority`` (5), ``mode`` ("queued"), ``resources`` (its definition's),
``submit_at`` (0) and ``expires_after`` (never): a job that has not begun so long after its submission fails. A fairness
key is one of its tenant: jobs of two tenants share no account, whatever their keys.

With ``count`` it is a group of so many jobs, ``every`` so many seconds. In a group ``{n}`` in the id is the number of
the job, from 1 on (an id without it gets ``-{n}``), and where a value is a list, the jobs take its items in turn::

    {"id": "clone-{n}", "definition": "clone", "count": 40, "every": [0, 0, 30], "duration": [4, 9]}
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from hascheduler.errors import InvalidInput
from hascheduler.model.definition import Definition
from hascheduler.model.lane import PRIORITY_MAX
from hascheduler.model.resources import Resources
from hascheduler.simulate.fields import Path, a_list, amounts, an_object, integer, shown, span, text
from hascheduler.simulate.scenario import JOBS_MAX, ScenarioJob, ScenarioProcessor

_JOB = (
    "id", "definition", "target", "tenant", "lane", "fairness_key", "priority", "mode", "resources", "submit_at",
    "expires_after", "duration",
)  # fmt: skip
_GROUP = (*_JOB, "count", "every")
_MODES = ("queued", "on_demand")
_TURNS_MAX = 10_000
_Value = TypeVar("_Value")


def parse_jobs(
    value: object, definitions: Mapping[str, Definition], processors: Collection[ScenarioProcessor]
) -> tuple[ScenarioJob, ...]:
    """All jobs, groups unfolded, in the order of the file; an `InvalidInput` names the first that is wrong."""
    seen: dict[str, int] = {}
    jobs: list[ScenarioJob] = []
    room = _Room(definitions, processors)
    for index, item in enumerate(a_list(value, ("jobs",), JOBS_MAX)):
        path: Path = ("jobs", index)
        found = an_object(item, path, _GROUP)
        parsed = _Parsing(found, path, definitions)
        for job in parsed.group(JOBS_MAX - len(jobs)) if "count" in found else (parsed.single(),):
            if seen.setdefault(job.id, index) != index:
                raise InvalidInput((*path, "id"), f"{job.id[:64]!r} is the id of jobs.{seen[job.id]}", "another id")
            room.demand(job, path)
            jobs.append(job)
    return tuple(jobs)


class _Parsing:
    """Takes one item of the list apart."""

    def __init__(self, found: Mapping[str, Any], path: Path, definitions: Mapping[str, Definition]) -> None:
        self._found = found
        self._path = path
        self._definitions = definitions

    def single(self) -> ScenarioJob:
        found, path = self._found, self._path
        if found.get("every") is not None:
            raise InvalidInput((*path, "every"), "without count", "count: how many jobs there are")
        id = text(found.get("id"), (*path, "id"))
        get = found.get
        submit_at_ms = 0 if get("submit_at") is None else span(get("submit_at"), (*path, "submit_at"))
        expires_after_ms = self._expires_after(get("expires_after"), (*path, "expires_after"))
        return ScenarioJob(
            id=id,
            definition=self._definition(get("definition"), (*path, "definition")),
            target=id if get("target") is None else text(get("target"), (*path, "target"), empty=True),
            tenant=self._name(get("tenant"), (*path, "tenant")),
            lane=self._name(get("lane"), (*path, "lane")),
            fairness_key=self._key(get("fairness_key"), (*path, "fairness_key")),
            priority=self._priority(get("priority"), (*path, "priority")),
            mode=self._mode(get("mode"), (*path, "mode")),
            resources=self._needs(get("resources"), (*path, "resources")),
            submit_at_ms=submit_at_ms,
            duration_ms=span(get("duration"), (*path, "duration")),
            expires_at_ms=None if expires_after_ms is None else submit_at_ms + expires_after_ms,
        )

    def group(self, room: int) -> Iterator[ScenarioJob]:
        """Its jobs one by one, if there is ``room`` for them."""
        count = integer(self._found["count"], (*self._path, "count"), 1)
        if count > room:
            raise InvalidInput((*self._path, "count"), f"{count:,}", f"at most {JOBS_MAX:,} jobs in all")
        name = text(self._found.get("id"), (*self._path, "id"))
        name = name if "{n}" in name else name + "-{n}"
        submit_at = self._found.get("submit_at")
        at_ms = 0 if submit_at is None else span(submit_at, (*self._path, "submit_at"))
        gaps_ms = self._turns("every", lambda value, path: 0 if value is None else span(value, path))
        definition = self._turns("definition", self._definition)
        target = self._turns("target", lambda value, path: None if value is None else text(value, path, empty=True))
        tenant = self._turns("tenant", self._name)
        lane = self._turns("lane", self._name)
        key = self._turns("fairness_key", self._key)
        priority = self._turns("priority", self._priority)
        mode = self._turns("mode", self._mode)
        needs = self._turns("resources", self._needs)
        duration_ms = self._turns("duration", span)
        expires_after_ms = self._turns("expires_after", self._expires_after)
        for n in range(count):
            id = name.replace("{n}", str(n + 1))
            own_target = target[n % len(target)]
            own_expiry_ms = expires_after_ms[n % len(expires_after_ms)]
            yield ScenarioJob(
                id=id,
                definition=definition[n % len(definition)],
                target=id if own_target is None else own_target,
                tenant=tenant[n % len(tenant)],
                lane=lane[n % len(lane)],
                fairness_key=key[n % len(key)],
                priority=priority[n % len(priority)],
                mode=mode[n % len(mode)],
                resources=needs[n % len(needs)],
                submit_at_ms=at_ms,
                duration_ms=duration_ms[n % len(duration_ms)],
                expires_at_ms=None if own_expiry_ms is None else at_ms + own_expiry_ms,
            )
            at_ms += gaps_ms[n % len(gaps_ms)]

    def _turns(self, key: str, parse: Callable[[Any, Path], _Value]) -> Sequence[_Value]:
        value, path = self._found.get(key), (*self._path, key)
        if not isinstance(value, list):
            return (parse(value, path),)
        if not value:
            raise InvalidInput(path, "an empty list", "the values that its jobs take in turn")
        return [parse(each, (*path, index)) for index, each in enumerate(a_list(value, path, _TURNS_MAX))]

    def _definition(self, value: object, path: Path) -> str:
        name = text(value, path)
        if name not in self._definitions:
            raise InvalidInput(path, f"{name[:64]!r} is not defined", "a name in definitions")
        return name

    @staticmethod
    def _name(value: object, path: Path) -> str:
        return "default" if value is None else text(value, path)

    @staticmethod
    def _key(value: object, path: Path) -> str:
        return "" if value is None else text(value, path, empty=True)

    @staticmethod
    def _priority(value: object, path: Path) -> int:
        return 5 if value is None else integer(value, path, 0, PRIORITY_MAX)

    @staticmethod
    def _mode(value: object, path: Path) -> str:
        if value is not None and value not in _MODES:
            raise InvalidInput(path, shown(value), " or ".join(_MODES))
        return _MODES[0] if value is None else str(value)

    @staticmethod
    def _expires_after(value: object, path: Path) -> int | None:
        return None if value is None else span(value, path, 1)

    @staticmethod
    def _needs(value: object, path: Path) -> Resources | None:
        return None if value is None else amounts(value, path)


class _Room:
    """Whether one processor, of those that run the job's definition, has all that the job needs."""

    def __init__(self, definitions: Mapping[str, Definition], processors: Collection[ScenarioProcessor]) -> None:
        self._definitions = definitions
        self._processors = processors
        self._possible: set[tuple[str, Resources | None]] = set()

    def demand(self, job: ScenarioJob, path: Path) -> None:
        if (job.definition, job.resources) in self._possible:
            return
        needs = self._definitions[job.definition].resources if job.resources is None else job.resources
        takers = [dict(processor.resources) for processor in self._processors if processor.supports(job.definition)]
        # Where no processor runs the definition, the report names that instead.
        if takers and not any(all(has.get(name, 0) >= amount for name, amount in needs) for has in takers):
            whose = path if job.resources is not None else ("definitions", job.definition)
            wanted = ", ".join(f"{name} {amount}" for name, amount in needs)
            raise InvalidInput((*whose, "resources"), f"no processor has {wanted}", "what one processor can give")
        self._possible.add((job.definition, job.resources))
