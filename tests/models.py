"""Where tests find the real models: the catalogue's cache, pulled on first use."""

from __future__ import annotations

from pipeline.models.catalogue import path

__all__ = ["path"]
