"""Other sentences an agent says, of the kinds of `bench.tts_sentences`, by which nothing was chosen.

Nothing may be chosen by them: no rule of speakable text, no pronunciation. They are never changed.
"""

from __future__ import annotations

from bench.tts_sentences import Case

_SENTENCES = {
    "plain": (
        "The bakery next door sells coffee as well.",
        "Please wait until somebody opens the gate.",
        "My colleague can show you the way upstairs.",
        "The heating was repaired this morning.",
        "You may leave the bag with the porter.",
        "Both lifts are working again.",
        "Nobody has handed in a wallet so far.",
        "The choir meets in the old town hall.",
    ),
    "number": (
        "The ferry carries 1,450 passengers.",
        "There are 63 steps to the tower.",
        "It weighs 7.4 kilograms.",
        "Roughly 38% of the seats are taken.",
        "She came 21st out of 300.",
        "You need 2 copies of the form.",
    ),
    "money": (
        "The repair comes to $286.40.",
        "A season ticket is £395.",
        "Delivery is €8.90 and the gift wrap €2.",
        "We can offer you $1,200 for it.",
        "The fine was $75.",
    ),
    "date": (
        "The gallery opens again on April 9.",
        "Your passport runs out on June 30, 2028.",
        "The bridge was finished in 1937.",
        "We are away from July 3 to July 17.",
    ),
    "time": (
        "The last tram goes at 11:48.",
        "Doors open at 7:15 p.m. and the show starts at 8 p.m.",
        "The kitchen is open from 5:30 to 10:15.",
        "Could you be here at 9 a.m. on Thursday?",
    ),
    "code": (
        "Your locker is C 1 9.",
        "Ring us at 555-204-7731.",
        "The train leaves from platform 14B.",
        "The reference is T 8 K 3.",
        "Take seat 23F by the window.",
    ),
    "address": (
        "Send the photos to claims@harbor.org please.",
        "The form is on www.townhall.net under permits.",
        "We are at 218 Mill Road.",
        "Write to maria.lopez@clinic.com for a copy.",
    ),
}


def unseen_cases() -> list[Case]:
    """All of them, by kind."""
    return [Case(kind, text) for kind, texts in _SENTENCES.items() for text in texts]
