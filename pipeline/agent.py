"""An agent: one TOML file that says who answers, what it knows, how it sounds and how it takes turns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from llm.sentences import SentencePolicy
from llm.verify import Verification
from pipeline import places
from pipeline.text_files import NotToml, NotUtf8, read_toml

SHIPPED = Path(__file__).with_name("agents")


class AgentError(ValueError):
    """An agent's file is missing or wrong; the message names the file and what to do."""


class _AgentPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class VoiceChoice(_AgentPart):
    """`spec` as in tts.load (`hibari`, `piper:PATH`, `coqui:PATH`, a server's address); empty: the service's
    voice. `pronunciations` maps words as they are written to words as they are said."""

    spec: str = ""
    pronunciations: dict[str, str] = Field(default_factory=dict)


class SamplingChoice(_AgentPart):
    """How replies are sampled, as in `llm.sampling.Sampling`, which says what each is.

    Temperature 0 is greedy. The seed makes sampled replies repeatable. `bad_words` are never said.
    `logit_bias` is by token id, as the service's model numbers them: another model's tokens are others.
    A reasoning model's thoughts count towards `max_tokens`, but `stop` strings in them end nothing.
    """

    temperature: float = Field(default=0.0, ge=0.0, le=2.0)
    top_k: int = Field(default=0, ge=0)
    top_p: float = Field(default=1.0, gt=0.0, le=1.0)
    min_p: float = Field(default=0.0, ge=0.0, lt=1.0)
    repetition_penalty: float = Field(default=1.0, ge=1.0, le=2.0)
    frequency_penalty: float = Field(default=0.0, ge=-2.0, le=2.0)
    presence_penalty: float = Field(default=0.0, ge=-2.0, le=2.0)
    logit_bias: dict[Annotated[int, Field(ge=0)], Annotated[float, Field(ge=-100.0, le=100.0)]] = Field(
        default_factory=dict
    )
    bad_words: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    min_tokens: int = Field(default=0, ge=0)
    max_tokens: int = Field(default=120, ge=1, le=2000)
    stop: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    seed: int = 0

    @model_validator(mode="after")
    def _lengths_fit(self) -> Self:
        if self.min_tokens > self.max_tokens:
            raise ValueError(f"min_tokens = {self.min_tokens} is above max_tokens = {self.max_tokens}")
        return self


class SpeculationChoice(_AgentPart):
    """By which rule drafted tokens are checked (see `llm.verify`).

    `coupled`: a reply is the same tokens as without speculation. `rejection`: the papers' rule, replies of
    the same distribution. `relaxed`: faster and lossy, drafts change what is said. A remote server has its
    own rule.
    """

    verification: Verification = "coupled"


class Interruptions(_AgentPart):
    """What a caller who speaks while the agent speaks does.

    `off`: nothing. `words`: the agent pauses at once and stops for good after `words` real words (not
    "mm-hm"). `at_once`: any speech stops it for good.
    """

    mode: Literal["off", "words", "at_once"] = "words"
    words: int = Field(default=1, ge=1, le=20)


class Silence(_AgentPart):
    """After `after_seconds` without a word from the caller the agent says `text`; after `times` it hangs
    up."""

    after_seconds: float = Field(default=15.0, gt=0)
    text: str = "Are you still there?"
    times: int = Field(default=2, ge=0)
    farewell: str = "I will hang up now. Goodbye."


class SentenceChoice(_AgentPart):
    """How a reply is cut into what is voiced at a time.

    `first_clause` lets the first piece end behind a comma, once it has `first_min_chars` characters and
    `first_min_words` words: the caller hears it sooner, at some cost in melody. `first_at_once` lets it end
    at `!` or `?` without waiting for the next character. A piece has `max_chars` characters at most.
    """

    first_clause: bool = False
    first_min_chars: int = Field(default=12, ge=1)
    first_min_words: int = Field(default=3, ge=1)
    first_at_once: bool = False
    max_chars: int = Field(default=300, ge=16)

    def policy(self, language: str) -> SentencePolicy:
        """The same for the language stage."""
        return SentencePolicy(language=language, **self.model_dump())


class Patience(_AgentPart):
    """End of turn, in milliseconds of silence: where drafting starts, and the bounds of the decision.

    A caller who does not stop for `max_turn_seconds` is answered on what was said so far; what they go on
    saying is the next turn, which does not stop that answer before they pause.
    """

    soft_end_ms: float = Field(default=200, ge=60)
    min_silence_ms: float = Field(default=340, ge=60)
    max_silence_ms: float = Field(default=2500, ge=200)
    max_turn_seconds: float = Field(default=180.0, ge=5)

    @model_validator(mode="after")
    def _bounds_can_be_kept(self) -> Self:
        for name in ("soft_end_ms", "min_silence_ms"):
            if getattr(self, name) > self.max_silence_ms:
                raise ValueError(
                    f"{name} = {getattr(self, name):g} is above max_silence_ms = {self.max_silence_ms:g}: "
                    "set both to fit"
                )
        return self


class Agent(_AgentPart):
    """One agent's file. `facts` are what it knows: short spoken sentences, one a line."""

    name: str
    language: str = "en"
    greeting: str = ""
    persona: str
    facts: tuple[str, ...] = ()
    rules: str = ""
    hotwords: tuple[str, ...] = ()
    voice: VoiceChoice = VoiceChoice()
    sampling: SamplingChoice = SamplingChoice()
    speculation: SpeculationChoice = SpeculationChoice()
    sentences: SentenceChoice = SentenceChoice()
    interruptions: Interruptions = Interruptions()
    silence: Silence = Silence()
    patience: Patience = Patience()
    hold_phrase: str = "One moment, please."
    hold_after_ms: float = Field(default=2500, ge=300)
    apology: str = "Sorry, something went wrong here. Could you say that again?"
    goodbyes: tuple[str, ...] = ("goodbye", "good bye", "bye", "bye bye")
    max_call_seconds: float | None = Field(default=None, gt=0)

    @property
    def phrases(self) -> tuple[str, ...]:
        """What the agent says in fixed words, the soonest first, each once."""
        said = (self.greeting, self.hold_phrase, self.silence.text, self.silence.farewell, self.apology)
        return tuple(dict.fromkeys(filter(None, said)))

    def system_prompt(self, variables: Mapping[str, str] | None = None) -> str:
        """Persona, facts as a list, rules; `{name}` places are filled from the call's variables, unknown
        ones left."""
        lines = [self.persona.strip()]
        lines += [f"- {fact}" for fact in self.facts]
        if self.rules:
            lines.append(self.rules.strip())
        text = "\n".join(lines)
        for name, value in (variables or {}).items():
            text = text.replace("{" + name + "}", value)
        return text


def load_agent(path: Path) -> Agent:
    """Read one agent's TOML file. Raises AgentError."""
    try:
        data: dict[str, Any] = read_toml(path)
    except FileNotFoundError:
        raise AgentError(f"there is no agent file {path}") from None
    except OSError as error:
        raise AgentError(f"cannot read the agent file {path}: {error.strerror}") from error
    except (NotToml, NotUtf8) as error:
        raise AgentError(str(error)) from error
    data.setdefault("name", path.stem)
    try:
        return Agent.model_validate(data)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise AgentError(f"{path}: {problems}") from error


def find_agents(folder: Path | None = None) -> dict[str, Path]:
    """Agents by name: the shipped ones, then those of `folder`, which win."""
    found = {path.stem: path for path in sorted(SHIPPED.glob("*.toml"))}
    if folder is not None:
        if not folder.is_dir():
            raise AgentError(f"the agents folder {folder} does not exist")
        found |= {path.stem: path for path in sorted(folder.glob("*.toml"))}
    return found


def choose_agent(choice: str, folder: Path | None = None) -> Agent:
    """An agent by name, or by the path of its file. Raises AgentError that lists the names there are."""
    if choice.endswith(".toml") or "/" in choice:
        return load_agent(places.expanded(choice))
    agents = find_agents(folder)
    if choice not in agents:
        raise AgentError(f"there is no agent {choice!r}; there are: {', '.join(sorted(agents))}")
    return load_agent(agents[choice])
