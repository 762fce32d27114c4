"""What tests and benchmarks share is itself checked: graders fail the opposite, the twins share no text."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from fixtures.grading import Question
from fixtures.questions import QUESTIONS
from fixtures.unseen_agents import UNSEEN_AGENTS
from fixtures.words import plain, word_error_rate, words_wrong
from pipeline.agent import Agent

UNSEEN = [question for _, questions in UNSEEN_AGENTS for question in questions]


@pytest.mark.parametrize("question", [*QUESTIONS, *UNSEEN], ids=lambda question: question.text)
def test_the_grader_passes_a_right_answer_in_other_words_and_fails_the_opposite(question: Question) -> None:
    assert question.is_right(question.reworded), plain(question.reworded)
    assert question.opposites
    assert [answer for answer in question.opposites if question.is_right(answer)] == []
    assert not question.is_right("")


@pytest.mark.parametrize("agent", [agent for agent, _ in UNSEEN_AGENTS], ids=lambda agent: agent.name)
def test_what_an_unseen_agent_knows_answers_each_of_its_questions(agent: Agent) -> None:
    """A grader that fails the fact itself would fail every right answer."""
    (questions,) = (questions for one, questions in UNSEEN_AGENTS if one is agent)
    unanswered = [q.text for q in questions if not any(map(q.is_right, agent.facts))]
    assert unanswered == []


def test_unseen_agents_are_asked_fifteen_questions_each_that_nobody_else_is_asked() -> None:
    assert len(UNSEEN_AGENTS) >= 4
    assert {len(questions) for _, questions in UNSEEN_AGENTS} == {15}
    texts = [question.text for question in (*QUESTIONS, *UNSEEN)]
    assert len(set(texts)) == len(texts)


def test_transcripts_are_compared_by_words_whatever_they_were_written_like() -> None:
    assert word_error_rate("It costs ninety dollars, doesn't it?", "it costs $90 does not it") == 0.0
    assert word_error_rate(["one two three four five six", "yes"], ["123456", "no"]) == 0.5
    assert words_wrong("are you open on sunday", "are you on a sunday") == 2


ROOT = Path(__file__).parents[1]


def rooms_imported_by(room: str) -> set[str]:
    """The top-level packages that the files of a room import, wherever in them."""
    found: set[str] = set()
    for file in (ROOT / room).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found |= {name.name.partition(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.partition(".")[0])
    return found


def test_tests_and_benchmarks_share_by_a_room_of_its_own() -> None:
    assert "fixtures" in rooms_imported_by("bench") & rooms_imported_by("tests")
    assert not rooms_imported_by("fixtures") & {"bench", "tests"}
    assert "tests" not in rooms_imported_by("bench")
    for room in ("asr", "llm", "tts", "pipeline", "web"):
        assert not rooms_imported_by(room) & {"fixtures", "bench", "tests"}


def test_what_is_graded_unseen_says_that_nothing_may_be_chosen_by_it() -> None:
    files = [file for room in ("fixtures", "bench") for file in (ROOT / room).glob("unseen_*.py")]
    assert len(files) >= 6
    for file in files:
        head = ast.get_docstring(ast.parse(file.read_text("utf-8")))
        assert head is not None, file
        assert "Nothing may be chosen by" in head, file
