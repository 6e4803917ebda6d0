"""What must hold, one promise a file. Each takes the `Evidence` of a run and gives the violations as texts.

None of them looks at the application: they judge by the effects that handlers left, by what the database committed and
by what was asked for from outside. Simulations (`tests.cluster_simulation`) and real processes (`tests.chaos`) are held
to the same.
"""

from collections.abc import Callable, Mapping

from tests.checkers.attempts_apart import attempts_apart
from tests.checkers.cancels_kept import cancels_kept
from tests.checkers.caps_kept import caps_kept
from tests.checkers.days_kept import days_kept
from tests.checkers.decided_once import decided_once
from tests.checkers.dependencies_kept import dependencies_kept
from tests.checkers.events_are_history import events_are_history
from tests.checkers.evidence import Evidence
from tests.checkers.followed_rightly import followed_rightly
from tests.checkers.graphs_apart import graphs_apart
from tests.checkers.journal_fenced import journal_fenced
from tests.checkers.lease_moves import lease_moves
from tests.checkers.legal_moves import legal_moves
from tests.checkers.local_times_once import local_times_once
from tests.checkers.losses_apart import losses_apart
from tests.checkers.mirrors_agree import mirrors_agree
from tests.checkers.never_early import never_early
from tests.checkers.nothing_extra import nothing_extra
from tests.checkers.nothing_lost import nothing_lost
from tests.checkers.one_effect import one_effect
from tests.checkers.one_leader import one_leader
from tests.checkers.pauses_kept import pauses_kept

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
