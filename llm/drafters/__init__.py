"""Drafters: each proposes the next tokens from one source. `learned` holds those from inside the model."""
