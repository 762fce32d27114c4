"""Cutting a real network and refusing what is none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hibari.voices import voice_path
from onnx import ModelProto, TensorProto, helper, numpy_helper

from tts.onnx_graph import FLOAT, CutError, Graph, Tensor
from tts.onnx_session import session


@pytest.fixture(scope="module")
def model() -> bytes:
    return Path(voice_path("heart")).read_bytes()


@pytest.fixture(scope="module")
def graph(model: bytes) -> Graph:
    return Graph(model)


def test_a_part_starts_in_the_middle_and_keeps_only_what_it_needs(graph: Graph, model: bytes) -> None:
    name = "/dec.7/Add_1_output_0"
    part = graph.part({name: Tensor(FLOAT, 3)}, ["lh"])
    assert len(part) < len(model) / 3
    network = session(part, 1)
    assert [node.name for node in network.get_inputs()] == [name]
    assert network.run(None, {name: np.zeros((1, 256, 5), np.float32)})[0].shape == (1, 601, 5)


def test_inner_tensors_become_outputs(graph: Graph) -> None:
    network = session(graph.part({}, ["f0", "/Clip_output_0"]), 1)
    inputs = {"ids": np.asarray([[0, 50, 51, 4, 0]], np.int64), "speed": np.ones(1, np.float32)}
    pitch, durations = network.run(None, inputs)
    assert durations.shape == (5,)
    assert pitch.shape[1] == 2 * durations.sum()


def test_dependencies_are_followed_both_ways(graph: Graph) -> None:
    last = "/dec.7/Add_1_output_0"
    assert "lh" in graph.behind([last])
    assert "f0" not in graph.behind([last])
    assert graph.crossing([last], ["lh"]) == []
    assert graph.crossing(["/dec.7/dw/Conv_output_0"], ["lh"]) == ["/dec.6/Add_1_output_0"]


def test_noted_shapes_stay_behind(graph: Graph, model: bytes) -> None:
    """ONNX Runtime optimises by them: with them the voice's samples are others."""
    part = ModelProto.FromString(graph.part({}, ["lh"]))
    assert ModelProto.FromString(model).graph.value_info
    assert not part.graph.value_info


@pytest.mark.parametrize(("condition", "expected"), [(True, [1.0, 3.0]), (False, [10.0, 12.0])])
def test_bodies_keep_what_they_take_from_around_them(condition: bool, expected: list[float]) -> None:
    """The branches of the `If` read a tensor and two weights that are none of its inputs."""

    def branch(output: str, weight: str) -> object:
        add = helper.make_node("Add", ["middle", weight], [output])
        return helper.make_graph(
            [add], output, [], [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)]
        )

    nodes = [
        helper.make_node("Relu", ["input"], ["middle"]),
        helper.make_node(
            "If",
            ["condition"],
            ["chosen"],
            then_branch=branch("one_more", "one"),
            else_branch=branch("ten_more", "ten"),
        ),
        helper.make_node("Neg", ["chosen"], ["output"]),
    ]
    inputs = [
        helper.make_tensor_value_info("input", TensorProto.FLOAT, [2]),
        helper.make_tensor_value_info("condition", TensorProto.BOOL, []),
    ]
    outputs = [helper.make_tensor_value_info("output", TensorProto.FLOAT, [2])]
    weights = [numpy_helper.from_array(np.float32([value] * 2), n) for n, value in (("one", 1), ("ten", 10))]
    whole = helper.make_model(
        helper.make_graph(nodes, "branches", inputs, outputs, weights),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    graph = Graph(whole.SerializeToString())
    assert "chosen" in graph.behind(["middle"])
    values = {"condition": np.asarray(condition)}
    for start, value in (("input", [-1, 2]), ("middle", [0, 2])):
        cut = {} if start == "input" else {start: Tensor(FLOAT, 1)}
        network = session(graph.part(cut, ["chosen"]), 1)
        (answer,) = network.run(None, values | {start: np.float32(value)})
        assert answer.tolist() == expected


def test_weights_have_shapes(graph: Graph) -> None:
    assert graph.dimensions("m.dec.0.dw.weight") == [256, 1, 7]
    with pytest.raises(CutError, match="no weight named lh"):
        graph.dimensions("lh")


def test_an_unknown_tensor_is_named(graph: Graph) -> None:
    with pytest.raises(CutError, match="no tensor named nothing"):
        graph.part({}, ["nothing"])
    with pytest.raises(CutError, match="no tensor named nowhere"):
        graph.part({"nowhere": Tensor(FLOAT, 3)}, ["lh"])


@pytest.mark.parametrize("broken", [b"", b"hello", b"\xff" * 20, b"\x3a\x7f"])
def test_other_bytes_are_no_model(broken: bytes) -> None:
    with pytest.raises(CutError):
        Graph(broken)


def test_a_model_cut_short_is_refused(model: bytes) -> None:
    with pytest.raises(CutError, match="middle of a field"):
        Graph(model[: len(model) // 2])
