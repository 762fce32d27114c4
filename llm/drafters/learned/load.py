"""Draft heads by name or place: trained ones in a folder, published ones, the checkpoint's own, early exit.

A folder that was trained here holds the weights, named as their kind's authors name them, and a manifest that
says of what model they are: on another one they would draft nonsense, so loading them there is refused.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, Literal, Protocol

from llm.cache import CallCache
from llm.checkpoints import Config, fingerprint
from llm.drafters.base import Drafter
from llm.drafters.learned.compatibility import HeadsError
from llm.drafters.learned.eagle import load_eagle, save_eagle
from llm.drafters.learned.early_exit import EarlyExitDrafting
from llm.drafters.learned.feature_drafter import FeatureDrafting
from llm.drafters.learned.feature_layer import FeatureLayer
from llm.drafters.learned.medusa import MedusaDrafting, MedusaHeads
from llm.drafters.learned.mtp import load_mtp
from llm.drafters.timing import Clock
from llm.targets.base import Target

MANIFEST = "draft_heads.json"
MEDUSA_WEIGHTS = "medusa_lm_head.safetensors"
MTP = "mtp"
EARLY_EXIT = "early-exit:"

Kind = Literal["medusa", "eagle"]


class DraftHeads(Protocol):
    """What drafts from inside the target: weights shared by calls, or the target's own layers."""

    @property
    def seconds_per_token(self) -> float:
        """What a drafted token costs, measured."""
        ...

    def open(self, cache: CallCache) -> Drafter:
        """A drafter for the call that this cache belongs to."""
        ...


def open_draft_heads(
    wanted: str, model: Path, target: Target, clock: Clock = time.perf_counter
) -> DraftHeads:
    """`wanted`: `mtp`, `early-exit:LAYERS`, or the place of Medusa heads or of an EAGLE head.

    `model` is the checkpoint that `target` runs. Raises `HeadsError` or `CheckpointError`.
    """
    if wanted == MTP:
        return FeatureDrafting("mtp", load_mtp(model), target, clock)
    if wanted.startswith(EARLY_EXIT):
        layers = wanted.removeprefix(EARLY_EXIT)
        if not layers.isdigit():
            raise HeadsError(f"early-exit wants a number of layers, as in early-exit:8, not {layers!r}")
        return EarlyExitDrafting(int(layers), target, clock)
    place = Path(os.path.expanduser(wanted))
    if not place.exists():
        raise HeadsError(f"there are no draft heads at {place}: give mtp, early-exit:LAYERS or a folder")
    heads = load_heads(place, model)
    if isinstance(heads, MedusaHeads):
        return MedusaDrafting(heads, target, clock)
    return FeatureDrafting("eagle", heads, target, clock)


def load_heads(place: Path, model: Path) -> MedusaHeads | FeatureLayer:
    """A folder that `save_heads` wrote for this model, published Medusa heads, or a published EAGLE head.

    Raises `HeadsError` saying what is wrong.
    """
    if place.is_file():
        return MedusaHeads.load(place)
    if (place / MANIFEST).exists():
        manifest = _manifest(place)
        if manifest["base_fingerprint"] != fingerprint(model):
            raise HeadsError(
                f"the draft heads in {place} were trained on {manifest['base']}, not on {model.name}: "
                "train some on this model with `rejoinder llm train-heads`"
            )
        if manifest["kind"] == "medusa":
            return MedusaHeads.load(place / MEDUSA_WEIGHTS)
        values = manifest["config"]
        return load_eagle(
            place, Config(**{**values, "inverse_frequencies": tuple(values["inverse_frequencies"])})
        )
    for name in (MEDUSA_WEIGHTS, "medusa_lm_head.pt"):
        if (place / name).exists():
            return MedusaHeads.load(place / name)
    return load_eagle(place)


def save_heads(heads: MedusaHeads | FeatureLayer, folder: Path, model: Path) -> None:
    """Write trained heads and the manifest, last, into a folder made for them. Raises `OSError`."""
    folder.mkdir(parents=True, exist_ok=True)
    manifest: dict[str, Any] = {"base": model.name, "base_fingerprint": fingerprint(model)}
    if isinstance(heads, MedusaHeads):
        heads.save(folder / MEDUSA_WEIGHTS)
        manifest["kind"] = "medusa"
    else:
        save_eagle(heads, folder)
        manifest |= {"kind": "eagle", "config": heads.config.as_dict()}
    part = folder / f"{MANIFEST}.part"
    part.write_text(json.dumps(manifest, indent=2), encoding="utf-8")
    part.replace(folder / MANIFEST)


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        values: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if values["kind"] not in ("medusa", "eagle") or "base" not in values:
            raise ValueError(f"unknown kind {values['kind']!r}")
        values["base_fingerprint"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HeadsError(f"{folder / MANIFEST} is damaged ({error}): train the heads again") from error
    return values
