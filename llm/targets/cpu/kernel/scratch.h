// The buffers of one pass, for up to kPassRows rows.
#pragma once

#include "activations.h"
#include "model.h"

namespace rejoinder {

constexpr int kPassRows = 64;
constexpr int kHeadsAtOnce = 4;  // query heads that go through shared keys and values together

struct Scratch {
    explicit Scratch(const Shape& shape, int rows, int threads)
        : rows(rows),
          threads(threads),
          residual(size_t(rows) * shape.hidden),
          normed(size_t(rows) * padded(shape.hidden)),
          heads(size_t(rows) * (shape.queries() + 2 * shape.keys())),
          attended(size_t(rows) * shape.queries()),
          gate(size_t(rows) * padded(shape.feed_forward)),
          up(size_t(rows) * padded(shape.feed_forward)),
          scores(size_t(threads) * kHeadsAtOnce * padded(shape.context)),
          hidden_inputs(rows, shape.hidden),
          attended_inputs(rows, shape.queries()),
          feed_forward_inputs(rows, shape.feed_forward) {}

    static size_t padded(int size) { return size_t(tiles_of(size)) * kTile; }

    size_t bytes() const {
        return residual.bytes() + normed.bytes() + heads.bytes() + attended.bytes() + gate.bytes() +
               up.bytes() + scores.bytes() + hidden_inputs.bytes() + attended_inputs.bytes() +
               feed_forward_inputs.bytes();
    }

    int rows, threads;
    Array<float> residual;  // [rows, hidden]
    Array<float> normed;    // [rows, hidden]: a norm's output, or a product to be added to the residual
    Array<float> heads;     // [rows, queries + keys + values]
    Array<float> attended;  // [rows, queries]
    Array<float> gate, up;  // [rows, feed_forward]
    Array<float> scores;    // [threads, heads at once, context]
    Activations hidden_inputs, attended_inputs, feed_forward_inputs;
};

}  // namespace rejoinder
