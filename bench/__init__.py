"""Benchmarks: one a stage and one for whole calls, each against what a user would else pick, in one run.

Each compares its goals itself (`bench.report`) and ends with status 1 where one falls short.
"""

# Before anything that a benchmark imports: the rooms switch off what the libraries would report.
import asr
import llm
import tts

__all__ = ["asr", "llm", "tts"]
