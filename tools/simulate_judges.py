"""Simulate five judges of pairs of answers: the data of `bpa demo --judges`.

    python tools/simulate_judges.py [FOLDER]

Writes 50 judged pairs and 200 other pairs as `answers.judged.jsonl` and `answers.new.jsonl`, by
default into `examples/demo_data`. All are simulated: there was no LLM and no person. An answer is
right or wrong, and has up to two phrases that say nothing. People prefer right answers, then short
ones. The judges grade from 1 to 10:

* `large` sees most errors
* `medium` and `small` see fewer, and share most of their mistakes
* `friendly` likes phrases, and rarely looks at the result
* `hasty` grades almost at random
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).resolve().parent.parent / "examples" / "demo_data"
COUNTS = {"judged": 50, "new": 200}
#: A question about a number, the unit of its answer, and the factor.
QUESTIONS = (
    ("How many minutes are {} hours?", "minutes", 60),
    ("How many days are {} weeks?", "days", 7),
    ("How many hours are {} days?", "hours", 24),
    ("How many eggs are {} dozen?", "eggs", 12),
    ("How many seconds are {} minutes?", "seconds", 60),
    ("How many sides do {} hexagons have?", "sides", 6),
    ("How many legs do {} spiders have?", "legs", 8),
)
BEFORE = "Great question!", "I am happy to help with that!", "Let us think step by step."
AFTER = "Hope this helps!", "Let me know if you have other questions.", "Have a wonderful day!"


def simulate_pair(number: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return a question, two answers with grades, and the answer that a person prefers."""
    question, unit, factor = QUESTIONS[rng.integers(len(QUESTIONS))]
    count = int(rng.integers(3, 30))
    right, phrases = rng.permutation([True, rng.random() < 0.2]), rng.integers(0, 3, size=2)
    shared, own = rng.normal(size=2), rng.normal(size=(5, 2))
    grades = {
        "large": 4.0 + 3.2 * right + 1.5 * own[0],
        "medium": 4.5 + 2.2 * right + 1.3 * shared + 0.6 * own[1],
        "small": 4.5 + 1.9 * right + 1.3 * shared + 0.8 * own[2],
        "friendly": 3.0 + 2.5 * phrases + 1.0 * own[3],
        "hasty": 5.5 + 0.3 * right + 2.5 * own[4],
    }
    candidates = []
    for answer in range(2):
        error = 0 if right[answer] else int(rng.choice([-10, -2, -1, 1, 2, 10]))
        words = [f"{factor * count + error} {unit}."]
        if phrases[answer]:
            words.insert(0, str(rng.choice(BEFORE)))
        if phrases[answer] == 2:
            words.append(str(rng.choice(AFTER)))
        of_judges = {name: int(np.clip(np.rint(g[answer]), 1, 10)) for name, g in grades.items()}
        if candidates and " ".join(words) == candidates[0]["text"]:
            words[-1] = f"It is {words[-1]}"
        candidates.append({"text": " ".join(words), "features": of_judges})
    margin = 6.0 * (int(right[0]) - int(right[1])) - 2.0 * (phrases[0] - phrases[1])
    first = rng.random() < 1 / (1 + np.exp(-margin))
    return {
        "id": number,
        "source": question.format(count),
        "candidates": candidates,
        "preferences": [[0, 1] if first else [1, 0]],
    }


def main() -> None:
    """Write the files."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    rng = np.random.default_rng(4)
    for name, count in COUNTS.items():
        lines = (json.dumps(simulate_pair(number, rng)) for number in range(count))
        (folder / f"answers.{name}.jsonl").write_text("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    main()
