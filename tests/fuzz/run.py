"""One decoder and one seed: as many inputs as asked for, the worst of them kept."""

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz.decoders import DECODERS
from tests.fuzz.watchdog import watched


def fuzz(name: str, seed_number: int, examples: int) -> None:
    """Raises what an input made, shrunk; the input stands in the error's notes."""
    decoder = DECODERS[name]

    @seed(seed_number)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(decoder.inputs)
    def run(value: object) -> None:
        try:
            watched(decoder.decode, value, decoder.refusals)
        except Exception as error:
            error.add_note(f"{name} was given {value!r:.4000}")
            raise

    run()
