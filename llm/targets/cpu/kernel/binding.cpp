// The kernel as a Python module: models are filled role by role from numpy arrays, calls are opened on them.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "call.h"
#include "packing.h"
#include "paths.h"

namespace py = pybind11;

namespace rejoinder {

namespace {

using Bytes = py::array_t<uint8_t, py::array::c_style>;
using Floats = py::array_t<float, py::array::c_style>;
using Ids = py::array_t<int32_t, py::array::c_style | py::array::forcecast>;

void require(bool holds, const std::string& what) {
    if (!holds) throw std::invalid_argument(what);
}

// A model and the arrays its pointers lead into.
class ModelBuilder {
public:
    explicit ModelBuilder(const Shape& shape, const std::string& path)
        : model_(std::make_shared<Model>()), pass_(path_named(path)) {
        require(std::min({shape.layers, shape.hidden, shape.feed_forward, shape.heads, shape.key_value_heads,
                          shape.head_size, shape.vocabulary, shape.context}) > 0,
                "sizes must be positive");
        require(shape.heads % shape.key_value_heads == 0, "key-value heads must divide heads");
        require(
            shape.hidden % kGroup == 0 && shape.feed_forward % kGroup == 0 && shape.head_size % kGroup == 0,
            "hidden, feed-forward and head sizes must be multiples of 32");
        model_->shape = shape;
        model_->layers.resize(shape.layers);
    }

    void set_matrix(int layer, const std::string& role, const std::string& format, Bytes tiles) {
        Matrix& matrix = role == "head" ? model_->head : layer_matrix(layer, role);
        const auto [outputs, inputs] = matrix_shape(role);
        matrix = {format_named(format), outputs, inputs, tiles.data()};
        require(size_t(tiles.size()) == packed_bytes(matrix.format, outputs, inputs),
                role + ": packed size is wrong");
        keep_.push_back(tiles);
    }

    void set_vector(int layer, const std::string& role, Floats values) {
        require(values.size() == vector_size(role), role + ": size is wrong");
        (role == "final_norm" ? model_->final_norm : layer_vector(layer, role)) = values.data();
        keep_.push_back(values);
    }

    void set_embedding(const std::string& format, Bytes rows) {
        const Shape& shape = model_->shape;
        model_->embedding_format = format_named(format);
        const BlockShape block = block_shape(model_->embedding_format);
        require(shape.hidden % block.inputs == 0, "embedding rows are not whole blocks");
        model_->embedding_row_bytes = size_t(shape.hidden) / block.inputs * block.bytes;
        require(size_t(rows.size()) == model_->embedding_row_bytes * shape.vocabulary,
                "embedding size is wrong");
        model_->embedding = rows.data();
        keep_.push_back(rows);
    }

    void set_angles(Floats cosines, Floats sines) {
        const auto expected = py::ssize_t(model_->shape.context) * model_->shape.head_size / 2;
        require(cosines.size() == expected && sines.size() == expected,
                "one angle a position and pair is needed");
        model_->cosines = cosines.data();
        model_->sines = sines.data();
        keep_.push_back(cosines);
        keep_.push_back(sines);
    }

    std::unique_ptr<Call> open() const {
        require(model_->head && model_->embedding && model_->final_norm && model_->cosines,
                "the model is not complete");
        for (const Layer& layer : model_->layers)
            require(layer.query && layer.key && layer.value && layer.attention_output && layer.gate &&
                        layer.up && layer.down && layer.attention_norm && layer.feed_forward_norm,
                    "a layer is not complete");
        return std::make_unique<Call>(model_, pass_);
    }

private:
    Layer& layer(int number) {
        require(number >= 0 && number < model_->shape.layers, "there is no such layer");
        return model_->layers[number];
    }

    Matrix& layer_matrix(int number, const std::string& role) {
        Layer& l = layer(number);
        if (role == "query") return l.query;
        if (role == "key") return l.key;
        if (role == "value") return l.value;
        if (role == "attention_output") return l.attention_output;
        if (role == "gate") return l.gate;
        if (role == "up") return l.up;
        require(role == "down", "no matrix is called " + role);
        return l.down;
    }

    const float*& layer_vector(int number, const std::string& role) {
        Layer& l = layer(number);
        if (role == "attention_norm") return l.attention_norm;
        if (role == "feed_forward_norm") return l.feed_forward_norm;
        if (role == "query_bias") return l.query_bias;
        if (role == "key_bias") return l.key_bias;
        if (role == "value_bias") return l.value_bias;
        if (role == "query_norm") return l.query_norm;
        require(role == "key_norm", "no vector is called " + role);
        return l.key_norm;
    }

    std::pair<int, int> matrix_shape(const std::string& role) const {
        const Shape& s = model_->shape;
        if (role == "head") return {s.vocabulary, s.hidden};
        if (role == "query") return {s.queries(), s.hidden};
        if (role == "key" || role == "value") return {s.keys(), s.hidden};
        if (role == "attention_output") return {s.hidden, s.queries()};
        if (role == "down") return {s.hidden, s.feed_forward};
        return {s.feed_forward, s.hidden};
    }

    int vector_size(const std::string& role) const {
        const Shape& s = model_->shape;
        if (role == "query_bias") return s.queries();
        if (role == "key_bias" || role == "value_bias") return s.keys();
        if (role == "query_norm" || role == "key_norm") return s.head_size;
        return s.hidden;
    }

    std::shared_ptr<Model> model_;
    PassFunction pass_;
    std::vector<py::array> keep_;
};

using States = py::array_t<float, py::array::c_style | py::array::forcecast>;

int logits_stride(const Call& call) { return tiles_of(call.shape().vocabulary) * kTile; }

// Runs `read(ids, count, outputs)`: the logits float32 [rows, vocabulary in whole tiles] and the hidden states
// float32 [hidden_rows, hidden], or None where a logit was not finite.
template <class Read>
py::object outputs(const Call& call, const Ids& ids, int rows, int hidden_rows, Read read) {
    const int count = int(ids.size());
    require(rows >= 0 && rows <= count && hidden_rows >= 0 && hidden_rows <= count,
            "rows must be between 0 and the number of ids");
    const int stride = logits_stride(call);
    py::array_t<float> logits({rows, stride}), hidden({hidden_rows, call.shape().hidden});
    const Outputs wanted{rows, logits.mutable_data(), size_t(stride), hidden_rows, hidden.mutable_data()};
    const int32_t* first = ids.data();
    bool finite;
    {
        py::gil_scoped_release release;
        finite = read(first, count, wanted);
    }
    if (!finite) return py::none();
    return py::make_tuple(logits, hidden);
}

py::object extend(Call& call, const Ids& ids, int rows, int hidden_rows, int threads) {
    return outputs(call, ids, rows, hidden_rows, [&](const int32_t* first, int count, Outputs wanted) {
        return call.extend(first, count, wanted, threads);
    });
}

py::object peek(Call& call, const Ids& ids, int ahead, int layers, int threads) {
    return outputs(call, ids, 1, 0, [&](const int32_t* first, int count, Outputs wanted) {
        return call.peek(first, count, ahead, layers, wanted, threads);
    });
}

// Logits float32 [rows, vocabulary in whole tiles] of hidden states [rows, hidden], or None.
py::object project(Call& call, const States& states, int threads) {
    require(states.ndim() == 2 && states.shape(1) == call.shape().hidden, "hidden states have another size");
    const int rows = int(states.shape(0)), stride = logits_stride(call);
    py::array_t<float> logits({rows, stride});
    const float* from = states.data();
    float* to = logits.mutable_data();
    bool finite;
    {
        py::gil_scoped_release release;
        finite = call.project(from, rows, to, stride, threads);
    }
    if (!finite) return py::none();
    return logits;
}

// Keys and values of the first `positions`: float32 [positions, floats of one].
py::array_t<float> copy_out(const Call& call, int positions) {
    py::array_t<float> copy({std::max(positions, 0), int(call.position_floats())});
    float* to = copy.mutable_data();
    py::gil_scoped_release release;
    call.copy_out(positions, to);
    return copy;
}

void copy_in(Call& call, const Floats& copy) {
    require(copy.ndim() == 2 && size_t(copy.shape(1)) == call.position_floats(),
            "the copied positions have another size");
    const int positions = int(copy.shape(0));
    const float* from = copy.data();
    py::gil_scoped_release release;
    call.copy_in(positions, from);
}

Bytes pack_matrix(const std::string& name, const Bytes& rows, int outputs, int inputs) {
    const Format format = format_named(name);
    const BlockShape shape = block_shape(format);
    require(outputs > 0 && inputs > 0 && inputs % std::max(shape.inputs, kGroup) == 0,
            "rows are not whole blocks");
    require(size_t(rows.size()) == size_t(outputs) * (inputs / shape.inputs) * shape.bytes,
            "matrix size is wrong");
    Bytes tiles(py::ssize_t(packed_bytes(format, outputs, inputs)));
    const uint8_t* from = rows.data();
    uint8_t* to = tiles.mutable_data();
    py::gil_scoped_release release;
    pack(format, from, outputs, inputs, to);
    return tiles;
}

size_t packed_size(const std::string& format, int outputs, int inputs) {
    return packed_bytes(format_named(format), outputs, inputs);
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
    module.attr("LAYOUT_VERSION") = kLayoutVersion;
    module.def("supported_paths", &supported_paths);
    module.def("pack", &pack_matrix, py::arg("format"), py::arg("rows"), py::arg("outputs"),
               py::arg("inputs"));
    module.def("packed_bytes", &packed_size, py::arg("format"), py::arg("outputs"), py::arg("inputs"));

    py::class_<Shape>(module, "Shape")
        .def(py::init([](int layers, int hidden, int feed_forward, int heads, int key_value_heads,
                         int head_size, int vocabulary, int context, float norm_epsilon) {
                 return Shape{layers,    hidden,     feed_forward, heads,       key_value_heads,
                              head_size, vocabulary, context,      norm_epsilon};
             }),
             py::kw_only(), py::arg("layers"), py::arg("hidden"), py::arg("feed_forward"), py::arg("heads"),
             py::arg("key_value_heads"), py::arg("head_size"), py::arg("vocabulary"), py::arg("context"),
             py::arg("norm_epsilon"));

    py::class_<ModelBuilder>(module, "Model")
        .def(py::init<const Shape&, const std::string&>(), py::arg("shape"), py::arg("path"))
        .def("set_matrix", &ModelBuilder::set_matrix, py::arg("layer"), py::arg("role"), py::arg("format"),
             py::arg("tiles").noconvert())
        .def("set_vector", &ModelBuilder::set_vector, py::arg("layer"), py::arg("role"),
             py::arg("values").noconvert())
        .def("set_embedding", &ModelBuilder::set_embedding, py::arg("format"), py::arg("rows").noconvert())
        .def("set_angles", &ModelBuilder::set_angles, py::arg("cosines").noconvert(),
             py::arg("sines").noconvert())
        .def("open", &ModelBuilder::open, py::keep_alive<0, 1>());

    py::class_<Call>(module, "Call")
        .def_property_readonly("length", &Call::length)
        .def_property_readonly("bytes", &Call::bytes)
        .def("truncate", &Call::truncate, py::arg("length"))
        .def_property_readonly("position_floats", &Call::position_floats)
        .def("copy_out", &copy_out, py::arg("positions"))
        .def("copy_in", &copy_in, py::arg("copy").noconvert())
        .def("extend", &extend, py::arg("ids"), py::arg("rows"), py::arg("hidden_rows"), py::arg("threads"))
        .def("peek", &peek, py::arg("ids"), py::arg("ahead"), py::arg("layers"), py::arg("threads"))
        .def("project", &project, py::arg("states"), py::arg("threads"));
}

}  // namespace rejoinder
