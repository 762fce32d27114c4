"""A Piper voice's network (VITS) run in windows: encoder once, flow and decoder as far as they are needed.

VITS (Kim et al., 2106.06103) makes latent frames from the whole sentence's phonemes and durations; the flow
and the HiFi-GAN decoder behind them are convolutions, so any window of their output depends on that window
and a few frames around it. With those as context the windows are the whole sentence's audio, without a
cross-fade. The network's noise is ours to give, so that the same text always gives the same audio.
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

FLOW_CONTEXT = 32
"""Frames on each side that a flow frame depends on: 4 couplings of 4 convolutions of 5 frames."""
DECODER_CONTEXT = {"x_low": 12, "low": 12, "medium": 12}
WIDEST_DECODER_CONTEXT = 14
"""Frames on each side that a decoder frame depends on, by the voice's quality; "high" has the widest."""
WINDOWS = (16, 44, 88, 176)
"""Frames decoded at a time: few for an early first sound, then more, since context is computed twice."""
FLOW_WINDOW = 128
SHORTEST_FLOW = 72
"""Frames. ONNX Runtime sums narrow products in another order, which the flow enlarges."""
SEED = 0


class PiperError(ValueError):
    """A voice's files are missing, unreadable or of a kind that is not supported."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A sentence behind the encoder: durations in frames, float32[phonemes], and what the flow needs."""

    durations: npt.NDArray[np.float32]
    latents: Mapping[str, npt.NDArray[Any]]
    frames: int


class PiperNetwork:
    """One voice's network; safe across threads."""

    def __init__(
        self, model: bytes, *, sample_rate: int, quality: str, scales: Sequence[float], threads: int = 1
    ) -> None:
        """`scales` are the voice's noise, length and duration-noise scales. Raises PiperError."""
        graph = Graph(model)
        points = _cut_points(graph)
        crossing = graph.crossing([points.latent_noise], [points.decoder_input])
        self._points = points
        self._sample_rate = sample_rate
        self._scales = np.asarray(scales, np.float32)
        self._context = DECODER_CONTEXT.get(quality, WIDEST_DECODER_CONTEXT)
        duration_noise = {name: Tensor(FLOAT, 3) for name in points.duration_noise}
        self._crossing = crossing
        self._encoder = session(graph.part(duration_noise, [*crossing, points.durations]), threads)
        ranks = {output.name: len(output.shape) for output in self._encoder.get_outputs()}
        flow_inputs = {name: Tensor(FLOAT, ranks[name]) for name in crossing}
        flow_inputs[points.latent_noise] = Tensor(FLOAT, 3)
        self._flow = session(graph.part(flow_inputs, [points.decoder_input]), threads)
        self._decoder = session(graph.part({points.decoder_input: Tensor(FLOAT, 3)}, [points.audio]), threads)
        self.hop = self._decode(np.zeros((1, points.channels, 4), np.float32)).size // 4

    def say(self, ids: Sequence[int]) -> Speech:
        """The segment's audio, float32 at the voice's rate."""
        encoded = self.encode(ids)
        seconds = encoded.durations.astype(np.float64) * (self.hop / self._sample_rate)
        return Speech(seconds, self.stream(encoded))

    def encode(self, ids: Sequence[int]) -> Encoded:
        noise = np.random.default_rng(SEED)
        inputs = {
            "input": np.asarray([ids], np.int64),
            "input_lengths": np.asarray([len(ids)], np.int64),
            "scales": self._scales,
        }
        for name in self._points.duration_noise:
            inputs[name] = noise.standard_normal((1, 2, len(ids)), dtype=np.float32)
        *crossing, durations = self._encoder.run([*self._crossing, self._points.durations], inputs)
        frames = max(1, int(durations.sum()))
        latents = dict(zip(self._crossing, crossing, strict=True))
        latents[self._points.latent_noise] = noise.standard_normal(
            (1, frames, self._points.channels), dtype=np.float32
        ).transpose(0, 2, 1)
        return Encoded(durations.reshape(-1), latents, frames)

    def stream(self, encoded: Encoded) -> Iterator[Samples]:
        """The sentence's audio in windows, float32 in [-1, 1] at the voice's rate; together, the whole."""
        flowed = np.empty((1, self._points.channels, encoded.frames), np.float32)
        ready = begin = 0
        for size in _sizes():
            end = min(begin + size, encoded.frames)
            first, last = max(0, begin - self._context), min(encoded.frames, end + self._context)
            if last > ready:
                until = min(encoded.frames, max(last, ready + FLOW_WINDOW if ready else 0))
                flowed[:, :, ready:until] = self._run_flow(encoded, ready, until)
                ready = until
            audio = self._decode(flowed[:, :, first:last])
            yield audio[(begin - first) * self.hop : (end - first) * self.hop]
            begin = end
            if begin == encoded.frames:
                return

    def whole(self, encoded: Encoded) -> Samples:
        """The sentence's audio at once, as the network was exported to make it."""
        return self._decode(self._run_flow(encoded, 0, encoded.frames))

    def _run_flow(self, encoded: Encoded, begin: int, end: int) -> npt.NDArray[np.float32]:
        first, last = max(0, begin - FLOW_CONTEXT), min(encoded.frames, end + FLOW_CONTEXT)
        last = min(encoded.frames, max(last, first + SHORTEST_FLOW))
        first = max(0, min(first, last - SHORTEST_FLOW))
        window = {
            name: np.ascontiguousarray(value[..., first:last])
            if value.ndim == 3 and value.shape[-1] == encoded.frames
            else value
            for name, value in encoded.latents.items()
        }
        flowed: npt.NDArray[np.float32] = self._flow.run([self._points.decoder_input], window)[0]
        return flowed[:, :, begin - first : end - first]

    def _decode(self, frames: npt.NDArray[np.float32]) -> Samples:
        window = {self._points.decoder_input: np.ascontiguousarray(frames)}
        audio: Samples = self._decoder.run([self._points.audio], window)[0]
        return audio.reshape(-1)


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


def _sizes() -> Iterator[int]:
    yield from WINDOWS
    while True:
        yield WINDOWS[-1]
