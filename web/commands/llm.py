"""`rejoinder llm`: work on the language model itself. `train-heads` trains heads that draft for it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from pipeline.config import Settings
from pipeline.loading.train_heads import Kind, train_heads
from pipeline.models.catalogue import ArtifactUnavailable
from web.options import with_settings
from web.output import clear_errors, console, errors, print_json

app = typer.Typer(no_args_is_help=True, help="Train draft heads for a language model.")


@app.callback()
def llm() -> None:
    """Train draft heads for a language model."""


@app.command("train-heads")
@with_settings
def train_heads_command(
    settings: Settings,
    out: Annotated[Path, typer.Option(help="The folder to write the heads to.")],
    kind: Annotated[
        Kind,
        typer.Option(help="medusa: small heads, quick to train; eagle: a decoder layer, better guesses."),
    ] = "medusa",
    model: Annotated[
        str | None, typer.Option(help="The model to train for: the same as --llm.", show_default=False)
    ] = None,
    corpus: Annotated[
        Path | None, typer.Option(help="A text file, with empty lines between texts.", show_default=False)
    ] = None,
    own_replies: Annotated[
        Path | None,
        typer.Option(
            help="Instead of a corpus: a file of prompts, one a line, to which the model writes the replies "
            "to learn from, as the agent would. Heads learn best what the model itself says.",
            show_default=False,
        ),
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Steps of training, one text each.")] = 400,
    max_tokens: Annotated[int, typer.Option(min=8, help="Where such a reply is cut at the latest.")] = 96,
    learning_rate: Annotated[
        float | None, typer.Option(min=0, help="At the first step; none: the kind's own.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed trains the same heads.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
) -> None:
    """Train heads that draft for a language model, on the hidden states that it gives for a corpus or for its
    own replies. Use them with `--draft-heads FOLDER`. Nothing is written before the training is over.
    """
    if (corpus is None) == (own_replies is None):
        raise typer.BadParameter("give either --corpus or --own-replies")
    try:
        chosen = settings if model is None else Settings(**{**dict(settings), "llm": model})
    except ValidationError:
        raise typer.BadParameter(f"{model} is neither a known model nor an existing path") from None
    try:
        with clear_errors(ArtifactUnavailable, RuntimeError, OSError, ValueError), _Bars() as bars:
            done = train_heads(
                chosen,
                kind,
                out,
                corpus=corpus,
                prompts=own_replies,
                max_tokens=max_tokens,
                steps=steps,
                learning_rate=learning_rate,
                seed=seed,
                progress=bars.show,
            )
    except KeyboardInterrupt:
        errors.print("Stopped. Nothing was written.")
        raise typer.Exit(130) from None
    if as_json:
        print_json(done)
    else:
        _print(done)


class _Bars:
    """One bar a stage of the work, on standard error."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=errors,
        )
        self._stage: Any = None

    def __enter__(self) -> _Bars:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, what: str, done: int, total: int) -> None:
        if done == 1:
            self._stage = self._progress.add_task(what, total=total)
        self._progress.update(self._stage, description=what, completed=done)


def _print(done: dict[str, Any]) -> None:
    console.print(
        f"Trained {done['kind']} heads for {done['base']} on {done['texts']} texts "
        f"({done['tokens']:,} tokens) in {done['seconds']:.0f} s: loss {done['first_loss']:.2f} to "
        f"{done['last_loss']:.2f}.",
        highlight=False,
    )
    for ahead, (before, after) in enumerate(zip(done["before"], done["after"], strict=True), start=1):
        console.print(
            f"  drafted token {ahead}: right {before:.0%} of the time before, {after:.0%} after "
            "(texts that were held out)",
            highlight=False,
        )
    console.print(f"Use them with [bold]--draft-heads {done['out']}[/].", highlight=False)
