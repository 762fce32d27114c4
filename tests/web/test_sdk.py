"""OpenAI's own Python client holds a conversation with the server."""

from __future__ import annotations

import asyncio
import base64

import numpy as np
import openai

from pipeline import events
from tests.machine import PATIENCE
from tests.web.scripted import on_loop, serving, spoken_reply

TOKEN = "sesame-sesame-0123"


@on_loop
async def test_the_sdk_understands_a_whole_conversation() -> None:
    async with serving(auth_token=TOKEN) as (server, service), asyncio.timeout(PATIENCE):
        client = openai.AsyncOpenAI(
            api_key=TOKEN,
            base_url=f"{server.address}v1",
            websocket_base_url=f"ws://127.0.0.1:{server.port}/v1",
        )
        async with client, client.realtime.connect(model="receptionist") as connection:
            created = await connection.recv()
            assert created.type == "session.created"
            assert created.session.audio.output.format.rate == 24_000
            audio = {"input": {"format": {"type": "audio/pcm", "rate": 24_000}}}
            await connection.session.update(session={"type": "realtime", "audio": audio})
            assert (await connection.recv()).type == "session.updated"
            await connection.input_audio_buffer.append(audio=base64.b64encode(bytes(4800)).decode())
            call = service.opened[0]
            await call.until_told("hear")
            await connection.response.create()
            await call.until_told("respond")
            await call.say(
                events.SpeechStarted(1, 1, 0),
                events.SpeechDismissed(1, 1, 100),
                events.SpeechStarted(1, 2, 500),
                events.TranscriptDelta(1, 1, " Are you open?"),
                events.SpeechStopped(1, 1, 1500),
                events.TranscriptDone(1, 1, "Are you open?"),
                *spoken_reply(),
            )
            heard, said, spoken = "", "", b""
            async for event in connection:
                if event.type.startswith("rejoinder."):
                    continue  # ours: the SDK hands on what it does not know
                # The SDK builds its models without checking them: check that each event is what they say.
                type(event).model_validate(event.to_dict())
                if event.type == "conversation.item.input_audio_transcription.completed":
                    heard = event.transcript
                elif event.type == "response.output_audio_transcript.delta":
                    said += event.delta
                elif event.type == "response.output_audio.delta":
                    spoken += base64.b64decode(event.delta)
                elif event.type == "response.done":
                    assert event.response.status == "completed"
                    assert event.response.output[0].content[0].transcript == "Yes."
                    break
            assert (heard, said) == ("Are you open?", "Yes.")
            assert np.all(np.frombuffer(spoken, "<i2") == 8192)
            await connection.input_audio_buffer.append(audio="AAA")
            error = await connection.recv()
            assert (error.type, error.error.code) == ("error", "invalid_base64")
