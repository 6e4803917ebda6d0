"""What a scrape says, as a test asks it: one number for a name and its labels."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from hascheduler.telemetry.registry import text_of

Labels = tuple[tuple[str, str], ...]


class Scrape:
    """The samples of one text, each once."""

    def __init__(self, text: str) -> None:
        self.samples: dict[tuple[str, Labels], float] = {}
        self.kinds: dict[str, str] = {}
        for family in text_string_to_metric_families(text):
            # The parser takes a counter's last word from its name.
            name = family.name + ("_total" if family.type == "counter" else "")
            assert name not in self.kinds, f"{name} appears twice"
            self.kinds[name] = family.type
            for sample in family.samples:
                key = (sample.name, tuple(sorted(sample.labels.items())))
                assert key not in self.samples, f"{key} appears twice"
                self.samples[key] = sample.value

    def get(self, name: str, **labels: str) -> float | None:
        return self.samples.get((name, tuple(sorted(labels.items()))))

    def __getitem__(self, name: str) -> float:
        """That of a metric without labels."""
        return self.samples[name, ()]

    def of(self, name: str, **labels: str) -> float:
        """0 where there is no such sample."""
        return self.get(name, **labels) or 0

    def total(self, name: str, **labels: str) -> float:
        """All samples with at least those labels."""
        wanted = set(labels.items())
        return sum(value for (sample, has), value in self.samples.items() if sample == name and wanted <= set(has))

    def by(self, name: str, label: str) -> Mapping[str, float]:
        return {dict(has)[label]: value for (sample, has), value in self.samples.items() if sample == name}


def scrape(registry: CollectorRegistry) -> Scrape:
    return Scrape(text_of(registry).decode())
