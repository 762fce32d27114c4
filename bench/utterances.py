"""What callers say, as audio with its words: recordings of people where installed, and spoken by voices."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np
import soundfile

from bench.questions import RATE, caller_voice, speak
from pipeline.audio import Audio

RECORDINGS = Path("/usr/share/pocketsphinx/test/data")
INSTALL = "recordings of people are left out: apt-get install pocketsphinx-testdata"

VOICE_DB = 45.0  # a synthetic voice's silence under its loudest
ROOM_DB = 26.0  # the reader's, in the noisiest of the recordings

# A bar is where the sentence could have ended: nobody can tell a pause there from the end of a turn.
SENTENCES = (
    "What time do you open | on Saturday?",
    "I'd like to book an appointment | for next Tuesday | afternoon, | if you have anything left.",
    "My phone number is five five five, two one seven, nine four three zero.",
    "Could you tell me whether you accept my insurance, | or do I have to pay | in advance?",
    "I have a terrible toothache | and I need to see someone | today.",
    "Monday, | no, | wait, | Tuesday | at three would be better.",
    "How long does a check-up usually take | when it is the first visit?",
    "My name is Margaret | Thompson | and I was there | last week | with my daughter.",
    "I need to change the time | of my appointment | from ten to half past eleven.",
    "My daughter is six | years old | and she has never been to a dentist.",
    "Yes, | please.",
    "No, | thank you, | that's all.",
    "Hello, | I am calling about the invoice | that you sent me | yesterday.",
    "How do I get there | by bus | from the central station, | and where can I wait?",
    "I moved here | in March | and I am looking for a new dentist | near the library.",
    "Is it possible to come | a little later, | because my train does not arrive | until nine?",
    "I'm calling because I chipped a tooth | on Friday | and it's getting worse.",
    "Um, I'd like to, uh, cancel my appointment, | please.",
    "Could I speak to the manager, | please?",
    "We are four people, | and one of us needs a high chair.",
    "Yeah, | that works | for me.",
    "Actually, could you make it | Wednesday | instead | of Thursday?",
    "It's Anna dot Smith at example dot com.",
    "The order number is four four seven, one nine, two six.",
    "I was wondering if you had anything earlier | in the morning | on Thursday.",
    "So my husband usually takes the car | and I would need to come | by train | that day.",
    "Does the doctor also treat children | under three?",
    "I left my umbrella in the waiting room | yesterday evening, | it's blue | with a wooden handle.",
    "If it rains on Saturday, could we move the party | inside?",
    "The first one was fine | but the second one arrived | broken.",
    "Okay, | thanks, | bye.",
    "Well, it depends | on how much it costs | and whether you deliver | to the suburbs.",
    "Sorry, | could you say that again?",
    "Is there a discount | for students | or for people over sixty five?",
    "I paid the bill | two weeks ago | but I got a reminder | this morning.",
    "My flight lands | at ten past six | so I can be there | around seven thirty.",
    "Can you tell me which bus stops | in front of your building?",
    "Tomorrow | at nine | is fine.",
    "A table for two | near the window, | if possible.",
    "I don't remember my customer number, | but my last name is Peterson | with an e.",
    "How much would it be | for the whole family?",
    "What I need is the address of the pharmacy | that is open | at night.",
    "Hi, | this is Robert, | I have a question | about the bill.",
    "Do you think that he could call me back | before noon?",
)

# Never used to choose a setting: what a policy does with them is what it does with new sentences.
UNSEEN_SENTENCES = (
    "Can I bring my dog | when I come | on Wednesday?",
    "I'd rather speak to a person | about this, | if that's okay.",
    "The delivery was supposed to come | this morning | but nobody rang the bell.",
    "How old does my son have to be | before he can join | the swimming class?",
    "Yes, | I'd like that.",
    "Let's say Thursday, | or even better, Friday | in the afternoon.",
    "We moved | to a new house | in April, so our address has changed.",
    "Uh, could you, um, tell me where I can leave the keys?",
    "My account number is nine two, four eight, seven one, three.",
    "There is a strange noise | whenever I turn on the heating | in the bathroom.",
    "Who do I call | if the alarm goes off | at night?",
    "I have been waiting | for two weeks | and still haven't heard anything | from you.",
    "Would it be cheaper | to repair it | or should I buy a new one?",
    "No, | the blue one, | please.",
)

# Where the sentences that are read could have ended: after which of their words.
READ_ENDS = {
    "sense_and_sensibility_01_austen_64kb-0870": frozenset({9, 14, 15, 20}),
    "sense_and_sensibility_01_austen_64kb-0920": frozenset({8}),
    "sense_and_sensibility_01_austen_64kb-0930": frozenset({7}),
}


@dataclass(frozen=True, slots=True)
class Spoken:
    """`audio`: float32 mono, 16 kHz, cut to the voice: its first and last samples are those of the speech."""

    speaker: str
    text: str
    audio: Audio
    room_db: float = VOICE_DB
    """How far what is no voice lies under its loudest."""
    possible_ends: frozenset[int] = frozenset()
    """The numbers of words after which the sentence could have ended."""


def recorded() -> list[Spoken]:
    """Sentences read by a person (LibriVox, in Debian's pocketsphinx-testdata); empty where not installed."""
    folder = RECORDINGS / "librivox"
    if not folder.is_dir():
        return []
    lines = re.findall(r"<s> (.*?) </s> \((.*?)\)", (folder / "transcription").read_text())
    found = []
    for text, name in lines:
        audio, _ = soundfile.read(folder / f"{name}.wav", dtype="float32")
        ends = READ_ENDS.get(name, frozenset())
        found.append(Spoken("person", text, voiced(audio, ROOM_DB), ROOM_DB, ends))
    return found


def spoken(speaker: str, sentences: tuple[str, ...] = SENTENCES) -> list[Spoken]:
    """The sentences in a caller's voice."""
    voice = caller_voice(speaker)
    found = []
    for sentence in sentences:
        text = sentence.replace(" |", "")
        ends = [len(part.split()) for part in accumulate(sentence.split("|"))]
        audio = voiced(speak(voice, text), VOICE_DB)
        found.append(Spoken(speaker, text, audio, VOICE_DB, frozenset(ends)))
    return found


def voiced(audio: Audio, room_db: float) -> Audio:
    """`audio` without what lies so far under its loudest 5 ms at either end."""
    levels = np.sqrt(np.convolve(np.square(audio), np.ones(80) / 80, mode="same"))
    loud = np.flatnonzero(levels > levels.max() * 10 ** (-room_db / 20))
    return audio[loud[0] : loud[-1] + 1]


def silence(seconds: float) -> Audio:
    return np.zeros(round(seconds * RATE), np.float32)
