"""When an alert fires and when it must not: series, one sample each 15 s, and what follows at a given time.

Values are written as promtool reads them: ``1x40`` is 1 and forty more, ``0+2x40`` rises by 2, ``stale`` ends a series.
"""

from dataclasses import dataclass, field

NAMESPACE = "hascheduler"


def told(name: str, process: int = 0, namespace: str = NAMESPACE, kind: str = "scheduler", **labels: str) -> str:
    """A series as that replica (or processor) tells it, with the labels that scraping adds."""
    pairs = {
        **labels,
        "namespace": namespace,
        "pod": f"{kind}-{process}",
        "instance": f"10.0.0.{process}:9090",
        "job": f"hascheduler-{kind}",
    }
    written = ", ".join(f'{key}="{value}"' for key, value in pairs.items())
    return f"{name}{{{written}}}"


def by_processor(name: str, process: int = 0, **labels: str) -> str:
    return told(name, process, kind="processor", **labels)


def of(process: int, kind: str = "scheduler") -> dict[str, str]:
    """The labels of an alert about one process."""
    name = f"{kind}-{process}"
    return {"namespace": NAMESPACE, "pod": name, "instance": f"10.0.0.{process}:9090", "job": f"hascheduler-{kind}"}


@dataclass(frozen=True, slots=True)
class Fires:
    summary: str
    labels: dict[str, str] = field(default_factory=lambda: {"namespace": NAMESPACE})


@dataclass(frozen=True, slots=True)
class Case:
    alert: str
    title: str
    at: str
    series: dict[str, str]
    fires: tuple[Fires, ...] = ()
