"""Hearing: voice activity, streaming recognition and end-of-turn detection. Audio in, text out.

Everything here takes 16 kHz mono float32 in [-1, 1], blocks its caller, and knows nothing of calls or turns.
"""

import os

# Nothing here calls home. These libraries read their switches when they are imported: ONNX Runtime (and keeps
# an event store and a device id in the user's cache), and the hub's client, which faster-whisper imports.
os.environ.update(ORT_DISABLE_TELEMETRY="1", HF_HUB_DISABLE_TELEMETRY="1")
