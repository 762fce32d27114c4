// One pass: the whole forward of a block of rows, run by a team of threads in one go.
//
// Threads share the outputs of each product by whole tiles, and go on with what they made themselves
// (attention on their heads, SwiGLU on their columns) so that few barriers are needed.
#pragma once

#include <algorithm>

#include "attention.h"
#include "elementwise.h"
#include "products.h"
#include "quantising.h"
#include "request.h"

namespace rejoinder {

struct Range {
    int first, last;
};

inline Range share(int count, int thread, int threads) {
    return {int(int64_t(count) * thread / threads), int(int64_t(count) * (thread + 1) / threads)};
}

template <class V>
class Pass {
public:
    Pass(PassRequest& request, int thread)
        : r_(request), model_(request.model), shape_(model_.shape), s_(request.scratch), thread_(thread) {}

    void run() {
        if (r_.states) {
            quantise_states();
        } else {
            embed();
            run_layers();
            const int first = std::min(r_.first_logits, r_.first_hidden);
            if (first == r_.rows) return;
            norm_and_quantise(model_.final_norm, first);
            copy_hidden();
        }
        if (r_.first_logits == r_.rows) return;
        wait();
        project_to_logits();
    }

private:
    void wait() { r_.barrier.wait(); }
    Range mine(int count) const { return share(count, thread_, r_.threads); }

    // Two tiles are one group of the next product's inputs, so a thread can quantise what it made.
    Range my_tiles(int outputs) const {
        const int tiles = tiles_of(outputs);
        const Range pairs = mine((tiles + 1) / 2);
        return {2 * pairs.first, 2 * pairs.last < tiles ? 2 * pairs.last : tiles};
    }

    void run_layers() {
        for (int number = 0; number < r_.layers; ++number) {
            const Layer& layer = model_.layers[number];
            norm_and_quantise(layer.attention_norm, 0);
            wait();
            project_heads(layer);
            store_heads(layer, number);
            if (shape_.key_value_heads % r_.threads) wait();  // some heads' keys were made by another thread
            attend_heads(number);
            wait();
            project_to_hidden(layer.attention_output, s_.attended_inputs);
            wait();
            add_to_residual();
            norm_and_quantise(layer.feed_forward_norm, 0);
            wait();
            feed_forward(layer);
            wait();
            project_to_hidden(layer.down, s_.feed_forward_inputs);
            wait();
            add_to_residual();
        }
    }

    void embed() {
        const Range rows = mine(r_.rows);
        for (int row = rows.first; row < rows.last; ++row)
            dequantise_row(model_.embedding_format,
                           model_.embedding + r_.ids[row] * model_.embedding_row_bytes, shape_.hidden,
                           residual(row));
    }

    void norm_and_quantise(const float* weight, int first_row) {
        const Range rows = mine(r_.rows);
        for (int row = rows.first > first_row ? rows.first : first_row; row < rows.last; ++row) {
            rms_norm<V>(residual(row), weight, shape_.hidden, shape_.norm_epsilon, normed(row));
            quantise<V>(normed(row), s_.hidden_inputs, row, 0, shape_.hidden / kGroup);
        }
    }

    void quantise_states() {
        const Range rows = mine(r_.rows);
        for (int row = rows.first; row < rows.last; ++row)
            quantise<V>(r_.states + size_t(row) * shape_.hidden, s_.hidden_inputs, row, 0,
                        shape_.hidden / kGroup);
    }

    void copy_hidden() {
        const Range rows = mine(r_.rows);
        for (int row = std::max(rows.first, r_.first_hidden); row < rows.last; ++row)
            std::copy_n(normed(row), shape_.hidden,
                        r_.hidden + size_t(row - r_.first_hidden) * shape_.hidden);
    }

    void project_heads(const Layer& layer) {
        project_head_range(layer.query, 0, my_heads());
        project_head_range(layer.key, shape_.queries(), my_key_value_heads());
        project_head_range(layer.value, shape_.queries() + shape_.keys(), my_key_value_heads());
    }

    void project_head_range(const Matrix& matrix, int column, Range heads) {
        const int tiles = shape_.head_size / kTile;
        multiply<V>(matrix, s_.hidden_inputs, 0, r_.rows, s_.heads.data() + column, head_stride(),
                    heads.first * tiles, heads.last * tiles);
    }

    // Biases, norms of heads and rotation; keys and values go to the cache, queries stay.
    void store_heads(const Layer& layer, int number) {
        const Range queries = my_heads(), keys = my_key_value_heads();
        const int size = shape_.head_size;
        for (int row = 0; row < r_.rows; ++row) {
            const int position = r_.position + row;
            float* const base = s_.heads.data() + row * head_stride();
            for (int head = queries.first; head < queries.last; ++head)
                finish_head(base + head * size, layer.query_bias, layer.query_norm, head, position);
            for (int head = keys.first; head < keys.last; ++head) {
                float* key = base + shape_.queries() + head * size;
                float* value = key + shape_.keys();
                finish_head(key, layer.key_bias, layer.key_norm, head, position);
                if (layer.value_bias) add_to<V>(value, layer.value_bias + head * size, size);
                r_.cache.at(number, head).store(position, key, value);
            }
        }
    }

    void finish_head(float* values, const float* bias, const float* norm, int head, int position) const {
        const int size = shape_.head_size;
        if (bias) add_to<V>(values, bias + head * size, size);
        if (norm) rms_norm<V>(values, norm, size, shape_.norm_epsilon, values);
        const size_t angle = size_t(position) * (size / 2);
        rotate<V>(values, size, model_.cosines + angle, model_.sines + angle);
    }

    void attend_heads(int number) {
        const Range heads = my_heads();
        const int size = shape_.head_size, shared = shape_.heads / shape_.key_value_heads;
        const size_t stride = Scratch::padded(shape_.context);
        float* scores = s_.scores.data() + thread_ * kHeadsAtOnce * stride;
        for (int head = heads.first, count; head < heads.last; head += count) {
            const int sharing = shared - head % shared;  // this head and those after it with the same keys
            count = std::min({sharing, heads.last - head, kHeadsAtOnce});
            const KeyValues cache = r_.cache.at(number, head / shared);
            for (int row = 0; row < r_.rows; ++row)
                attend<V>(count, s_.heads.data() + row * head_stride() + head * size, cache,
                          r_.position + row + 1, scores, stride, attended(row) + head * size);
        }
        for (int row = 0; row < r_.rows; ++row)
            quantise<V>(attended(row), s_.attended_inputs, row, heads.first * size / kGroup,
                        heads.last * size / kGroup);
    }

    void project_to_hidden(const Matrix& matrix, const Activations& inputs) {
        const Range tiles = my_tiles(shape_.hidden);
        multiply<V>(matrix, inputs, 0, r_.rows, s_.normed.data(), Scratch::padded(shape_.hidden), tiles.first,
                    tiles.last);
    }

    void add_to_residual() {
        const Range rows = mine(r_.rows);
        for (int row = rows.first; row < rows.last; ++row)
            add_to<V>(residual(row), normed(row), shape_.hidden);
    }

    void feed_forward(const Layer& layer) {
        const size_t stride = Scratch::padded(shape_.feed_forward);
        const Range tiles = my_tiles(shape_.feed_forward);
        multiply<V>(layer.gate, s_.hidden_inputs, 0, r_.rows, s_.gate.data(), stride, tiles.first,
                    tiles.last);
        multiply<V>(layer.up, s_.hidden_inputs, 0, r_.rows, s_.up.data(), stride, tiles.first, tiles.last);
        const int first = tiles.first * kTile, last = tiles.last * kTile;
        for (int row = 0; row < r_.rows; ++row) {
            float* gate = s_.gate.data() + row * stride;
            swiglu<V>(gate + first, s_.up.data() + row * stride + first, last - first);
            quantise<V>(gate, s_.feed_forward_inputs, row, first / kGroup, last / kGroup);
        }
    }

    void project_to_logits() {
        const Range tiles = my_tiles(shape_.vocabulary);
        multiply<V>(model_.head, s_.hidden_inputs, r_.first_logits, r_.rows - r_.first_logits, r_.logits,
                    r_.logits_stride, tiles.first, tiles.last);
        for (int row = 0; row < r_.rows - r_.first_logits; ++row)
            if (!all_finite<V>(r_.logits + row * r_.logits_stride + tiles.first * kTile,
                               (tiles.last - tiles.first) * kTile))
                r_.finite.store(false, std::memory_order_relaxed);
    }

    Range my_heads() const { return mine(shape_.heads); }
    // With a whole number of key-value heads a thread these are the ones its query heads share.
    Range my_key_value_heads() const { return mine(shape_.key_value_heads); }
    size_t head_stride() const { return shape_.queries() + 2 * shape_.keys(); }
    float* residual(int row) const { return s_.residual.data() + size_t(row) * shape_.hidden; }
    float* normed(int row) const { return s_.normed.data() + size_t(row) * Scratch::padded(shape_.hidden); }
    float* attended(int row) const { return s_.attended.data() + size_t(row) * shape_.queries(); }

    PassRequest& r_;
    const Model& model_;
    const Shape& shape_;
    Scratch& s_;
    const int thread_;
};

}  // namespace rejoinder
