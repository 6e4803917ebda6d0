"""What must hold, one function a promise. Each takes the `Evidence` of a run and gives the violations as texts.

None of them looks at the application: they judge by the effects that handlers left, by what the database committed and
by what was asked for from outside. Simulations (`tests.cluster_simulation`) and real processes (`tests.chaos`) are held
to the same.
"""

from collections.abc import Callable, Mapping

from tests.checkers.evidence import Evidence
from tests.checkers.jobs import (
    attempts_apart,
    cancels_kept,
    caps_kept,
    dependencies_kept,
    events_are_history,
    graphs_apart,
    legal_moves,
    losses_apart,
    nothing_extra,
    nothing_lost,
    one_effect,
)
from tests.checkers.leaders import (
    decided_once,
    followed_rightly,
    journal_fenced,
    lease_moves,
    mirrors_agree,
    one_leader,
    pauses_kept,
)
from tests.checkers.times import days_kept, local_times_once, never_early

Checker = Callable[[Evidence], list[str]]

ALL: Mapping[str, Checker] = {
    checker.__name__: checker
    for checker in (
        nothing_lost,
        nothing_extra,
        days_kept,
        local_times_once,
        one_effect,
        cancels_kept,
        attempts_apart,
        journal_fenced,
        decided_once,
        lease_moves,
        one_leader,
        followed_rightly,
        legal_moves,
        events_are_history,
        losses_apart,
        caps_kept,
        mirrors_agree,
        never_early,
        pauses_kept,
        graphs_apart,
        dependencies_kept,
    )
}
