"""Is it well? Eight answers that need no reading."""

from k8s.monitoring.generate.layout import Row
from k8s.monitoring.generate.panels import stat
from k8s.monitoring.generate.queries import WHO, by_process, chosen, quantile, told

WELL = Row(
    "Is it well?",
    [
        stat(
            "Leader",
            by_process(f"{chosen('hascheduler_leading')} == 1"),
            "The replica that leads. Always exactly one, but for the seconds of a takeover.",
            legend=WHO,
            empty="nobody",
            bad_below=1,
            shows_name=True,
        ),
        stat(
            "Term",
            f"max({chosen('hascheduler_term')})",
            "The number of the present leadership. It grows by one with each change of leader; well: it stands still.",
        ),
        stat(
            "Replicas ready",
            f"sum({chosen('hascheduler_ready')})",
            "Replicas whose mirror is complete and fresh: each could lead. Well: all. One alone has no standby.",
            empty="0",
            bad_below=2,
        ),
        stat(
            "Missed",
            f"sum(increase({chosen('hascheduler_verdicts_total', verdict='missed')}[$__range])) or vector(0)",
            "Nominal times later than their misfire grace, in the time shown. Well: 0.",
            bad_from=0.5,
        ),
        stat(
            "Fire lag, p99",
            f"{quantile(0.99, 'hascheduler_fire_lag_seconds')} >= 0",  # not a number where nothing fires
            "From due time to the stored job. Well: well below a second. Empty where nothing fires.",
            unit="s",
            look_from=1,
            bad_from=5,
        ),
        stat(
            "Oldest wait / bound",
            f"max({told('hascheduler_wait_oldest_seconds', 'namespace')}"
            f" / {told('hascheduler_wait_bound_seconds', 'namespace')})",
            "How long the oldest due job has waited, as a share of the wait after which nobody overtakes it. Well: "
            "below a half. Empty where the policy has no bound.",
            unit="percentunit",
            look_from=0.5,
            bad_from=1,
        ),
        stat(
            "Slowest stream",
            f"max({chosen('hascheduler_stream_lag_seconds')})",
            "How far the slowest replica is behind MongoDB. Well: some ten milliseconds.",
            unit="s",
            look_from=0.5,
            bad_from=1,
        ),
        stat(
            "Alerts",
            'count(ALERTS{alertname=~"Hascheduler.*", alertstate="firing", namespace=~"$namespace|"}) or vector(0)',
            "Alerts of hascheduler's rules that fire now. Well: 0. It needs the rules to be loaded.",
            bad_from=1,
        ),
    ],
    abreast=8,
    height=4,
)
