"""A network of a Piper voice's kind, small enough for a test, with a decoder of any receptive field."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

CHANNELS, SYMBOLS, HOP = 8, 256, 4


class _Network:
    """Nodes and weights as they are added; every method returns the name of what it makes."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self._random = np.random.default_rng(5)

    def constant(self, name: str, value: Any) -> str:
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def weight(self, name: str, *shape: int) -> str:
        scale = 1 / np.sqrt(np.prod(shape[1:]))
        return self.constant(name, (scale * self._random.standard_normal(shape)).astype(np.float32))

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        output = f"/{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def convolution(self, name: str, inputs: str, kernel: int, dilation: int, out: int = CHANNELS) -> str:
        weight = self.weight(f"{name}.weight", out, CHANNELS, kernel)
        pad = (kernel - 1) // 2 * dilation
        return self.node("Conv", inputs, weight, kernel_shape=[kernel], dilations=[dilation], pads=[pad, pad])


def model(*, kernel: int = 3, dilation: int = 1, speakers: int = 1) -> bytes:
    """Inputs and outputs as in a Piper voice's file; `kernel` and `dilation` (samples) are the decoder's."""
    net = _Network()
    embedded = net.node("Gather", net.weight("emb.weight", SYMBOLS, CHANNELS), "input")  # [1, phonemes, 8]
    pair = net.node("Gather", net.weight("dp.weight", SYMBOLS, 2), "input")
    noise = net.node("RandomNormalLike", net.node("Transpose", pair, perm=[0, 2, 1]))
    length = net.node("Exp", net.node("ReduceMax", noise, net.constant("axis", [1]), keepdims=1))
    length = net.node("Min", length, net.node("Cast", "input_lengths", to=TensorProto.FLOAT))
    durations = net.node("Ceil", net.node("Add", length, net.constant("four", np.float32(4))))

    ends = net.node("CumSum", durations, net.constant("last", np.int64(2)))  # [1, 1, phonemes]
    total = net.node("Cast", net.node("ReduceMax", ends, keepdims=0), to=TensorProto.INT64)
    places = net.node("Range", net.constant("zero", np.int64(0)), total, net.constant("one", np.int64(1)))
    frames = net.node("Reshape", net.node("Cast", places, to=1), net.constant("column", [1, -1, 1]))
    passed = net.node("Cast", net.node("GreaterOrEqual", frames, ends), to=TensorProto.INT64)
    phoneme = net.node("ReduceSum", passed, net.constant("phonemes", [2]), keepdims=0)  # [1, frames]
    by_frame = net.node("Gather", net.node("Squeeze", embedded, "zero_axis"), phoneme)
    net.constant("zero_axis", [0])
    mean = net.node("Transpose", by_frame, perm=[0, 2, 1])  # [1, 8, frames]

    if speakers > 1:
        column = net.constant("speaker_column", [1, CHANNELS, 1])
        vector = net.node("Gather", net.weight("emb_g.weight", speakers, CHANNELS), "sid")
        speaker = net.node("Reshape", vector, column)
        mean = net.node("Add", mean, speaker)

    latent_noise = net.node("RandomNormalLike", mean)
    scale = net.node("Gather", "scales", "zero", axis=0)
    latents = net.node("Add", mean, net.node("Mul", latent_noise, scale))
    flowed = net.node("Add", latents, net.convolution("flow", latents, 5, 1))
    audio = net.convolution("dec.conv_pre", flowed, 7, 1)
    if speakers > 1:
        audio = net.node("Add", audio, speaker)
    up = net.weight("dec.up.weight", CHANNELS, CHANNELS, 2 * HOP)
    audio = net.node("ConvTranspose", audio, up, kernel_shape=[2 * HOP], strides=[HOP], pads=[2, 2])
    audio = net.convolution("dec.block", net.node("LeakyRelu", audio), kernel, dilation)
    audio = net.convolution("dec.conv_post", net.node("LeakyRelu", audio), 7, 1, out=1)
    net.nodes.append(helper.make_node("Tanh", [audio], ["output"]))

    inputs = [
        helper.make_tensor_value_info("input", TensorProto.INT64, [1, "phonemes"]),
        helper.make_tensor_value_info("input_lengths", TensorProto.INT64, [1]),
        helper.make_tensor_value_info("scales", TensorProto.FLOAT, [3]),
    ]
    if speakers > 1:
        inputs.append(helper.make_tensor_value_info("sid", TensorProto.INT64, [1]))
    outputs = [helper.make_tensor_value_info("output", TensorProto.FLOAT, [1, 1, "samples"])]
    graph = helper.make_graph(net.nodes, "tiny", inputs, outputs, net.weights)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return bytes(made.SerializeToString())
