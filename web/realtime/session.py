"""What the two ends of a realtime connection have agreed on."""

from __future__ import annotations

import uuid
from typing import Any

from pipeline.agent import Agent
from web.realtime.client_events import AudioSettings, SessionUpdate
from web.realtime.formats import DEFAULT, choose_flat_format, choose_format, describe


class Session:
    """One connection's audio formats; the rest of the protocol's session is fixed by the agent's file."""

    def __init__(self) -> None:
        self.id = f"sess_{uuid.uuid4().hex[:16]}"
        self.input = DEFAULT
        self.output = DEFAULT

    def update(self, event: SessionUpdate) -> None:
        """Take over the formats asked for: both, or neither when one cannot be had. Raises BadEvent."""
        asked, event_id = event.session, event.event_id
        audio = asked.audio or AudioSettings()
        sides = {
            "input": (asked.input_audio_format, audio.input),
            "output": (asked.output_audio_format, audio.output),
        }
        chosen = {"input": self.input, "output": self.output}
        for side, (flat, direction) in sides.items():
            if direction is not None and direction.format is not None:
                param = f"session.audio.{side}.format"
                chosen[side] = choose_format(direction.format, param=param, event_id=event_id)
            elif flat is not None:
                param = f"session.{side}_audio_format"
                chosen[side] = choose_flat_format(flat, param=param, event_id=event_id)
        self.input, self.output = chosen["input"], chosen["output"]

    def describe(self, agent: Agent) -> dict[str, Any]:
        """The protocol's session object: what is in force, whatever was asked for."""
        turn_detection = {"type": "semantic_vad", "create_response": True, "interrupt_response": True}
        return {
            "type": "realtime",
            "object": "realtime.session",
            "id": self.id,
            "model": agent.name,
            "output_modalities": ["audio"],
            "audio": {
                "input": {"format": describe(self.input), "turn_detection": turn_detection},
                "output": {"format": describe(self.output)},
            },
            "rejoinder": {"agent": agent.name, "greeting": agent.greeting},
        }
