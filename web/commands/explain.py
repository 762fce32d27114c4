"""`rejoinder explain`: one reply, pass by pass: the draft, the verdict, what was kept."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from llm.checkpoints import CheckpointError
from llm.explain import explain as explain_reply
from llm.language_model import LanguageModel, Message, Sampling
from llm.prompt import PromptError
from llm.tokenizer import TokenizerError
from pipeline import catalogue
from pipeline.agent import AgentError, choose_agent
from pipeline.catalogue import ArtifactUnavailable
from pipeline.config import Settings
from web.commands.output import clear_errors, console, print_json
from web.options import with_settings


@with_settings
def explain(
    settings: Settings,
    prompt: Annotated[str, typer.Argument(help="What the caller says.")],
    as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False,
    max_tokens: Annotated[int, typer.Option(min=1, help="Where the reply is cut at the latest.")] = 80,
    temperature: Annotated[float, typer.Option(min=0, help="0 is greedy.")] = 0.0,
    seed: Annotated[int, typer.Option(help="The same seed gives the same reply.")] = 0,
) -> None:
    with clear_errors(CheckpointError, TokenizerError, PromptError, AgentError, ArtifactUnavailable, OSError):
        agent = choose_agent(settings.agent)
        model = LanguageModel.load(
            _path(settings.llm),
            threads=settings.llm_threads,
            context=settings.llm_context,
            draft_model=_path(settings.draft_model) if settings.draft_model else None,
            cache=catalogue.converted(),
        )
        model.warm_up()
        messages = [Message("system", agent.system_prompt()), Message("user", prompt)]
        sampling = Sampling(max_tokens=max_tokens, temperature=temperature, seed=seed)
        explanation = explain_reply(model, messages, sampling)
    if as_json:
        print_json(explanation.as_dict())
    else:
        explanation.render(console)


def _path(model: str) -> Path:
    """A file or folder as it is, or an artifact of the catalogue by its name."""
    path = Path(model).expanduser()
    return path if path.exists() else catalogue.path(model)
