"""The language stage that the settings ask for, and one reply of it explained pass by pass."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from llm.explain import Explanation
from llm.explain import explain as explain_reply
from llm.language_model import LanguageModel, Message, Sampling
from llm.remote import RemoteLanguageModel
from pipeline import places
from pipeline.agent import choose_agent
from pipeline.config import Settings, is_url
from pipeline.models import catalogue
from pipeline.stages import LanguageStage


def is_remote(settings: Settings) -> bool:
    """Whether `llm` names a server rather than a model of our own."""
    return is_url(settings.llm)


def load_language(
    settings: Settings, progress: Callable[[str], None] = lambda message: None
) -> LanguageStage:
    """The embedded model, or the client of the server that `llm` names. Warmed up; raises as `llm` does.

    `progress` is told in sentences what is built or packed for the first time.
    """
    if is_remote(settings):
        key = settings.llm_api_key.get_secret_value() if settings.llm_api_key is not None else None
        server = RemoteLanguageModel(settings.llm, settings.llm_remote_model, api_key=key)
        server.warm_up()
        return server
    return load_embedded(settings, progress)


def explain(
    settings: Settings, prompt: str, *, max_tokens: int = 80, temperature: float = 0.0, seed: int = 0
) -> Explanation:
    """What the settings' agent answers to `prompt`, pass by pass.

    Raises ValueError for a server's model, and for a prompt that was typed in another encoding than UTF-8.
    """
    if is_remote(settings):
        raise ValueError("a server's model does not show its passes: choose an embedded one with --llm")
    try:
        prompt.encode()
    except UnicodeEncodeError as error:  # Python takes such bytes of an argument as halves of characters
        raise ValueError("the prompt is not in UTF-8: set the terminal's encoding to UTF-8") from error
    agent = choose_agent(settings.agent, settings.agents_dir)
    messages = [Message("system", agent.system_prompt()), Message("user", prompt)]
    sampling = Sampling(max_tokens=max_tokens, temperature=temperature, seed=seed)
    return explain_reply(
        load_embedded(settings),
        messages,
        sampling,
        taught="\n".join(agent.facts),
        verification=agent.speculation.verification,
    )


def load_embedded(
    settings: Settings, progress: Callable[[str], None] = lambda message: None
) -> LanguageModel:
    """The embedded model, warmed up. Raises as `LanguageModel.load`."""
    model = LanguageModel.load(
        place(settings.llm),
        threads=settings.llm_threads,
        context=settings.llm_context,
        draft_model=place(settings.draft_model) if settings.draft_model else None,
        heads=settings.draft_heads,
        cache=catalogue.converted(),
        progress=progress,
    )
    model.warm_up()
    return model


def place(model: str) -> Path:
    """A file or folder as it is, or an artifact of the catalogue by its name."""
    path = places.expanded(model)
    return path if places.exists(path) else catalogue.path(model)
