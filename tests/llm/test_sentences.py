"""Where sentences end, and that nothing but the text decides it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.sentence_cases import Case, cases
from llm.sentences import SentencePolicy, SentenceStream


def split(text: str, policy: SentencePolicy | None = None, piece: int = 1) -> list[str]:
    stream = SentenceStream(policy or SentencePolicy())
    sentences = []
    for at in range(0, len(text), piece):
        sentences += stream.push(text[at : at + piece])
    return sentences + stream.flush()


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.family}: {case.text[:40]}")
def test_table(case: Case) -> None:
    assert split(case.text) == case.sentences


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.family}: {case.text[:40]}")
def test_a_boundary_waits_for_one_character_that_is_not_a_space(case: Case) -> None:
    stream = SentenceStream()
    done = 0
    for at, character in enumerate(case.text):
        done += sum(map(len, stream.push(character)))
        for end in case.ends:
            if at >= end:  # the first character of the next sentence is in
                assert done >= end


def test_a_blank_line_is_not_waited_for() -> None:
    assert SentenceStream().push("Hello\n\n") == ["Hello\n\n"]


def test_the_wait_is_over_with_the_next_character() -> None:
    stream = SentenceStream()
    assert stream.push("All done.") == []
    assert stream.push(" ") == []
    assert stream.push("N") == ["All done. "]


def test_a_price_is_not_cut_between_tokens() -> None:
    stream = SentenceStream()
    assert stream.push("It is $3.") == []
    assert stream.push("50 today") == []
    assert stream.flush() == ["It is $3.50 today"]


# the texts that trouble segmenters: marks, quotes, ticks and spaces in any order, between words of the table
_SCRAPS = st.sampled_from([*".!?…,:\"'“”()[]`*_<>-13aB。「」 \n", "```", "Dr"])
_TEXTS = st.lists(_SCRAPS | st.text(max_size=6), max_size=60).map("".join)
_POLICIES = st.builds(
    SentencePolicy,
    language=st.sampled_from(["en", "de", "fr", "es"]),
    first_clause=st.booleans(),
    first_at_once=st.booleans(),
    max_chars=st.sampled_from([16, 40, 300]),
)


@given(_TEXTS, _POLICIES, st.integers(1, 20))
def test_any_text_comes_out_whole_and_the_same_however_it_is_pushed(
    text: str, policy: SentencePolicy, piece: int
) -> None:
    by_character = split(text, policy)
    assert "".join(by_character) == text
    assert all(by_character)
    assert split(text, policy, piece) == by_character


@given(_TEXTS.filter(lambda text: "```" not in text), st.sampled_from([16, 64]))
def test_no_unit_is_longer_than_the_limit(text: str, limit: int) -> None:
    assert all(len(unit) <= limit for unit in split(text, SentencePolicy(max_chars=limit)))


@pytest.mark.parametrize(
    "unit", ["(", '"a ', "`", "* ", ". ", "1", "a.", "\n", "'a ", "<b", "“", "\ud800", "\x00"]
)
def test_long_nonsense_is_cut_into_bounded_units(unit: str) -> None:
    text = unit * 20_000
    units = split(text, piece=7)
    assert "".join(units) == text
    assert max(map(len, units)) <= SentencePolicy().max_chars


def test_an_unclosed_quote_does_not_hold_the_rest_back() -> None:
    text = 'He said "no and left. ' + "This goes on. " * 30
    assert len(split(text)) > 10


def test_a_long_unit_ends_behind_a_clause_before_a_word() -> None:
    text = "we looked at the first of them, and then at all the others that were left in the box"
    assert split(text, SentencePolicy(max_chars=48))[0] == "we looked at the first of them, "
    assert split(text.replace(",", ""), SentencePolicy(max_chars=48))[0].endswith(" ")


def test_a_long_unit_is_not_cut_inside_a_number() -> None:
    text = "the price of all of it together was 5 million, 300 thousand and 12 for the two of them"
    for limit in range(20, 60):
        for unit in split(text, SentencePolicy(max_chars=limit)):
            assert not unit.rstrip().endswith(("5", "300", "12"))


def test_a_code_block_is_one_unit_however_long() -> None:
    block = "```python\n" + "value = 1. Next\n\n" * 100 + "```\n"
    assert split(f"Here:\n{block}Done.") == ["Here:\n", block, "Done."]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("I can help you with that, just a moment.", "I can help you with that, "),
        ("Well, I can help with that today, yes.", "Well, I can help with that today, "),
        ("Your new total of 5,000 is due: pay it soon.", "Your new total of 5,000 is due: "),
        ("It was May 5, 2020, when he called.", "It was May 5, 2020, "),
        ("She wrote (in red, not blue) to us, twice.", "She wrote (in red, not blue) to us, "),
        ("That is what I thought—it is gone.", "That is what I thought—"),
        ("Nothing to cut at here. Then more.", "Nothing to cut at here. "),
    ],
)
def test_the_first_unit_may_end_at_a_clause(text: str, first: str) -> None:
    units = split(text, SentencePolicy(first_clause=True))
    assert units[0] == first
    assert "".join(units) == text


def test_only_the_first_unit_ends_at_a_clause() -> None:
    text = "I can help you with that, sir. If you wait for a bit, I will look."
    assert split(text, SentencePolicy(first_clause=True)) == [
        "I can help you with that, ",
        "sir. ",
        "If you wait for a bit, I will look.",
    ]


def test_the_first_unit_may_end_at_once() -> None:
    stream = SentenceStream(SentencePolicy(first_at_once=True))
    assert stream.push("How are you?") == ["How are you?"]
    assert stream.push(" And them? ") == []
    assert stream.push("Oh") == [" And them? "]


@pytest.mark.parametrize("text", ['"Why?', "Yahoo!", "See a.com/?", "`x!", "(so?"])
def test_at_once_keeps_out_of_quotes_names_and_addresses(text: str) -> None:
    assert SentenceStream(SentencePolicy(first_at_once=True)).push(text) == []


def test_a_stall_hands_over_a_finished_sentence_only() -> None:
    stream = SentenceStream()
    stream.push("It is done.")
    assert stream.stall() == ["It is done."]
    stream.push(" Then we")
    assert stream.stall() == []
    stream.push(" paid $3.")
    assert stream.stall() == []
    stream.push("50 to Dr.")
    assert stream.stall() == []
    assert stream.flush() == [" Then we paid $3.50 to Dr."]
    assert stream.flush() == []


def test_a_flush_in_the_middle_keeps_what_is_open() -> None:
    stream = SentenceStream()
    stream.push("```\na. B")
    assert stream.flush() == ["```\na. B"]
    assert stream.push("\nc. D\n```\nDone. Next") == ["\nc. D\n```\n", "Done. "]


@pytest.mark.parametrize(
    ("language", "text", "sentences"),
    [
        ("de", "Am 3. Oktober z. B. geht es. Danke.", ["Am 3. Oktober z. B. geht es. ", "Danke."]),
        (
            "de",
            "Fragen Sie Hr. Maier bzw. Fr. Kunz. Bitte.",
            ["Fragen Sie Hr. Maier bzw. Fr. Kunz. ", "Bitte."],
        ),
        ("fr", "M. Petit est là. Entrez.", ["M. Petit est là. ", "Entrez."]),
        ("fr", "Comment ça va ? Bien.", ["Comment ça va ? ", "Bien."]),
        (
            "es",
            "La Sra. Ruiz vive en EE.UU. desde ayer. Sí.",
            ["La Sra. Ruiz vive en EE.UU. desde ayer. ", "Sí."],
        ),
        ("xx", "Mr. Hall is in. Good.", ["Mr. Hall is in. ", "Good."]),
    ],
)
def test_other_languages(language: str, text: str, sentences: list[str]) -> None:
    assert split(text, SentencePolicy(language=language)) == sentences


def test_a_policy_that_cannot_work_is_refused() -> None:
    with pytest.raises(ValueError, match="max_chars"):
        SentencePolicy(max_chars=3)
    with pytest.raises(ValueError, match="first_min_chars"):
        SentencePolicy(first_min_words=0)
