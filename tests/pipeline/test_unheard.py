"""An answer is judged by its sound: what nobody can hear is no answer, and thoughts are none."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import pytest

from fixtures.fakes import HELLO, Parrot, Scene, SlowReader, agent, hash_of, question
from fixtures.virtual_time import run
from llm.language_model import Delta, Finished, Message, ReplyEvent, Retracted, Sampling, Sentence, Thinking
from llm.stats import ReplyStats
from pipeline.agent import SamplingChoice, Silence
from pipeline.events import CallEnded, CallFailed, ReplyDone, TurnLogged
from pipeline.speaking.reply_sound import ReplySound
from tts.hibari import HibariVoice
from tts.voice import VoiceChunk

APOLOGY = "Sorry, please say that again."


class EnglishReader(SlowReader):
    """Says nothing of a text without Latin letters or digits, as real voices do."""

    def synthesise(self, text: str, *, cancelled: Callable[[], bool]) -> Iterator[VoiceChunk]:
        if any(c.isascii() and c.isalnum() for c in text):
            yield from super().synthesise(text, cancelled=cancelled)


@dataclass
class Scripted(Parrot):
    """Its replies, one after the other, the last again and again: events, then an end."""

    replies: list[list[ReplyEvent]] = field(default_factory=list)
    stats: ReplyStats = field(default_factory=ReplyStats)
    reason: Literal["eos", "length"] = "eos"

    def __post_init__(self) -> None:
        super().__init__()
        self.seeds: list[int] = []

    def reply(
        self,
        messages: Sequence[Message],
        sampling: Sampling,
        *,
        draft: Sequence[int] = (),
        cancelled: Callable[[], bool],
    ) -> Iterator[ReplyEvent]:
        self.prompts.append(list(messages))
        self.seeds.append(sampling.seed)
        events = self.replies[min(len(self.seeds), len(self.replies)) - 1]
        text = ""
        for event in events:
            text = "" if isinstance(event, Retracted) else text
            if isinstance(event, Delta):
                text += event.text
            yield event
        yield Finished(self.reason, tuple(map(hash_of, text.split())), text, self.stats)


def sentences(*texts: str) -> list[ReplyEvent]:
    return [event for i, text in enumerate(texts) for event in (Delta(text), Sentence(i, text))]


def scene_of(*replies: list[ReplyEvent], stats: ReplyStats | None = None, **of_agent: object) -> Scene:
    language = Scripted(replies=list(replies), stats=stats or ReplyStats())
    return question(
        language=language, voice=EnglishReader(), agent=agent(**{"apology": APOLOGY} | of_agent), seconds=14.0
    )


@pytest.mark.parametrize("text", ["", "...", "😊", "你好。", "\n\n"])
def test_an_answer_without_sound_is_a_failure_and_the_agent_apologises(
    text: str, caplog: pytest.LogCaptureFixture
) -> None:
    scene = scene_of(sentences(text) if text else [])
    with caplog.at_level(logging.WARNING):
        call = run(scene.play())
    assert scene.voice.said == [APOLOGY]
    (record,) = scene.records
    assert (record.status, record.heard_text, record.reply_text) == ("failed", "", text)
    assert scene.peer.of(TurnLogged)[0].record == record.as_dict()
    done, apology = scene.peer.of(ReplyDone)
    assert (done.status, done.heard) == ("failed", "")
    assert (apology.status, apology.heard) == ("completed", APOLOGY)
    assert [m.text for m in call.dialogue.messages()[1:]] == ["What time is it?", APOLOGY]
    assert len(scene.peer.of(CallFailed)) == 1
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert "nothing of the answer could be heard" in warnings[0]
    assert not text.strip() or text.strip() not in warnings[0]


def test_a_call_goes_on_however_often_an_answer_has_no_sound() -> None:
    scene = scene_of(sentences("..."))
    scene.speech = [(1.0, 2.0), (7.0, 8.0), (13.0, 14.0)]
    scene.words = [(text, at + begin) for begin in (0, 6, 12) for text, at in HELLO]
    scene.seconds = 18.0
    run(scene.play())
    assert [r.status for r in scene.records] == ["failed"] * 3
    assert scene.voice.said == [APOLOGY] * 3
    assert scene.peer.of(CallEnded)[0].reason == "hang_up"


@pytest.mark.parametrize(
    ("sampling", "verification", "seeds"),
    [
        (SamplingChoice(temperature=0.7, seed=5), "coupled", [5, 6]),
        (SamplingChoice(seed=5), "server", [5, 6]),
        (SamplingChoice(seed=5), "coupled", [5]),
    ],
    ids=["sampled", "a server's", "greedy"],
)
@pytest.mark.parametrize("speculate", [True, False])
def test_a_reply_that_may_be_another_is_made_once_more(
    sampling: SamplingChoice, verification: str, seeds: list[int], speculate: bool
) -> None:
    scene = scene_of(
        sentences("😊"),
        sentences("It is nine."),
        stats=ReplyStats(verification=verification),
        sampling=sampling,
    )
    scene.speculate = speculate
    run(scene.play())
    again = len(seeds) == 2
    assert isinstance(scene.language, Scripted)
    assert scene.language.seeds == seeds
    (record,) = scene.records
    assert record.status == ("completed" if again else "failed")
    assert record.heard_text == ("It is nine." if again else "")
    assert record.extra["made_again"] is again
    assert scene.voice.said == (["It is nine."] if again else [APOLOGY])


def test_it_is_made_again_once_and_not_where_the_length_cut_it() -> None:
    for reason, times in (("eos", 2), ("length", 1)):
        scene = scene_of(sentences("..."), sampling=SamplingChoice(temperature=1.0))
        assert isinstance(scene.language, Scripted)
        scene.language.reason = reason  # type: ignore[assignment]
        run(scene.play())
        assert len(scene.language.seeds) == times
        assert scene.records[0].status == "failed"


@pytest.mark.parametrize(
    ("texts", "heard"),
    [
        (("It is nine. ", "😊"), "It is nine."),
        (("It is nine. ", "你好。 ", "Bye."), "It is nine. Bye."),
        (("... ", "It is nine."), "It is nine."),
    ],
)
def test_only_sentences_with_sound_are_heard(texts: tuple[str, ...], heard: str) -> None:
    scene = scene_of(sentences(*texts))
    call = run(scene.play())
    (record,) = scene.records
    assert (record.status, record.heard_text, record.reply_text) == ("completed", heard, "".join(texts))
    last = call.dialogue.messages()[-1]
    assert (last.text, last.ids) == (heard, None), "the reply's ids say more than was heard"


@pytest.mark.parametrize("silent", ["", "  ", "...", "再见"])
def test_phrases_without_sound_end_and_nothing_loops(silent: str) -> None:
    scene = scene_of(
        [],
        apology=silent,
        greeting=silent,
        hold_phrase=silent,
        silence=Silence(after_seconds=4, text=silent, times=2, farewell=silent),
    )
    scene.seconds = 60.0
    run(scene.play())
    assert scene.voice.said == []
    assert scene.records[0].status == "failed"
    assert scene.peer.of(CallEnded)[0].reason == "silence"
    assert len(scene.peer.of(ReplyDone)) <= 6


# ---- thoughts


def thoughts(tokens: int) -> ReplyStats:
    return ReplyStats(thinking_tokens=tokens, thinking_seconds=1.25)


def test_the_time_of_thoughts_is_in_the_row_and_the_hold_phrase_covers_it() -> None:
    scene = scene_of(
        [Thinking()] * 20 + sentences("It is nine."), stats=thoughts(20), hold_phrase="One moment."
    )
    scene.stage_seconds = {"llm": 0.2}
    call = run(scene.play())
    (record,) = scene.records
    assert scene.voice.said == ["One moment.", "It is nine."]
    assert (record.status, record.heard_text) == ("completed", "It is nine.")
    assert (record.extra["thinking_tokens"], record.extra["thinking_ms"]) == (20, 1250.0)
    assert record.durations["ttft"] == pytest.approx(200, abs=1), "the first token is a thought's"
    assert record.durations["first_sentence"] > 3000
    assert call.dialogue.messages()[-1] == Message("assistant", "It is nine.")


def test_an_answer_without_thoughts_has_none_in_its_row_and_keeps_its_ids() -> None:
    scene = scene_of(sentences("It is nine."))
    call = run(scene.play())
    assert not {"thinking_tokens", "thinking_ms"} & scene.records[0].as_dict().keys()
    assert not {"thinking_tokens", "thinking_ms"} & scene.records[0].extra.keys()
    assert call.dialogue.messages()[-1].ids is not None


def test_a_reply_of_thoughts_alone_is_nothing_to_hear() -> None:
    scene = scene_of([Thinking()], stats=thoughts(120))
    run(scene.play())
    assert scene.records[0].status == "failed"
    assert scene.records[0].extra["thinking_tokens"] == 120
    assert scene.voice.said == [APOLOGY]


@pytest.mark.parametrize("speculate", [True, False])
def test_what_turns_out_to_be_a_thought_is_not_said(speculate: bool) -> None:
    scene = scene_of([*sentences("They ask. ", "I look."), Retracted(), *sentences("It is nine.")])
    scene.speculate = speculate
    scene.stage_seconds = {"llm": 0.005, "tts": 0.3}
    run(scene.play())
    (record,) = scene.records
    assert (record.status, record.heard_text, record.reply_text) == ("completed",) + ("It is nine.",) * 2
    assert scene.peer.audio_seconds() == pytest.approx(len("It is nine.") * 0.06, abs=0.01)


# ---- the sound


def test_a_sound_takes_back_what_was_not_read() -> None:
    sound = ReplySound(8_000)
    for sentence in HELLO:
        sound.begin_sentence(sentence[0])
        for chunk in SlowReader().synthesise(sentence[0], cancelled=lambda: False):
            sound.append(chunk)
    first = sound.sentences[1].start_sample
    whole = sound.read(0, sound.samples - 1).copy()
    assert not sound.withdraw(), "all of it was read"
    fresh = ReplySound(8_000)
    fresh.begin_sentence("One. ")
    fresh.append(VoiceChunk(whole[:first]))
    fresh.read(0, 10)
    fresh.begin_sentence("Two.")
    fresh.append(VoiceChunk(whole[first:]))
    assert fresh.withdraw()
    assert (fresh.text, fresh.samples) == ("One. ", first)
    assert (fresh.read(0, fresh.samples) == whole[:first]).all()


@pytest.mark.parametrize("text", ["", "...", "😊 😊", "```\nls -l\n```", "你好，世界。", "***", "<br/>"])
def test_the_embedded_voice_makes_no_sound_of_what_cannot_be_said(text: str) -> None:
    assert not list(HibariVoice().synthesise(text, cancelled=lambda: False))
