"""The forms of query that panels are made of.

Every replica tells the same of the shared state, so the greatest answer counts (`told`); a leader's counts stay where
they were when another leads, so rates are summed over the replicas (`rate`). Nothing here needs the recording rules:
the dashboard works where they are not loaded.
"""

CHOSEN = 'namespace=~"$namespace"'
WHO = "{{who}}"
"""The legend of `by_process`: the pod; where there are no pods, the target."""


def told(metric: str, *by: str, **labels: str) -> str:
    """What the replicas that are ready tell: the greatest for each of ``by``."""
    ready = f"hascheduler_ready{{{CHOSEN}}} == 1"
    return f"max{_by(*by)} ({chosen(metric, **labels)} and on (namespace, instance) {ready})"


def rate(metric: str, *by: str, **labels: str) -> str:
    """How often a second, over all processes."""
    return f"sum{_by(*by)} (rate({chosen(metric, **labels)}[$__rate_interval]))"


def quantile(share: float, metric: str, *by: str) -> str:
    """That share of the observations of a histogram was not greater, over all processes."""
    return f"histogram_quantile({share}, {rate(f'{metric}_bucket', *by, 'le')})"


def per_process(metric: str, **labels: str) -> str:
    """One line a process, named by `WHO`."""
    return by_process(chosen(metric, **labels))


def by_process(query: str, *by: str) -> str:
    """The greatest of that query for each process, named by `WHO`, and each of ``by``."""
    named = f'label_replace({query}, "who", "$1", "instance", "(.*)")'
    return f'max{_by("who", *by)} (label_replace({named}, "who", "$1", "pod", "(.+)"))'


def chosen(metric: str, **labels: str) -> str:
    """The series of the chosen namespaces; a label whose value begins with ``~`` is matched as a regular expression."""
    pairs = [
        f'{name}=~"{value[1:]}"' if value.startswith("~") else f'{name}="{value}"' for name, value in labels.items()
    ]
    return f"{metric}{{{', '.join([CHOSEN, *pairs])}}}"


def _by(*labels: str) -> str:
    return f" by ({', '.join(labels)})" if labels else ""
