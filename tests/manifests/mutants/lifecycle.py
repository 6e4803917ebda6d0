"""Times and counts that do not fit."""

from tests.manifests.mutants.places import Spoil, add_setting, container_of, pod_of
from tests.manifests.objects import Objects
from tests.manifests.rules import Rule, lifecycle


def killed_before_the_lease_is_given_back(objects: Objects) -> None:
    pod_of(objects)["terminationGracePeriodSeconds"] = 10


def killed_while_jobs_end(objects: Objects) -> None:
    add_setting(objects, "HASCHEDULER_DRAIN_GRACE", "5m")


def told_to_end_at_once(objects: Objects) -> None:
    del container_of(objects)["lifecycle"]


def the_rollout_fails_first(objects: Objects) -> None:
    del objects.get("Deployment", "scheduler")["spec"]["progressDeadlineSeconds"]


def all_at_once(objects: Objects) -> None:
    objects.get("Deployment", "scheduler")["spec"]["strategy"] = {"type": "Recreate"}


def two_of_three_at_once(objects: Objects) -> None:
    objects.get("Deployment", "scheduler")["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] = 2


def a_budget_that_lets_all_go(objects: Objects) -> None:
    objects.get("PodDisruptionBudget", "scheduler")["spec"]["maxUnavailable"] = "100%"


def no_budget(objects: Objects) -> None:
    objects.all.remove(objects.get("PodDisruptionBudget", "scheduler"))


def no_budget_for_processors(objects: Objects) -> None:
    objects.all.remove(objects.get("PodDisruptionBudget", "processor"))


def more_shards_than_processors(objects: Objects) -> None:
    add_setting(objects, "HASCHEDULER_SHARDS", "4")


def an_autoscaler_that_leaves_one(objects: Objects) -> None:
    objects.all.append({"kind": "HorizontalPodAutoscaler", "spec": {"minReplicas": 1}})


PLANTED: tuple[tuple[Rule, Spoil], ...] = (
    (lifecycle.graces_suffice, killed_before_the_lease_is_given_back),
    (lifecycle.graces_suffice, killed_while_jobs_end),
    (lifecycle.graces_suffice, told_to_end_at_once),
    (lifecycle.waiting_at_the_start_is_no_failure, the_rollout_fails_first),
    (lifecycle.updates_leave_two_thirds, all_at_once),
    (lifecycle.updates_leave_two_thirds, two_of_three_at_once),
    (lifecycle.updates_leave_two_thirds, a_budget_that_lets_all_go),
    (lifecycle.who_must_not_all_be_away_has_a_budget, no_budget),
    (lifecycle.who_must_not_all_be_away_has_a_budget, no_budget_for_processors),
    (lifecycle.each_shard_has_a_processor, more_shards_than_processors),
    (lifecycle.each_shard_has_a_processor, an_autoscaler_that_leaves_one),
)
