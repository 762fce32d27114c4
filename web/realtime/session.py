"""What the two ends of a realtime connection have agreed on."""

from __future__ import annotations

import uuid
from typing import Any

from pipeline.agent import Agent
from web.realtime.client_events import SessionUpdate
from web.realtime.formats import DEFAULT, choose_format, describe


class Session:
    """One connection's audio formats; the rest of the protocol's session is fixed by the agent's file."""

    def __init__(self) -> None:
        self.id = f"sess_{uuid.uuid4().hex[:16]}"
        self.input = DEFAULT
        self.output = DEFAULT

    def update(self, event: SessionUpdate) -> None:
        """Take over the formats asked for: both, or neither when one cannot be had. Raises BadEvent."""
        audio = event.session.audio
        if audio is None:
            return
        chosen = {"input": self.input, "output": self.output}
        for side, direction in (("input", audio.input), ("output", audio.output)):
            if direction is not None and direction.format is not None:
                param = f"session.audio.{side}.format"
                chosen[side] = choose_format(direction.format, param=param, event_id=event.event_id)
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
