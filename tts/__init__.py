"""Speaking: voices, speakable text, streaming synthesis. Text in, float32 audio out at the voice's rate."""

import os

# Nothing here calls home. These libraries read their switches when they are imported: ONNX Runtime (and keeps
# an event store and a device id in the user's cache), and with Coqui's models the hub's client and trainer.
os.environ.update(ORT_DISABLE_TELEMETRY="1", HF_HUB_DISABLE_TELEMETRY="1", TRAINER_TELEMETRY="0")
