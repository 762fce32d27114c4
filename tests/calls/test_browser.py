"""As a person meets it: a real browser, a recorded question as its microphone, real models."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import soundfile

from fixtures.questions import QUESTIONS
from fixtures.words import word_error_rate
from pipeline.agent import choose_agent
from tests.calls.chromium import Page, chromium
from tests.calls.conftest import LiveServer
from tests.calls.test_whole_calls import spoken
from web.talk_client import WIRE_RATE

QUESTION = QUESTIONS[3]
GREETING_SECONDS = 8
"""Silence before the question: the agent has greeted by then."""


def lines(side: str) -> str:
    """JavaScript: what one side has said, by the page's transcript."""
    return f"[...document.querySelectorAll('.utterance.{side} p')].map((line) => line.innerText)"


def figure(name: str) -> str:
    """JavaScript: one of the playback's figures."""
    return f"Number(document.getElementById('playback').dataset.{name})"


async def ask(page: Page, url: str) -> tuple[list[str], list[str]]:
    """Start a call with the button; returns both sides of the transcript after one answer."""
    await page.open(url)
    await page.evaluate("document.getElementById('call').click()")
    await page.until("document.querySelector('#history li')", seconds=60)
    await page.until("document.body.dataset.state === 'listening'", seconds=30)
    return await page.evaluate(lines("caller")), await page.evaluate(lines("agent"))


def test_a_person_asks_on_the_page_and_hears_the_answer(live: LiveServer, tmp_path: Path) -> None:
    silence = np.zeros(GREETING_SECONDS * WIRE_RATE, np.float32)
    microphone = tmp_path / "question.wav"
    soundfile.write(microphone, np.concatenate([silence, spoken(QUESTION.text), silence]), WIRE_RATE)

    async def visit() -> None:
        async with chromium(microphone=microphone) as page:
            caller, agent = await ask(page, live.url)
            assert len(caller) == 1
            assert word_error_rate(QUESTION.text, caller[0]) <= 0.2, caller
            greeting, answer = agent
            assert greeting == choose_agent("receptionist").greeting
            assert QUESTION.is_right(answer), answer
            assert await page.evaluate(figure("peak")) > 0.05
            assert await page.evaluate(figure("playedMs")) > 1500
            waterfall = await page.evaluate("document.getElementById('waterfall').ariaLabel")
            assert waterfall.startswith("Answered after ")
            assert "Recognition: " in waterfall

    asyncio.run(visit())
    row = max(live.rows(), key=lambda row: row["started_at"])
    assert row["marks"]["audio_heard"] >= row["marks"]["audio_sent"]
    assert row["heard_text"] == row["reply_text"]
