"""People make schedules, edit, pause, resume and delete them, and edit the calendars that these use; and what must
become of each of their nominal times.

An account of its own of what was in force when, to hold against what the core decided.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from hascheduler.dispatch.schedules.edits import paused, resumed, with_trigger
from hascheduler.model.collection import Collection
from hascheduler.model.job import fire_job_id, is_before_last
from hascheduler.model.values.instants import WallMs
from hascheduler.model.verdict import FireCounts, Verdict, VerdictRun
from hascheduler.schema.calendar import Calendar, Days
from hascheduler.schema.schedule import CatchUp, GraphJob, JobGraph, Overlap, SchedulePolicy, ScheduleRef, graph_order
from hascheduler.schema.trigger import AnyOf, CalendarUse, Cron, Interval, Pattern, Times, Trigger, Window
from hascheduler.triggers import next_nominal
from tests.unit.dispatch.chance import Chance
from tests.unit.dispatch.database import Database
from tests.unit.dispatch.nouns import make_schedule, wall

NAMES = ("tick", "tock")
TENANTS = ("acme", "beta")
"""Names come back: once a schedule is deleted, either of them may make the next one of that name."""
EVERY_MS = (1_000, 700)
DAY_MS = 86_400_000
TODAY = wall(0) // DAY_MS
"""It is over soon; the next day is not."""
ON_CALENDARS = CalendarUse(("market-days",), ("holidays",), "UTC")


@dataclass(slots=True)
class _Period:
    """``trigger`` was in force after ``since_ms`` through ``through_ms`` (None: it still is); ``paused`` or not."""

    trigger: Trigger
    since_ms: int
    through_ms: int | None = None
    paused: bool = False


class Timetable:
    def __init__(self, chance: Chance, database: Database) -> None:
        self.chance = chance
        self.database = database
        self._stretches: dict[str, list[_Period]] = {}
        self._calendars: dict[str, list[Calendar]] = {name: [] for name in ON_CALENDARS.names}
        """As they were, one after the other, and as they are."""
        self._put_calendar("market-days", (TODAY, TODAY + 1))
        self._put_calendar("holidays", ())
        self.makes_graphs = False
        """Whether some schedules make several jobs at each fire."""

    def create_plain(self, name: str, now: WallMs) -> None:
        self._create(name, now, Trigger(Interval(1_000, wall(0))), SchedulePolicy(), TENANTS[0])

    def _create(self, name: str, now: WallMs, trigger: Trigger, policy: SchedulePolicy, tenant: str) -> None:
        schedule = make_schedule(name, trigger=trigger, since_ms=now, cursor_ms=now, created_at_ms=now, policy=policy)
        schedule = replace(schedule, template=replace(schedule.template, tenant=tenant))
        is_graph = self.makes_graphs and self.chance.among([True, True, False])
        self.database.put_schedule(self._with_other_jobs(schedule) if is_graph else schedule)
        self._stretches[name] = [_Period(trigger, now)]

    def change(self, now: WallMs) -> WallMs:
        """One change of one of them, at ``now``; the instant after it."""
        name = self.chance.among([*NAMES, *NAMES, *ON_CALENDARS.names])
        if name in self._calendars:
            self._put_calendar(name, self.chance.among([(), (TODAY,), (TODAY + 1,), (TODAY, TODAY + 1)]))
            return now
        if name not in self.database.documents[Collection.SCHEDULES]:
            self._create(name, now, self._trigger(now), self._policy(), self.chance.among(TENANTS))
            return now
        schedule = self.database.schedule(name)
        match self.chance.among(["delete", "template", "policy", "trigger", "pause", "resume", "catch up"]):
            case "delete":
                self.database.delete(Collection.SCHEDULES, name)
                # The same instant would make the new one's first nominal time the old one's last.
                return WallMs(now + 1)
            case "template":
                priority = (schedule.template.priority + 1) % 11
                edited = replace(schedule, template=replace(schedule.template, priority=priority))
                self.database.edit_schedule(edited if schedule.graph is None else self._with_other_jobs(edited))
            case "policy":
                self.database.edit_schedule(replace(schedule, policy=self._policy()))
            case "trigger":
                self._change_trigger(schedule, self._trigger(now), now)
            case "pause":
                self._pause(schedule, now)
            case "resume":
                self._resume(schedule, now, from_now=True)
            case _:
                self._resume(schedule, now, from_now=False)
        return now

    def _put_calendar(self, name: str, days: Sequence[int]) -> None:
        versions = self._calendars[name]
        calendar = Calendar(name=name, rev=len(versions) + 1, include=Days(tuple((day, day) for day in days)))
        self.database.put_calendar(calendar)
        versions.append(calendar)

    def _with_other_jobs(self, schedule: ScheduleRef) -> ScheduleRef:
        """Which makes a graph, one of whose refs may have been another job before."""
        refs = self.chance.among([("a", "b"), ("a", "b", "c"), ("b", "a", "c")])
        # The others run beside each other.
        jobs = [GraphJob(ref, refs[:-1] if ref == refs[-1] else (), schedule.template) for ref in refs]
        order = graph_order([(job.ref, job.depends_on) for job in jobs])
        return replace(schedule, graph=JobGraph(tuple(jobs), order))

    def _trigger(self, now: WallMs) -> Trigger:
        # The times of the last are nearer to each other than the jitter, and some are of two of its patterns.
        listed = Times((WallMs(now + 1_100), WallMs(now + 2_000), WallMs(now + 2_250)))
        several = AnyOf((Interval(2_000, wall(0)), Cron("* * * * * */3"), listed))
        plain: list[Pattern] = [Interval(every_ms, wall(0)) for every_ms in EVERY_MS]
        pattern = self.chance.among([*plain, several])
        window = Window(WallMs(now + 1_500), WallMs(now + 4_000))
        jitter_ms = self.chance.among([0, 0, 300])
        exclude = self.chance.among([(), (), (window,)])
        return Trigger(
            pattern, jitter_ms=jitter_ms, exclude=exclude, calendars=self.chance.among([None, None, ON_CALENDARS])
        )

    def _policy(self) -> SchedulePolicy:
        return SchedulePolicy(
            grace_ms=self.chance.among([60_000, 500]),
            catch_up=self.chance.among([CatchUp.ALL, *CatchUp]),
            catch_up_max=self.chance.among([1_000, 3]),
            overlap=self.chance.among([Overlap.ALLOW, *Overlap]),
        )

    def _change_trigger(self, schedule: ScheduleRef, trigger: Trigger, now: WallMs) -> None:
        if trigger == schedule.trigger:
            return
        self.database.edit_schedule(with_trigger(schedule, trigger, now))
        end_ms = self._close(schedule, now)
        self._stretches[schedule.name].append(_Period(trigger, end_ms, paused=schedule.paused_at_ms is not None))

    def _pause(self, schedule: ScheduleRef, now: WallMs) -> None:
        if schedule.paused_at_ms is None:
            self.database.edit_schedule(paused(schedule, now))
            end_ms = self._close(schedule, now)
            self._stretches[schedule.name].append(_Period(schedule.trigger, end_ms, paused=True))

    def _resume(self, schedule: ScheduleRef, now: WallMs, *, from_now: bool) -> None:
        if schedule.paused_at_ms is None:
            return
        self.database.edit_schedule(resumed(schedule, now, from_now=from_now))
        if from_now:
            end_ms = self._close(schedule, now)
            self._stretches[schedule.name].append(_Period(schedule.trigger, end_ms))
        else:
            self._stretches[schedule.name][-1].paused = False

    def _close(self, schedule: ScheduleRef, now: WallMs) -> int:
        """When what is in force ends: of two edits in one millisecond, the second counts one later."""
        last = self._stretches[schedule.name][-1]
        last.through_ms = max(now, last.since_ms + 1)
        return last.through_ms

    # What must have become of them

    def undecided(self, horizon: WallMs) -> list[str]:
        """The nominal times up to then without a verdict; raises where one has two, or another than it must have."""
        return [
            f"{name} at {nominal_ms} is undecided"
            for name in self.database.documents[Collection.SCHEDULES]
            for nominal_ms, stretch in self._in_force(name, horizon)
            if self._verdict(name, nominal_ms, stretch) is None
            and not self._waits_for_its_day(stretch, nominal_ms, horizon)
        ]

    def check_tallies(self) -> None:
        for name in self.database.documents[Collection.SCHEDULES]:
            schedule = self.database.schedule(name)
            made = [job for id, job in self.database.jobs.items() if not is_before_last(id)]
            jobs = [job for job in made if job["schedule"] == name]
            tally = FireCounts(fired=sum(schedule.created_at_ms < job["nominal_ms"] for job in jobs))
            for run in self._runs(name):
                if run.first_ms > schedule.created_at_ms:
                    tally = tally.plus(run.verdict, run.count)
                    assert run.count == self._count(name, run), f"{run} has another count"
            assert schedule.tally == tally, f"the tally of {name}"

    def _verdict(self, name: str, nominal_ms: WallMs, stretch: _Period) -> Verdict | None:
        verdicts = [run.verdict for run in self._runs(name) if run.first_ms <= nominal_ms <= run.last_ms]
        if fire_job_id(name, nominal_ms) in self.database.jobs:
            verdicts.append(Verdict.FIRED)
        assert len(verdicts) <= 1, f"{name} at {nominal_ms} is {' and '.join(verdicts)}"
        verdict = verdicts[0] if verdicts else None
        if verdict is not None:
            assert (verdict is Verdict.PAUSED) == stretch.paused, f"{name} at {nominal_ms} is {verdict}"
            is_excluded = verdict is Verdict.EXCLUDED
            assert stretch.paused or is_excluded in self._may_be_excluded(stretch.trigger, nominal_ms), (
                f"{name} at {nominal_ms} is {verdict}"
            )
        return verdict

    def _may_be_excluded(self, trigger: Trigger, nominal_ms: WallMs) -> set[bool]:
        """By its windows, or by any version of its calendars: who decides may know of an edit later than we."""
        if any(window.from_ms <= nominal_ms < window.to_ms for window in trigger.exclude):
            return {True}
        if trigger.calendars is None:
            return {False}
        versions = product(*(self._calendars[name] for name in trigger.calendars.names))
        return {_is_left_out(nominal_ms, *each) for each in versions}

    def _waits_for_its_day(self, stretch: _Period, nominal_ms: WallMs, horizon: WallMs) -> bool:
        """Whether it is on a day that is left out at present, and that is not over."""
        if stretch.trigger.calendars is None or nominal_ms // DAY_MS < horizon // DAY_MS:
            return False
        return _is_left_out(nominal_ms, *(self._calendars[name][-1] for name in ON_CALENDARS.names))

    def _count(self, name: str, run: VerdictRun) -> int:
        """How many times were in force from the first of the run through its last."""
        count = 0
        for stretch in self._stretches[name]:
            last_ms = min(run.last_ms, stretch.through_ms or run.last_ms)
            nominal_ms = _next_of_any(stretch.trigger, max(stretch.since_ms, run.first_ms - 1))
            while nominal_ms is not None and nominal_ms <= last_ms:
                count += 1
                nominal_ms = _next_of_any(stretch.trigger, nominal_ms)
        return count

    def _in_force(self, name: str, horizon: WallMs) -> Iterator[tuple[WallMs, _Period]]:
        stretches = self._stretches[name]
        for stretch in stretches:
            is_open = stretch is stretches[-1]
            if is_open and stretch.paused:
                return  # what becomes of them is settled when it is resumed
            # A run of excluded times is recorded when its window is over.
            through_ms = horizon - 2_500 if is_open and stretch.trigger.exclude else horizon
            nominal_ms = _next_of_any(stretch.trigger, stretch.since_ms)
            while nominal_ms is not None and nominal_ms <= min(through_ms, stretch.through_ms or through_ms):
                yield nominal_ms, stretch
                nominal_ms = _next_of_any(stretch.trigger, nominal_ms)

    def _runs(self, name: str) -> list[VerdictRun]:
        return [run for (schedule, _), run in self.database.passed_over.items() if schedule == name]


def _is_left_out(nominal_ms: WallMs, market_days: Calendar, holidays: Calendar) -> bool:
    day = nominal_ms // DAY_MS
    return holidays.has(day) or not market_days.has(day)


def _next_of_any(trigger: Trigger, after_ms: int) -> WallMs | None:
    """The nearest of the times that each of its patterns names by itself."""
    found = (next_nominal(replace(trigger, pattern=part), after_ms) for part in trigger.parts)
    return min((nominal_ms for nominal_ms in found if nominal_ms is not None), default=None)
