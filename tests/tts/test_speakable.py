"""What is written against what is said, and that nothing a model writes makes it fail."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tts.speakable import _RULES, Spoken, speakable
from tts.text.phones import _NUMBER

_TABLES = ("speakable", "telephone", "code", "markup", "abbreviation")
_ROWS = [
    row
    for name in _TABLES
    for row in csv.DictReader(
        Path(__file__).with_name(f"{name}_cases.tsv").read_text(encoding="utf-8").splitlines(),
        delimiter="\t",
        quoting=csv.QUOTE_NONE,
    )
]
"""One case a line; the sign ⏎ stands for a new line."""


def test_the_table_is_complete() -> None:
    assert len(_ROWS) >= 840
    assert len({(row["language"], row["written"]) for row in _ROWS}) == len(_ROWS)


@pytest.mark.parametrize("row", _ROWS, ids=lambda row: f"{row['kind']}: {row['written'][:40]}")
def test_table(row: dict[str, str]) -> None:
    spoken = speakable(row["written"].replace("⏎", "\n"), language=row["language"])
    assert spoken.text == row["spoken"]
    check_spans(row["written"].replace("⏎", "\n"), spoken)
    assert speakable(spoken.text, language=row["language"]).text == spoken.text


def words(written: str, **options: object) -> list[tuple[str, str]]:
    """Each spoken word beside the written text it comes from."""
    spoken = speakable(written, **options)  # type: ignore[arg-type]
    check_spans(written, spoken)
    return [(spoken.text[s.start : s.end], written[s.start_char : s.end_char]) for s in spoken.spans]


def check_spans(written: str, spoken: Spoken) -> None:
    said = [word for word in spoken.text.split() if any(map(str.isalnum, word))]
    assert [spoken.text[span.start : span.end] for span in spoken.spans] == said
    last = (0, 0)
    for span in spoken.spans:
        here = (span.start_char, span.end_char)
        assert here == last or last[1] <= here[0] < here[1] <= len(written)
        last = here


def test_plain_words_stand_for_themselves() -> None:
    assert words("Well, how are you?") == [
        ("Well,", "Well"),
        ("how", "how"),
        ("are", "are"),
        ("you?", "you"),
    ]


def test_every_word_of_an_amount_stands_for_the_amount() -> None:
    assert words("Pay $3.50 now.") == [
        ("Pay", "Pay"),
        ("three", "$3.50"),
        ("dollars", "$3.50"),
        ("and", "$3.50"),
        ("fifty", "$3.50"),
        ("cents", "$3.50"),
        ("now.", "now"),
    ]


def test_words_keep_their_place_behind_markup() -> None:
    assert words("**Bold** [link](http://a.bc) 😊 at 5%.") == [
        ("Bold", "Bold"),
        ("link", "link"),
        ("at", "at"),
        ("five", "5%"),
        ("percent.", "5%"),
    ]


def test_words_keep_their_place_across_lines() -> None:
    written = "# Prices\n\n- Tea: $2\n- None"
    assert words(written) == [
        ("Prices.", "Prices"),
        ("Tea:", "Tea"),
        ("two", "$2"),
        ("dollars.", "$2"),
        ("None.", "None"),
    ]


def test_a_pronunciation_is_said_as_it_stands() -> None:
    names = {"Nguyen": "Win", "SQL": "sequel", "acme corp": "ackme corporation", "e.on": "ee on"}
    said = words("Ask Nguyen at ACME Corp about SQL and E.ON, not sql.", pronunciations=names)
    assert said == [
        ("Ask", "Ask"),
        ("Win", "Nguyen"),
        ("at", "at"),
        ("ackme", "ACME Corp"),
        ("corporation", "ACME Corp"),
        ("about", "about"),
        ("sequel", "SQL"),
        ("and", "and"),
        ("ee", "E.ON"),
        ("on,", "E.ON"),
        ("not", "not"),
        ("sql.", "sql"),
    ]


def test_a_pronunciation_needs_the_whole_word() -> None:
    assert speakable("Annette met Ann.", pronunciations={"Ann": "Anne"}).text == "Annette met Anne."


def test_the_longest_pronunciation_wins() -> None:
    names = {"New York": "Noo York", "New": "Knew", "": "nothing"}
    assert speakable("New York is New.", pronunciations=names).text == "Noo York is Knew."


def test_a_pronunciation_may_hold_its_own_key() -> None:
    assert speakable("Go!", pronunciations={"go": "go go"}).text == "go go!"


@pytest.mark.parametrize(
    "written",
    [
        "",
        " ",
        "\n\n",
        "...",
        "?!",
        "---",
        "***",
        "```\ncode\n```",
        "😊👍🏽",
        "\x00\x07",
        "\ud800",
        "<b></b>",
        "|---|",
    ],
)
def test_nothing_sayable_is_empty(written: str) -> None:
    assert speakable(written) == Spoken("")


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("<speak>Hi <prosody rate='90%'>you</prosody></speak>", "Hi you"),
        ('<say-as interpret-as="digits">12</say-as>', "twelve"),
        ("a\x00b\x07\u200b c", "ab c"),
        ("one\ud800two \udfff", "onetwo"),
        ("مرحبا بك 5", "مرحبا بك five"),
        ("١٢ items", "twelve items"),
        ("x" * 400, "x" * 400),
        ("A", "eigh"),
        ("5", "five"),
        ("é", "é"),
        ("$", ""),
        ("12,34,567", "one million two hundred and thirty-four thousand five hundred and sixty-seven"),
        ("1,2,3", "one, two, three"),
    ],
)
def test_odd_texts(written: str, spoken: str) -> None:
    assert speakable(written).text == spoken


def _unbounded(parsed: Any) -> Iterator[str]:
    """The repeats of a parsed pattern that have no greatest number."""
    for operation, argument in parsed:
        if operation in (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT):
            if argument[1] == _constants.MAXREPEAT:
                yield str(argument)
            yield from _unbounded(argument[2])
        elif operation == _constants.BRANCH:
            for branch in argument[1]:
                yield from _unbounded(branch)
        elif operation == _constants.SUBPATTERN:
            yield from _unbounded(argument[-1])
        elif operation in (_constants.ASSERT, _constants.ASSERT_NOT):
            yield from _unbounded(argument[1])


@pytest.mark.parametrize(
    "pattern",
    [rule.pattern.pattern for rule in _RULES if isinstance(rule.pattern, re.Pattern)] + [_NUMBER.pattern],
)
def test_no_rule_looks_ahead_without_bound(pattern: str) -> None:
    """One that is tried at every word would take the square of the length of a long run of digits."""
    assert list(_unbounded(_parser.parse(pattern, re.VERBOSE))) == []


_REPEATED = "a 1 1, 1. a. A- 1- $ ( [ * ` < a@ http:// a/ $1 ' \\ & 1: 1/ # _ é 好 | a.b@ [a]( &amp"
_UNITS = [
    *_REPEATED.split(" "),
    "111 ",
    "12 ",
    "A ",
    "1 ",
    "\n",
    "- x\n",
    "+1 ",
    "Dr. ",
    "IV ",
    "\ud800",
    "```a b\n",
    "~~~\nIt is so.\n",
    "&#38;",
    "[1] ",
    "<a b",
    "==",
]


@pytest.mark.parametrize("unit", _UNITS)
def test_ten_thousand_characters(unit: str) -> None:
    written = (unit * 10_000)[:10_000]
    check_spans(written, speakable(written))


_MARKS = "AB1 \n.,-*_`()#/@&=<>'\"…—½€|"
_WRITTEN = (
    "$3.50 5% 23 2024 10:30 a.m. Dr. St. Main etc. ** [x](http://a.bc) a@b.com example.com +1 °C km Jan. 5th"
    " <b> U.S. 😊 AB-12 IV No."
)
_SCRAPS = st.sampled_from([*_MARKS, *_WRITTEN.split(" ")])
_TEXTS = st.lists(_SCRAPS | st.text(max_size=4), max_size=14).map("".join)


@given(_TEXTS, st.sampled_from(["en", "es", "fr", "de"]))
def test_any_text_is_said_the_same_when_said_again(written: str, language: str) -> None:
    spoken = speakable(written, language=language)
    check_spans(written, spoken)
    assert speakable(spoken.text, language=language).text == spoken.text
    assert any(map(str.isalnum, spoken.text)) or spoken == Spoken("")


def test_no_digits_are_left_for_the_voice() -> None:
    for row in _ROWS:
        assert not any(map(str.isdecimal, speakable(row["written"], language=row["language"]).text))


def test_a_language_without_words_is_refused() -> None:
    with pytest.raises(ValueError, match="use one of en"):
        speakable("5", language="tlh")
    assert speakable("5", language="en-GB").text == "five"
