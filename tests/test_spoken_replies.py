"""A reply that comes in pieces is said as one that comes whole: sentence stream and voice's text together."""

import csv
import re
from pathlib import Path

import pytest

from llm.sentences import SentenceStream
from tts.speakable import speakable

_ROWS = list(
    csv.DictReader(
        Path(__file__).with_name("tts").joinpath("markup_cases.tsv").open(encoding="utf-8"),
        delimiter="\t",
        quoting=csv.QUOTE_NONE,
    )
)


def _words(text: str) -> list[str]:
    return re.findall(r"[\w']+", text)


@pytest.mark.parametrize("piece", [1, 4])
@pytest.mark.parametrize("row", _ROWS, ids=lambda row: row["written"][:40])
def test_a_reply_in_pieces_says_what_it_says_whole(row: dict[str, str], piece: int) -> None:
    written = "Well.\n\n" + row["written"].replace("⏎", "\n") + "\n\nAnd that is all. Bye."
    stream = SentenceStream()
    units = [unit for at in range(0, len(written), piece) for unit in stream.push(written[at : at + piece])]
    said = [word for unit in units + stream.flush() for word in _words(speakable(unit).text)]
    assert said == ["Well", *_words(row["spoken"]), *_words("And that is all. Bye.")]
