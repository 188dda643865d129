"""Ours against what a user would take instead, on the same copy data: steps a second, and seconds until solved.

``python benchmarks/copy_trainers.py --write`` measures, keeps the numbers in `copy_trainers.json` and puts their table
into the README; ``--show`` prints the table again. All contenders run in one process on one thread, turn by turn, so
that what else the machine does falls on all of them. Timings are noisy: only ratios are told.

The contenders: this package's engine; a plain PyTorch loop (DataLoader, ``nn.TransformerEncoder``, loss on the
answers); and Hugging Face's Trainer with a GPT-2 of the same size as ``run_clm`` trains it, which is with dropout and
with the loss on every token; without dropout; and with the loss on the answers. Each takes the learning rate that
serves it best.
"""

import argparse
import json
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset
from transformers import GPT2Config, GPT2LMHeadModel, PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from fathometer.core.interface import Batch
from fathometer.core.recipe import Evaluation, Optimiser, Recipe, Schedule, Stop
from fathometer.core.trial import Trial
from fathometer.evaluation.numerics import steady
from fathometer.evaluation.samples import Samples
from fathometer.models.transformer import Transformer
from fathometer.tasks.copying import Copying
from fathometer.training.loop import run

HERE = Path(__file__).resolve()
README = HERE.parents[1] / "README.md"
HELD = HERE.with_suffix(".json")
START, END = "<!-- benchmark: copy_trainers -->", "<!-- end of benchmark -->"

RATES = (1e-3, 3e-3, 1e-2)
PACES = ((1, 8), (2, 8), (4, 8))
"""Depths and heads whose steps are timed, at width 64 on lengths 10 to 50."""

WARMUP, EVERY, LEVEL, CHECKS = 50, 25, 0.98, 2
IGNORED = -100

Clock = Callable[[int, nn.Module | None], bool]
"""Called after every step with its number and the network; true ends the training."""


@dataclass(frozen=True)
class Race:
    """How one contender came off until solved: medians over seeds, at its best learning rate."""

    rate: float
    solved: int
    seeds: int
    steps: float
    seconds: float
    accuracy: float


class Contender(ABC):
    """One way to train the model of a trial on its data; calls the clock after every step and returns the network."""

    name: str
    solved: bool | None = None
    """Whether it says that it has solved the task; None leaves that to the clock."""

    @abstractmethod
    def train(self, trial: Trial, clock: Clock) -> nn.Module:
        """Trains until the clock ends it or the steps are done."""


class Ours(Contender):
    """The engine as sweeps use it: it validates and stops by itself."""

    name = "Fathometer"

    def train(self, trial: Trial, clock: Clock) -> nn.Module:
        def watch(step: int) -> None:
            clock(step, None)

        ended = run(trial, on_step=watch)
        self.solved = ended.outcome["solved_at"] is not None
        return ended.network


class Plain(Contender):
    name = "plain PyTorch loop"

    def train(self, trial: Trial, clock: Clock) -> nn.Module:
        torch.manual_seed(trial.seed)
        network = PlainNetwork(trial)
        optimiser = torch.optim.AdamW(network.parameters(), lr=trial.recipe.optimiser.learning_rate, weight_decay=0.0)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimiser, lambda step: trial.recipe.learning_rate(step) / trial.recipe.optimiser.learning_rate
        )
        loader = DataLoader(Examples(trial, answers_only=True), trial.recipe.batch, shuffle=True, collate_fn=padded)
        network.train()
        for step, held in enumerate(loader, start=1):
            logits = network(held["input_ids"])
            loss = F.cross_entropy(logits[:, :-1].transpose(1, 2), held["labels"][:, 1:], ignore_index=IGNORED)
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            if clock(step, network) or step == trial.recipe.steps:
                break
        return network


class HuggingFace(Contender):
    def __init__(self, dropout: float, answers_only: bool) -> None:
        self.dropout, self.answers_only = dropout, answers_only
        self.name = f"HF Trainer, dropout {dropout:g}, loss on {'the answers' if answers_only else 'every token'}"

    def train(self, trial: Trial, clock: Clock) -> nn.Module:
        model = trial.model
        assert isinstance(model, Transformer)
        interface, drop = trial.task.interface(), self.dropout
        torch.manual_seed(trial.seed)
        network = GPT2LMHeadModel(
            GPT2Config(
                vocab_size=interface.inputs.channels, n_positions=interface.length + 1, n_embd=model.width,
                n_layer=model.depth, n_head=model.heads, resid_pdrop=drop, embd_pdrop=drop, attn_pdrop=drop,
                bos_token_id=None, eos_token_id=None, use_cache=False,
            )
        )  # fmt: skip
        recipe = trial.recipe
        with tempfile.TemporaryDirectory() as scratch:
            settings = TrainingArguments(
                scratch, per_device_train_batch_size=recipe.batch, learning_rate=recipe.optimiser.learning_rate,
                max_steps=recipe.steps, warmup_steps=recipe.schedule.warmup, lr_scheduler_type="linear", use_cpu=True,
                report_to="none", save_strategy="no", logging_strategy="no", disable_tqdm=True, seed=trial.seed,
                dataloader_pin_memory=False,
            )  # fmt: skip
            trainer = Trainer(
                network, settings, train_dataset=Examples(trial, self.answers_only), data_collator=padded,
                callbacks=[Watch(clock)],
            )  # fmt: skip
            trainer.remove_callback(PrinterCallback)
            trainer.train()
        return network


class Watch(TrainerCallback):
    """Hands the Trainer's steps to a clock."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        if self.clock(state.global_step, rest["model"]):
            control.should_training_stop = True


class Examples(Dataset[dict[str, Any]]):
    """The very examples that our engine draws for a trial, one sequence each, with labels as causal models want."""

    def __init__(self, trial: Trial, answers_only: bool) -> None:
        samples = Samples(trial)
        self.rows = [row for step in range(trial.recipe.steps) for row in sequences(samples.batch(step), answers_only)]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.rows[index]


class PlainNetwork(nn.Module):
    """Token and position embeddings, PyTorch's own pre-norm encoder under a causal mask, a linear read-out."""

    def __init__(self, trial: Trial) -> None:
        super().__init__()
        model, interface = trial.model, trial.task.interface()
        assert isinstance(model, Transformer)
        self.tokens = nn.Embedding(interface.inputs.channels, model.width)
        self.positions = nn.Embedding(interface.length + 1, model.width)
        layer = nn.TransformerEncoderLayer(
            model.width, model.heads, 4 * model.width, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, model.depth, nn.LayerNorm(model.width), enable_nested_tensor=False)
        self.head = nn.Linear(model.width, interface.outputs.channels, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        time = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(time)
        x = self.tokens(tokens) + self.positions(torch.arange(time))
        return self.head(self.layers(x, mask=mask, is_causal=True))


def sequences(batch: Batch, answers_only: bool) -> Iterator[dict[str, Any]]:
    """A batch as whole sequences: ``labels[t]`` is the token at ``t``, or ignored where it is not trained on."""
    for row in range(len(batch)):
        length = int(batch.lengths[row])
        tokens = np.append(batch.inputs[row, :length], batch.targets[row, length - 1])
        labels = tokens.copy()
        if answers_only:
            labels[1:][~batch.trained[row, :length]] = IGNORED
            labels[0] = IGNORED
        yield {"input_ids": tokens, "labels": labels}


def padded(rows: list[dict[str, Any]]) -> dict[str, Tensor]:
    """Sequences padded to the longest of them; padding is never trained on."""
    longest = max(len(row["input_ids"]) for row in rows)
    filled = {"input_ids": 0, "labels": IGNORED}
    held = {
        name: torch.tensor(np.stack([np.pad(r[name], (0, longest - len(r[name])), constant_values=v) for r in rows]))
        for name, v in filled.items()
    }
    lengths = torch.tensor([len(row["input_ids"]) for row in rows])
    return held | {"attention_mask": (torch.arange(longest) < lengths[:, None]).long()}


def accuracy(network: nn.Module, batch: Batch) -> float:
    """Right answers among the scored positions, teacher-forced, without dropout."""
    training = network.training
    network.eval()
    with torch.no_grad():
        found = network(torch.from_numpy(batch.inputs))
    network.train(training)
    right = getattr(found, "logits", found).argmax(dim=2).numpy() == batch.targets
    return float(right[batch.scored].mean())


def contenders() -> list[Contender]:
    return [Ours(), Plain(), *(HuggingFace(*how) for how in ((0.1, False), (0.0, False), (0.0, True)))]


def trial_of(lengths: tuple[int, ...], depth: int, heads: int, batch: int, steps: int, rate: float, seed: int) -> Trial:
    return Trial(
        task=Copying(lengths=lengths),
        model=Transformer(depth=depth, width=64, heads=heads),
        recipe=Recipe(
            steps=steps,
            batch=batch,
            optimiser=Optimiser(learning_rate=rate),
            schedule=Schedule(warmup=min(WARMUP, steps), decay="linear"),
            stop=Stop(rule="solved", level=LEVEL, checks=CHECKS),
            evaluation=Evaluation(every=EVERY, validate_on=256, test_on=256),
        ),
        seed=seed,
    )


def paces(rounds: int, steps: int) -> dict[str, dict[str, list[float]]]:
    """By size and contender, the median seconds of a step in each round; rounds go in turn."""
    found: dict[str, dict[str, list[float]]] = {}
    for depth, heads in PACES:
        trial = trial_of((10, 20, 30, 40, 50), depth, heads, batch=32, steps=steps, rate=1e-3, seed=0)
        label = f"{depth} {'layer' if depth == 1 else 'layers'}, {heads} heads"
        for _ in range(rounds):
            for contender in contenders():
                found.setdefault(label, {}).setdefault(contender.name, []).append(seconds_a_step(contender, trial))
    return found


def seconds_a_step(contender: Contender, trial: Trial) -> float:
    """Over all steps but the first few, so that what is set up once does not count."""
    moments: list[float] = []

    def clock(step: int, network: nn.Module | None) -> bool:
        moments.append(time.perf_counter())
        return False

    contender.train(trial, clock)
    return median(after - before for before, after in pairwise(moments[5:]))


def until_solved(seeds: int, steps: int) -> dict[str, Race]:
    """By contender, steps and seconds until solved at the learning rate that solves soonest on seed 0."""
    best: dict[str, float] = {}
    for contender in contenders():
        tried = {rate: race_once(contender, rate, 0, steps) for rate in RATES}
        best[contender.name] = min(RATES, key=lambda rate: (not tried[rate][0], tried[rate][1], -tried[rate][2]))
    runs: dict[str, list[tuple[bool, float, float, float]]] = {}
    for seed in range(1, seeds + 1):
        for contender in contenders():
            runs.setdefault(contender.name, []).append(race_once(contender, best[contender.name], seed, steps))
    return {
        name: Race(
            rate=best[name], solved=sum(run[0] for run in of), seeds=len(of), steps=median(run[1] for run in of),
            seconds=median(run[3] for run in of), accuracy=median(run[2] for run in of),
        )
        for name, of in runs.items()
    }  # fmt: skip


def race_once(contender: Contender, rate: float, seed: int, steps: int) -> tuple[bool, float, float, float]:
    """Whether it solved, after how many steps, with what accuracy on test strings, and in how many seconds."""
    trial = trial_of((4, 8, 12), depth=2, heads=4, batch=64, steps=steps, rate=rate, seed=seed)
    samples, referee = Samples(trial), Referee(trial)
    network = contender.train(trial, referee.see)
    taken = len(referee.moments)
    value = accuracy(network, samples.test(samples.split))
    solved = referee.good >= CHECKS if contender.solved is None else contender.solved
    return solved, taken, value, referee.moments[-1] - referee.moments[0]


class Referee:
    """Validates a network as our engine validates its own, and ends a training that has solved the task."""

    def __init__(self, trial: Trial) -> None:
        self.validation = Samples(trial).validation()
        self.moments: list[float] = []
        self.good = 0

    def see(self, step: int, network: nn.Module | None) -> bool:
        """A network that is None validates itself."""
        if network is not None and step % EVERY == 0:
            self.good = self.good + 1 if accuracy(network, self.validation) >= LEVEL else 0
        self.moments.append(time.perf_counter())
        return self.good >= CHECKS


def measure(rounds: int, steps: int, seeds: int, longest: int) -> dict[str, Any]:
    """All that the table tells."""
    with steady():
        races = {name: asdict(race) for name, race in until_solved(seeds, longest).items()}
        return {"paces": paces(rounds, steps), "races": races}


def table(held: dict[str, Any]) -> str:
    """The numbers as Markdown: steps a second and seconds until solved, beside ours."""
    ours = Ours.name
    sizes = list(held["paces"])
    head = [
        "trained by",
        *(f"a step, {size}" for size in sizes),
        "learning rate",
        "solved",
        "steps",
        "time until solved",
    ]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for name, race in held["races"].items():
        cells = [name]
        for size in sizes:
            rounds = zip(held["paces"][size][name], held["paces"][size][ours], strict=True)
            ratios = sorted(theirs / own for theirs, own in rounds)
            cells.append("1" if name == ours else f"{median(ratios):.1f} ({ratios[0]:.1f} to {ratios[-1]:.1f})")
        ratio = race["seconds"] / held["races"][ours]["seconds"]
        done = race["solved"] == race["seeds"]
        cells += [f"{race['rate']:g}", f"{race['solved']} of {race['seeds']}", f"{race['steps']:.0f}"]
        cells.append("1" if name == ours else f"{ratio:.1f}" if done else f"not solved in {ratio:.1f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def write(held: dict[str, Any]) -> None:
    """Keeps the numbers, and puts their table where the README has its place for it."""
    HELD.write_text(json.dumps(held, indent=1) + "\n")
    text = README.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    README.write_text(f"{before}{START}\n{table(held)}\n{END}{after}", encoding="utf-8")


def main() -> None:
    """Measures, or shows what was measured last."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the numbers and write the README's table")
    parser.add_argument("--show", action="store_true", help="measure nothing: print the table of the numbers kept")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=40, help="steps timed in each round")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--longest", type=int, default=1000, help="most steps of a race")
    options = parser.parse_args()
    if options.show:
        print(table(json.loads(HELD.read_text())))
        return
    held = measure(options.rounds, options.steps, options.seeds, options.longest)
    print(table(held))
    if options.write:
        write(held)


if __name__ == "__main__":
    main()
