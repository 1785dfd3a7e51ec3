"""Converters from files of other tools to records of lists: one function a kind.

`answers` is that of all servers of LLMs. Each takes an iterable of records, which are objects of
JSON, or lines of text where the kind is a file of text, and returns records as
`bpa_ppl.from_records` and JSON lines have them. Nothing is guessed: a record that is not of the
kind is an error. Numbers that are features are in the object `features` of a candidate; judgements
are plain fields of candidates, to be named as the gain.

>>> import bpa_ppl.extras.convert as convert
>>> convert.trec(["q1 Q0 d11 1 13.5 bm25"])
[{'id': 'q1', 'candidates': [{'text': 'd11', 'features': {'score': 13.5}}]}]
"""

from bpa_ppl.extras.convert.evaluations import inspect, lmeval, promptfoo
from bpa_ppl.extras.convert.judgements import alpacaeval, arenahard, argilla, labelstudio, mtbench
from bpa_ppl.extras.convert.lines import icefall, letor, trec, wmt
from bpa_ppl.extras.convert.preferences import kto, ranked, sharegpt, ultrafeedback
from bpa_ppl.extras.convert.servers import answers

__all__ = [
    "alpacaeval",
    "answers",
    "arenahard",
    "argilla",
    "icefall",
    "inspect",
    "kto",
    "labelstudio",
    "letor",
    "lmeval",
    "mtbench",
    "promptfoo",
    "ranked",
    "sharegpt",
    "trec",
    "ultrafeedback",
    "wmt",
]
