// One query against the keys and values of all positions up to its own.
//
// A row's scores, softmax and weighted sum run over its own length in a fixed order, so they do not depend on
// what else is in the block.
#pragma once

#include <cmath>

#include "cache.h"
#include "elementwise.h"

namespace rejoinder {

// Scores of the 16 positions of one block of keys: four partial sums, as one would wait on itself.
template <class V>
inline typename V::Floats scores_of_block(const float* query, const float* keys, int head_size) {
    typename V::Floats part[4] = {V::zero(), V::zero(), V::zero(), V::zero()};
    for (int i = 0; i < head_size; i += 4)
        for (int e = 0; e < 4; ++e)
            part[e] = V::mul_add(V::floats(query[i + e]), V::load(keys + (i + e) * 16), part[e]);
    return V::add(V::add(part[0], part[1]), V::add(part[2], part[3]));
}

// out[0 .. 16 * vectors) of the weighted sum of values.
template <class V, int vectors>
inline void weighted_values(const KeyValues& cache, int length, const float* weights, int offset, float factor, float* out) {
    typename V::Floats sums[vectors];
    for (int i = 0; i < vectors; ++i) sums[i] = V::zero();
    for (int start = 0; start < length; start += kChunkPositions) {
        const float* values = cache.values(start) + offset;
        const int count = length - start < kChunkPositions ? length - start : kChunkPositions;
        for (int j = 0; j < count; ++j, values += cache.head_size)
            for (int i = 0; i < vectors; ++i)
                sums[i] = V::mul_add(V::floats(weights[start + j]), V::load(values + i * 16), sums[i]);
    }
    for (int i = 0; i < vectors; ++i) V::store(out + i * 16, V::mul(sums[i], V::floats(factor)));
}

// out[head_size] = softmax(query . keys / sqrt(head_size)) values, over positions 0 .. length - 1.
// `scores`: scratch for length floats, rounded up to 16.
template <class V>
inline void attend(const float* query, const KeyValues& cache, int length, float* scores, float* out) {
    const int size = cache.head_size;
    const auto scale = V::floats(1.f / std::sqrt(static_cast<float>(size)));
    const auto nothing = V::floats(-1e30f);
    auto peaks = nothing;
    for (int j = 0; j < length; j += 16) {
        auto block = V::mul(scores_of_block<V>(query, cache.keys(j), size), scale);
        if (j + 16 > length) block = V::first(length - j, block, nothing);
        V::store(scores + j, block);
        peaks = V::max(peaks, block);
    }
    const auto peak = V::floats(V::largest(peaks));
    auto totals = V::zero();
    for (int j = 0; j < length; j += 16) {
        auto weights = exponential<V>(V::sub(V::load(scores + j), peak));
        if (j + 16 > length) weights = V::first(length - j, weights, V::zero());
        V::store(scores + j, weights);
        totals = V::add(totals, weights);
    }
    const float factor = 1.f / V::sum(totals);
    int offset = 0;
    for (; offset + 64 <= size; offset += 64) weighted_values<V, 4>(cache, length, scores, offset, factor, out + offset);
    for (; offset < size; offset += 32) weighted_values<V, 2>(cache, length, scores, offset, factor, out + offset);
}

}  // namespace rejoinder
