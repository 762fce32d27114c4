"""`rejoinder explain`: one reply, pass by pass: the draft, the verdict, what was kept."""

from __future__ import annotations

from typing import Annotated

import typer

from pipeline.config import Settings
from pipeline.loading.language import explain as explain_reply
from pipeline.models.catalogue import ArtifactUnavailable
from web.options import with_settings
from web.output import clear_errors, console, print_json


@with_settings
def explain(
    settings: Settings,
    prompt: Annotated[str, typer.Argument(help="What the caller says.")],
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
    max_tokens: Annotated[int, typer.Option(min=1, help="Where the reply is cut at the latest.")] = 80,
    temperature: Annotated[float, typer.Option(min=0, help="0 is greedy.")] = 0.0,
    seed: Annotated[int, typer.Option(help="The same seed gives the same reply.")] = 0,
) -> None:
    with clear_errors(ArtifactUnavailable, RuntimeError, OSError, ValueError):
        explanation = explain_reply(
            settings, prompt, max_tokens=max_tokens, temperature=temperature, seed=seed
        )
    if as_json:
        print_json(explanation.as_dict())
    else:
        explanation.render(console)
