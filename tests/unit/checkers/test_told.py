"""What callers were answered: cancels are kept to, and digests of mirrors at one point are equal."""

from typing import Any

import pytest

from hascheduler.model.collection import Collection
from tests.checkers.cancels_kept import cancels_kept
from tests.checkers.evidence import Commit, Effect, Evidence
from tests.checkers.mirrors_agree import mirrors_agree

NEVER = float("inf")


@pytest.mark.parametrize(
    ("state", "began_s", "pause", "wrong"),
    [
        ("cancelled", None, None, ""),
        ("cancelled", 4.9, None, ""),
        ("cancelled", 5.1, None, "j was cancelled at 5.000 s and began on p at 5.100 s"),
        # It had slept since before, and could not know.
        ("cancelled", 7.5, [4.0, 7.0], ""),
        ("cancelled", 8.5, [4.0, 7.0], "j was cancelled at 5.000 s and began on p at 8.500 s"),
        ("cancelled", 5.1, [1.0, 4.5], "j was cancelled at 5.000 s and began on p at 5.100 s"),
        ("succeeded", None, None, "j was acknowledged as cancelled and is succeeded"),
    ],
)
def test_a_job_that_was_acknowledged_as_cancelled_stays_so_and_does_not_begin(
    state: str, began_s: float | None, pause: list[float] | None, wrong: str
) -> None:
    evidence = Evidence(
        cancels=[("j", 6.0), ("j", 5.0)],
        effects=[] if began_s is None else [Effect("j", 1, "p", began_s)],
        pauses={} if pause is None else {"p": [pause]},
        documents={Collection.JOBS: {"j": {"_id": "j", "state": state}}},
    )
    assert cancels_kept(evidence) == ([wrong] if wrong else [])


def test_a_job_that_was_acknowledged_as_cancelled_is_not_gone() -> None:
    evidence = Evidence(cancels=[("j", 5.0)], documents={Collection.JOBS: {}})
    assert cancels_kept(evidence) == ["j was acknowledged as cancelled and is gone"]


def beats(*marks: tuple[str, str]) -> Evidence:
    documents: list[Any] = [{"_id": replica, "marks": text} for replica, text in marks]
    return Evidence(commits=[Commit(1.0, Collection.REPLICAS, None, document) for document in documents])


def test_mirrors_are_compared_at_the_points_that_more_than_one_tells_of() -> None:
    assert mirrors_agree(beats(("a", "1=x 2=y"), ("b", "2=y 3=z"), ("a", "2=y 3=z"))) == []
    assert mirrors_agree(beats(("a", "1=x 2=y"), ("b", "2=w"), ("b", "2=w"))) == ["at 2 b has w, a has y"]
    assert mirrors_agree(beats(("a", ""))) == []
