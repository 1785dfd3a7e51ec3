"""Gains: TER, BLEU, chrF, WER and other metrics, judgements, preferences, and oracles."""
