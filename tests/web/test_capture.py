"""What the page hears of a microphone's channels, in a real browser."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tests.calls.chromium import chromium
from tests.web.scripted import on_loop, serving

RATE = 24_000
_CAPTURED = """
(async () => {
  const given = CHANNELS;
  const context = new OfflineAudioContext({ length: RATE, numberOfChannels: 1, sampleRate: RATE });
  await context.audioWorklet.addModule("capture-worklet.js");
  const buffer = context.createBuffer(given.length, RATE, RATE);
  given.forEach(({ hertz, level, offset, from, until }, channel) => {
    const samples = buffer.getChannelData(channel);
    for (let i = from * RATE; i < until * RATE; i++) {
      samples[i] = offset + level * Math.sin(2 * Math.PI * hertz * i / RATE);
    }
  });
  const source = new AudioBufferSourceNode(context, { buffer });
  const node = new AudioWorkletNode(context, "capture", { numberOfOutputs: 0 });
  const frames = [];
  node.port.onmessage = ({ data }) => frames.push(...new Int16Array(data.pcm));
  source.connect(node);
  source.start();
  await context.startRendering();
  while (frames.length < 0.9 * RATE) await new Promise((done) => setTimeout(done, 10));
  return frames;
})()
"""


def sound(level: float, hertz: float = 300.0, **more: float) -> dict[str, float]:
    """One channel of a second."""
    return {"hertz": hertz, "level": level, "offset": 0.0, "from": 0.0, "until": 1.0, **more}


CASES: list[Any] = [
    pytest.param([sound(0.3)], 300, id="one channel"),
    pytest.param([sound(0.3), sound(0.3)], 300, id="alike"),
    pytest.param([sound(0.3), sound(-0.3)], 300, id="opposite phase"),
    pytest.param([sound(0.0), sound(0.3)], 300, id="left silent"),
    pytest.param([sound(0.3), sound(0.0)], 300, id="right silent"),
    pytest.param([sound(0.0, offset=0.5), sound(0.3)], 300, id="left a constant"),
    pytest.param([sound(0.01, 900), sound(0.3)], 300, id="left noise"),
    pytest.param([sound(0.0), sound(0.0), sound(-0.3), sound(0.3)], 300, id="the third of four"),
]


@on_loop
async def test_the_loudest_channel_is_heard_whole_from_its_first_sample() -> None:
    async with serving() as (server, _), chromium(microphone=None) as page:
        await page.open(server.address)
        for case in CASES:
            (channels, hertz) = case.values
            script = _CAPTURED.replace("CHANNELS", json.dumps(channels)).replace("RATE", str(RATE))
            heard = np.array(await page.evaluate(script)) / 32768
            expected = 0.3 * np.sin(2 * np.pi * hertz * np.arange(len(heard)) / RATE)
            difference = min(np.abs(heard - expected)[120:].max(), np.abs(heard + expected)[120:].max())
            assert difference < 1e-3, case.id


@on_loop
async def test_a_channel_that_goes_is_left_for_the_one_that_speaks() -> None:
    channels = [sound(0.3, until=0.2), sound(0.6, 500, **{"from": 0.2})]
    async with serving() as (server, _), chromium(microphone=None) as page:
        await page.open(server.address)
        script = _CAPTURED.replace("CHANNELS", json.dumps(channels)).replace("RATE", str(RATE))
        heard = np.array(await page.evaluate(script)) / 32768
    assert np.abs(heard[: RATE // 5]).max() == pytest.approx(0.3, abs=0.01)
    assert np.abs(heard[RATE // 5 + 5000 :]).max() == pytest.approx(0.6, abs=0.01)
    assert np.abs(np.diff(heard)).max() < 0.15  # no click
