"""The bodies and answers of ``/v1/simulations``."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from hascheduler.wire.fields import StrictModel

PIECES_MAX = 64
PIECE_LENGTH_MAX = 1024 * 1024
POLICIES_MAX = 4
_POLICY_LENGTH_MAX = 256
_SCENARIO = """\
definitions: {clone: {}}
processors: [{id: node-1, slots: 2}]
jobs:
  - {id: "a-{n}", definition: clone, fairness_key: a, count: 6, duration: 10}
  - {id: "b-{n}", definition: clone, fairness_key: b, count: 2, duration: 10, submit_at: 5}
"""

_WAIT: JsonDict = {
    "kind": "all",
    "name": "all",
    "jobs": 1,
    "started": 1,
    "waiting": 0,
    "mean_ms": 0,
    "p50_ms": 0,
    "p95_ms": 0,
    "max_ms": 0,
    "oldest_ms": 0,
}
_REPORT: JsonDict = {
    "ended_at_ms": 10_000,
    "jobs": 1,
    "completed": 1,
    "running": 0,
    "pending": 0,
    "lost": 0,
    "gave_up": 0,
    "expired": 0,
    "unschedulable": 0,
    "per_hour": 360.0,
    "utilisation": 1.0,
    "waits": [_WAIT],
    "processors": [{"processor": "node-1", "slots": 1, "runs": 1, "lost": 0, "used": 1.0}],
    "overtakes": {"times": 0, "jobs": 0, "most": 0, "unluckiest": None},
    "starved": "a-1",
    "promises": [{"name": "within one mode", "held": True, "closest": None}],
}
_PICTURE: JsonDict = {
    "rows": [{"processor": "node-1", "slots": 1, "join_ms": 0, "leave_ms": None, "drain_ms": None}],
    "rows_left_out": 0,
    "bars": [{"row": 0, "slot": 0, "from_ms": 0, "to_ms": 10_000, "group": 0, "job": "a-1", "lost": False}],
    "bars_left_out": 0,
    "waiting": {"times_ms": [0], "counts": [[0]]},
    "lines": None,
    "costs": [{"key": "a", "group": 0, "points": [[0, 1_000], [10_000, 1_000]]}],
    "costs_left_out": 0,
}
_RESULT: JsonDict = {
    "replay": None,
    "note": "",
    "until_ms": 10_000,
    "kind": "fairness key",
    "groups": [{"name": "a", "colour": "#0072b2"}],
    "runs": [
        {
            "policy": "fair",
            "report": _REPORT,
            "moved": None,
            "picture": _PICTURE,
            "outcome": {
                "dispatched": [[0.0, "a-1", "node-1"]],
                "completed": [[10.0, "a-1"]],
                "accumulated_cost": {"a": 1.0},
                "pending": [],
            },
        }
    ],
}


class SimulationBody(StrictModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"scenario": [_SCENARIO], "policies": ["fair", "swimlanes"]}]}
    )

    scenario: list[Annotated[str, Field(max_length=PIECE_LENGTH_MAX)]] = Field(
        min_length=1,
        max_length=PIECES_MAX,
        description="The text of a scenario, YAML or JSON, or of a recording; a long one in pieces of less than 1 MiB, "
        "which are joined",
    )
    policies: list[Annotated[str, Field(min_length=1, max_length=_POLICY_LENGTH_MAX)]] = Field(
        default=[],
        max_length=POLICIES_MAX,
        description="Presets, or lists of criteria with commas; none: the scenario's own. A recording is run under the "
        "policy of its leader first",
    )


class SimulationReplay(BaseModel):
    """Whether the core decides again what the recorded leader has decided."""

    steps: int = Field(description="How many of the leader were replayed")
    decisions: int = Field(description="How many were the same")
    end: str | None = Field(description="Why the recording ended; null: it was cut off, or the replay differs")
    identical: bool = Field(description="All were")
    differs_at_step: int | None = Field(description="The first step that decides something else; null: none does")


class SimulationGroup(BaseModel):
    name: str = Field(description="What the jobs of this colour have in common")
    colour: str | None = Field(description="As `#rrggbb`; null: all others together")


class SimulationWaits(BaseModel):
    """Those that `started` have a mean and percentiles; those `waiting` had not by the end."""

    kind: str = Field(
        description="`all`, `tenant`, `key`, `lane`, `tier` or `mode`; of each the 20 that waited longest"
    )
    name: str = Field(description="Of the tenant, key, lane, tier or mode")
    jobs: int = Field(description="Those that were submitted")
    started: int = Field(description="Those that were dispatched")
    waiting: int = Field(description="Those that were not")
    mean_ms: int = Field(description="Of those that started")
    p50_ms: int = Field(description="The median, by nearest rank")
    p95_ms: int = Field(description="95 % waited no longer")
    max_ms: int = Field(description="The longest that is over")
    oldest_ms: int = Field(description="How long the oldest of those that wait has been waiting")


class SimulationProcessor(BaseModel):
    processor: str = Field(description="Its id")
    slots: int = Field(description="How many jobs it may run at once")
    runs: int = Field(description="How many attempts began on it")
    lost: int = Field(description="How many were cut off when it left")
    used: float = Field(description="The part of its slots' time, from 0 to 1")


class SimulationOvertakes(BaseModel):
    """Jobs of one mode that started before one that was submitted earlier."""

    times: int = Field(description="How often one did")
    jobs: int = Field(description="How many jobs were overtaken")
    most: int = Field(description="How often the unluckiest was")
    unluckiest: str | None = Field(description="The job that was overtaken most often")


class SimulationClosest(BaseModel):
    job: str = Field(description="That was overtaken")
    by: str = Field(description="The job that overtook it")
    after_ms: int = Field(description="How long after it that one was submitted")
    bound_ms: int = Field(description="The promise holds while that is less")


class SimulationPromise(BaseModel):
    name: str = Field(description="What is promised")
    held: bool | None = Field(description="null: the policy does not make it")
    closest: SimulationClosest | None = Field(
        description="The overtaking that came closest to the bound; null: there was none"
    )


class SimulationReport(BaseModel):
    """The figures that `hascheduler simulate` prints."""

    ended_at_ms: int = Field(description="When the run ended")
    jobs: int = Field(description="Those that were submitted")
    completed: int = Field(description="Those that succeeded")
    running: int = Field(description="… that ran at the end")
    pending: int = Field(description="… that waited at the end")
    lost: int = Field(description="Attempts that were cut off")
    gave_up: int = Field(description="Jobs that lost too many attempts")
    expired: int = Field(description="Jobs that had not begun in time")
    unschedulable: int = Field(description="Waiting jobs that no processor could run at the end")
    per_hour: float = Field(description="Jobs completed in an hour")
    utilisation: float = Field(description="The used part of all slots, from 0 to 1")
    waits: list[SimulationWaits] = Field(description="For all jobs, and for each group")
    processors: list[SimulationProcessor] = Field(description="At most 100")
    overtakes: SimulationOvertakes = Field(description="Within one mode")
    starved: str | None = Field(description="The job that waited longest")
    promises: list[SimulationPromise] = Field(description="Of the policy, and whether they were held")


class SimulationShift(BaseModel):
    job: str = Field(description="Its id")
    by_ms: int = Field(description="How much")


class SimulationMoves(BaseModel):
    """How many jobs start sooner, later or at the same time than in the first run."""

    sooner: int = Field(description="Jobs that start sooner")
    later: int = Field(description="Jobs that start later")
    same: int = Field(description="Jobs that start at the same time")
    in_one_only: int = Field(description="Jobs that start in one of the two runs only")
    most_sooner: SimulationShift | None = Field(description="The job that gains most")
    most_later: SimulationShift | None = Field(description="The job that loses most")


class SimulationRow(BaseModel):
    """A processor; `slots` that were used at once."""

    processor: str = Field(description="Its id")
    slots: int = Field(description="How many were used at once")
    join_ms: int = Field(description="When it joins")
    leave_ms: int | None = Field(description="When it leaves; null: it stays")
    drain_ms: int | None = Field(description="From when on it takes no more jobs; null: it always does")


class SimulationBar(BaseModel):
    """One attempt, in a slot of a row."""

    row: int = Field(description="A place in `rows`")
    slot: int = Field(description="Which of the slots of the row")
    from_ms: int = Field(description="When it began")
    to_ms: int = Field(description="When it ended, or the end of the run")
    group: int = Field(description="A place in `groups`")
    job: str = Field(description="Whose attempt")
    lost: bool = Field(description="Cut off when the processor left")


class SimulationCounts(BaseModel):
    times_ms: list[int] = Field(description="When it changes how many wait")
    counts: list[list[int]] = Field(description="For each of `groups`: how many wait from that time on")


class SimulationLine(BaseModel):
    job: str = Field(description="Its id")
    group: int = Field(description="A place in `groups`")
    points: list[list[float]] = Field(description="[ms, value]")
    dispatched: bool = Field(description="It ends as the job starts; else it still waits")


class SimulationLines(BaseModel):
    """Jobs for as long as they wait, as the policy compares them."""

    by: str = Field(description="`score` or `aged priority`")
    lines: list[SimulationLine] = Field(description="Some of each group")
    left_out: int = Field(description="How many more there are")


class SimulationCost(BaseModel):
    key: str = Field(description="The fairness key, with its tenant where there are several")
    group: int | None = Field(description="A place in `groups`; null: the colours tell something else apart")
    points: list[list[int]] = Field(description="[ms, accumulated cost in ms]")


class SimulationPicture(BaseModel):
    """What `hascheduler simulate --plot` draws, thinned where it is much; times from the beginning of the run."""

    rows: list[SimulationRow] = Field(description="The processors; at most 100")
    rows_left_out: int = Field(description="How many more there are")
    bars: list[SimulationBar] = Field(description="The longest attempts; at most 1,500")
    bars_left_out: int = Field(description="How many more there are")
    waiting: SimulationCounts = Field(description="How many jobs wait")
    lines: SimulationLines | None = Field(description="null: the policy looks at neither score nor aged priority")
    costs: list[SimulationCost] = Field(description="Of the keys that consumed most; at most 12")
    costs_left_out: int = Field(description="How many more there are")


class SimulationRun(BaseModel):
    policy: str = Field(description="Its preset, or its criteria with commas")
    report: SimulationReport = Field(description="The figures")
    moved: SimulationMoves | None = Field(description="Compared with the first run; null for that one")
    picture: SimulationPicture = Field(description="The pictures")
    outcome: dict[str, Any] = Field(description="As `hascheduler simulate --json` prints it, in seconds")


class SimulationResponse(BaseModel):
    """Runs of the same jobs under several policies."""

    model_config = ConfigDict(json_schema_extra={"examples": [_RESULT]})

    replay: SimulationReplay | None = Field(description="Of a recording")
    note: str = Field(description="The scenario's own")
    until_ms: int = Field(description="The end of the longest run")
    kind: str = Field(description="What `groups` are: a fairness key, lane, definition, mode or priority")
    groups: list[SimulationGroup] = Field(description="What the colours of the pictures tell apart")
    runs: list[SimulationRun] = Field(description="In the order in which the policies were named")


class SimulationExample(BaseModel):
    name: str = Field(description="To ask for its text")
    note: str = Field(description="What there is to see")


class SimulationExamples(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"items": [{"name": "rarity", "note": "The rare job goes first"}], "policies": ["fair"]}]
        }
    )

    items: list[SimulationExample] = Field(description="By name")
    policies: list[str] = Field(description="The presets; any list of criteria is a policy too")


class SimulationExampleText(SimulationExample):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"name": "rarity", "note": "The rare job goes first", "scenario": "jobs: []\n"}]
        }
    )

    scenario: str = Field(description="YAML")
