"""Hearing: voice activity, streaming recognition and end-of-turn detection. Audio in, text out.

Everything here takes 16 kHz mono float32 in [-1, 1], blocks its caller, and knows nothing of calls or turns.
"""
