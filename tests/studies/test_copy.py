"""The study of copying: what it wants at each scale, and that its claims can come out either way."""

import pytest

from fathometer.core.evidence import Evidence
from fathometer.core.record import Record
from fathometer.core.spec import encode
from fathometer.core.study import Scale
from fathometer.core.trial import Measurement, Trial
from fathometer.execution.driver import everything_wanted
from fathometer.statistics.judging import judge
from fathometer.studies.copy import PLANS, Copy


@pytest.mark.parametrize("scale", PLANS)
def test_it_wants_its_whole_factorial_and_one_control(scale: Scale) -> None:
    plan = PLANS[scale]
    trials = [work for work in Copy(scale=scale).wanted(Evidence()) if isinstance(work, Trial)]
    assert len(trials) == (len(plan.depths) * len(plan.widths) * len(plan.heads) + 1) * plan.seeds
    assert len({trial.key for trial in trials}) == len(trials)
    assert {trial.seed for trial in trials} == set(range(plan.seeds))


def test_seeds_shift() -> None:
    assert {work.seed for work in Copy(seed=7).wanted(Evidence()) if isinstance(work, Trial)} == {7, 8, 9}


def test_timings_wait_for_silence_and_are_one_a_size() -> None:
    timings = [w for w in Copy().wanted(Evidence()) if isinstance(w, Measurement) and w.probe.exclusive]
    assert len(timings) == 4


def _evidence(one_head: float, many_heads: float, still: float) -> Evidence:
    records: list[Record] = []
    for work in everything_wanted(Copy(), Evidence()):
        if isinstance(work, Trial):
            spec = encode(work)
            value = many_heads if spec["model"]["heads"] == 4 else one_head
            value = still if spec["task"]["layout"] == "fixed_split" else value
            rows = [
                {"split": "in_distribution", "stratum": "all", "metric": "token_accuracy", "value": value, "n": 8000}
            ]
            records.append(Record(work.key, "trial", 0, "done", spec, {"scores": rows}))
        elif not isinstance(work, Measurement) and work.split == "in_distribution":
            limits = [limit.model_dump() for limit in work.task.limits(work.split)]
            records.append(Record(work.key, "limit", 0, "done", encode(work), {"scores": [], "limits": limits}))
    return Evidence(records)


def test_every_claim_can_be_supported_and_refuted() -> None:
    as_expected = judge(Copy().claims(), _evidence(one_head=0.87, many_heads=0.987, still=0.987))
    reversed_ = judge(Copy().claims(), _evidence(one_head=0.95, many_heads=0.5, still=0.4))
    leaking = judge(Copy().claims(), _evidence(one_head=0.87, many_heads=1.0, still=1.0))
    decided = {verdict.claim: verdict.decision for verdict in as_expected}
    assert decided == {
        "heads_help_at_smallest_depth": "supported",
        "depth_helps_with_fewest_heads": "refuted",
        "fixed_delimiter_is_easier": "supported",
        "shallowest_can_learn_it": "supported",
        "nothing_beats_the_noise": "supported",
    }
    against = {verdict.claim: verdict.decision for verdict in reversed_}
    assert against["heads_help_at_smallest_depth"] == against["fixed_delimiter_is_easier"] == "refuted"
    assert against["shallowest_can_learn_it"] == "inconclusive"
    assert {v.claim: v.decision for v in leaking}["nothing_beats_the_noise"] == "refuted"
