"""Abbreviations of spoken service: none ends a sentence in its middle, and those that may still end one."""

import pytest

from llm.sentences import SentenceStream

_TEXTS = (
    # in the middle, before a small letter
    "Your appt. is at nine. |See you then.",
    "Take the rte. to the coast. |It is short.",
    "The mgr. is out. |She is back at two.",
    "Your addr. is on file. |Is it right?",
    "The pkg. is on its way. |It comes today.",
    "The pmt. is due. |You can pay by card.",
    "The mtg. is at ten. |Bring a pen.",
    "The sched. is full. |Try Monday.",
    "Our hdqrs. is closed. |Call tomorrow.",
    "The svc. is free. |We do it every year.",
    "The asst. is away. |I can help.",
    "The attn. line is first. |Then the street.",
    "The hosp. is near. |Take the bus.",
    "Her pt. is here. |He is early.",
    "The inv. is late. |We sent it twice.",
    "The assoc. meets today. |You may come.",
    "The qtr. is over. |We did well.",
    "The rm. is free. |It is on the left.",
    "The fwy. is closed. |Take the other road.",
    "The mfr. is closed. |The parts are late.",
    "Your med. list is here. |Is it right?",
    "Our std. rate is low. |It starts at ten dollars.",
    "The recd. date is on the slip. |It was Monday.",
    "The hgt. and wdth. are on the box. |It fits.",
    "Your acct. no. is on the card. |Do you see it?",
    "Your conf. no. is 1234. |Write it down.",
    "Your appts. are set. |See you then.",
    "Our cust. svc. is open. |Call us.",
    "Our cust. rep. will call. |Please wait.",
    "Your presc. is ready. |Come by.",
    "The pharm. is open. |Come by.",
    "The dlvy. is late. |Sorry.",
    "The mthly. fee is low. |It is five dollars.",
    "The subj. is open. |Ask him.",
    "Your msgs. are saved. |Listen now.",
    "Your appt. on Mon. Jan. 5 is set. |See you then.",
    "Acme Co. Ltd. is open. |Call them.",
    # titles and streets before a name, with a capital
    "Mgr. Hall is in. |Shall I ask?",
    "Atty. Reed called. |She will call again.",
    "Supv. Cole is away. |He is ill.",
    "Adm. Price and Cmdr. Fox called. |They agreed.",
    "Det. Shaw is here. |She has a question.",
    "Asst. Prof. Lee is in. |His door is open.",
    "Rte. 66 is open. |It is dry.",
    "Turn onto Bay Cres. and stop. |You are there.",
    "The Mill Fwy. is closed. |Take the other road.",
    "Go to the Oak Plz. and turn. |It is on the left.",
    # before a digit
    "Call ext. 12 today. |We are in.",
    "It is due Feb. 3 at noon. |Please pay.",
    "See sec. 4 for that. |It is short.",
    "Come to rm. 12 at noon. |Ring twice.",
    "Come Weds. 4 June at noon. |We are in.",
    "Look in vol. 2 of it. |It is there.",
    # behind them, where a sentence ends
    "See you at your appt. |We are on the left.",
    "You can ask the mgr. |He is in.",
    "That is our new addr. |Write it down.",
    "It is all in the pkg. |Open it.",
    "We sell pens, ink, etc. |Come and see.",
    "We close at 5 p.m. |Come before that.",
    "It weighs ten lbs. |It is light.",
    "It takes five min. |Wait here.",
    "It is ten ft. |That fits.",
    "Take it b.i.d. |Drink water.",
    "She is an R.N. |Her name is Ann.",
    "He lives in Calif. |She does not.",
    "We are on Elm St. |Come in.",
    "He works at Acme Inc. |She does, too.",
    "No. |That is the old one.",
    "It is the old no. |You need the new one.",
    "Come on Mon. |We are open.",
    "He works at Acme Co. |He likes it.",
    "Do it a.s.a.p. |We will wait.",
    # not abbreviations
    "It is dry. |you can go.",
    "They try. |we wait.",
    "The answer is no. |we are closed.",
    "The cat sat. |then it ran.",
    "I feel ill. |can you come?",
    "We saw the sun. |it was warm.",
    "They got wed. |then they left.",
    "It is a mess. |we will help.",
    "That is odd. |you can try again.",
    "Turn it off. |then wait.",
    "He adds. |she waits.",
    "Take the stairs. |they are on the left.",
    "It has depth. |you will see.",
    "Come in. |We are open.",
    "I sent it to TV. |They called.",
    "That is Mr. Ng. |He is new.",
)


def _split(text: str) -> list[str]:
    stream = SentenceStream()
    return [unit for character in text for unit in stream.push(character)] + stream.flush()


@pytest.mark.parametrize("marked", _TEXTS)
def test_an_abbreviation_ends_a_sentence_only_where_one_ends(marked: str) -> None:
    assert _split(marked.replace("|", "")) == marked.split("|")
