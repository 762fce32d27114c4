"""Speaking: voices, speakable text, streaming synthesis. Text in, float32 audio out at the voice's rate."""
