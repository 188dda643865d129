"""The study of copying: what it wants, that learning rates come first, and that its claims can come out both ways."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fathometer.core.evidence import Evidence, at
from fathometer.core.record import Record
from fathometer.core.spec import encode
from fathometer.core.study import Scale
from fathometer.core.trial import LimitSheet, Measurement, Trial, Work, kind_of
from fathometer.execution.driver import complete, everything_wanted
from fathometer.laboratory import run
from fathometer.statistics.judging import judge
from fathometer.studies import copy as copy_module
from fathometer.studies.copy import Copy
from fathometer.studies.copy_plan import PLANS

Accuracy = Callable[[dict[str, Any], str], float]
"""What a network scores, by the JSON form of its trial and the stratum."""


def arms(scale: Scale) -> Counter[str]:
    foreseen = complete(Copy(scale=scale).foreseen(Evidence()))
    return Counter(Copy(scale=scale).arm(encode(work)) for work in foreseen if isinstance(work, Trial))


@pytest.mark.parametrize("scale", PLANS)
def test_every_arm_has_its_sizes_and_seeds(scale: Scale) -> None:
    plan, found = PLANS[scale], arms(scale)
    sizes = len(plan.depths) * len(plan.widths) * len(plan.heads) + 1
    assert found["converged"] == (sizes + 1) * plan.seeds
    assert found["fixed delimiter"] == found["fixed budget"] == sizes * plan.seeds
    assert found["literal"] == found["clean training"] == 2 * plan.seeds
    assert found["deepened"] == (len(plan.depths) - 1) * plan.seeds
    assert found["watched"] == 2 * plan.seeds
    assert found["untrained"] == len({tuple(size.items()) for size in (*plan.sizes, *plan.timed_sizes)})
    tuned = len(plan.rates) > 1
    assert found["tuning"] == tuned * (2 * sizes + 1) * len(plan.rates) * plan.tuning_seeds


def test_the_paper_s_grid_is_the_source_s() -> None:
    plan = PLANS["paper"]
    assert (plan.depths, plan.widths, plan.heads) == ((2, 4, 8), (128, 256, 512), (4, 8))
    assert plan.lengths == tuple(range(10, 101, 10))
    assert plan.literal.steps == 3 * 9 * 5000 // 8
    assert plan.beyond == {"depth": 4, "width": 128, "heads": 16}


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_learning_rates_are_chosen_before_anything_else_is_wanted(scale: Scale) -> None:
    study = Copy(scale=scale)
    first = [work for work in study.wanted(Evidence()) if isinstance(work, Trial)]
    assert {study.arm(encode(trial)) for trial in first} == {"tuning"}
    best = PLANS[scale].rates[1]
    records = [_ended(trial, lambda spec, stratum: 0.5, best) for trial in first]
    assert study.wanted(Evidence(records[:-1])) == first
    whole = study.wanted(Evidence(records))
    assert whole == study.foreseen(Evidence(records))
    final = [work for work in whole if isinstance(work, Trial)]
    assert {t.seed for t in final if study.arm(encode(t)) != "tuning"}.isdisjoint(t.seed for t in first)


def test_seeds_shift_and_never_meet_those_that_choose_rates() -> None:
    trials = [work for work in Copy(seed=7).foreseen(Evidence()) if isinstance(work, Trial)]
    assert {trial.seed for trial in trials} == {7, 8, 9}


def test_timings_wait_for_silence_and_are_one_a_size() -> None:
    timings = [w for w in Copy().wanted(Evidence()) if isinstance(w, Measurement) and w.probe.exclusive]
    trained = [timing for timing in timings if timing.trial.recipe.steps]
    assert len(trained) == len(PLANS["smoke"].sizes)
    assert len(timings) - len(trained) == len(PLANS["smoke"].timed_sizes)


def _ended(work: Work, accuracy: Accuracy, best: float = 3e-3) -> Record:
    """What a piece of work comes to: its accuracy, and a loss that is lowest at the best learning rate."""
    spec = encode(work)
    if isinstance(work, LimitSheet):
        limits = [limit.model_dump() for limit in work.task.limits(work.split)]
        return Record(work.key, "limit", 0, "done", spec, {"scores": [], "limits": limits})
    trial = work if isinstance(work, Trial) else work.trial
    lengths = [f"length={n}" for n in trial.task.lengths]  # type: ignore[attr-defined]
    form = spec if isinstance(work, Trial) else spec["trial"]
    rows = [_row("token_accuracy", stratum, accuracy(form, stratum)) for stratum in ("all", *lengths)]
    if isinstance(work, Trial):
        solved = 100 if accuracy(form, "all") > 0.98 else None
        jump = (0.4 + 0.01 * work.seed) / form["model"]["depth"]
        last = 0.5 + abs(work.recipe.optimiser.learning_rate - best)
        losses = [2.0, 1.9 + jump, 1.5, 1.4 + jump, 1.0, 0.9 + jump, last]
        curve = {"step": list(range(7)), "train_loss": losses, "validation_loss": losses}
        return Record(work.key, "trial", 0, "done", spec, {"scores": rows, "solved_at": solved, "curve": curve})
    if work.probe.name == "scores":
        noised = spec["probe"]["split"] == "noised"
        cost = (0.25 if accuracy(form, "all") < 0.5 else 0.1) if noised else 0.0
        rows = [row | {"value": row["value"] - cost, "split": spec["probe"]["split"]} for row in rows]
    if work.probe.name == "head_removal":
        share = 0.01 * form["seed"]
        rows = [_row("removable", stratum, 0.2 if int(stratum[7:]) > 20 else 0.7 + share) for stratum in lengths]
    if work.probe.name == "generalisation":
        rows = [_row("loss_gap", "all", 0.2 + 0.001 * form["seed"] if form["model"]["heads"] == 1 else 0.1)]
    outcome = {"scores": rows, "trial": trial.key, "flops_per_step": trial.flops_a_step()}
    return Record(work.key, kind_of(work), 0, "done", spec, outcome, {"timing": {"eval_runtime": trial.flops_a_step()}})


def _row(metric: str, stratum: str, value: float) -> dict[str, Any]:
    return {"split": "in_distribution", "stratum": stratum, "metric": metric, "value": value, "n": 8000}


def decided(accuracy: Accuracy) -> dict[str, str]:
    """What every claim comes to at the scale ``quick``, whose learning rates are all the middle one."""
    study = Copy(scale="quick")
    middle = PLANS["quick"].rates[1]
    rungs = [_ended(work, accuracy, middle) for work in complete(study.wanted(Evidence()))]
    records = [_ended(work, accuracy, middle) for work in everything_wanted(study, Evidence(rungs))]
    return {verdict.claim: verdict.decision for verdict in judge(study.claims(), Evidence(records))}


def as_claimed(spec: dict[str, Any], stratum: str) -> float:
    """As every claim has it: heads and depth help on long strings and against noise, less and less with depth."""
    arm, depth, heads = _place(spec)
    noise = 0.0 if arm == "clean training" or heads > 1 or stratum != "all" else 0.15
    if arm == "literal":
        return 0.5 + 0.01 * depth
    if arm in ("converged", "deepened", "fixed delimiter"):
        rotary = at(spec, "model.positions.kind") == "rope"
        solves = (heads == 8 and not rotary) or (arm == "fixed delimiter" and heads < 16)
        return 0.986 if solves else 0.9
    if stratum in ("length=10", "length=20"):
        return {1: 0.80, 2: 0.92, 4: 0.93}[depth]
    return {1: 0.45, 4: 0.6, 8: 0.85, 16: 0.85}[heads] + 0.01 * depth - noise


def against_it(spec: dict[str, Any], stratum: str) -> float:
    """One head is best everywhere, depth pays late, and a fixed delimiter is a hindrance."""
    arm, depth, heads = _place(spec)
    if arm in ("converged", "deepened", "fixed delimiter"):
        rotary = at(spec, "model.positions.kind") == "rope"
        solves = rotary or (arm == "converged" and heads == 1) or (arm == "fixed delimiter" and heads == 16)
        return 0.986 if solves else 0.6 + 0.1 * (arm == "deepened")
    if arm == "literal":
        return 0.9
    return (0.9 if heads == 1 else 0.8 if heads == 16 else 0.4) + 0.05 * (depth == 4)


def _place(spec: dict[str, Any]) -> tuple[str, int, int]:
    return Copy(scale="quick").arm(spec), at(spec, "model.depth"), at(spec, "model.heads")


def test_every_claim_can_be_supported_and_refuted() -> None:
    found, against = decided(as_claimed), decided(against_it)
    everything = {claim.identifier for claim in Copy(scale="quick").claims()}
    # what the fakes do not bend: deeper networks' curves are steadier, timings linear, and nothing exceeds the noise
    unbent = {"h6_deeper_is_steadier", "h6_deeper_converges_sooner", "h7_evaluation_time_is_linear_in_size"}
    unbent |= {"h8_larger_overfits_less", "h2_heads_are_redundant_on_short_strings", "nothing_beats_the_noise"}
    assert {c for c, d in found.items() if d == "supported"} == everything - {"h6_deeper_converges_sooner"}
    assert found["h6_deeper_converges_sooner"] == "inconclusive"
    assert {c for c, decision in against.items() if decision == "refuted"} >= everything - unbent
    assert decided(lambda spec, stratum: 1.0)["nothing_beats_the_noise"] == "refuted"


TINY = replace(
    PLANS["smoke"], lengths=(2, 3, 4), short=(2,), long=(4,), depths=(1, 2), widths=(8,), heads=(1, 2), many_heads=4,
    seeds=2, batch=8, steps=20, budget=8, every=4, closely=1, test_on=60, rates=(1e-3, 1e-2), tuning_steps=12,
    literal_strings=20, epochs=1, probe_examples=40,
)  # fmt: skip


def test_it_runs_whole_and_draws_all_its_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(copy_module.PLANS, "smoke", TINY)
    results = run(Copy(), to=tmp_path / "r", workers=0)
    evidence = results.evidence()
    wanted = everything_wanted(Copy(), evidence)
    assert {record.key for record in evidence} == {work.key for work in wanted}
    assert {record.status for record in evidence} == {"done"}
    foreseen = {work.key for work in complete(Copy().foreseen(evidence))}
    assert foreseen == {work.key for work in wanted}
    assert all(verdict.records for verdict in results.verdicts())
    drawn = {
        "scores_converged", "scores_fixed_delimiter", "scores_fixed_budget", "scores_literal", "losses_converged",
        "scores_by_length_fixed_budget", "last_losses_literal", "steps_to_solve_converged", "learning_rates", "speed",
        "head_importance", "redundancy", "head_removal", "removable_heads", "answer_attention", "attention_by_head",
        "noise", "harder_noise",
    }  # fmt: skip
    assert drawn <= set(results.figures())
    text = results.report().read_text()
    assert "<td>fixed budget</td>" in text
