"""Cutting a part out of an ONNX model, so that one network can be run as two.

ONNX Runtime runs a whole graph or the way to some of its outputs; it cannot start in the middle. A cut keeps
the nodes between the chosen tensors, with their weights as they are, and names the tensors as the new
graph's inputs and outputs. Any operator and any ONNX version passes through.

`onnx.utils.Extractor` cuts too, but it loses what the bodies of an `If` or a `Loop` take from the graph
around them. It also carries shapes over, by which ONNX Runtime optimises differently (the embedded voice's
samples changed by up to 0.18); here they are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from google.protobuf.message import DecodeError
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

FLOAT: int = TensorProto.FLOAT
UINT8: int = TensorProto.UINT8


class CutError(ValueError):
    """The graph has no such tensor, or the bytes are no ONNX model."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor inside the graph that becomes an input: its element type and rank, dimensions left open."""

    element_type: int
    rank: int


@dataclass(frozen=True, slots=True)
class Node:
    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    needs: frozenset[str]
    """Its inputs, and names that the bodies of an `If` or a `Loop` may take from the graph around them."""
    message: NodeProto


class Graph:
    """An ONNX model taken apart. Raises CutError when the bytes are none."""

    def __init__(self, model: bytes) -> None:
        try:
            self._model = ModelProto.FromString(model)
        except DecodeError as error:
            raise CutError("the file is no ONNX model, or it ends in the middle of a field") from error
        if not self._model.HasField("graph"):
            raise CutError("the file holds no ONNX graph")
        graph = self._model.graph
        self.nodes = [_read_node(message) for message in graph.node]
        self._initialisers = {weight.name: weight for weight in graph.initializer}
        self._inputs = {value.name: value for value in graph.input}
        self._outputs = {value.name: value for value in graph.output}
        self._makers = {output: node for node in self.nodes for output in node.outputs}

    @property
    def outputs(self) -> list[str]:
        return list(self._outputs)

    def dimensions(self, weight: str) -> list[int]:
        """The shape of one of the model's weights. Raises CutError when it is none."""
        if weight not in self._initialisers:
            raise CutError(f"the graph has no weight named {weight}")
        return list(self._initialisers[weight].dims)

    def part(self, inputs: Mapping[str, Tensor], outputs: Sequence[str]) -> bytes:
        """The model that computes `outputs` from `inputs` and those of its own inputs that are still needed.

        Both may be any tensors of the graph. Raises CutError when one of them is not in it.
        """
        kept, touched = self._way_back(frozenset(inputs), outputs)
        model = ModelProto(
            ir_version=self._model.ir_version,
            opset_import=self._model.opset_import,
            functions=self._model.functions,
        )
        graph = model.graph  # filled in place: the helpers' graph would be copied, weights and all
        graph.name = self._model.graph.name
        graph.node.extend(node.message for node in kept)
        graph.initializer.extend(weight for name, weight in self._initialisers.items() if name in touched)
        graph.sparse_initializer.extend(self._model.graph.sparse_initializer)
        graph.input.extend(value for name, value in self._inputs.items() if name in touched)
        graph.input.extend(_value_info(name, tensor) for name, tensor in inputs.items())
        graph.output.extend(self._outputs.get(name, ValueInfoProto(name=name)) for name in outputs)
        return bytes(model.SerializeToString())

    def behind(self, tensors: Iterable[str]) -> set[str]:
        """Every tensor that depends on one of `tensors`, themselves included."""
        reached = set(tensors)
        for node in self.nodes:  # a model lists its nodes in an order in which they can run
            if not reached.isdisjoint(node.needs):
                reached.update(node.outputs)
        return reached

    def crossing(self, cut: Iterable[str], outputs: Sequence[str]) -> list[str]:
        """What the part from `cut` to `outputs` needs besides `cut` itself and the graph's own inputs.

        Tensors that do not depend on the graph's inputs are left to the part.
        """
        cut = set(cut)
        later = self.behind(cut)
        varying = self.behind(self._inputs.keys() - self._initialisers.keys()) - self._inputs.keys()
        kept, _ = self._way_back(frozenset(cut), outputs)
        needed = {name for node in kept if not later.isdisjoint(node.outputs) for name in node.needs}
        return sorted((needed & varying) - later)

    def _way_back(self, start: frozenset[str], outputs: Sequence[str]) -> tuple[list[Node], set[str]]:
        """The nodes between `start` and `outputs`, in their order, and every tensor that they touch."""
        known = self._makers.keys() | self._initialisers.keys() | self._inputs.keys()
        if unknown := [name for name in (*start, *outputs) if name not in known]:
            raise CutError(f"the graph has no tensor named {', '.join(unknown)}")
        touched: set[str] = set()
        kept: set[int] = set()
        waiting = list(outputs)
        while waiting:
            name = waiting.pop()
            if name in touched:
                continue
            touched.add(name)
            maker = self._makers.get(name)
            if maker is not None and name not in start:
                kept.add(id(maker))
                waiting.extend(maker.needs)
        return [node for node in self.nodes if id(node) in kept], touched


def _read_node(message: NodeProto) -> Node:
    needs = {*message.input, *_captured(message)} - {""}
    return Node(message.op_type, tuple(message.input), tuple(message.output), frozenset(needs), message)


def _captured(message: NodeProto) -> set[str]:
    names: set[str] = set()
    for attribute in message.attribute:
        for body in (attribute.g, *attribute.graphs):  # an attribute without a body has an empty one
            names.update(*(_read_node(node).needs for node in body.node))
            names.update(output.name for output in body.output)
    return names


def _value_info(name: str, tensor: Tensor) -> ValueInfoProto:
    dimensions = [f"{name}_{axis}" for axis in range(tensor.rank)]
    return helper.make_tensor_value_info(name, tensor.element_type, dimensions)
