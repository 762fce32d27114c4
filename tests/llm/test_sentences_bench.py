"""The comparison of sentence segmenters measures what it says."""

from collections.abc import Iterable, Iterator

from bench import sentences
from fixtures.sentence_cases import Case, cases
from llm.sentences import SentencePolicy


def at_every_stop(pieces: Iterable[str]) -> Iterator[str]:
    """A segmenter that cuts behind every full stop, at once."""
    unit = ""
    for piece in pieces:
        unit += piece
        if piece == ".":
            yield unit
            unit = ""
    yield unit


_CASE = [Case("test", "It is 3.5 now. Go!  Stop.", (15, 20))]


def test_a_cut_where_no_sentence_ends_is_wrong_and_another_is_missed() -> None:
    assert sentences.score(at_every_stop, _CASE) == {
        "boundary_f1": 0.5,
        "wrong_cuts": 1,
        "missed": 1,
        "waited_chars_mean": 0,
        "waited_chars_max": 0,
    }


def test_waiting_is_counted_without_spaces() -> None:
    def late(pieces: Iterable[str]) -> Iterator[str]:
        text = ""
        for piece in pieces:
            text += piece
            if text.endswith("St"):
                yield "It is 3.5 now. "
                yield "Go!"
        yield "Stop."

    assert sentences.score(late, _CASE) == {
        "boundary_f1": 1.0,
        "wrong_cuts": 0,
        "missed": 0,
        "waited_chars_mean": 3.5,
        "waited_chars_max": 5,
    }


def test_a_segmenter_of_whole_texts_hands_over_all_but_its_last_sentence() -> None:
    def by_line(text: str) -> list[str]:
        return text.splitlines(keepends=True)

    split = sentences.asked_again(by_line)
    assert list(split("a\nb\nc")) == ["a\n", "b\n", "c"]


def test_the_sentence_stream_makes_no_mistake_on_the_table_and_waits_for_one_character() -> None:
    figures = sentences.score(sentences.ours(SentencePolicy()), cases())
    assert figures["boundary_f1"] == 1
    assert figures["waited_chars_max"] <= 1


def test_speeds_are_given_for_every_contestant() -> None:
    splitters = {"ours": sentences.ours(SentencePolicy()), "stops": at_every_stop}
    assert set(sentences.speeds(splitters, cases())) == {"ours", "stops"}
