// A model's weights: pointers into packed, memory-mapped storage that its owner keeps alive.
#pragma once

#include <cstdint>
#include <vector>

#include "packing.h"

namespace rejoinder {

struct Shape {
    int layers = 0, hidden = 0, feed_forward = 0, heads = 0, key_value_heads = 0, head_size = 0,
        vocabulary = 0, context = 0;
    float norm_epsilon = 0;

    int queries() const { return heads * head_size; }
    int keys() const { return key_value_heads * head_size; }
};

struct Layer {
    Matrix query, key, value, attention_output, gate, up, down;
    const float *attention_norm = nullptr, *feed_forward_norm = nullptr;
    const float *query_bias = nullptr, *key_bias = nullptr, *value_bias = nullptr;  // may be absent
    const float *query_norm = nullptr, *key_norm = nullptr;                         // may be absent
};

struct Model {
    Shape shape;
    std::vector<Layer> layers;
    Matrix head;
    const float* final_norm = nullptr;
    const float *cosines = nullptr, *sines = nullptr;  // [context, head_size / 2]
    Format embedding_format = Format::F32;
    const uint8_t* embedding = nullptr;  // [vocabulary] rows in the file's blocks
    size_t embedding_row_bytes = 0;
};

}  // namespace rejoinder
