"""Measure the judgement on labelled texts, through the real pipeline."""
