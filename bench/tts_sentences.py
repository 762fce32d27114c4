"""Two hundred sentences an agent says: plain ones, and numbers, money, dates, times, codes and addresses."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

PLAIN = (
    "We are open from Monday to Friday.",
    "You can park behind the building for free.",
    "Please bring your passport and the letter.",
    "I am sorry, but we do not take walk-ins.",
    "Appointments can be cancelled free of charge.",
    "Would you like me to take a message?",
    "The nearest station is five minutes away on foot.",
    "Your order has been sent and should arrive tomorrow.",
    "Let me check that for you.",
    "Is there anything else that I can help you with?",
    "Our doctor is away this week, but her colleague can see you.",
    "Please hold the line while I find your booking.",
    "The waiting room is on the second floor.",
    "Children under the age of five travel for free.",
    "You will get a message when the repair is done.",
    "We speak English, French and German.",
    "Thank you for calling, and have a nice day.",
    "The shop is closed on public holidays.",
    "I can offer you a table by the window.",
    "Breakfast is included in the price of the room.",
    "Could you spell your last name for me, please?",
    "The lift is out of order, so please take the stairs.",
    "Your car will be ready this afternoon.",
    "We can change the delivery address if you like.",
    "The course starts in September and ends in June.",
    "I have found two free places for you.",
    "Which day of the week would suit you best?",
    "You do not need to bring anything else.",
    "The engineer will call you before he arrives.",
    "A deposit is needed to keep the room.",
    "Dogs are welcome in the garden.",
    "Your table will be kept for a quarter of an hour.",
    "The manager will ring you back this evening.",
    "It takes about half an hour by bus.",
    "We have moved to the other side of the street.",
    "Every seat has its own screen and a reading lamp.",
    "The pool is heated all year round.",
    "You can pay by card or in cash.",
    "The museum is quiet in the morning.",
    "I will put you through to the sales team.",
)
MONTHS = ("January", "March", "May", "June", "August", "October", "November", "December")
PEOPLE = ("anna", "peter", "office", "support", "booking", "hello", "sales")
PLACES = ("example.com", "hotel.org", "garage.net", "clinic.com")
LETTERS = "ABDFHKLMRTXZ"


@dataclass(frozen=True, slots=True)
class Case:
    kind: str
    text: str


def cases(count: int = 200) -> list[Case]:
    """The first `count` of the two hundred, the kinds taking turns; always the same ones."""
    kinds = (_plain(), _numbers(), _money(), _dates(), _times(), _codes(), _addresses())
    found: list[Case] = []
    while len(found) < count:
        found += [next(kind) for kind in kinds]
    return found[:count]


def _plain() -> Iterator[Case]:
    yield from (Case("plain", text) for text in PLAIN)


def _numbers() -> Iterator[Case]:
    rng = random.Random(1)
    while True:
        yield Case("number", f"We have {rng.randint(2, 900)} rooms on {rng.randint(2, 40)} floors.")
        yield Case("number", f"The distance is {rng.randint(1, 90)}.{rng.randint(1, 9)} kilometers.")
        yield Case("number", f"About {rng.randint(11, 99)}% of our guests come back.")
        yield Case("number", f"You are caller number {rng.randint(2, 30)} in the line.")
        yield Case("number", f"The hall seats {rng.randint(1, 9)},{rng.randint(100, 999)} people.")


def _money() -> Iterator[Case]:
    rng = random.Random(2)
    while True:
        yield Case("money", f"A cleaning costs ${rng.randint(20, 190)}.")
        yield Case("money", f"That comes to ${rng.randint(2, 90)}.{rng.randint(10, 99)} in total.")
        yield Case("money", f"The deposit is £{rng.randint(2, 40) * 10} for a week.")
        yield Case("money", f"A day ticket is €{rng.randint(5, 60)} for adults.")


def _dates() -> Iterator[Case]:
    rng = random.Random(3)
    while True:
        yield Case("date", f"Your appointment is on {rng.choice(MONTHS)} {rng.randint(1, 28)}.")
        year = rng.randint(2011, 2029)
        yield Case("date", f"The offer ends on {rng.choice(MONTHS)} {rng.randint(1, 28)}, {year}.")
        yield Case("date", f"We have been here since {rng.randint(1950, 1999)}.")


def _times() -> Iterator[Case]:
    rng = random.Random(4)
    while True:
        yield Case("time", f"The next train leaves at {rng.randint(1, 12)}:{rng.randint(10, 59)}.")
        yield Case(
            "time", f"We open at {rng.randint(6, 10)} a.m. and close at {rng.randint(4, 9)} p.m. on Sunday."
        )
        yield Case("time", f"Breakfast is from {rng.randint(6, 7)}:30 to {rng.randint(9, 11)}:30.")


def _codes() -> Iterator[Case]:
    rng = random.Random(5)
    while True:
        letters = " ".join(rng.choice(LETTERS) for _ in range(2))
        digits = " ".join(str(rng.randint(1, 9)) for _ in range(3))
        yield Case("code", f"Your booking code is {letters} {digits}.")
        number = f"555-{rng.randint(100, 999)}-{rng.randint(1000, 9999)}"
        yield Case("code", f"You can reach us at {number}.")
        yield Case("code", f"Please go to gate {rng.choice('ABCD')}{rng.randint(2, 40)}.")


def _addresses() -> Iterator[Case]:
    rng = random.Random(6)
    while True:
        yield Case("address", f"Please write to {rng.choice(PEOPLE)}@{rng.choice(PLACES)} today.")
        yield Case("address", f"You can book on www.{rng.choice(PLACES)} at any time.")
