// Quantising a row of activations.
#pragma once

#include "activations.h"

namespace rejoinder {

// Quantises groups [first, last) of one row of floats to nearest integers, ties to even.
template <class V>
inline void quantise(const float* values, Activations& out, int row, int first, int last) {
    for (int group = first; group < last; ++group) {
        const float* x = values + size_t(group) * kGroup;
        int8_t* quant = out.quant(row) + size_t(group) * kGroup;
        const auto low = V::load(x), high = V::load(x + 16);
        // An all-zero group keeps a scale that is not zero, so that nothing divides by it; a value that is
        // not finite makes the scale so, and with it every product of the row, down to the logits.
        const float magnitude = V::largest_magnitude(low, high);
        const float peak = magnitude < 1e-20f ? 1e-20f : magnitude;
        const auto steps = V::floats(127.f / peak);
        const auto low_steps = V::nearest(V::mul(low, steps)), high_steps = V::nearest(V::mul(high, steps));
        V::store_bytes(quant, low_steps);
        V::store_bytes(quant + 16, high_steps);
        const int32_t low_sum = V::sum(low_steps), high_sum = V::sum(high_steps);
        out.scale(row)[group] = peak / 127.f;
        out.sum(row)[group] = out.scale(row)[group] * static_cast<float>(low_sum + high_sum);
        out.set_starts(row, group, low_sum, high_sum);
    }
}

}  // namespace rejoinder
