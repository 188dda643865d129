"""What the study of copying draws: each arm by itself, since each answers a question of its own."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import altair as alt

from fathometer.core.evidence import Evidence, at, matches, score
from fathometer.core.record import Record
from fathometer.core.spec import canonical
from fathometer.core.study import Figure
from fathometer.figures.cells import Labels, cell_labels
from fathometer.figures.heads import (
    attention_against_score,
    attention_by_head,
    head_importance,
    redundancy_curve,
    removable,
    removal_curves,
)
from fathometer.figures.standard import scores_by_cell, scores_by_stratum, speeds
from fathometer.figures.style import HEIGHT, UNIT, WIDTH, figure, frame
from fathometer.figures.training import last_losses, learning_rates, loss_curves, solved_share
from fathometer.studies.copy_plan import LITERAL, TUNING_SEEDS_FROM, Plan

METRIC = "token_accuracy"

TUNED = "recipe.optimiser.learning_rate"


def arm_of(plan: Plan, spec: Mapping[str, Any]) -> str:
    """The arm of a trial, from its JSON form."""
    if spec["seed"] >= TUNING_SEEDS_FROM:
        return "tuning"
    if spec.get("start"):
        return "deepened"
    if not at(spec, "recipe.steps"):
        return "untrained"
    if at(spec, "recipe.batch") == LITERAL.batch and at(spec, "task.loss") == "everything":
        return "literal"
    if at(spec, "task.layout") == "fixed_split":
        return "fixed delimiter"
    if at(spec, "task.noise.reading") == "R0":
        return "clean training"
    if at(spec, "recipe.stop.rule") == "solved":
        return "converged"
    return "watched" if at(spec, "recipe.evaluation.every") == plan.closely else "fixed budget"


def copy_figures(plan: Plan, evidence: Evidence) -> Iterator[Figure]:
    """Every figure that the records at hand can fill."""
    ended: dict[str, list[Record]] = {}
    for trial in evidence.trials():
        ended.setdefault(arm_of(plan, trial.spec), []).append(trial)
    labels = {arm: cell_labels(trials, silent=(TUNED,)) for arm, trials in ended.items()}
    arms = {arm: scored for arm, trials in ended.items() if (scored := [trial for trial in trials if trial.scores])}
    for arm in ("converged", "fixed delimiter", "fixed budget", "literal"):
        if arm in arms:
            yield from _of_arm(evidence, arm, arms[arm], labels[arm])
        if arm in ("converged", "fixed delimiter") and arm in ended:
            yield _named(solved_share(ended[arm], labels[arm]), arm)
    if "converged" in arms:
        yield from _inside(plan, evidence, arms, labels)
    if "fixed budget" in arms and "clean training" in arms:
        yield from _noise(evidence, arms, labels["fixed budget"])
    if "tuning" in arms:
        yield learning_rates(arms["tuning"], labels["tuning"])


def _of_arm(evidence: Evidence, arm: str, trials: Sequence[Record], labels: Labels) -> Iterator[Figure]:
    """Accuracy, accuracy by length, and the losses."""
    yield _named(scores_by_cell(evidence, trials, METRIC, labels), arm)
    if arm != "fixed delimiter":
        yield _named(scores_by_stratum(evidence, trials, METRIC, "length", labels), arm)
        yield _named(loss_curves(trials, labels), arm)
        yield _named(last_losses(trials, labels), arm)


def _inside(
    plan: Plan, evidence: Evidence, arms: Mapping[str, Sequence[Record]], labels: Mapping[str, Labels]
) -> Iterator[Figure]:
    """What the heads of converged networks do, and how fast the networks are."""
    trials, names = arms["converged"], labels["converged"]
    label_of = {canonical(trial.spec["model"]): names[trial.key] for trial in trials}
    untrained = {
        trial.key: label
        for trial in arms.get("untrained", [])
        if (label := label_of.get(canonical(trial.spec["model"]))) is not None
    }
    importance = evidence.probes("head_importance")
    if trained := _on(importance, names):
        yield head_importance(names, trained)
        yield redundancy_curve(names, trained, untrained, _on(importance, untrained))
    if removed := _on(evidence.probes("head_removal"), names):
        yield removal_curves(names, removed)
        ends = [f"length={plan.lengths[0]}", f"length={plan.lengths[-1]}"]
        yield removable(names, removed, ["all", *ends])
    if looked := _on(evidence.probes("answer_attention"), names):
        strata = [f"length={length}" for length in plan.lengths]
        yield attention_against_score(trials, looked, METRIC, names, strata)
        yield attention_by_head(names, _examples(plan, looked), "length")
    timed = [record for record in evidence.probes("timing") if "timing" in record.provenance]
    if timed:
        yield speeds(trials, timed, names)


def _examples(plan: Plan, looked: Sequence[Record]) -> list[Record]:
    """The few networks whose heads are all shown: the first seed of the shallowest, with learned positions."""
    shallowest = {"model.depth": plan.depths[0], "model.width": plan.widths[0], "model.positions.kind": "learned"}
    found = [record for record in looked if matches(record.spec["trial"], shallowest)]
    first = min((record.spec["trial"]["seed"] for record in found), default=0)
    return [record for record in found if record.spec["trial"]["seed"] == first]


def _noise(evidence: Evidence, arms: Mapping[str, Sequence[Record]], labels: Labels) -> Iterator[Figure]:
    """What noise costs, by three definitions, and how far it can be raised."""
    clean, noised = _asked(evidence, "clean"), _asked(evidence, "noised")
    without = {_twin(trial): trial for trial in arms["clean training"]}
    rows: list[dict[str, Any]] = []
    for trial in arms["fixed budget"]:
        on_clean, on_noised = clean.get(trial.key), noised.get(trial.key)
        if not on_clean or not on_noised:
            continue
        row = {"cell": labels[trial.key], "seed": trial.spec["seed"]}
        rows.append(row | {"what": "noised inputs, points", "cost": 100 * (on_clean - on_noised)})
        rows.append(row | {"what": "noised inputs, per cent", "cost": 100 * (1 - on_noised / on_clean)})
        other = clean.get(without[_twin(trial)].key) if _twin(trial) in without else None
        if other is not None:
            rows.append(row | {"what": "noisy training, points", "cost": 100 * (other - on_clean)})
    yield _costs(rows, labels, [trial.key for arm in ("fixed budget", "clean training") for trial in arms[arm]])
    yield _harder(evidence, labels)


def _costs(rows: list[dict[str, Any]], labels: Labels, keys: Iterable[str]) -> Figure:
    cells, whats = list(dict.fromkeys(labels.values())), list(dict.fromkeys(row["what"] for row in rows))
    base = alt.Chart(frame(rows)).encode(
        y=alt.Y("cell:N", sort=cells, title=None, axis=alt.Axis(labelLimit=260)),
        yOffset=alt.YOffset("what:N", sort=whats),
        color=alt.Color("what:N", title=None, sort=whats),
    )
    cost, tooltip = alt.X("cost:Q", title="lost token accuracy"), alt.Tooltip("cost:Q", format=".2f")
    dots = base.mark_circle(size=40, opacity=0.6).encode(x=cost, tooltip=["cell:N", "what:N", "seed:Q", tooltip])
    means = base.mark_tick(thickness=3, size=9).encode(x=alt.X("mean(cost):Q"))
    chart = alt.layer(dots, means).properties(width=WIDTH, height=max(120, 40 * len(cells)))
    caption = (
        "Three things one may mean by what noise costs. Noised inputs: the same network on clean strings and on "
        "strings that are all noised, in points and relative to its clean score; a copier loses what was flipped. "
        "Noisy training: networks trained on clean strings and on noised ones, both asked clean ones. Dots are seeds."
    )
    return figure("noise", "What noise costs, by three definitions", caption, chart, keys)


def _harder(evidence: Evidence, labels: Labels) -> Figure:
    rows: list[dict[str, Any]] = []
    used: list[str] = []
    for record in evidence.probes("scores"):
        trial, probe = record.outcome["trial"], record.spec["probe"]
        value = score(record, METRIC, "flipped=0")
        if trial in labels and probe["split"] == "noised" and value is not None:
            task = probe["task"] or record.spec["trial"]["task"]
            rows.append({"cell": labels[trial], "rate": at(task, "noise.rate"), "score": value})
            used.append(record.key)
    chart = alt.Chart(frame(rows)).mark_line(strokeWidth=2, point={"size": 30}).encode(
        x=alt.X("rate:Q", title="rate of flipping", axis=alt.Axis(format="%")),
        y=alt.Y("mean(score):Q", title="token accuracy where nothing was flipped", scale=alt.Scale(domain=UNIT)),
        color=alt.Color("cell:N", title=None, sort=list(dict.fromkeys(labels.values()))),
    ).properties(width=WIDTH, height=HEIGHT)  # fmt: skip
    caption = (
        "Strings that are all noised, at the rate trained on and beyond; only symbols that were not flipped count, so "
        "a copier scores 1 throughout. Means over seeds."
    )
    return figure("harder_noise", "Noise beyond what was trained on", caption, chart, used)


def _asked(evidence: Evidence, split: str) -> dict[str, float]:
    """By trial, the accuracy on this split of the noise that all were to be tested on."""
    found: dict[str, float] = {}
    for record in evidence.probes("scores"):
        task = at(record.spec, "probe.task.noise.rate")
        value = score(record, METRIC)
        if record.spec["probe"]["split"] == split and value is not None and task in (None, 0.1):
            found[record.outcome["trial"]] = value
    return found


def _twin(trial: Record) -> tuple[Any, ...]:
    """What a trial on clean strings shares with the one on noised strings that it is compared with."""
    return tuple(at(trial.spec, path) for path in ("model.depth", "model.width", "model.heads", "seed"))


def _on(records: Sequence[Record], labels: Labels) -> list[Record]:
    return [record for record in records if record.outcome["trial"] in labels]


def _named(drawn: Figure, arm: str) -> Figure:
    return replace(drawn, name=f"{drawn.name}_{arm.replace(' ', '_')}", title=f"{drawn.title}: {arm}")
