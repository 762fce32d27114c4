"""The sample clock: bounded lead, stutters, pauses, rewinding, and what has been heard. In virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest

from fixtures.virtual_time import run
from pipeline.audio import Audio
from pipeline.speaking.playout import Pacing, Playout
from pipeline.speaking.reply_sound import ReplySound, TimedSentence
from tts.voice import VoiceChunk, WordTiming

RATE = 8000


@dataclass
class Wire:
    """Keeps (time, position in ms, samples) of what was sent."""

    sent: list[tuple[float, float, int]] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)

    async def audio(self, samples: Audio, offset_ms: float) -> None:
        self.sent.append((asyncio.get_running_loop().time(), offset_ms, samples.size))

    async def sentence(self, sentence: TimedSentence) -> None:
        self.sentences.append(sentence.text)


def sound_of(*sentences: str, seconds_a_word: float = 0.25, complete: bool = True) -> ReplySound:
    sound = ReplySound(RATE)
    for text in sentences:
        sound.begin_sentence(text)
        position = 0
        for index, word in enumerate(text.split()):
            position = text.index(word, position)
            timing = WordTiming(
                position, position + len(word), index * seconds_a_word, (index + 1) * seconds_a_word
            )
            sound.append(VoiceChunk(np.ones(round(seconds_a_word * RATE), np.float32), (timing,)))
            position += len(word)
    if complete:
        sound.finish()
    return sound


def playing(
    sound: ReplySound, during: Callable[[Playout], list[tuple[float, Callable[[], None]]]]
) -> tuple[Playout, Wire]:
    """Play a sound; at given times do things to the playout."""
    wire = Wire()
    made: list[Playout] = []

    async def main() -> None:
        playout = Playout(sound, send_audio=wire.audio, begin_sentence=wire.sentence, pacing=Pacing(0.3))
        made.append(playout)
        task = asyncio.ensure_future(playout.run())
        for at, action in during(playout):
            await asyncio.sleep(at - asyncio.get_running_loop().time())
            action()
        await task

    run(main())
    return made[0], wire


def test_sending_is_never_further_ahead_than_the_lead() -> None:
    _, wire = playing(sound_of("one two three four five six seven eight"), lambda p: [])
    assert wire.sent[0][0] == 0
    for at, offset_ms, samples in wire.sent:
        ahead = (offset_ms + samples / RATE * 1000) / 1000 - at
        assert ahead <= 0.3 + 0.04 + 1e-9
        assert ahead > 0


def test_an_hour_has_no_drift() -> None:
    sound = ReplySound(RATE)
    sound.begin_sentence("x")
    for _ in range(360):
        sound.append(VoiceChunk(np.zeros(RATE * 10, np.float32)))
    sound.finish()
    _, wire = playing(sound, lambda p: [])
    at, offset_ms, _ = wire.sent[-1]
    assert offset_ms / 1000 - at == pytest.approx(0.3, abs=0.045)


def test_a_track_that_stops_growing_is_a_gap_and_not_a_jump() -> None:
    sound = sound_of("one two", complete=False)

    def go_on() -> None:
        sound.begin_sentence("three four")
        sound.append(VoiceChunk(np.ones(RATE, np.float32)))
        sound.finish()

    playout, wire = playing(sound, lambda p: [(2.0, go_on)])
    assert playout.underruns == 1
    assert [offset for _, offset, _ in wire.sent] == sorted(offset for _, offset, _ in wire.sent)
    assert next(at for at, offset, _ in wire.sent if offset >= 500) == 2.0


def test_heard_text_by_pacing_at_word_precision() -> None:
    sound = sound_of("one two three ", "four five.")
    heard: list[str] = []

    def look(playout: Playout) -> None:
        heard.append(sound.heard_text(playout.played_seconds()))

    playing(sound, lambda p: [(t, lambda: look(p)) for t in (0.1, 0.2, 0.45, 0.9, 1.0, 1.2)])
    assert heard == ["", "one", "one two", "one two three", "one two three four", "one two three four five."]


def test_a_pause_holds_the_position_and_the_sending() -> None:
    sound = sound_of("one two three four")
    positions: list[float] = []
    playout, wire = playing(
        sound,
        lambda p: [
            (0.4, p.pause),
            (2.4, lambda: positions.append(p.played_seconds())),
            (2.5, lambda: p.resume(rewind=False)),
        ],
    )
    assert positions == [pytest.approx(0.4)]
    assert not [at for at, _, _ in wire.sent if 0.4 < at < 2.5]
    offsets = [round(offset) for _, offset, _ in wire.sent]
    assert offsets == list(range(0, 1000, 40))
    assert playout.underruns == 0


def test_a_peer_that_drops_its_buffer_gets_it_again_from_the_heard_position() -> None:
    _, wire = playing(
        sound_of("one two three four"), lambda p: [(0.4, p.pause), (1.0, lambda: p.resume(rewind=True))]
    )
    again = next(offset for at, offset, _ in wire.sent if at >= 1.0)
    assert again == pytest.approx(400, abs=1)
    assert sum(samples for at, _, samples in wire.sent if at >= 1.0) == pytest.approx(0.6 * RATE, abs=2)


def test_a_rewind_after_everything_was_sent_sends_the_rest_again() -> None:
    _, wire = playing(sound_of("one two"), lambda p: [(0.3, p.pause), (1.0, lambda: p.resume(rewind=True))])
    assert sum(samples for at, _, samples in wire.sent if at >= 1.0) == pytest.approx(0.2 * RATE, abs=2)


def test_reports_of_the_peer_replace_the_estimate() -> None:
    heard: list[float] = []
    playing(
        sound_of("one two three four"),
        lambda p: [(0.5, lambda: p.report_played(0.2)), (0.6, lambda: heard.append(p.played_seconds()))],
    )
    assert heard == [pytest.approx(0.3)]


@pytest.mark.parametrize("rewind", [True, False])
def test_when_something_was_played_is_told_without_the_pauses_since(rewind: bool) -> None:
    began: list[float] = []

    def during(playout: Playout) -> list[tuple[float, Callable[[], None]]]:
        def ask(seconds: float, played: float) -> Callable[[], None]:
            return lambda: began.append(playout.played_at(seconds, played=played))

        return [
            (0.3, playout.pause),
            (0.5, ask(0.0, 0.3)),
            (1.3, lambda: playout.resume(rewind=rewind)),
            (1.5, ask(0.0, 0.5)),
            (1.5, ask(0.4, 0.5)),
        ]

    playing(sound_of("one two three four"), during)
    assert began == [pytest.approx(0.0), pytest.approx(0.0), pytest.approx(1.4)]


def test_when_something_was_played_is_told_without_the_time_at_which_there_was_nothing_to_play() -> None:
    sound = sound_of("one two", complete=False)
    began: list[float] = []

    def go_on() -> None:
        sound.begin_sentence("three four")
        sound.append(VoiceChunk(np.ones(RATE, np.float32)))
        sound.finish()

    playing(sound, lambda p: [(2.0, go_on), (2.1, lambda: began.append(p.played_at(0.0, played=0.6)))])
    assert began == [pytest.approx(0.0)]


def test_a_report_beyond_what_was_sent_is_not_believed() -> None:
    heard: list[float] = []
    playing(
        sound_of("one two three four"),
        lambda p: [(0.1, lambda: p.report_played(99.0)), (0.1, lambda: heard.append(p.played_seconds()))],
    )
    assert heard[0] <= 0.45


def test_stopping_ends_at_once_and_keeps_the_position() -> None:
    playout, wire = playing(sound_of("one two three four"), lambda p: [(0.4, p.stop)])
    assert playout.played_seconds() == pytest.approx(0.4)
    assert max(at for at, _, _ in wire.sent) <= 0.4


def test_a_filler_before_the_first_sentence_moves_its_words() -> None:
    sound = ReplySound(RATE)
    sound.begin_sentence("late words")
    sound.append_filler(np.zeros(RATE, np.float32))
    sound.append(VoiceChunk(np.ones(RATE, np.float32), (WordTiming(0, 4, 0.0, 0.5),)))
    assert sound.heard_text(1.1) == ""
    assert sound.heard_text(1.5) == "late"


def test_reading_across_chunks() -> None:
    sound = ReplySound(RATE)
    for value in range(5):
        sound.append_filler(np.full(10, value, np.float32))
    assert sound.read(8, 4).tolist() == [0, 0, 1, 1]
    assert sound.read(45, 100).tolist() == [4] * 5
    assert sound.read(50, 10).size == 0


def ramp(seconds: float) -> tuple[ReplySound, Audio]:
    """A sound of which every sample is another."""
    samples = np.arange(1, round(seconds * RATE) + 1, dtype=np.float32) / RATE
    sound = ReplySound(RATE)
    sound.begin_sentence("x")
    sound.append(VoiceChunk(samples))
    sound.finish()
    return sound, samples


@pytest.mark.parametrize("paused", [False, True])
def test_what_was_played_around_a_moment(paused: bool) -> None:
    sound, samples = ramp(2.0)
    found: list[Audio] = []

    def look(playout: Playout) -> None:
        for at, before, after in ((0.5, 0.1, 0.1), (0.3, 0.1, 0.0), (0.05, 0.1, 0.0), (0.5, 0.0, 1.0)):
            found.append(playout.played_around(at, before, after))

    def during(playout: Playout) -> list[tuple[float, Callable[[], None]]]:
        assert not playout.played_around(0.0, 0.1, 0.1).any(), "nothing has been sent"
        before = [(0.5, playout.pause)] if paused else []
        after = [(0.6, lambda: playout.resume(rewind=False))] if paused else []
        return [*before, (0.5, lambda: look(playout)), *after]

    playing(sound, during)
    now, earlier, at_the_beginning, beyond = found
    assert np.array_equal(now, samples[round(0.4 * RATE) : round(0.6 * RATE)])
    assert np.array_equal(earlier, samples[round(0.2 * RATE) : round(0.3 * RATE)])
    assert not at_the_beginning[: RATE // 20].any()
    assert np.array_equal(at_the_beginning[RATE // 20 :], samples[: RATE // 20])
    known = round(0.3 * RATE)
    assert beyond.size == RATE
    assert np.array_equal(beyond[:known], samples[RATE // 2 : RATE // 2 + known])
    assert not beyond[round(0.35 * RATE) :].any(), "not known before it is sent"


def test_a_sentence_is_announced_with_its_first_sample_and_once() -> None:
    told: list[tuple[str, int]] = []
    sent: list[float] = []

    async def audio(samples: Audio, offset_ms: float) -> None:
        sent.append(offset_ms)

    async def sentence(one: TimedSentence) -> None:
        told.append((one.text, len(sent)))

    async def main() -> Playout:
        sound = sound_of("one two three four ", "five six")
        playout = Playout(sound, send_audio=audio, begin_sentence=sentence)
        assert not playout.started
        assert playout.played_seconds() == 0.0
        await playout.run()
        assert playout.started
        assert playout.played_seconds() == playout.sent_seconds == 1.5
        return playout

    run(main())
    assert told == [("one two three four ", 0), ("five six", 25)]
    assert sent[25] == 1000


def test_without_a_pacing_sending_is_three_tenths_ahead() -> None:
    assert Pacing().lead_seconds == 0.3


def test_what_is_paused_or_stopped_twice_is_so_since_the_first_time() -> None:
    positions: list[float] = []
    playout, _ = playing(
        sound_of("one two three four"),
        lambda p: [
            (0.2, lambda: p.resume(rewind=True)),  # it was not paused
            (0.4, p.pause),
            (0.5, p.pause),
            (0.6, lambda: positions.append(p.played_seconds())),
            (0.7, p.stop),
            (0.8, lambda: positions.append(p.played_seconds())),
        ],
    )
    assert positions == [pytest.approx(0.4), pytest.approx(0.4)]
    assert playout.paused


def test_a_pause_before_anything_was_sent_only_delays_it() -> None:
    late = ReplySound(RATE)
    wire = Wire()

    async def main() -> Playout:
        playout = Playout(late, send_audio=wire.audio, begin_sentence=wire.sentence)
        playout.pause()
        task = asyncio.ensure_future(playout.run())
        late.begin_sentence("late")
        late.append(VoiceChunk(np.ones(RATE // 2, np.float32)))
        late.finish()
        await asyncio.sleep(1.0)
        assert not wire.sent
        playout.resume(rewind=True)
        await task
        return playout

    playout = run(main())
    assert wire.sent[0][:2] == (1.0, 0.0)
    assert playout.underruns == 0


def test_after_a_pause_a_peers_report_goes_on_from_where_it_was() -> None:
    heard: list[float] = []
    playing(
        sound_of("one two three four"),
        lambda p: [
            (0.4, lambda: p.report_played(0.2)),
            (0.5, p.pause),
            (0.9, lambda: heard.append(p.played_seconds())),
            (1.0, lambda: p.resume(rewind=False)),
            (1.1, lambda: heard.append(p.played_seconds())),
        ],
    )
    assert heard == [pytest.approx(0.3), pytest.approx(0.4)]
