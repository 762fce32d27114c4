"""Code and tags in a stream: a block is one unit, and nothing that was not closed holds the reply back."""

import pytest

from llm.sentences import SentenceStream

_TEXTS = (
    "```ls``` lists files. |Try it.",
    "```ls``` and ```pwd``` help. |Try them.",
    "Type ```ls -la. x``` now. |Try it.",
    "````ls```` lists files. |Try it.",
    "~~~ls~~~ lists files. |Try it.",
    "Here:\n|```\na. B\n\nc. D\n```\n|Try it.",
    "Here:\n|~~~\na. B\n\nc. D\n~~~\n|Try it.",
    "Here:\n|~~~python\n```\n\nc. D\n```\n~~~\n|Try it.",
    "Here:\n|````\n```\n\nc. D\n```\n\nE. F\n````\n|Try it.",
    "Here:\n|```\na. B\n\nc. D\n`````\n|Try it.",
    "Here:\n|```\na. B\n~~~\n\nc. D\n```\n|Try it.",
    "Here: ```python\na. B\n\nc. D\n```\n|Try it.",
    "Here:\n|```\na. B\n\nc. D```\n|Try it.",
    "Here:\n|```\na. B\n\nc. D\n``` That is all. |Try it.",
    "- Here:\n  |```\n  a. B\n\n  c. D\n  ```\n|Try it.",
    "> ```\n> a. B\n>\n> c. D\n> ```\n|Try it.",
    "Run ls` now:\n|```\na. B\n\nc. D\n```\n|Try it.",
    "Old ~~price~~ now. |Try it.",
    "It is ~5 miles. |It is ~6 km.",
)


def _split(text: str, piece: int) -> list[str]:
    stream = SentenceStream()
    units = []
    for at in range(0, len(text), piece):
        units += stream.push(text[at : at + piece])
    return units + stream.flush()


@pytest.mark.parametrize("piece", [1, 3, 1000])
@pytest.mark.parametrize("marked", _TEXTS)
def test_code_ends_where_it_is_closed(marked: str, piece: int) -> None:
    assert _split(marked.replace("|", ""), piece) == marked.split("|")


@pytest.mark.parametrize("opening", ["```ls", "``ls", "`ls", "<b", "**", "~~", "ls```", "ls ~~~"])
@pytest.mark.parametrize("before", ["Type ", ""])
def test_a_mark_in_a_line_that_nothing_closes_is_not_waited_for(before: str, opening: str) -> None:
    text = f"{before}{opening} to see. " + "That shows them all. " * 30
    stream = SentenceStream()
    assert len([unit for character in text for unit in stream.push(character)]) > 10


@pytest.mark.parametrize("opening", ["```ls", "``ls", "`ls", "**", "~~"])
def test_a_blank_line_ends_what_a_line_left_open(opening: str) -> None:
    stream = SentenceStream()
    assert stream.push(f"Type {opening} to see.\n\nThat is all. N") == [
        f"Type {opening} to see.\n\n",
        "That is all. ",
    ]
