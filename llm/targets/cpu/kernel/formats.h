// The block formats in which a checkpoint's file stores weights, and how to read one block.
//
// The formats are llama.cpp's (ggml-common.h). Every one of them is, for input i of a block,
//
//     weight = d * scale[i / 16] * (quant[i] - offset)  -  m * minimum[i / 32]
//
// with small unsigned integers `quant`, small integers `scale` and `minimum`, and two half-precision
// numbers d and m a block; where a format has no scales or minimums they are 1 and 0. `Block` is that,
// written out, so that packing and dequantising are each written once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace rejoinder {

enum class Format { Q4_0, Q4_1, Q5_0, Q8_0, Q4_K, Q5_K, Q6_K, F16, BF16, F32 };

constexpr int kGroup = 32;      // inputs that share a scale; activations are quantised in the same groups
constexpr int kMaxBlock = 256;  // inputs of the largest block

struct Block {
    uint8_t quant[kMaxBlock];
    int scale[kMaxBlock / 16];
    int minimum[kMaxBlock / kGroup];
    uint16_t d;  // half precision
    uint16_t m;  // half precision
};

struct BlockShape {
    int inputs;  // weights in a block
    int bytes;   // of a block in the file
    int offset;  // what is taken off the unsigned integers; 0 where minimums do that
};

constexpr BlockShape block_shape(Format format) {
    switch (format) {
        case Format::Q4_0: return {32, 18, 8};
        case Format::Q4_1: return {32, 20, 0};
        case Format::Q5_0: return {32, 22, 16};
        case Format::Q8_0: return {32, 34, 128};
        case Format::Q4_K: return {256, 144, 0};
        case Format::Q5_K: return {256, 176, 0};
        case Format::Q6_K: return {256, 210, 32};
        case Format::F16:
        case Format::BF16: return {1, 2, 0};
        case Format::F32: return {1, 4, 0};
    }
    return {0, 0, 0};
}

constexpr bool is_quantised(Format format) { return block_shape(format).inputs > 1; }

// Throws std::invalid_argument for a name that is not one of the formats.
Format format_named(const std::string& name);

// Reads one block of a quantised format.
void read_block(Format format, const uint8_t* bytes, Block& block);

// Dequantises `inputs` weights of one row of any format, in float32 as the reference does.
void dequantise_row(Format format, const uint8_t* row, int inputs, float* weights);

// Writes one row of floats as Q8_0 blocks: scale = largest magnitude / 127, rounded to half precision.
void quantise_row_q8_0(const float* weights, int inputs, uint8_t* row);

float half_to_float(uint16_t bits);
uint16_t float_to_half(float value);  // to nearest, ties to even; overflows to infinity

}  // namespace rejoinder
