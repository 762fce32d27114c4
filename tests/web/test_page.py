"""The page in a real browser, with scripted calls: what it shows, plays and reports, and its errors."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
import soundfile

from pipeline import events
from tests.calls.chromium import Page, chromium
from tests.web.scripted import ScriptedCall, calling, on_loop, serving, spoken_reply

TOKEN = "sesame-sesame-0123"
LISTENING = "document.body.dataset.state === 'listening'"
NOTICE = "document.getElementById('notice').innerText"
PLAYED = "Number(document.getElementById('playback').dataset.playedMs)"
_THE_FIRST_MICROPHONE_FAILS_LATE = """
{
  const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
  const late = new Promise((_, reject) => {
    window.failTheFirst = () => reject(new DOMException("taken", "NotReadableError"));
  });
  let opened = 0;
  navigator.mediaDevices.getUserMedia = (wishes) => (opened++ ? open(wishes) : late);
}
"""
_A_SOUND_CARD_OF_96_KHZ = """
window.AudioContext = class extends AudioContext {
  constructor(wishes = {}) {
    super({ sampleRate: 96000, ...Object.fromEntries(Object.entries(wishes).filter(([, value]) => value)) });
  }
  createMediaStreamSource(stream) {
    if (this.sampleRate !== 96000) throw new DOMException("another rate", "NotSupportedError");
    return super.createMediaStreamSource(stream);
  }
};
"""
_A_WORKLET_THAT_CANNOT_BE_LOADED = """
AudioWorklet.prototype.addModule = () => Promise.reject(new DOMException("no audio thread", "AbortError"));
"""
_CONTEXTS_THAT_THE_SYSTEM_INTERRUPTS = """
window.contexts = [];
window.interrupted = false;
window.AudioContext = class extends AudioContext {
  constructor(wishes) {
    super(wishes);
    contexts.push(this);
  }
  get state() {
    return interrupted ? "interrupted" : super.state;
  }
  resume() {
    return interrupted ? Promise.reject(new DOMException("a call", "InvalidStateError")) : super.resume();
  }
};
"""


@pytest.fixture(scope="module")
def microphone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A minute of a tone."""
    file = tmp_path_factory.mktemp("microphone") / "tone.wav"
    tone = 0.3 * np.sin(2 * np.pi * 300 * np.arange(60 * 16_000) / 16_000)
    soundfile.write(file, tone.astype(np.float32), 16_000)
    return file


async def press(page: Page, name: str) -> None:
    """Press a button as the keyboard does."""
    await page.evaluate(f"document.getElementById('{name}').focus()")
    for kind in ("keyDown", "keyUp"):
        await page.command("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r")


async def ask(call: ScriptedCall, turn: int, text: str, **marks: float) -> None:
    """The caller's side of a turn."""
    await call.say(events.SpeechStarted(turn, 1, 0), events.TranscriptDelta(turn, 1, f" {text}"))
    await call.say(*(events.StageProgress(turn, 1, name, ms) for name, ms in marks.items()))
    await call.say(events.SpeechStopped(turn, 1, 1000), events.TranscriptDone(turn, 1, text))


_A_TURN = {"turn": 1, "revision": 1, "marks": {}, "durations": {}}


async def log(call: ScriptedCall, turn: int, text: str, *, interrupted: bool, **marks: float) -> None:
    record = {
        "turn": turn,
        "revision": 1,
        "caller_text": text,
        "marks": {"speech_end": 0.0, **marks},
        "draft_fate": "whole",
        "durations": {"voice_to_voice": marks["audio_sent"]},
        "interrupted": interrupted,
    }
    await call.say(events.TurnLogged(turn, 1, record))


@on_loop
async def test_a_call_is_heard_shown_played_and_timed(microphone: Path) -> None:
    async with serving() as (server, service), chromium(microphone=microphone) as page:
        await page.open(server.address)
        await press(page, "call")
        await page.until(LISTENING)
        call = await service.first_call()
        await call.until_heard(1.0)
        assert np.sqrt(np.mean(call.heard[8000:] ** 2)) > 0.01

        await call.say(events.SpeechStarted(1, 1, 200))
        await page.until("document.body.dataset.state === 'hearing'")
        await call.say(events.SpeechDismissed(1, 1, 600))  # a cough
        await page.until(LISTENING)

        marks = {"asr_final": 300.0, "llm_start": 310.0, "llm_first_token": 500.0, "commit": 600.0}
        await ask(call, 1, "Are you open?", **marks)
        await page.until("document.getElementById('waterfall').ariaLabel.includes('Recognition: 300 ms')")
        await call.say(*spoken_reply(1, "r1"))
        await log(call, 1, "Are you open?", interrupted=False, **marks, audio_sent=650.0)
        await page.until(f"{PLAYED} >= 80 && {LISTENING}")
        await call.until_told("playback", "r1", 80.0)
        shown = await page.evaluate("document.getElementById('transcript').innerText")
        assert [line for line in shown.splitlines() if line] == ["You", "Are you open?", "Agent", "Yes."]
        assert float(await page.evaluate("document.getElementById('playback').dataset.peak")) > 0.2
        label = await page.evaluate("document.getElementById('waterfall').ariaLabel")
        assert label.startswith("Answered after 650 ms. End of turn: 600 ms")
        assert "The draft was the answer." in await page.evaluate(
            "document.getElementById('caption').innerText"
        )
        assert "650 ms" in await page.evaluate("document.getElementById('history').innerText")

        await press(page, "call")
        await page.until("document.body.dataset.state === 'idle'")
        await call.until_told("over")
        assert call.end_reason == "peer_gone"
        assert not await page.faults()


@on_loop
async def test_an_interruption_silences_at_once_and_sets_the_unheard_text_apart(microphone: Path) -> None:
    async with serving() as (server, service), chromium(microphone=microphone) as page:
        await page.open(server.address)
        await press(page, "call")
        await page.until(LISTENING)
        call = await service.first_call()
        await ask(call, 1, "Tell me everything.")
        await call.say(events.ReplyStarted(1, 1, "r1"), events.ReplyText(1, 1, "r1", "We open at eight. "))
        for offset in range(250):  # ten seconds ahead
            await call.say(
                events.ReplyAudio(1, 1, "r1", np.full(960, 0.2, np.float32), 24_000, offset * 40.0)
            )
        await page.until(f"{PLAYED} > 200")

        await call.say(events.PausePlayback(1, 1, "r1"))
        await page.until("document.body.dataset.state === 'paused'")
        paused_at = await page.evaluate(PLAYED)
        await call.say(events.ResumePlayback(1, 1, "r1"))
        await page.until(f"{PLAYED} > {paused_at} + 100")
        await call.say(events.PausePlayback(1, 1, "r1"), events.ClearPlayback(1, 1, "r1"))
        done = events.ReplyDone(1, 1, "r1", "interrupted", "We open at eight. We close at six.", "We open at")
        await call.say(done)
        await log(call, 1, "Tell me everything.", interrupted=True, commit=500.0, audio_sent=500.0)
        await page.until("document.querySelector('#history .tag')")
        assert (
            await page.evaluate("document.querySelector('.unheard').innerText") == " eight. We close at six."
        )
        cut_at = await page.evaluate(PLAYED)
        assert cut_at < 5000

        await call.say(*spoken_reply(2, "r2"))
        await page.until(f"{PLAYED} >= {cut_at} + 79")
        await call.until_told("playback", "r2", 80.0)
        assert await page.evaluate(PLAYED) == pytest.approx(cut_at + 80, abs=1)  # nothing left of the first


@on_loop
async def test_a_token_is_asked_for_and_kept(microphone: Path) -> None:
    async with serving(auth_token=TOKEN) as (server, service), chromium(microphone=microphone) as page:
        await page.open(server.address)
        await press(page, "call")
        await page.until(f"{NOTICE}.includes('asks for a token')")
        await page.command("Input.insertText", text=TOKEN)
        await press(page, "token")
        await page.until(LISTENING)
        assert len(service.opened) == 1
        await page.open(f"{server.address}?token={TOKEN}")
        assert "token" not in await page.evaluate("location.href")


@on_loop
async def test_errors_say_what_to_do(microphone: Path) -> None:
    async with serving(max_calls=1) as (server, service), chromium(microphone=microphone) as page:
        await page.open(server.address)
        async with calling(server) as other:
            await other.receive("session.created")
            await press(page, "call")
            await page.until(f"{NOTICE}.includes('All lines are busy')")
        await service.opened[0].until_told("over")
        await press(page, "call")
        await page.until(LISTENING)
        call = service.opened[-1]
        await call.say(events.CallFailed(1, 1, "llm", "the language model ran out of memory"))
        await page.until(f"{NOTICE}.includes('ran out of memory')")
        call.hang_up("goodbye")
        await page.until(f"{NOTICE}.includes('You both said goodbye')")
        await press(page, "call")
        await page.until(LISTENING)
        await page.evaluate("document.getElementById('notice-close').click()")
        await server.stop()
        await page.until(f"{NOTICE}.includes('The server was stopped')")
        await press(page, "call")
        await page.until(f"{NOTICE}.includes('The server does not answer')")


@pytest.mark.parametrize(
    ("device", "allowed", "says"),
    [(False, True, "No microphone found"), (True, False, "microphone is blocked")],
)
@on_loop
async def test_no_microphone_no_call(microphone: Path, device: bool, allowed: bool, says: str) -> None:
    async with serving() as (server, service):
        source = microphone if device else None
        async with chromium(microphone=source, allow_microphone=allowed) as page:
            await page.open(server.address)
            await press(page, "call")
            await page.until(f"{NOTICE}.includes('{says}')")
        assert not service.opened


@on_loop
async def test_a_start_that_was_called_off_does_not_end_the_next(microphone: Path) -> None:
    async with serving() as (server, service), chromium(microphone=microphone) as page:
        await page.open(server.address)
        await page.evaluate(_THE_FIRST_MICROPHONE_FAILS_LATE)
        await page.evaluate("for (let press = 0; press < 3; press++) document.getElementById('call').click()")
        await page.until(LISTENING)  # the third press: a call of its own
        await page.evaluate("failTheFirst()")
        await page.evaluate("new Promise((done) => setTimeout(done))")
        assert await page.evaluate("document.body.dataset.state") == "listening"
        assert await page.evaluate("document.getElementById('notice').hidden")
        await press(page, "call")
        await service.opened[0].until_told("over")
        assert len(service.opened) == 1


@on_loop
async def test_a_microphone_that_is_had_at_its_own_rate_only_is_heard_right(microphone: Path) -> None:
    async with serving() as (server, service), chromium(microphone=microphone) as page:
        await page.open(server.address)
        await page.evaluate(_A_SOUND_CARD_OF_96_KHZ)
        await press(page, "call")
        await page.until(LISTENING)
        call = await service.first_call()
        await call.until_heard(2.0)
        assert await page.evaluate("document.getElementById('notice').hidden")
        spectrum = np.abs(np.fft.rfft(call.heard[16_000:32_000]))  # a line a hertz
        assert np.argmax(spectrum) == pytest.approx(300, abs=2)


@on_loop
async def test_sound_that_cannot_be_started_is_not_called_a_missing_connection(microphone: Path) -> None:
    async with serving() as (server, service), chromium(microphone=microphone) as page:
        await page.open(server.address)
        await page.evaluate(_A_WORKLET_THAT_CANNOT_BE_LOADED)
        await press(page, "call")
        await page.until(f"{NOTICE}.includes('sound could not be started')")
        assert not service.opened


@on_loop
async def test_sound_that_the_system_has_stopped_goes_on(microphone: Path) -> None:
    async with serving() as (server, _), chromium(microphone=microphone) as page:
        await page.open(server.address)
        await page.evaluate(_CONTEXTS_THAT_THE_SYSTEM_INTERRUPTS)
        await press(page, "call")
        await page.until(LISTENING)
        runs = "contexts.length === 2 && contexts.every((context) => context.state === 'running')"
        assert await page.evaluate(runs)
        suspend = "Promise.all(contexts.map((context) => context.suspend())).then(() => {})"
        await page.evaluate(suspend)
        await page.until(runs)
        await page.evaluate("interrupted = true")
        await page.evaluate(suspend)  # a telephone call: meanwhile nothing can be resumed
        await page.evaluate("interrupted = false")
        await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # the page is back
        await page.until(runs)
        assert not await page.faults()
        await press(page, "call")
        await page.until("contexts.every((context) => context.state === 'closed')")


@on_loop
async def test_the_end_of_an_interrupted_answer_does_not_hide_that_the_next_is_made(microphone: Path) -> None:
    async with serving() as (server, service), chromium(microphone=microphone) as page:
        await page.open(server.address)
        await press(page, "call")
        await page.until(LISTENING)
        call = await service.first_call()
        await call.say(*list(spoken_reply(1, "r1"))[:-1])
        await page.until("document.body.dataset.state === 'speaking'")
        await ask(call, 2, "Wait.")
        await call.say(events.ReplyDone(1, 1, "r1", "interrupted", "Yes.", "Yes."))
        await call.say(events.TurnLogged(1, 1, _A_TURN))
        await page.until("document.querySelector('#history button')")
        assert await page.evaluate("document.body.dataset.state") == "thinking"
        await call.say(events.ReplyStarted(2, 1, "r2"))
        await call.say(events.ReplyDone(2, 1, "r2", "failed", "", ""))
        await page.until(LISTENING)


@pytest.mark.parametrize(
    ("text", "heard", "said", "unheard"),
    [
        (
            " We open at eight.\n\nWe close at six.",
            "We open at eight. We",
            "We open at eight. We",
            "close at six.",
        ),
        ("We open at eight.", " We open", "We open", "at eight."),
    ],
)
@on_loop
async def test_what_was_heard_is_shown_however_it_is_written(
    microphone: Path, text: str, heard: str, said: str, unheard: str
) -> None:
    async with serving() as (server, service), chromium(microphone=microphone) as page:
        await page.open(server.address)
        await press(page, "call")
        await page.until(LISTENING)
        call = await service.first_call()
        await call.say(events.ReplyStarted(1, 1, "r1"), events.ReplyText(1, 1, "r1", text))
        await call.say(events.ReplyDone(1, 1, "r1", "interrupted", text, heard))
        await page.until("document.querySelector('.note')")
        assert await page.evaluate("document.querySelector('.note').innerText") == "interrupted"
        shown = "[...document.querySelector('.agent p').childNodes].map((node) => node.textContent.trim())"
        assert await page.evaluate(shown) == [said, unheard]


@contextlib.asynccontextmanager
async def proxy(port: int) -> AsyncIterator[int]:
    """The port of a proxy that, as many do, names the server behind it as the host."""

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data.replace(f"Host: 127.0.0.1:{own}".encode(), f"Host: 127.0.0.1:{port}".encode()))
        writer.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.suppress(ConnectionError):
            await asyncio.gather(pass_on(reader, back), pass_on(there, writer))

    async with await asyncio.start_server(connected, "127.0.0.1", 0) as server:
        own = server.sockets[0].getsockname()[1]
        yield own


@on_loop
async def test_a_proxy_that_hides_the_pages_host_is_named(microphone: Path) -> None:
    async with serving() as (server, service), proxy(server.port) as port:
        async with chromium(microphone=microphone) as page:
            await page.open(f"http://127.0.0.1:{port}/")
            await press(page, "call")
            await page.until(f"{NOTICE}.includes('allowed_origins')")
        assert not service.opened
