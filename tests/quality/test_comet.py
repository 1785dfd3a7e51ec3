"""COMET in an environment of its own: with a stub, and, if it is installed, with a tiny model."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from comet_environment import CometEnvironment, install
from raising import raises

from bpa_ppl import DataError, NBest, UsageError, add_features, gains, oracles
from bpa_ppl.features import QualityEstimate
from bpa_ppl.quality import comet
from bpa_ppl.quality.comet import Comet, CometKiwi
from bpa_ppl.quality.scoring import choice_score

LISTS = NBest.from_lists(
    [["ab", "abc"]], [[[0.0], [1.0]]], ["LM0"], references=[("r", "s")], sources=["q\ud83d ü\n"]
)


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CometEnvironment]:
    """An environment with a stub of unbabel-comet, on PATH."""
    monkeypatch.setenv("BPA_PPL_CACHE", str(tmp_path / "cache"))
    yield install(tmp_path, monkeypatch)
    comet._worker.cache_clear()


PROGRAM = """
import os, signal, sys
from bpa_ppl import corpus_score
from bpa_ppl.quality.comet import CometKiwi

def score(model, text):
    sys.stdout.flush()
    return corpus_score([text], None, CometKiwi(model=model), sources=["q"]).value
"""


def is_alive(process: int) -> bool:
    """Return whether a process exists, even as a zombie."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


class TestWorker:
    def test_model_is_loaded_once(self, environment: CometEnvironment) -> None:
        for name in ("Unbabel-wmt22-comet-da", "Unbabel-wmt20-comet-da"):
            environment.checkpoint(name)
        result = oracles(LISTS, "unbabel-comet")
        assert result.score.tolist() == [0.3]
        assert result.signature == "unbabel-comet|model:Unbabel/wmt22-comet-da|version:2.9"
        chosen = Comet(model="Unbabel/wmt20-comet-da", batch=2, gpus=1)
        assert choice_score(LISTS, [0], chosen).value == 0.2
        assert choice_score(LISTS, [1], chosen).value == 0.3
        models = ["Unbabel/wmt22-comet-da", "Unbabel/wmt20-comet-da"]
        assert environment.called("download") == [[model] for model in models]
        assert [Path(path).stem for (path,) in environment.called("load")] == [
            model.replace("/", "-") for model in models
        ]
        assert environment.called("predict")[-1] == [
            [{"src": "q\ud83d ü\n", "mt": "abc", "ref": "r"}],
            [2, 1, False],
        ]
        assert len({process for process, *_ in environment.calls()}) == 1

    def test_scores_are_cached_by_checkpoint_and_text(self, environment: CometEnvironment) -> None:
        path = environment.checkpoint("mine")
        lists = NBest.from_lists(
            [[f"{i}", "text"] for i in range(20)],
            [[[0.0], [1.0]]] * 20,
            ["LM0"],
            sources=[f"s{i}" for i in range(20)],
        )
        metric = CometKiwi(model=str(path))

        def predicted(of: NBest) -> int:
            """Return how many texts the model scores."""
            before = len(environment.calls())
            assert gains(of, metric).tolist() == [
                len(t) / 10 for i in range(len(of)) for t in of.texts(i)
            ]
            new = environment.calls()[before:]
            return sum(len(call[2]) for call in new if call[1] == "predict")

        assert [predicted(lists), predicted(lists)] == [40, 0]
        longer = NBest.concatenate([lists, lists.select([0]).with_sources(["new"])], renumber=True)
        assert predicted(longer) == 10  # the five lists of the last chunk
        comet._worker.cache_clear()
        assert predicted(longer) == 0
        for content, loads in ((b"22", 2), (b"333", 3)):
            path.write_bytes(content)
            assert predicted(lists) == 40
            assert len(environment.called("load")) == loads
        metadata = environment.packages / "unbabel_comet-2.9.dist-info" / "METADATA"
        metadata.write_text("Name: unbabel-comet\nVersion: 2.10\n", "utf-8")
        comet._worker.cache_clear()
        assert predicted(lists) == 40

    @pytest.mark.parametrize(
        ("model", "code", "mention"),
        [
            ("offline", "damaged", "OSError: no connection"),
            ("broken.ckpt", "damaged", "RuntimeError: Error in loading: size mismatch"),
            ("killed.ckpt", "damaged", "killed by signal 9"),
            ("exits.ckpt", "damaged", "the last words"),
            ("nan.ckpt", "bad-number", "one finite score"),
        ],
    )
    def test_failure_names_the_model_and_the_reason(
        self, environment: CometEnvironment, model: str, code: str, mention: str
    ) -> None:
        environment.checkpoint(Path(model).stem)
        path = str(environment.packages / model) if model.endswith("ckpt") else model
        with raises(DataError, code, match=mention) as caught:
            oracles(LISTS, Comet(model=path))
        assert path in str(caught.value)
        # The next request finds a working process.
        good = Comet(model=str(environment.checkpoint("good")))
        assert oracles(LISTS, good).score.tolist() == [0.3]

    def test_failed_process_is_replaced(self, environment: CometEnvironment) -> None:
        metric = Comet(model=str(environment.checkpoint("good")))
        assert oracles(LISTS, metric).score.tolist() == [0.3]
        process, *_ = environment.calls()[-1]
        os.kill(process, signal.SIGTERM)
        with raises(DataError, "damaged", match="killed by signal 15"):
            oracles(LISTS.with_sources(["another"]), metric)
        assert not is_alive(process)
        assert oracles(LISTS.with_sources(["another"]), metric).score.tolist() == [0.3]

    def run(self, code: str, **models: Path) -> list[str]:
        """Return the lines that a program prints; it has a function `score(model, text)`."""
        paths = "".join(f"{name} = {str(path)!r}\n" for name, path in models.items())
        program = [sys.executable, "-c", PROGRAM + paths + code]
        done = subprocess.run(program, capture_output=True, text=True, check=True, timeout=60)
        assert done.stderr == ""
        return done.stdout.splitlines()

    def test_processes_end_with_those_that_started_them(
        self, environment: CometEnvironment
    ) -> None:
        code = """
print(score(good, "a"))
if child := os.fork():
    os.waitpid(child, 0)
    print(score(good, "ab"))
else:
    print(score(good, "abc"))
"""
        assert self.run(code, good=environment.checkpoint("good")) == ["0.1", "0.3", "0.2"]
        first, forked, last = [call[0] for call in environment.calls() if call[1] == "predict"]
        assert first == last != forked
        assert not is_alive(first)
        assert not is_alive(forked)

    def test_work_goes_on_after_ctrl_c(self, environment: CometEnvironment) -> None:
        code = """
signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore it
try:
    score(interrupts, "a")
except KeyboardInterrupt:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        print("no process")
    print(score(good, "abc"))
"""
        models = {name: environment.checkpoint(name) for name in ("good", "interrupts")}
        assert self.run(code, **models) == ["no process", "0.3"]
        assert not any(is_alive(process) for process, *_ in environment.calls())


class TestInstallation:
    @pytest.mark.parametrize("missing", ["comet-score", "No such file", "_of_old"])
    def test_environments_without_comet(
        self, environment: CometEnvironment, monkeypatch: pytest.MonkeyPatch, missing: str
    ) -> None:
        if missing == "comet-score":
            monkeypatch.setenv("PATH", str(environment.packages))
            monkeypatch.setattr(sys, "executable", str(environment.packages / "python"))
        elif missing == "_of_old":
            (environment.packages / "comet.py").write_text("import pkg_resources_of_old", "utf-8")
        else:
            (environment.scripts / "python").unlink()
        with raises(UsageError, "not-supported", parameter="metric", match=missing):
            oracles(LISTS, "unbabel-comet")

    def test_settings_of_our_python_are_not_inherited(
        self, environment: CometEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "comet.py").write_text("raise SystemExit('the wrong module')", "utf-8")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        monkeypatch.chdir(tmp_path)
        path = environment.checkpoint("good").rename(tmp_path / "good.ckpt")
        assert oracles(LISTS, Comet(model="good.ckpt")).score.tolist() == [0.3]
        assert environment.called("load") == [[str(path)]]
        assert environment.called("download") == []
        with raises(DataError, "missing-file", match=r"^mine\.ckpt"):
            oracles(LISTS, Comet(model="mine.ckpt"))


TINY_MODELS = '''
"""Write models of COMET with random weights, with references and without."""
import sys
from pathlib import Path

import torch
import yaml
from comet.models import RegressionMetric, UnifiedMetric
from pytorch_lightning import Trainer
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import XLMRobertaConfig, XLMRobertaModel, XLMRobertaTokenizerFast

torch.manual_seed(1)
folder = Path(sys.argv[1])
words = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *"abcdefghij"]
tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
XLMRobertaTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder / "encoder")
config = XLMRobertaConfig(
    vocab_size=len(words), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
    intermediate_size=16, max_position_embeddings=64, initializer_range=1.0,
)
XLMRobertaModel(config).save_pretrained(folder / "encoder")
settings = {"pretrained_model": str(folder / "encoder"), "hidden_sizes": [8]}
for name, kind, more in (
    ("regression_metric", RegressionMetric, {}),
    ("unified_metric", UnifiedMetric, {"input_segments": ["mt", "src"]}),
):
    trainer = Trainer(accelerator="cpu", logger=False)
    trainer.strategy.connect(kind(**settings, **more))
    trainer.save_checkpoint(folder / name / "checkpoints" / "model.ckpt", weights_only=True)
    hparams = {"class_identifier": name, **settings, **more}
    (folder / name / "hparams.yaml").write_text(yaml.dump(hparams))
'''
REFERENCES = ["c c", "g f d", "a b"]
SOURCES = ["a b c", "d e f g", "b"]
TEXTS = [["b c", "a a", "c"], ["g f", "j ü unknown"], ["b a b", "b b b b"]]


@pytest.mark.slow
def test_scores_are_those_of_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = shutil.which("comet-score")
    if program is None:
        pytest.skip("there is no program comet-score on PATH: install unbabel-comet")
    monkeypatch.setenv("BPA_PPL_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    subprocess.run([comet._python(), "-c", TINY_MODELS, str(tmp_path)], check=True)
    lists = NBest.from_lists(
        TEXTS, [[[0.0]] * len(texts) for texts in TEXTS], ["LM0"], sources=SOURCES
    )
    lists = lists.with_references(REFERENCES)

    def scored(model: str, *options: str) -> list[float]:
        """Return the scores of the program."""
        for name, sentences in (("src", SOURCES), ("ref", REFERENCES)):
            lines = [s for s, texts in zip(sentences, TEXTS, strict=True) for _ in texts]
            Path(name).write_text("\n".join(lines), "utf-8")
        Path("mt").write_text("\n".join(t for texts in TEXTS for t in texts), "utf-8")
        files = ["-s", "src", "-t", "mt", "--to_json", "scores.json", *options]
        subprocess.run([program, *files, "--model", model, "--gpus", "0"], check=True)
        return [line["COMET"] for line in json.loads(Path("scores.json").read_text("utf-8"))["mt"]]

    model = "regression_metric/checkpoints/model.ckpt"
    values = gains(lists, Comet(model=model))
    # The program computes with half precision.
    assert values == pytest.approx(scored(model, "-r", "ref"), abs=2e-3)
    assert np.ptp(values) > 0.02
    model = "unified_metric/checkpoints/model.ckpt"
    estimates = add_features(lists, QualityEstimate(model=model)).features[:, 1]
    assert estimates == pytest.approx(scored(model), abs=2e-3)
    assert np.ptp(estimates) > 0.02
    Path("encoder").rename("elsewhere")
    comet._worker.cache_clear()
    with raises(DataError, "damaged", match=r"model\.ckpt: .*encoder"):
        gains(lists.with_sources(TEXTS[0]), CometKiwi(model=model))
