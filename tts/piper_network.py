"""A Piper voice's network (VITS) run in windows: encoder once, flow and decoder as far as they are needed.

VITS (Kim et al., 2106.06103) makes latent frames from the whole sentence's phonemes and durations; the flow
and the HiFi-GAN decoder behind them are convolutions, so any window of their output depends on that window
and a few frames around it. With those as context the windows are the whole sentence's audio, without a
cross-fade. How many frames that takes differs from voice to voice and is found when a voice is loaded. The
network's noise is ours to give, so that the same text always gives the same audio.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tts.onnx_graph import FLOAT, Graph, Node, Tensor
from tts.onnx_session import session
from tts.segmented import Speech
from tts.voice import Samples
from tts.windows import Frames, ramped, reach, with_context

FLOW_WINDOW = 128
SHORTEST_FLOW = 72
"""Frames. ONNX Runtime sums narrow products in another order, which the flow enlarges."""
SEED = 0
SPEAKER = "sid"
"""The input of voices with several speakers."""


class PiperError(ValueError):
    """A voice's files are missing, unreadable or of a kind that is not supported."""


@dataclass(frozen=True, slots=True)
class LatentFrames:
    """A sentence behind the encoder: durations in frames, float32[phonemes], and what the flow needs."""

    durations: npt.NDArray[np.float32]
    latents: Mapping[str, npt.NDArray[Any]]
    frames: int


class PiperNetwork:
    """One voice's network; safe across threads."""

    def __init__(
        self,
        model: bytes,
        *,
        sample_rate: int,
        scales: Sequence[float],
        speaker: int | None = None,
        threads: int = 1,
    ) -> None:
        """`scales` are the voice's noise, length and duration-noise scales; `speaker` is the number of one of
        a voice with several. Raises PiperError."""
        graph = Graph(model)
        points = _cut_points(graph)
        crossing = graph.crossing([points.latent_noise], [points.decoder_input])
        self._points = points
        self._sample_rate = sample_rate
        self._scales = np.asarray(scales, np.float32)
        self._speaker = {} if speaker is None else {SPEAKER: np.asarray([speaker], np.int64)}
        duration_noise = {name: Tensor(FLOAT, 3) for name in points.duration_noise}
        self._crossing = crossing
        self._encoder = session(graph.part(duration_noise, [*crossing, points.durations]), threads)
        ranks = {output.name: len(output.shape) for output in self._encoder.get_outputs()}
        flow_inputs = {name: Tensor(FLOAT, ranks[name]) for name in crossing}
        flow_inputs[points.latent_noise] = Tensor(FLOAT, 3)
        self._flow = session(graph.part(flow_inputs, [points.decoder_input]), threads)
        self._decoder = session(graph.part({points.decoder_input: Tensor(FLOAT, 3)}, [points.audio]), threads)
        decoder_inputs = {decoder_input.name for decoder_input in self._decoder.get_inputs()}
        self._decoder_speaker = self._speaker if SPEAKER in decoder_inputs else {}
        self.hop = self._decode(np.zeros((1, points.channels, 4), np.float32)).size // 4
        self._flow_context, self._context = self._contexts()

    def say(self, ids: Sequence[int]) -> Speech:
        """The segment's audio, float32 at the voice's rate."""
        encoded = self.encode(ids)
        seconds = encoded.durations.astype(np.float64) * (self.hop / self._sample_rate)
        return Speech(seconds, self.stream(encoded))

    def encode(self, ids: Sequence[int]) -> LatentFrames:
        noise = np.random.default_rng(SEED)
        inputs = {
            "input": np.asarray([ids], np.int64),
            "input_lengths": np.asarray([len(ids)], np.int64),
            "scales": self._scales,
            **self._speaker,
        }
        for name in self._points.duration_noise:
            inputs[name] = noise.standard_normal((1, 2, len(ids)), dtype=np.float32)
        *crossing, durations = self._encoder.run([*self._crossing, self._points.durations], inputs)
        frames = max(1, int(durations.sum()))
        latents = dict(zip(self._crossing, crossing, strict=True))
        latents[self._points.latent_noise] = noise.standard_normal(
            (1, frames, self._points.channels), dtype=np.float32
        ).transpose(0, 2, 1)
        return LatentFrames(durations.reshape(-1), latents, frames)

    def stream(self, encoded: LatentFrames) -> Iterator[Samples]:
        """The sentence's audio in windows, float32 in [-1, 1] at the voice's rate; together, the whole."""
        flowed = np.empty((1, self._points.channels, encoded.frames), np.float32)
        ready = 0
        for begin, end in ramped(encoded.frames):
            first, last = with_context(begin, end, self._context, encoded.frames)
            if last > ready:
                until = min(encoded.frames, max(last, ready + FLOW_WINDOW if ready else 0))
                flowed[:, :, ready:until] = self._run_flow(encoded, ready, until)
                ready = until
            audio = self._decode(flowed[:, :, first:last])
            yield audio[(begin - first) * self.hop : (end - first) * self.hop]

    def whole(self, encoded: LatentFrames) -> Samples:
        """The sentence's audio at once, as the network was exported to make it."""
        return self._decode(self._run_flow(encoded, 0, encoded.frames))

    def _run_flow(self, encoded: LatentFrames, begin: int, end: int) -> Frames:
        first, last = with_context(begin, end, self._flow_context, encoded.frames)
        last = min(encoded.frames, max(last, first + SHORTEST_FLOW))
        first = max(0, min(first, last - SHORTEST_FLOW))
        window = {
            name: np.ascontiguousarray(value[..., first:last]) if _by_frame(value, encoded) else value
            for name, value in encoded.latents.items()
        }
        flowed: Frames = self._flow.run([self._points.decoder_input], window)[0]
        return flowed[:, :, begin - first : end - first]

    def _contexts(self) -> tuple[int, int]:
        """The frames on each side that a frame behind the flow, and one of the audio, depends on."""
        example = self.encode([0] * 8)

        def flow(frames: Frames) -> Frames:
            latents = {
                name: np.resize(value, (1, 1, frames.shape[2])) if value.shape[1] == 1 else frames
                for name, value in example.latents.items()
                if _by_frame(value, example)
            }
            answer: Frames = self._flow.run([self._points.decoder_input], dict(example.latents) | latents)[0]
            return answer

        try:
            return reach(flow, self._points.channels), reach(self._decode, self._points.channels)
        except ValueError as error:
            raise PiperError(f"the voice cannot be streamed: {error}") from error

    def _decode(self, frames: Frames) -> Samples:
        window = {self._points.decoder_input: np.ascontiguousarray(frames), **self._decoder_speaker}
        audio: Samples = self._decoder.run([self._points.audio], window)[0]
        return audio.reshape(-1)


def _by_frame(value: npt.NDArray[Any], encoded: LatentFrames) -> bool:
    return value.ndim == 3 and value.shape[-1] == encoded.frames


@dataclass(frozen=True, slots=True)
class _CutPoints:
    duration_noise: list[str]
    latent_noise: str
    durations: str
    decoder_input: str
    channels: int
    audio: str


def _cut_points(graph: Graph) -> _CutPoints:
    """The tensors to cut at, found by what VITS does and not by the exporter's names for them."""
    durations = _only(graph, "Ceil")
    noises = [node.outputs[0] for node in graph.nodes if node.operator == "RandomNormalLike"]
    early = [name for name in noises if durations.outputs[0] in graph.behind([name])]
    late = [name for name in noises if name not in early]
    first_layers = [
        node
        for node in graph.nodes
        if node.operator == "Conv" and any(name.endswith("conv_pre.weight") for name in node.inputs)
    ]
    if len(late) != 1 or len(first_layers) != 1:
        raise PiperError("the ONNX file is no Piper voice: no latent noise and decoder found in it")
    layer = first_layers[0]
    channels = graph.dimensions(layer.inputs[1])[1]
    return _CutPoints(early, late[0], durations.outputs[0], layer.inputs[0], channels, graph.outputs[0])


def _only(graph: Graph, operator: str) -> Node:
    nodes = [node for node in graph.nodes if node.operator == operator]
    if len(nodes) != 1:
        raise PiperError(f"the ONNX file is no Piper voice: it has {len(nodes)} {operator} nodes, not one")
    return nodes[0]
