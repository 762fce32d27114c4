"""The caller's turns: their states, when they end, the commit gate, and the answer drafted behind it."""
