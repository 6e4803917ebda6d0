"""Which figures go into the report, how they are worded, and what was aimed at."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One line for ``case``, or for each of the benchmark's cases but those ``without``. ``headline`` is the figure
    whose spread is shown."""

    bench: str
    what: str
    shown: str
    case: str = ""
    goal: str = ""
    headline: str = ""
    without: tuple[str, ...] = ()


_LATE = "{missed} missed, {doubled} doubled of {expected:,}; lag p50 {lag_p50_ms}, p99 {lag_p99_ms} ms"
_FIRES = "schedules firing every second, to start of the handler"
_TAKEOVER = "p50 {dispatch_p50_ms}, p99 {dispatch_p99_ms}, at most {dispatch_max_ms} ms of {kills}"
_AT_REST = "{cpu_percent} % of a core, {resident_mb} MB resident"
_COST = "{cpu_ms_per_job} ms of CPU, {mongodb_ops_per_job} operations of MongoDB"
_WAITING = "ready in {ready_s} s, {resident_mb} MB resident, {idle_cpu_percent} % of a core"
_JOBS_WAIT = (
    "ready in {ready_s} s, {resident_mb} MB resident; {started_per_s:,} jobs/s, {decision_us} µs a decision;"
    " longest stall {stall_loading_ms} ms loading, {stall_dispatching_ms} ms dispatching"
)
_STORM = (
    "{missed} missed, {doubled} doubled; the last after {last_started_ms:,} ms;"
    " {pairs_by_policy_percent} % of pairs in the order of the policy"
)
_SOAK = (
    "{lost} lost, {doubled} doubled of {expected:,}, {kills} leaders killed;"
    " p99 of fires {fires_p99_ms} ms, of jobs {jobs_p99_ms} ms, growing by {jobs_p99_slope_ms_per_minute} ms a minute"
)
_CORE = "{decision_us} µs; adding a job {add_us} µs, {bytes_per_job} bytes"

ROWS = (
    Row(
        "throughput",
        "no-op jobs over HTTP until all have succeeded: {case}",
        "{jobs_per_s:,} jobs/s, {lost} lost, {doubled} doubled",
        headline="jobs_per_s",
    ),
    Row(
        "latency",
        "submit to start of the handler, {case}",
        "p50 {start_p50_ms}, p99 {start_p99_ms} ms",
        headline="start_p99_ms",
    ),
    Row("fires", f"200 {_FIRES}", _LATE, case="200 schedules", headline="lag_p99_ms"),
    Row(
        "fires",
        f"1,000 {_FIRES}",
        _LATE,
        case="1,000 schedules",
        goal="0 missed, 0 doubled, p99 ≤ 50 ms",
        headline="lag_p99_ms",
    ),
    Row("fires", f"2,000 {_FIRES}", _LATE, case="2,000 schedules", headline="lag_p99_ms"),
    Row("storm", "schedules due in one second, {case}", _STORM, goal="≤ 5,000 ms", headline="last_started_ms"),
    Row("failover", "leader gets {case}, to the first dispatch of the next", _TAKEOVER, headline="dispatch_p99_ms"),
    Row("schedules", "a replica with {case}, from its start", _WAITING, headline="ready_s"),
    Row("pending", "a replica with {case} jobs", _JOBS_WAIT, headline="ready_s"),
    Row(
        "finished",
        "get, why and lists with {case} jobs",
        "get p99 {get_p99_ms}, the slowest list p99 {slowest_list_p99_ms} ms",
    ),
    # Older results have what it costs at rest, and how it grows.
    Row("cost", "what a job costs at {case}", _COST, headline="cpu_ms_per_job", without=("at rest", "growth")),
    Row("idle", "an idle leader", _AT_REST, case="leader", goal="≤ 1 %, ≤ 80 MB"),
    Row("idle", "an idle follower", _AT_REST, case="follower", goal="≤ 1 %, ≤ 80 MB"),
    Row(
        "flood",
        "one tenant submits {case}: the wait of another's jobs",
        "p50 {quiet_flooded_p50_ms}, p99 {quiet_flooded_p99_ms} ms (alone {quiet_alone_p50_ms} and"
        " {quiet_alone_p99_ms})",
        headline="quiet_flooded_p99_ms",
    ),
    Row(
        "overload",
        "{case} is submitted: how much of the best still gets done",
        "{goodput_ratio} ({goodput_per_s} of {best_per_s} and {best_after_per_s} jobs/s), {goodput_ratio_of_cpu}"
        " of what the CPU left by the clients allows; wait p99 {wait_p99_ms} ms",
        goal="≥ 0.9",
        headline="goodput_ratio",
    ),
    Row(
        "slot-moves",
        "a partition with {case} moves to another shard",
        "starts stop for {pause_p50_ms}, at most {pause_max_ms} ms of {moves} moves"
        " ({undisturbed_ms} without one), complete after {moved_p50_ms}; {missed} missed, {doubled} doubled",
        goal="≤ 2,000 ms, 0 missed, 0 doubled",
        headline="pause_p50_ms",
    ),
    Row(
        "shards-memory",
        "memory of a replica, {case}",
        "{memory_mb} MB of {hosted} shards that it hosts; {idle_cpu_percent} % of a core",
        headline="memory_mb",
    ),
    *(
        Row(
            "shards",
            "CPU of a job at the same load, {case}",
            "{cpu_ratio}; replicas {replica_cpu_ratio}, processors {processor_cpu_ratio}",
            case=f"4 shards to 1, {rate} jobs/s",
            goal="≤ 1.15",
            headline="cpu_ratio",
        )
        for rate in (200, 400)
    ),
    Row(
        "shards",
        "{case} of 4 gets SIGKILL, to the first dispatch in each",
        "p50 {dispatch_p50_ms}, p99 {dispatch_p99_ms}, at most {dispatch_max_ms} ms of {takeovers}",
        case="a replica with 2 shards",
        goal="p99 ≤ 150 ms",
        headline="dispatch_p99_ms",
    ),
    Row(
        "shards",
        "{case} of 4 comes back: time without a dispatch in each",
        "p50 {returned_p50_ms}, p99 {returned_p99_ms}, at most {returned_max_ms} ms of {takeovers}",
        case="a replica with 2 shards",
        goal="≤ 200 ms",
        headline="returned_p99_ms",
    ),
    Row(
        "shards",
        "{case} of 4 gets SIGKILL: lag of fires in the other two, a second before and after",
        "p99 {others_before_p99_ms} and {others_after_p99_ms} ms, {unstarted} not started",
        case="a replica with 2 shards",
        goal="the same",
        headline="others_after_p99_ms",
    ),
    Row("decisions", "one decision of the core alone, policy {case}", _CORE, without=("growth",)),
    Row("soak", "{case}, a leader killed every minute", _SOAK),
)
