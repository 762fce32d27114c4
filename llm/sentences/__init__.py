"""Sentences out of a stream of text, as early as they can be known.

:class:`SentenceStream` is the only thing most callers need; :class:`SentencePolicy` says how units may end.
"""

from llm.sentences.stream import WHOLE_SENTENCES, SentencePolicy, SentenceStream

__all__ = ["WHOLE_SENTENCES", "SentencePolicy", "SentenceStream"]
