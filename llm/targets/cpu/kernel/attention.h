// Queries of one row against the keys and values of all positions up to its own.
//
// Query heads that share a key-value head go through it together, so that each key and value is loaded once
// for several of them. What is computed for a head does not depend on its companions: scores, softmax and
// weighted sum run over the row's own length in a fixed order, so they do not depend on the rest of the block
// either.
#pragma once

#include <cmath>

#include "cache.h"
#include "elementwise.h"
#include "scratch.h"

namespace rejoinder {

// Scores of `heads` queries with the 16 positions of one block of keys, four partial sums each, as one sum
// would wait on itself.
template <class V, int heads>
inline void scores_of_block(const float* queries, const float* keys, int head_size,
                            typename V::Floats* scores) {
    typename V::Floats part[heads][4];
    for (int head = 0; head < heads; ++head)
        for (int e = 0; e < 4; ++e) part[head][e] = V::zero();
    for (int i = 0; i < head_size; i += 4)
        for (int e = 0; e < 4; ++e) {
            const auto key = V::load(keys + (i + e) * 16);
            for (int head = 0; head < heads; ++head)
                part[head][e] = V::mul_add(V::floats(queries[head * head_size + i + e]), key, part[head][e]);
        }
    for (int head = 0; head < heads; ++head)
        scores[head] = V::add(V::add(part[head][0], part[head][1]), V::add(part[head][2], part[head][3]));
}

// Turns scores into weights that are yet to be divided by their sum, which is returned.
template <class V>
inline float exponentials(float* scores, int length, typename V::Floats peaks) {
    const auto peak = V::floats(V::largest(peaks));
    auto totals = V::zero();
    for (int j = 0; j < length; j += 16) {
        auto weights = exponential<V>(V::sub(V::load(scores + j), peak));
        if (j + 16 > length) weights = V::first(length - j, weights, V::zero());
        V::store(scores + j, weights);
        totals = V::add(totals, weights);
    }
    return V::sum(totals);
}

// out[head][offset .. offset + 16 * vectors) of the weighted sums of values.
template <class V, int heads, int vectors>
inline void weighted_values(const KeyValues& cache, int length, const float* weights, size_t stride,
                            int offset, const float* factors, float* out) {
    typename V::Floats sums[heads][vectors];
    for (int head = 0; head < heads; ++head)
        for (int i = 0; i < vectors; ++i) sums[head][i] = V::zero();
    for (int start = 0; start < length; start += kChunkPositions) {
        const float* values = cache.values(start) + offset;
        const int count = length - start < kChunkPositions ? length - start : kChunkPositions;
        for (int j = 0; j < count; ++j, values += cache.head_size)
            for (int i = 0; i < vectors; ++i) {
                const auto value = V::load(values + i * 16);
                for (int head = 0; head < heads; ++head)
                    sums[head][i] =
                        V::mul_add(V::floats(weights[head * stride + start + j]), value, sums[head][i]);
            }
    }
    for (int head = 0; head < heads; ++head)
        for (int i = 0; i < vectors; ++i)
            V::store(out + head * cache.head_size + offset + i * 16,
                     V::mul(sums[head][i], V::floats(factors[head])));
}

template <class V, int heads>
inline void attend_together(const float* queries, const KeyValues& cache, int length, float* scores,
                            size_t stride, float* out) {
    const int size = cache.head_size;
    const auto scale = V::floats(1.f / std::sqrt(static_cast<float>(size)));
    const auto nothing = V::floats(-1e30f);
    typename V::Floats peaks[heads], block[heads];
    for (int head = 0; head < heads; ++head) peaks[head] = nothing;
    for (int j = 0; j < length; j += 16) {
        scores_of_block<V, heads>(queries, cache.keys(j), size, block);
        for (int head = 0; head < heads; ++head) {
            auto scaled = V::mul(block[head], scale);
            if (j + 16 > length) scaled = V::first(length - j, scaled, nothing);
            V::store(scores + head * stride + j, scaled);
            peaks[head] = V::max(peaks[head], scaled);
        }
    }
    float factors[heads];
    for (int head = 0; head < heads; ++head)
        factors[head] = 1.f / exponentials<V>(scores + head * stride, length, peaks[head]);
    // As many sums at once as hide the time one takes, without running out of registers.
    constexpr int vectors = heads > 2 ? 2 : 4;
    int offset = 0;
    for (; offset + 16 * vectors <= size; offset += 16 * vectors)
        weighted_values<V, heads, vectors>(cache, length, scores, stride, offset, factors, out);
    for (; offset < size; offset += 32)
        weighted_values<V, heads, 2>(cache, length, scores, stride, offset, factors, out);
}

// out[head][head_size] = softmax(query . keys / sqrt(head_size)) values over positions 0 .. length - 1, for
// `heads` (1 to kHeadsAtOnce) neighbouring heads. `scores`: scratch, `stride` >= length rounded up to 16 a
// head.
template <class V>
inline void attend(int heads, const float* queries, const KeyValues& cache, int length, float* scores,
                   size_t stride, float* out) {
    switch (heads) {
        case 1: attend_together<V, 1>(queries, cache, length, scores, stride, out); break;
        case 2: attend_together<V, 2>(queries, cache, length, scores, stride, out); break;
        case 3: attend_together<V, 3>(queries, cache, length, scores, stride, out); break;
        default: attend_together<V, 4>(queries, cache, length, scores, stride, out);
    }
}

}  // namespace rejoinder
