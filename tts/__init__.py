"""Speaking: voices, speakable text and streaming synthesis. Text in, float32 audio out at the voice's own rate."""
