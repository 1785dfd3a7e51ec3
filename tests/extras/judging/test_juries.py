"""The page about judges: its examples run on stand-ins with the documented signatures."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn

PAGE = Path(__file__).resolve().parents[3] / "docs" / "extras" / "judges.md"
SECTIONS = {
    section.partition("\n")[0]: "".join(re.findall(r"```python\n(.*?)```", section, re.DOTALL))
    for section in re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.MULTILINE)
}
_, FIRST, ROUTING, FUNCTION, TRULENS, DSPY, TRL = filter(SECTIONS.get, SECTIONS)
QUALITY = {"bad": -1.0, "fair": 0.0, "good": 1.0}


class Jury:
    """What is documented of the jury of TruLens."""

    def __init__(
        self,
        jurors: list[Any],
        method: str,
        aggregation: str | Callable[[list[float]], float] = "mean",
        *,
        weights: list[float] | None = None,
        threshold: float = 0.5,
        max_workers: int | None = None,
    ) -> None:
        self.methods = [getattr(juror, method) for juror in jurors]
        self.aggregation = aggregation

    def __call__(self, *args: Any) -> tuple[float, dict[str, Any]]:
        assert callable(self.aggregation)
        score = float(self.aggregation([method(*args) for method in self.methods]))
        return score, {"reason": f"Aggregation: {self.aggregation} → {score:.3f}"}


class BestOfN:
    """What is documented of `BestOfN` of DSPy."""

    def __init__(
        self,
        module: Callable[..., Any],
        N: int,  # noqa: N803
        reward_fn: Callable[[dict[str, Any], Any], float],
        threshold: float,
        fail_count: int | None = None,
    ) -> None:
        self.module, self.count, self.reward_fn, self.threshold = module, N, reward_fn, threshold

    def __call__(self, **kwargs: Any) -> Any:
        best, highest = None, -np.inf
        for _ in range(self.count):
            prediction = self.module(**kwargs)
            reward = self.reward_fn(kwargs, prediction)
            if reward > highest:
                best, highest = prediction, reward
            if reward >= self.threshold:
                break
        return best


class GRPOTrainer:
    """What is documented of how the trainer of TRL calls a reward function."""

    def __init__(self, model: Any, reward_funcs: Any, train_dataset: Any) -> None:
        self.reward_func, self.dataset, self.rewards = reward_funcs, train_dataset, list[float]()

    def train(self) -> None:
        prompts = [row["prompt"] for row in self.dataset for _ in QUALITY]
        completions = [text for _ in self.dataset for text in QUALITY]
        ids = [[0]] * len(prompts)
        columns = {"solution": ["good"] * len(prompts), "trainer_state": None}
        self.rewards = self.reward_func(
            prompts=prompts, completions=completions, completion_ids=ids, **columns
        )
        assert len(self.rewards) == len(prompts)


def module(**members: Any) -> ModuleType:
    result = ModuleType("stand_in")
    vars(result).update(members)
    return result


def judge(error: float) -> Callable[[str, str], float]:
    """Return a judge of answers that are named by their quality, from 0 to 1."""
    return lambda question, answer: float(np.clip(0.5 + 0.3 * QUALITY[answer] + error, 0, 1))


@pytest.fixture
def scope(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The names that the examples assume: judges with errors, the second one the best."""
    rng = np.random.default_rng(2)
    # Folds of equal size share their compiled programs: 42 lists to fit, and 42 others.
    quality, qid = rng.normal(size=252), np.repeat(np.arange(84), 3)
    X = quality[:, None] + rng.normal(size=(252, 3)) * [2.0, 0.3, 2.0]  # noqa: N806
    best = quality.reshape(84, 3).max(axis=1)
    y = (quality == np.repeat(best, 3)).astype(float)
    functions = [judge(error) for error in (0.1, 0.0, -0.1)]
    answers = iter([*QUALITY] * 4)
    providers = [SimpleNamespace(relevance=lambda q, a, s=s: s) for s in (0.2, 0.9, 0.4)]
    stand_ins = {
        "trulens": module(),
        "trulens.feedback": module(),
        "trulens.feedback.jury": module(Jury=Jury),
        "dspy": module(BestOfN=BestOfN),
        "trl": module(GRPOTrainer=GRPOTrainer),
    }
    for name, stand_in in stand_ins.items():
        monkeypatch.setitem(sys.modules, name, stand_in)
    names = ("X", "y", "qid", "new_X", "new_y", "new_qid")
    arrays = [array[part] for part in (slice(126), slice(126, None)) for array in (X, y, qid)]
    with sklearn.config_context():
        yield {
            **dict(zip(names, arrays, strict=True)),
            "pandas": pd,
            "providers": providers,
            "judge_functions": functions,
            "module": lambda question: SimpleNamespace(answer=next(answers)),
            "model": "any",
            "dataset": [{"prompt": "What is a cat?"}, {"prompt": "What is a dog?"}],
        }


def run(scope: dict[str, Any], *sections: str) -> None:
    """Run the first example, and those of some sections, as one program."""
    for name in (FIRST, *sections):
        exec(SECTIONS[name], scope)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
def test_the_first_example_learns_whom_to_trust(scope: dict[str, Any]) -> None:
    run(scope)
    code = [line for line in SECTIONS[FIRST].splitlines() if line and line[0] != "#"]
    assert len(code) <= 10
    ranker = scope["ranker"]
    assert ranker.coef_.argmax() == 1
    mean = scope["new_X"].mean(axis=1).reshape(-1, 3).argmax(axis=1)
    chosen = ranker.predict(scope["new_X"]).reshape(-1, 3).argmax(axis=1)
    best = scope["new_y"].reshape(-1, 3).argmax(axis=1)
    assert (chosen == best).mean() > (mean == best).mean() + 0.1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
def test_the_search_runs(scope: dict[str, Any]) -> None:
    run(scope, ROUTING)
    assert scope["search"].best_score_ > 0.5


@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
def test_functions_of_other_tools(scope: dict[str, Any]) -> None:
    run(scope, FUNCTION, TRULENS, DSPY, TRL)
    # The verdict is the mean of 0.2, 0.9 and 0.4, or of 1 minus these, with weights |λ|.
    weights = scope["ranker"].coef_
    scores = np.where(weights > 0, [0.2, 0.9, 0.4], [0.8, 0.1, 0.6])
    assert scope["score"] == pytest.approx(np.average(scores, weights=np.abs(weights)))
    assert scope["details"]["reason"].startswith("Aggregation: aggregate(gpt, claude, tests) →")
    assert [scope[name].__name__ for name in ("reward", "aggregate")] == ["reward", "aggregate"]
    assert scope["answer"] == "good"
    rewards = np.array(scope["trainer"].rewards).reshape(2, 3)
    assert (np.diff(rewards) > 0).all()
