"""One browser or program on a websocket, speaking the event names of OpenAI's Realtime protocol."""
