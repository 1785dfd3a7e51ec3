"""Translation quality: TER, BLEU, chrF, WER and other metrics, gains, and oracle derivations."""
