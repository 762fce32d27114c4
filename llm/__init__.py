"""Answering: targets, drafters, exact verification, the cache kept across turns, sentences."""

import os

# Nothing here calls home. The hub's client, which transformers imports, reads its switch when it is imported.
os.environ.update(HF_HUB_DISABLE_TELEMETRY="1")
