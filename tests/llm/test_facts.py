"""The fact drafter, and the ways in which a caller's words are rephrased."""

from __future__ import annotations

import pytest

from llm.drafters.base import Draft, ReplyState
from llm.drafters.facts import MOST_FACTS, FactDrafter
from llm.drafters.rephrasing import agreed, denied, in_digits, in_plain_order, turned, where
from llm.noise import SeededNoise
from llm.processors import Processors
from llm.sampling import Sampling
from tests.llm.toys import byte_tokenizer

TOKENIZER = byte_tokenizer()
FACTS = (
    "We are open Monday to Friday from eight to six.",
    "There is free parking behind the building.",
    "A cleaning costs ninety dollars.",
    "A check-up costs sixty dollars.",
    "Appointments can be cancelled up to a day before.",
    "On Sunday we are closed.",
)


def fact_drafter() -> FactDrafter:
    drafter = FactDrafter(TOKENIZER.encode, TOKENIZER.decode)
    for fact in FACTS:
        drafter.learn(TOKENIZER.encode(fact))
    return drafter


def propose(drafter: FactDrafter, asked: str, said: str = "") -> Draft:
    ids = [1, *TOKENIZER.encode(said)]
    return drafter.propose(ReplyState(ids, 1, Processors(Sampling(), 1), SeededNoise(0), asked=asked), 200)


def drafted(drafter: FactDrafter, asked: str, said: str = "") -> str:
    return TOKENIZER.decode(propose(drafter, asked, said).ids)


@pytest.mark.parametrize(
    ("question", "fact"),
    [
        ("What time do you open on Monday?", FACTS[0]),
        ("Where is somewhere to park?", FACTS[1]),
        ("How much is a cleaning?", FACTS[2]),
        ("What happens if I have to cancel?", FACTS[4]),
        ("What is your favourite colour?", ""),
    ],
)
def test_the_fact_that_shares_telling_words_is_drafted_before_the_first_token(
    question: str, fact: str
) -> None:
    assert drafted(fact_drafter(), question) == fact


def test_the_more_words_tell_the_more_speaks_for_the_guess() -> None:
    weak, strong = (
        propose(fact_drafter(), question) for question in ("Open?", "Are you open on Friday at eight?")
    )
    assert weak.evidence < strong.evidence
    assert weak.confidence < strong.confidence


def test_it_goes_on_from_wherever_in_the_fact_the_reply_is() -> None:
    question = "Can I cancel appointments?"
    assert drafted(fact_drafter(), question, "You can cancel up to") == " a day before."
    assert drafted(fact_drafter(), question, "Appointments CAN be") == " cancelled up to a day before."
    assert drafted(fact_drafter(), question, "Nobody knows.") == ""


def test_a_fact_may_begin_behind_a_word_of_agreement() -> None:
    drafter = fact_drafter()
    assert drafted(drafter, "Is there parking?", "Yes") == ", there is free parking behind the building."
    assert drafted(drafter, "Is there parking?", "Yes,") == " there is free parking behind the building."


def test_the_next_question_of_the_kind_is_opened_like_the_last() -> None:
    drafter = fact_drafter()
    propose(drafter, "Is there parking?")
    drafter.observe(TOKENIZER.encode("Yes, there is free parking behind the building."))
    assert drafted(drafter, "Is a cleaning possible?") == "Yes, a cleaning costs ninety dollars."
    assert drafted(drafter, "What does a cleaning cost?") == "A cleaning costs ninety dollars."


def test_a_question_that_can_be_said_yes_to_is_taken_to_be_until_an_answer_opens_otherwise() -> None:
    drafter = fact_drafter()
    assert drafted(drafter, "Is there parking?") == "Yes, there is free parking behind the building."
    assert drafted(drafter, "Can I park a bus?") == "Yes, you can park a bus"
    propose(drafter, "Do you do cleaning?")
    drafter.observe(TOKENIZER.encode("Sure, a cleaning costs ninety dollars."))
    assert drafted(drafter, "Is there parking?") == "Sure, there is free parking behind the building."


def test_a_no_is_followed_by_the_fact_if_there_is_one() -> None:
    drafter = fact_drafter()
    assert drafted(drafter, "Can I come on Sunday?") == "Yes, you can come on Sunday"
    assert drafted(drafter, "Can I come on Sunday?", "No") == ", we are closed on Sunday."
    assert drafted(drafter, "Can I buy a stamp?", "No,") == " you cannot buy a stamp"


def test_what_stands_before_a_facts_subject_is_drafted_behind_it() -> None:
    assert drafted(fact_drafter(), "What day is closed, Sunday?").endswith("We are closed on Sunday.")


def test_what_the_caller_asks_to_have_repeated_is_drafted_in_the_style_of_the_last_time() -> None:
    drafter = fact_drafter()
    first, second = (
        "I live at two Elm Road. Please repeat that.",
        "My code is four four one. Please repeat it.",
    )
    assert drafted(drafter, first) == "I live at two Elm Road."
    drafter.observe(TOKENIZER.encode("You live at two Elm Road."))
    assert drafted(drafter, second) == "Your code is four four one."
    drafter.observe(TOKENIZER.encode("Your code is 441."))
    assert drafted(drafter, second) == "Your code is 441."
    assert drafted(drafter, "Read this back: we moved out.") == "You moved out."


def test_the_callers_own_words_are_found_inside_a_form() -> None:
    asked = "I am Eleanor Whitcombe, my number is five five five, two three four. Fill in the form."
    assert drafted(fact_drafter(), asked, '{"name": "Eleanor').startswith(" Whitcombe, my number")
    assert drafted(fact_drafter(), asked, '{"phone": "55').startswith("5-234")


def test_the_oldest_facts_are_forgotten() -> None:
    drafter = fact_drafter()
    for i in range(MOST_FACTS):
        drafter.learn(TOKENIZER.encode(f"Room {i} is number {i}."))
    assert drafted(drafter, "Where is somewhere to park?") == ""


def test_digits_are_grouped_as_they_were_said() -> None:
    assert in_digits("call five five five, oh one two, please") == "call 555-012, please"
    assert in_digits("order 4 4 1 0, forty-two times") == "order 4410, forty-two times"
    assert in_digits("One of us") == "One of us"


def test_the_first_person_becomes_the_second() -> None:
    assert turned("My name is Ann and I'm at my desk. I am late.") == (
        "Your name is Ann and you're at your desk. You are late."
    )
    assert turned("Amy mines") == "Amy mines"


@pytest.mark.parametrize(
    ("question", "yes", "no"),
    [
        ("Can I pay by card?", "you can pay by card", "you cannot pay by card"),
        ("Do you have vans?", "we have vans", "we do not have vans"),
        ("Is the shop near my house?", "the shop is near your house", "the shop is not near your house"),
        ("Am I late?", "you are late", "you are not late"),
        ("Where is it?", "", ""),
        ("Can I?", "", ""),
    ],
)
def test_a_question_is_answered_in_its_own_words(question: str, yes: str, no: str) -> None:
    assert (agreed(question), denied(question)) == (yes, no)


def test_a_sentence_in_plain_order() -> None:
    assert in_plain_order("For a fee, you may bring a dog.") == "You may bring a dog for a fee."
    assert in_plain_order("In an emergency, call one.") == "In an emergency, call one."
    assert in_plain_order("We are open.") == "We are open."


def test_where_a_reply_is_in_a_text() -> None:
    text = "Ann, my mail is ann@x.org, my number is one"
    assert where(text, "Sure, your MAIL is") == (text.index(" ann@"), 7)
    assert where(text, "and my") == (text.index(" mail"), 2)
    assert where(text, "and my", since=20) == (text.index(" number"), 2)
    assert where(text, "nothing of it") == (0, 0)
    assert where(text, "m") == (0, 0), "one letter has to be a whole word"


def test_a_question_too_long_to_be_answered_by_its_own_words_is_not_taken_apart() -> None:
    """Runs of white space in a text that a client typed took minutes."""
    assert agreed(f"Can I come {'very ' * 50}late?")
    assert agreed(f"Can I come {'very ' * 100}late?") == ""
