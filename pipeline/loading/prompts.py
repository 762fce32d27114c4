"""Agents' prompts, read once for all their calls."""

from __future__ import annotations

import logging
from collections.abc import Callable

from llm.language_model import LanguageModel
from llm.prompt import PromptError
from pipeline.agent import Agent

log = logging.getLogger("rejoinder")


def read_prompt(language: LanguageModel, agent: Agent, cancelled: Callable[[], bool]) -> bool:
    """Read what every call of the agent begins with: all of its prompt, but for variables and what is behind
    the first of them.

    Returns False where it was cancelled; asked again, it goes on. One that does not fit is told in the log.
    """
    try:
        return language.read_prompt(agent.system_prompt(), cancelled)
    except PromptError as error:
        log.warning("agent %s cannot answer: %s", agent.name, error)
        return True
