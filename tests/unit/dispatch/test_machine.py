"""Everything at once, by chance: as a stateful machine that shrinks what it finds, and as long runs from seeds."""

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.tiers import examples
from tests.unit.dispatch.chance import Seeded
from tests.unit.dispatch.world import World

T = TypeVar("T")


class Drawn:
    """Chance that Hypothesis can shrink."""

    def __init__(self) -> None:
        self.data: st.DataObject | None = None

    def among(self, choices: Sequence[T]) -> T:
        assert self.data is not None
        return self.data.draw(st.sampled_from(choices))


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.chance = Drawn()
        self.world = World(self.chance)

    @rule(data=st.data())
    def act(self, data: st.DataObject) -> None:
        self.chance.data = data
        self.world.act()

    def teardown(self) -> None:
        self.world.heal()


Machine.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None, print_blob=True)
TestMachine = Machine.TestCase


@given(st.integers(0, 2**32))
@settings(max_examples=examples(60))
def test_whatever_happens_nothing_is_done_twice_and_in_the_end_nothing_is_left_undone(seed: int) -> None:
    World(Seeded(seed)).live(300)


@given(st.integers(0, 2**32))
@settings(max_examples=examples(30))
def test_nor_where_fires_make_several_jobs_each_of_which_later_fires_wait_for(seed: int) -> None:
    world = World(Seeded(seed))
    world.timetable.makes_graphs = True
    world.live(300)
