"""Cutting a part out of an ONNX model, so that one network can be run as two.

ONNX Runtime runs a whole graph or the way to some of its outputs; it cannot start in the middle. A cut keeps
the nodes between the chosen tensors, with their weights as they are, and names the tensors as the new
graph's inputs and outputs. The model is read as protocol-buffer fields and nothing but the graph's lists is
rewritten, so any operator and any ONNX version passes through. Field numbers are those of `onnx.proto`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

FLOAT = 1
"""TensorProto.DataType of float32."""
UINT8 = 2
"""TensorProto.DataType of uint8."""

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # wire types of protocol buffers
MODEL_GRAPH = 7
GRAPH_NODE, GRAPH_INITIALISER, GRAPH_INPUT, GRAPH_OUTPUT, GRAPH_VALUE_INFO = 1, 5, 11, 12, 13
NODE_INPUT, NODE_OUTPUT, NODE_OPERATOR, NODE_ATTRIBUTE = 1, 2, 4, 5
ATTRIBUTE_GRAPH, ATTRIBUTE_GRAPHS = 6, 11
INITIALISER_DIMENSIONS, INITIALISER_NAME = 1, 8
VALUE_NAME, VALUE_TYPE = 1, 2


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
    captured: frozenset[str]
    """Names that the bodies of an `If` or a `Loop` may take from the graph around them."""
    raw: bytes

    @property
    def needs(self) -> set[str]:
        return {*self.inputs, *self.captured} - {""}


class Graph:
    """An ONNX model taken apart. Raises CutError when the bytes are none."""

    def __init__(self, model: bytes) -> None:
        self._head, graph, self._tail = _around_graph(model)
        self.nodes: list[Node] = []
        self._initialisers: dict[str, bytes] = {}
        self._inputs: dict[str, bytes] = {}
        self._outputs: dict[str, bytes] = {}
        self._other: list[bytes] = []
        for number, _, payload, raw in _fields(graph):
            if number == GRAPH_NODE:
                self.nodes.append(_read_node(payload))
            elif number == GRAPH_INITIALISER:
                self._initialisers[_text(payload, INITIALISER_NAME)] = payload
            elif number == GRAPH_INPUT:
                self._inputs[_text(payload, VALUE_NAME)] = payload
            elif number == GRAPH_OUTPUT:
                self._outputs[_text(payload, VALUE_NAME)] = payload
            elif number != GRAPH_VALUE_INFO:  # shapes noted for tensors that may be gone
                self._other.append(raw)
        self._makers = {output: node for node in self.nodes for output in node.outputs}

    @property
    def outputs(self) -> list[str]:
        return list(self._outputs)

    def dimensions(self, weight: str) -> list[int]:
        """The shape of one of the model's weights. Raises CutError when it is none."""
        if weight not in self._initialisers:
            raise CutError(f"the graph has no weight named {weight}")
        return _integers(self._initialisers[weight], INITIALISER_DIMENSIONS)

    def part(self, inputs: Mapping[str, Tensor], outputs: Sequence[str]) -> bytes:
        """The model that computes `outputs` from `inputs` and those of its own inputs that are still needed.

        Both may be any tensors of the graph. Raises CutError when one of them is not in it.
        """
        kept, touched = self._way_back(frozenset(inputs), outputs)
        graph = [
            *(_field(GRAPH_NODE, node.raw) for node in kept),
            *(_field(GRAPH_INITIALISER, raw) for name, raw in self._initialisers.items() if name in touched),
            *(_field(GRAPH_INPUT, raw) for name, raw in self._inputs.items() if name in touched),
            *(_field(GRAPH_INPUT, _value_info(name, tensor)) for name, tensor in inputs.items()),
            *(_field(GRAPH_OUTPUT, self._outputs.get(name, _named(name))) for name in outputs),
            *self._other,
        ]
        return self._head + _field(MODEL_GRAPH, b"".join(graph)) + self._tail

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


def _around_graph(model: bytes) -> tuple[bytes, bytes, bytes]:
    position = 0
    for number, wire_type, payload, raw in _fields(model):
        if (number, wire_type) == (MODEL_GRAPH, BYTES):
            return model[:position], payload, model[position + len(raw) :]
        position += len(raw)
    raise CutError("the file holds no ONNX graph")


def _read_node(payload: bytes) -> Node:
    inputs, outputs, operator = [], [], ""
    captured: set[str] = set()
    for number, _, value, _ in _fields(payload):
        if number == NODE_INPUT:
            inputs.append(value.decode())
        elif number == NODE_OUTPUT:
            outputs.append(value.decode())
        elif number == NODE_OPERATOR:
            operator = value.decode()
        elif number == NODE_ATTRIBUTE:
            captured |= _captured(value)
    return Node(operator, tuple(inputs), tuple(outputs), frozenset(captured), payload)


def _captured(attribute: bytes) -> set[str]:
    names: set[str] = set()
    for number, wire_type, body, _ in _fields(attribute):
        if number in (ATTRIBUTE_GRAPH, ATTRIBUTE_GRAPHS) and wire_type == BYTES:
            for field, _, payload, _ in _fields(body):
                if field == GRAPH_NODE:
                    names |= _read_node(payload).needs
                elif field == GRAPH_OUTPUT:
                    names.add(_text(payload, VALUE_NAME))
    return names


def _named(name: str) -> bytes:
    return _field(VALUE_NAME, name.encode())


def _value_info(name: str, tensor: Tensor) -> bytes:
    dimensions = b"".join(_field(1, _field(2, f"{name}_{axis}".encode())) for axis in range(tensor.rank))
    tensor_type = _varint(1 << 3 | VARINT) + _varint(tensor.element_type) + _field(2, dimensions)
    return _named(name) + _field(VALUE_TYPE, _field(1, tensor_type))


def _text(message: bytes, wanted: int) -> str:
    for number, _, payload, _ in _fields(message):
        if number == wanted:
            return payload.decode()
    return ""


def _integers(message: bytes, wanted: int) -> list[int]:
    """A repeated integer field, written one by one or packed."""
    values = []
    for number, _, payload, _ in _fields(message):
        position = 0
        while number == wanted and position < len(payload):
            value, position = _read_varint(payload, position)
            values.append(value)
    return values


def _fields(message: bytes) -> Iterator[tuple[int, int, bytes, bytes]]:
    """Each field's number, wire type, payload and its bytes as they stand."""
    position = 0
    while position < len(message):
        start = position
        tag, position = _read_varint(message, position)
        number, wire_type = tag >> 3, tag & 7
        begin = position
        if wire_type == VARINT:
            _, position = _read_varint(message, position)
        elif wire_type == BYTES:
            length, begin = _read_varint(message, position)
            position = begin + length
        elif wire_type in (FIXED64, FIXED32):
            position += 8 if wire_type == FIXED64 else 4
        else:
            raise CutError(f"the file is no ONNX model: wire type {wire_type} at byte {start}")
        if position > len(message):
            raise CutError("the ONNX model ends in the middle of a field")
        yield number, wire_type, message[begin:position], message[start:position]


def _read_varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(message):
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise CutError("the ONNX model ends in the middle of a field")


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number: int, payload: bytes) -> bytes:
    return _varint(number << 3 | BYTES) + _varint(len(payload)) + payload
