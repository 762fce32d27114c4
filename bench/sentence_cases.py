"""Texts with their sentence boundaries marked, by family: the table that tests and benchmark share.

``|`` stands where a sentence ends, behind its white space. Families follow what segmenters are usually asked
(initials, abbreviations, quotes, lists, ellipses) and what a text still being written adds (prices, versions,
paths).
"""

import itertools
from typing import NamedTuple


class Case(NamedTuple):
    """One text and where its sentences end."""

    family: str
    text: str
    ends: tuple[int, ...]
    """Offsets of the first character of every sentence but the first."""

    @property
    def sentences(self) -> list[str]:
        """The sentences, each with the white space behind it."""
        edges = (0, *self.ends, len(self.text))
        return [self.text[a:b] for a, b in itertools.pairwise(edges)]


_TABLE = {
    "plain": (
        "Thanks for calling. |How can I help you today?",
        "Of course! |Let me look that up. |One moment please.",
        "Is that right? |Yes. |Good.",
        "We open at nine. |you can come any time. |see you then.",
        "I found two orders. |15 items are on their way. |3 were returned.",
        "The line was cut.  |Please call again.",
        "iPhones are in stock. |iPads are not.",
    ),
    "initials": (
        "Please ask for Maria T. Lopez at the desk. |She will help you.",
        "The author is J. K. Allen. |Her book came out in May.",
        "J.R.R. Tolkien wrote letters. |Many survive.",
        "You and I. |We agreed.",
        "Was it Robert I. Crane who called? |No, it was Ann.",
        "It came from E. Hartley by post.",
    ),
    "titles": (
        "Dr. Smith paid $3.50 at 10 a.m.",
        "Mr. and Mrs. Hall are here. |Shall I let them in?",
        "Prof. Adams met Gen. Ortiz and Sen. Blake. |They talked.",
        "Is Ms. Wong in? |Capt. Reed asked for her.",
        "St. Mary's is near Mt. Hood. |Ft. Hill is far.",
        "This is Martin Luther King Jr.'s speech. |Listen.",
    ),
    "companies": (
        "He works for Baker & Co. in Leeds. |She does not.",
        "The deal is with Stone Bros. |It was signed today.",
        "Call Acme Inc. before noon. |They close early.",
        "Ask Reyes Ltd. |They know.",
    ),
    "abbreviations": (
        "Bring pens, paper, etc. |We start at ten.",
        "Use a soft cloth, e.g. cotton, i.e. nothing rough. |Then dry it.",
        "It is Spain vs. Italy tonight. |Kick-off is at eight.",
        "It weighs approx. two pounds. |Shipping is free.",
        "See p. 12 and fig. 3. |The rest is optional.",
        "Room No. 7 is free. |No. |That one is taken.",
        "The dept. of records is closed. |Try Monday.",
        "Write to P.O. Box 55. |We check it daily.",
        "He has a Ph.D. in physics. |She has an M.D. |Both teach.",
        "Smith et al. showed it. |Others agree.",
        "It is due in Jan. |The next is due in Feb. 2026.",
    ),
    "countries": (
        "She lives in the U.S. |It is far away.",
        "He joined the U.S. Navy in May. |He liked it.",
        "They moved to the U.K. last year. |We miss them.",
        "That was made in the U.S.A. |How old is it?",
        "The E.U. Parliament voted. |The law passed.",
    ),
    "clock": (
        "We open at 9 a.m. |The phones open at 8 a.m. as well.",
        "The train leaves at 5 p.m. on weekdays. |Be there early.",
        "Come at 10 a.m. Eastern, please. |We will wait.",
        "Your visit is at 3:30 p.m. |Is that fine?",
        "It starts at 8 P.M. sharp. |Doors open at 7.",
    ),
    "streets": (
        "I live at 12 Main St. Apt 4. |The bell is broken.",
        "The shop is on Elm St. |It closes at six.",
        "Turn left on 5th Ave. and stop. |You are there.",
    ),
    "money": (
        "It costs $3.50 a month. |You can cancel any time.",
        "The total is $29. |Shall I send it?",
        "We raised $5.2M in 2019. |That was enough.",
        "It fell by 3.5%. |It rose by 0.25% later.",
        "That is €4,50. |The rest is free.",
        "The balance is £1,204.10. |It is due on Friday.",
    ),
    "numbers": (
        "Pi is about 3.14159. |It never ends.",
        "Your number is 1026.253.553. |Keep it safe.",
        "Look for N°. 14 on the door. |Ring twice.",
        "Version 2.0.1 fixes it. |Version 2.1. |Both work.",
        "The server is 10.0.0.12. |Ping it.",
        "The score was 3.5 to 2.0. |We won.",
    ),
    "dates": (
        "She was born on Jan. 5, 1980. |She is an only child.",
        "Delivery is on 12.05.2026. |Be at home.",
        "It closed on Sept. 30. |It opens again in March.",
        "Your next visit is Tue. 4 June at noon. |See you.",
    ),
    "addresses": (
        "Write to jane.doe@mail.example.com. |She answers fast.",
        "Go to https://example.com/a.b?c=d!e. |Then log in.",
        "Visit www.example.co.uk today. |It is free.",
        "Open /etc/app.conf.d/main.yaml. |Change one line.",
        "Run setup.exe. |Then restart.",
        "Try node.js or asp.net. |Both work.",
        "Mail a.b.c@example.org? |No.",
    ),
    "quotes": (
        'She said, "It is here. Take it." |Then she left.',
        '"Are you sure?" he asked. |I was.',
        "'Stop. Now.' he said. |We stopped.",
        '"Wait!" |The door shut.',
        "“Is it open? Yes.” |Good.",
        "«On y va. Vite.» |Fine.",
        "Tell 'em. |Then go.",
        "It's the dogs' yard. |Nobody's there.",
        "The 5'10\" door is low. |Mind your head.",
        'He wrote "ok." and left. |So did I.',
        '"I know," said Dr. Hall. |"Come in."',
    ),
    "brackets": (
        "The plan (see page 4. It is short.) costs more. |Think about it.",
        "(It was late. We were tired.) |So we slept.",
        "He smiled (he rarely does). |Then he went.",
        "It works [as shown. Mostly] now. |Try it.",
        "It was done (and paid for.) |That is all.",
    ),
    "double marks": (
        "Really?! |I did not know.",
        "Stop!! |Look both ways.",
        "What?? |Say that again.",
        "No!!! |Never.",
        "Is it?? |Yes or no?",
    ),
    "names with marks": (
        "She works at Yahoo! in support. |He works there too.",
        "We watch Jeopardy! every night. |It is fun.",
    ),
    "ellipses": (
        "Well... |Let me think.",
        "It is... maybe later. |Not now.",
        "So … fine. |Go on.",
        "I thought . . . I did not know. |Sorry.",
        "He left in a hurry. . . . |The door stood open.",
        "She never said why.... |We did not ask.",
    ),
    "lists": (
        "1. Open the box.\n|2. Take out the cable.\n|3. Plug it in.",
        "Do this:\n|- Switch it off\n|- Wait a minute\n|- Switch it on",
        "* apples\n|* pears\n|* plums",
        "a. red\n|b. blue\n|c. green",
        "Two steps: 1. Open it. |2. Close it.",
        "1.) Press the button. |2.) Hold it.",
        "• First line\n|• Second line",
        "# Prices\n|The small one is cheap.",
    ),
    "lines": (
        "Hello there\n\n|How are you?",
        "This line is\nwrapped in the middle. |This is not.",
        "It is done.\n|Next.",
        "Yes.\n\n|No.\n\n|Maybe.",
    ),
    "markup": (
        "**Note. Read this.** |Then go on.",
        "Run `pip install x. y` first. |Then start.",
        "See [the docs. All of them](https://example.com/a.b). |They help.",
        '<break time="1.05 s. x"/> Hello. |Bye.',
        "<spell>foo.bar@example.ai</spell> is the address. |Write there.",
        "Here it is:\n|```\na = 1. B\n\nc. D\n```\n|Try it.",
        "It is *very. Very* good. |Buy it.",
    ),
    "no space": (
        "That is all.|Thank you. |Bye.",
        "Great!|Let us go.",
        "Why?|Because.",
    ),
    "codes": (
        "Your code is A B 1 2 C. |Is that right?",
        "Take plan B. |It is cheaper.",
        "Vitamin C. |It is good for you.",
        "Gate 4B. |Boarding is at noon.",
        "You can choose A, B, or C. |Which one?",
        "The answer is B. |Well done.",
    ),
    "other scripts": (
        "今天天气很好。|我们走吧！|好吗？|好",
        "「もう寝る。」|彼は言った。|おわり",
        "आप कैसे हैं? |मैं ठीक हूँ। |धन्यवाद।",
        "¿Qué tal? |¡Muy bien! |Gracias.",
        "Привет. |Как дела?",
        "كيف حالك؟ |أنا بخير.",
    ),
    "emoji": (
        "Great!😊 |See you soon.",
        "Done. |👍 Bye.",
    ),
}


def cases() -> list[Case]:
    """Every case of the table."""
    made = []
    for family, marked_texts in _TABLE.items():
        for marked in marked_texts:
            pieces = marked.split("|")
            ends, at = [], 0
            for piece in pieces[:-1]:
                at += len(piece)
                ends.append(at)
            made.append(Case(family, "".join(pieces), tuple(ends)))
    return made
