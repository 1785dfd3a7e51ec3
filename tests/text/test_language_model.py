"""Language models, mixtures and files, compared with KenLM's lmplz and query and with plain Python.

`golden/harbour.txt` was written for these tests. KenLM created the ARPA files from it (`lmplz -o 3
--discount_fallback`, and `-o 5`).
"""

from __future__ import annotations

import gzip
import tempfile
from math import exp, log
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.command_line import succeed
from support.raising import raises

from bpa_ppl import DataError
from bpa_ppl.text.language_model import MixtureModel, NgramModel
from bpa_ppl.text.model_files import read_arpa, write_arpa
from bpa_ppl.text.ngrams import estimate_discounts
from bpa_ppl.text.words import SPECIAL, split_words

GOLDEN = Path(__file__).parent / "golden"
TEXT = GOLDEN / "harbour.txt"
TEST_SENTENCES = [
    "the ferry leaves the harbour at ten",
    "a whale waits at the gate",
    "",
    "the café sail",
    "10\u00a0000 dogs",
]
#: Of the lines above: the totals that query of KenLM printed.
TOTALS = {
    3: [-5.656879, -9.139996, -1.261344, -5.8737664, -5.6232133],
    5: [-3.4854538, -9.018486, -1.261344, -5.8272586, -5.5061173],
}
Grams = dict[tuple[str, ...], tuple[float, float]]


def arpa_ngrams(path: Path) -> Grams:
    """Return log10 p and log10 of the back-off weight of each n-gram of an ARPA file."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as lines:
        fields = [line.rstrip("\n").split("\t") for line in lines if "\t" in line]
    return {
        tuple(split_words(gram)): (float(p), float(rest[0]) if rest else 0.0)
        for p, gram, *rest in fields
    }


def reference_score(table: Grams, context: tuple[str, ...], word: str) -> float:
    """Return log10 p by the definition of the format: the longest n-gram, otherwise back off."""
    if (*context, word) in table:
        return table[*context, word][0]
    if not context:
        return table["<unk>",][0]
    return table.get(context, (0.0, 0.0))[1] + reference_score(table, context[1:], word)


def reference_scores(table: Grams, order: int, words: list[str]) -> list[float]:
    inside = (w if (w,) in table and w not in SPECIAL else "<unk>" for w in words)
    history = ["<s>", *inside, "</s>"]
    return [
        reference_score(table, tuple(history[max(0, i - order + 1) : i]), history[i])
        for i in range(1, len(history))
    ]


def model_ngrams(model: NgramModel) -> Grams:
    """Return the same for a model in memory."""
    result: Grams = {}
    shorter: list[tuple[str, ...]] = []
    tables = model.tables
    for n in range(1, model.order + 1):
        rows = range(tables.firsts[n - 1], tables.firsts[n])
        pairs = [divmod(int(tables.keys[row]), 1 << 32) for row in rows]
        grams = [(*(shorter[c] if n > 1 else ()), model.words[w & 0xFFFF]) for c, w in pairs]
        for gram, row in zip(grams, rows, strict=True):
            result[gram] = float(tables.log10[row]), float(tables.backoff[row])
        shorter = grams
    return result


@pytest.mark.parametrize("order", [3, 5])
def test_estimates_agree_with_lmplz(order: int) -> None:
    expected = arpa_ngrams(GOLDEN / f"harbour.o{order}.arpa.gz")
    model = NgramModel.train([TEXT], order)
    result = model_ngrams(model)
    assert result.keys() == expected.keys()
    assert max(np.abs(np.subtract(result[gram], expected[gram])).max() for gram in expected) < 2e-6
    assert model.fallback == ((5,) if order == 5 else ())  # as lmplz reports


@pytest.mark.parametrize("order", [3, 5])
def test_scores_agree_with_kenlm_query(order: int) -> None:
    model = NgramModel.train([TEXT], order)
    sentences = list(map(split_words, TEST_SENTENCES))
    result = model.log_probabilities(sentences)
    assert result.dtype == np.float64
    np.testing.assert_allclose(result / np.log(10), TOTALS[order], atol=3e-6)
    assert model.unknown(sentences).tolist() == [0, 1, 0, 0, 0]


words = st.lists(st.sampled_from("abcd"), max_size=7)
texts = st.lists(words, min_size=1, max_size=15).filter(any)


@settings(max_examples=40, deadline=None)
@given(
    texts, st.integers(1, 5), st.lists(st.lists(st.sampled_from([*"abcdx", "</s>"])), max_size=4)
)
def test_scores_agree_with_back_off_rule(text: list, order: int, texts_to_score: list) -> None:
    model = NgramModel.estimate(text, order)
    table = model_ngrams(model)
    expected = [score for one in texts_to_score for score in reference_scores(table, order, one)]
    result, unknown = model.by_word(texts_to_score)
    np.testing.assert_allclose(result / np.log(10), expected, atol=1e-9)
    known = {word for (word, *more) in table if not more} - set(SPECIAL)
    marks = [[w not in known for w in one] for one in texts_to_score]
    assert unknown.tolist() == [mark for one in marks for mark in (*one, False)]
    assert model.unknown(texts_to_score).tolist() == list(map(sum, marks))
    # A score does not depend on the other sentences, to the last bit.
    for one, score in zip(texts_to_score, model.log_probabilities(texts_to_score), strict=True):
        assert model.log_probabilities([one])[0] == score


UNIGRAMS = {"a": 3 / 8, "b": 1 / 4, "</s>": 1 / 4, "<unk>": 1 / 8}
OF_ONE_WORD = {"a": 1 / 2, "</s>": 1 / 3, "<unk>": 1 / 6}
BIGRAMS = OF_ONE_WORD | {"<s> a": 3 / 4, "a a": 5 / 8, "a </s>": 7 / 24}


@pytest.mark.parametrize(("text", "expected"), [("a a b", UNIGRAMS), ("a a a a", BIGRAMS)])
def test_small_texts_have_probabilities_worked_out_by_hand(
    text: str, expected: dict[str, float]
) -> None:
    """With the discounts 1/2, 1 and 3/2 of lmplz --discount_fallback."""
    model = NgramModel.estimate([text.split()], max(len(gram.split()) for gram in expected))
    result = {" ".join(gram): 10**p for gram, (p, _) in model_ngrams(model).items()}
    assert result.pop("<s>") == 1
    assert result == pytest.approx(expected)


@pytest.mark.parametrize("three", [8, 9])
def test_discounts_that_are_not_positive_are_not_estimated(three: int) -> None:
    """D_2 is 0 or below: what has the count 2 would leave nothing to the back-off."""
    assert estimate_discounts([0, 12, 6, three, 1]) is None
    assert estimate_discounts([0, 12, 6, 7, 1]) == pytest.approx([0.5, 0.25, 3 - 2 / 7])


# --- mixtures, compared with the formula and with a grid of weights ------------------------------

ONE = NgramModel.estimate([["a", "b"], ["a", "c"], ["b", "a"]], 2)
TWO = NgramModel.estimate([["a", "d"], ["d", "a", "b"]], 3)
THREE = NgramModel.estimate([["c", "c", "a"]], 1)
DEV = [["a", "b", "d"], ["d", "a", "b"], ["b", "x"], []]


def test_probabilities_agree_with_the_equation() -> None:
    mixture = MixtureModel([ONE, TWO], [0.7, 0.3])
    scores, unknown = mixture.by_word(DEV)
    parts = [model.by_word(DEV) for model in (ONE, TWO)]
    for word, score in enumerate(scores):
        first, second = (exp(logs[word]) for logs, _ in parts)
        assert score == pytest.approx(log(0.7 * first + 0.3 * second), rel=1e-12)
    # x is unknown to both, d only to the first; the ends of sentences are known.
    assert np.flatnonzero(unknown).tolist() == [9]
    assert parts[0][1].sum() == 3
    totals = [scores[:4].sum(), scores[4:8].sum(), scores[8:11].sum(), scores[11]]
    assert mixture.log_probabilities(DEV) == pytest.approx(totals)
    assert mixture.unknown(DEV).tolist() == [0, 0, 1, 0]


def test_a_model_of_weight_zero_has_no_effect() -> None:
    """Its words are unknown as well: d is known to the second model alone."""
    mixed, alone = MixtureModel([ONE, TWO], [1.0, 0.0]).by_word(DEV), ONE.by_word(DEV)
    np.testing.assert_allclose(mixed[0], alone[0], rtol=1e-15)
    assert mixed[1].tolist() == alone[1].tolist()


def test_files_without_a_sentence_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("\n\n")
    with raises(DataError, "no-data", match=r"empty\.txt"):
        MixtureModel.fit_files([ONE, TWO], [tmp_path / "empty.txt"])


@pytest.mark.parametrize("models", [(ONE, TWO), (TWO, ONE), (ONE, TWO, THREE)])
def test_weights_maximise_the_likelihood(models: tuple[NgramModel, ...]) -> None:
    fitted = MixtureModel.fit(models, DEV)
    p = np.exp([model.by_word(DEV)[0] for model in models])
    grid = np.array(np.meshgrid(*[np.linspace(0, 1, 101)] * (len(models) - 1))).reshape(
        len(models) - 1, -1
    )
    grid = np.vstack([grid, 1 - grid.sum(axis=0)])
    grid = grid[:, grid[-1] >= -1e-12].clip(0)
    values = np.log(grid.T @ p).sum(axis=1)
    assert fitted.weights == pytest.approx(grid[:, values.argmax()], abs=0.011)
    assert fitted.weights.sum() == pytest.approx(1.0, abs=1e-14)
    assert fitted.log_probabilities(DEV).sum() >= values.max()


#: A file as other tools may write it: unordered, with spaces, and without some back-off weights.
SMALL = """
\\data\\
ngram 1=5
ngram 2=3

\\1-grams:
-0.5 a -0.25
-99 <s> -0.5
-0.5\tb
-1 </s>
-2 <unk>

\\2-grams:
-0.1 <s> a
-0.3\ta b
-0.2 a </s>

\\end\\
"""


def write_small_arpa(folder: Path, text: str) -> Path:
    path = folder / "small.arpa"
    path.write_text(text, encoding="utf-8")
    return path


def models_equal(one: NgramModel, other: NgramModel) -> bool:
    return one.words == other.words and all(map(np.array_equal, one.tables, other.tables))


def test_reads_arpa_of_another_program(tmp_path: Path) -> None:
    model = read_arpa(write_small_arpa(tmp_path, SMALL))
    assert model.counts == (5, 3)
    result = model.log_probabilities([["a"], ["a", "b"], ["b", "a", "x"], []]) / np.log(10)
    by_hand = [-0.1 - 0.2, -0.1 - 0.3 - 1, (-0.5 - 0.5) - 0.5 + (-0.25 - 2) - 1, -0.5 - 1]
    np.testing.assert_allclose(result, by_hand, atol=1e-6)
    assert model.unknown([["b", "a", "x", "<s>", "</s>", "<unk>"]]).tolist() == [4]


def test_model_without_unk_gives_tiny_probabilities(tmp_path: Path) -> None:
    text = SMALL.replace("-2 <unk>\n", "").replace("1=5", "1=4")
    model = read_arpa(write_small_arpa(tmp_path, text))
    assert model.unknown([["x"]]).tolist() == [1]
    assert model.log_probabilities([["x"]])[0] / np.log(10) == pytest.approx(-0.5 - 100 - 1)


sentences = st.lists(st.lists(st.text("ab<>/é\u00a0\u3000", min_size=1), max_size=5), min_size=1)


@settings(max_examples=20, deadline=None)
@given(sentences.filter(any), st.integers(1, 4))
def test_random_words_round_trip(text: list[list[str]], order: int) -> None:
    model = NgramModel.estimate(text, order)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.arpa"
        write_arpa(model, path)
        assert models_equal(read_arpa(path), model)


#: A section that SMALL could have at its end, with a trigram whose context is missing.
TRIGRAMS = "\\3-grams:\n-0.1 a b </s>\n-0.1 b b a\n\n\\end\\"


@pytest.mark.parametrize(
    ("old", "new", "line", "code"),
    [
        ("\\data\\", "data", 2, "bad-line"),
        ("ngram 1=5", "ngram 1=many", 3, "bad-line"),
        ("ngram 1=5", f"ngram 1={'9' * 5000}", 3, "bad-line"),
        ("ngram 1=5", f"ngram {'1' * 5000}=5", 3, "bad-line"),
        ("ngram 1=5\nngram 2=3\n", "", 3, "bad-line"),
        ("ngram 2=3", "ngram 3=3", 4, "bad-line"),
        ("\\1-grams:", "\\2-grams:", 6, "bad-line"),
        ("-0.5\tb\n", "", 11, "bad-line"),
        ("-0.5\tb", "-0.5\tb c d", 9, "bad-line"),
        ("-0.5\tb", "much\tb", 9, "bad-number"),
        ("-0.5\tb", "-1e39\tb", 9, "bad-number"),
        ("a -0.25", "a inf", 7, "bad-number"),
        ("-0.3\ta b", "0.3\ta b", 15, "bad-number"),
        ("-0.3\ta b", "-0.3\ta b -1", 15, "bad-line"),
        ("-0.3\ta b", "-0.3\ta c", 15, "mismatch"),
        ("-0.3\ta b", "-0.3\t<s> a", 15, "duplicate"),
        ("-0.5\tb", "-0.5\ta", 9, "duplicate"),
        ("-1 </s>", "-1 end", 11, "damaged"),
        ("\\end\\", "", 18, "bad-line"),
        ("-0.2 a </s>\n\n\\end\\\n", "", 15, "damaged"),
        ("2=3", "2=3\nngram 3=2", 21, "mismatch"),
    ],
)
def test_invalid_files_are_named(old: str, new: str, line: int, code: str, tmp_path: Path) -> None:
    assert SMALL.count(old) == 1
    text = SMALL.replace(old, new)
    if line == 21:
        text = text.replace("\\end\\", TRIGRAMS)
    with raises(DataError, code, line=line, match="small.arpa"):
        read_arpa(write_small_arpa(tmp_path, text))


def test_a_language_model_is_written_and_evaluated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "the cat sat\na cat sat down\nthe dog sat\n"
    Path("domain.txt").write_text(text, "utf-8")
    Path("held-out.txt").write_text("the cat sat\na bird\n", "utf-8")
    done = succeed("lm", "domain.txt", "--order", 2, "-o", "a.arpa.gz", "--test", "held-out.txt")
    assert done.err == ""
    model = NgramModel.estimate([line.split() for line in text.splitlines()], 2)
    assert read_arpa("a.arpa.gz").log_probabilities([["a"]]) == model.log_probabilities([["a"]])
    scores, unknown = model.by_word([["the", "cat", "sat"], ["a", "bird"]])
    assert done.out.splitlines() == [
        "9 1-grams, 10 2-grams; too few n-grams of order 1, 2 to estimate discounts: "
        "0.5, 1, 1.5 are used",
        f"held-out.txt: perplexity {np.exp(-scores.mean()):.2f}, "
        f"{np.exp(-scores[~unknown].mean()):.2f} without the 1 unknown of 5 words",
    ]
    again = succeed("lm", "a.arpa.gz", "--test", "held-out.txt", "--test", "domain.txt")
    assert again.out.splitlines()[:2] == ["9 1-grams, 10 2-grams", done.out.splitlines()[1]]
    assert again.out.splitlines()[2].startswith("domain.txt: perplexity ")
    whole = succeed("lm", "-", "-o", "-", stdin=text * 2)  # the model, so that messages are notes
    assert (whole.out.startswith("\\data\\"), "1-grams" in whole.err) == (True, True)
