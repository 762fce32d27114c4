// One call's keys and values, float32, in chunks of 256 positions that are added as the call grows.
//
// A chunk holds, for each layer and key-value head, its keys and then its values:
//
//     keys    [16 blocks of 16 positions][head_size][16]   so that 16 positions' scores fill a vector
//     values  [256 positions][head_size]
#pragma once

#include <vector>

#include "memory.h"
#include "model.h"

namespace rejoinder {

constexpr int kChunkPositions = 256;

// The keys and values of one layer and head.
struct KeyValues {
    const std::vector<Array<float>>* chunks;
    size_t offset;  // floats from a chunk's start
    int head_size;

    // The block of 16 keys that position `at` lies in.
    float* keys(int at) const { return chunk(at) + size_t(at % kChunkPositions / 16) * 16 * head_size; }
    float* values(int at) const {
        return chunk(at) + size_t(kChunkPositions + at % kChunkPositions) * head_size;
    }
    void store(int at, const float* key, const float* value) const {
        float* block = keys(at) + at % 16;
        for (int i = 0; i < head_size; ++i) block[i * 16] = key[i];
        __builtin_memcpy(values(at), value, sizeof(float) * head_size);
    }
    void load(int at, float* key, float* value) const {
        const float* block = keys(at) + at % 16;
        for (int i = 0; i < head_size; ++i) key[i] = block[i * 16];
        __builtin_memcpy(value, values(at), sizeof(float) * head_size);
    }

private:
    float* chunk(int at) const { return (*chunks)[at / kChunkPositions].data() + offset; }
};

class KeyValueCache {
public:
    explicit KeyValueCache(const Shape& shape) : shape_(shape) {}

    void reserve(int positions) {
        while (int(chunks_.size()) * kChunkPositions < positions)
            chunks_.emplace_back(head_floats() * shape_.key_value_heads * shape_.layers);
    }
    KeyValues at(int layer, int head) const {
        return {&chunks_, head_floats() * (size_t(layer) * shape_.key_value_heads + head), shape_.head_size};
    }
    // Floats that one position has in all layers and heads.
    size_t position_floats() const {
        return size_t(2) * shape_.layers * shape_.key_value_heads * shape_.head_size;
    }
    // The first `positions` as [positions][layers][key-value heads][key, then value], whatever the chunks.
    void copy_out(int positions, float* to) const {
        for_each(positions, [&](const KeyValues& cache, int at, size_t place) {
            cache.load(at, to + place, to + place + shape_.head_size);
        });
    }
    void copy_in(int positions, const float* from) {
        reserve(positions);
        for_each(positions, [&](const KeyValues& cache, int at, size_t place) {
            cache.store(at, from + place, from + place + shape_.head_size);
        });
    }
    size_t bytes() const {
        size_t total = 0;
        for (const auto& chunk : chunks_) total += chunk.bytes();
        return total;
    }

private:
    // Calls `copy(keys and values, position, where its floats begin)`, the positions of a head one after
    // another: 16 of them share the lines of a block of keys.
    template <class Copy>
    void for_each(int positions, Copy copy) const {
        for (int layer = 0; layer < shape_.layers; ++layer)
            for (int head = 0; head < shape_.key_value_heads; ++head) {
                const KeyValues cache = at(layer, head);
                const size_t place =
                    size_t(2) * shape_.head_size * (size_t(layer) * shape_.key_value_heads + head);
                for (int at = 0; at < positions; ++at) copy(cache, at, at * position_floats() + place);
            }
    }
    size_t head_floats() const { return size_t(2) * kChunkPositions * shape_.head_size; }

    Shape shape_;
    std::vector<Array<float>> chunks_;
};

}  // namespace rejoinder
