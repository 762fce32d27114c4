"""What callers ask in the benchmark of the language stage, by how much of the answer is in the prompt."""

from __future__ import annotations

from functools import cache

from llm.prompt import Message
from pipeline.agent import Agent, choose_agent

QUESTIONS = (
    "What time do you open on Monday?",
    "Where are you located?",
    "Is there somewhere to park?",
    "How much does a cleaning cost?",
    "Can I just walk in?",
    "What happens if I have to cancel?",
    "Do you take credit cards?",
    "Who is the dentist?",
    "Are you taking new patients?",
    "Do you accept my dental insurance?",
)
"""Natural questions to the receptionist, asked as one call."""

CHAT = (
    "I am a bit nervous about my first visit. What should I expect?",
    "My tooth hurts when I drink something cold. What could that be?",
    "Can you tell me a short joke while I wait?",
    "How often should a child see a dentist?",
    "What is the difference between a crown and a filling?",
    "I moved here last week. What do you like about the town?",
    "Is it normal that my gums bleed a little?",
    "Explain in two sentences why flossing matters.",
)
"""Open questions: hardly anything of the answer has been said before."""

_ORDERS = ("B R 7 4 2 9 K", "4 4 1 0 8 2 7 6", "X 9 dash 3 0 5 5 1", "Q Q 1 8 6 2 dash 7 7")
_ADDRESSES = (
    "forty-two Willow Creek Lane, apartment seven, Springfield",
    "one hundred and eight North Harbour Street, Portland, Oregon",
    "Rosalind Franklin Avenue fifteen, second floor, door on the left",
    "three Old Mill Road, the yellow house behind the church",
)
_CONTACTS = (
    (
        "Eleanor Whitcombe",
        "eleanor.whitcombe@harbourmail.com",
        "five five five, two three four, nine one one",
    ),
    (
        "Jonathan Abernathy",
        "j.abernathy@northernlights.org",
        "five five five, seven seven one, zero four two",
    ),
    ("Marguerite Delacroix", "marguerite@delacroix.com", "five five five, eight one six, three nine zero"),
    ("Oluwaseun Adeyemi", "seun.adeyemi@lagoonworks.net", "five five five, four zero two, six one five"),
)
_JSON = "Answer only with JSON that has the keys"
_POLICIES = (
    "what you say about opening hours on weekdays, Saturday and Sunday",
    "every price that you have",
    "everything about cancelling an appointment",
    "how patients can pay, and what you say about insurance",
)

ECHO: dict[str, tuple[str, ...]] = {
    "read_back": (
        *(f"My order number is {order}. Please repeat my order number." for order in _ORDERS),
        *(f"I live at {address}. Please read my address back to me word for word." for address in _ADDRESSES),
        *(
            f"My name is {name}, my e-mail is {mail}, my number is {number}. Please repeat all three."
            for name, mail, number in _CONTACTS
        ),
        "My message is: the delivery has to come through the back gate while the front door is being "
        "painted. Please repeat my message.",
        "Mister Okafor called about the second invoice and will ring again on Thursday. "
        "Please repeat that word for word.",
        "The blue umbrella in the waiting room is my daughter's and we pick it up tomorrow. "
        "Please repeat that word for word.",
        "The new tablets make me sleepy in the afternoon. Please repeat what I just said.",
    ),
    "policy": (
        *(f"Please tell me word for word {policy}." for policy in _POLICIES),
        *(f"Read out the facts you know, only {policy}." for policy in _POLICIES),
    ),
    "tool_arguments": (
        *(
            f"My name is {name}, my e-mail is {mail}, my number is {number}. "
            f'{_JSON} "name", "email" and "phone", values exactly as I said them.'
            for name, mail, number in _CONTACTS
        ),
        *(
            f"Send it to {address}. "
            f'{_JSON} "action" (it is "send_parcel") and "address", exactly as I said it.'
            for address in _ADDRESSES
        ),
        *(
            f'The order is {order}. {_JSON} "action" (it is "look_up_order") and "order".'
            for order in _ORDERS
        ),
        *(
            f"Cancel order {order}, please, and send the money to {name}. "
            f'{_JSON} "action" (it is "cancel_order"), "order" and "payee".'
            for order, (name, _, _) in zip(_ORDERS, _CONTACTS, strict=True)
        ),
    ),
}
"""Prompts whose answer repeats what was just said or what the persona says."""


def persona() -> Message:
    """The receptionist that ships as the default."""
    return Message("system", _receptionist().system_prompt())


def facts() -> str:
    """What she knows, one fact a line: what a call teaches its drafters."""
    return "\n".join(_receptionist().facts)


@cache
def _receptionist() -> Agent:
    return choose_agent("receptionist")
