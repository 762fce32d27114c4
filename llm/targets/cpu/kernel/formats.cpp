#include "formats.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace rejoinder {

namespace {

float bits_to_float(uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

uint16_t load16(const uint8_t* bytes) {
    uint16_t value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
}

// Sixteen bytes hold 32 nibbles: inputs 0-15 in the low halves, 16-31 in the high halves.
void read_nibbles(const uint8_t* bytes, uint8_t* quant) {
    for (int i = 0; i < 16; ++i) {
        quant[i] = bytes[i] & 15;
        quant[i + 16] = bytes[i] >> 4;
    }
}

void read_q5_0(const uint8_t* bytes, Block& block) {
    uint32_t fifth;
    std::memcpy(&fifth, bytes + 2, sizeof fifth);
    read_nibbles(bytes + 6, block.quant);
    for (int i = 0; i < kGroup; ++i) block.quant[i] |= (fifth >> i & 1) << 4;
}

void read_q8_0(const uint8_t* bytes, Block& block) {
    for (int i = 0; i < kGroup; ++i) block.quant[i] = bytes[2 + i] ^ 128;  // signed to unsigned: + 128
}

// Q4_K and Q5_K keep eight 6-bit scales and eight 6-bit minimums in twelve bytes.
void read_k_scales(const uint8_t* packed, Block& block) {
    for (int group = 0; group < 8; ++group) {
        int scale, minimum;
        if (group < 4) {
            scale = packed[group] & 63;
            minimum = packed[group + 4] & 63;
        } else {
            scale = (packed[group + 4] & 15) | (packed[group - 4] >> 6) << 4;
            minimum = packed[group + 4] >> 4 | (packed[group] >> 6) << 4;
        }
        block.scale[2 * group] = block.scale[2 * group + 1] = scale;
        block.minimum[group] = minimum;
    }
}

// 128 bytes: each run of 32 holds two groups, one in the low and one in the high halves.
void read_k_nibbles(const uint8_t* bytes, uint8_t* quant) {
    for (int pair = 0; pair < 4; ++pair)
        for (int i = 0; i < kGroup; ++i) {
            quant[pair * 64 + i] = bytes[pair * 32 + i] & 15;
            quant[pair * 64 + 32 + i] = bytes[pair * 32 + i] >> 4;
        }
}

void read_q4_k(const uint8_t* bytes, Block& block) {
    block.m = load16(bytes + 2);
    read_k_scales(bytes + 4, block);
    read_k_nibbles(bytes + 16, block.quant);
}

void read_q5_k(const uint8_t* bytes, Block& block) {
    block.m = load16(bytes + 2);
    read_k_scales(bytes + 4, block);
    read_k_nibbles(bytes + 48, block.quant);
    for (int group = 0; group < 8; ++group)
        for (int i = 0; i < kGroup; ++i) block.quant[group * kGroup + i] |= (bytes[16 + i] >> group & 1) << 4;
}

void read_q6_k(const uint8_t* bytes, Block& block) {
    const uint8_t* low = bytes;
    const uint8_t* high = bytes + 128;
    for (int half = 0; half < 2; ++half, low += 64, high += 32)
        for (int i = 0; i < 32; ++i) {
            uint8_t* quant = block.quant + half * 128 + i;
            quant[0] = (low[i] & 15) | (high[i] & 3) << 4;
            quant[32] = (low[i + 32] & 15) | (high[i] >> 2 & 3) << 4;
            quant[64] = low[i] >> 4 | (high[i] >> 4 & 3) << 4;
            quant[96] = low[i + 32] >> 4 | (high[i] >> 6) << 4;
        }
    for (int i = 0; i < 16; ++i) block.scale[i] = static_cast<int8_t>(bytes[192 + i]);
    block.d = load16(bytes + 208);
}

}  // namespace

Format format_named(const std::string& name) {
    static const char* const names[] = {"Q4_0", "Q4_1", "Q5_0", "Q8_0", "Q4_K",
                                        "Q5_K", "Q6_K", "F16",  "BF16", "F32"};
    for (int i = 0; i < 10; ++i)
        if (name == names[i]) return static_cast<Format>(i);
    throw std::invalid_argument("no weight format is called " + name);
}

void read_block(Format format, const uint8_t* bytes, Block& block) {
    std::fill(std::begin(block.scale), std::end(block.scale), 1);
    std::fill(std::begin(block.minimum), std::end(block.minimum), 0);
    block.d = load16(bytes);
    block.m = 0;
    switch (format) {
        case Format::Q4_0: read_nibbles(bytes + 2, block.quant); break;
        case Format::Q4_1:
            block.m = load16(bytes + 2) ^ 0x8000;  // the file adds m, we take it off
            block.minimum[0] = 1;
            read_nibbles(bytes + 4, block.quant);
            break;
        case Format::Q5_0: read_q5_0(bytes, block); break;
        case Format::Q8_0: read_q8_0(bytes, block); break;
        case Format::Q4_K: read_q4_k(bytes, block); break;
        case Format::Q5_K: read_q5_k(bytes, block); break;
        case Format::Q6_K: read_q6_k(bytes, block); break;
        default: throw std::invalid_argument("not a quantised format");
    }
}

void dequantise_row(Format format, const uint8_t* row, int inputs, float* weights) {
    if (format == Format::F32) {
        std::memcpy(weights, row, sizeof(float) * inputs);
        return;
    }
    if (!is_quantised(format)) {
        for (int i = 0; i < inputs; ++i) {
            const uint16_t bits = load16(row + 2 * i);
            weights[i] = format == Format::F16 ? half_to_float(bits) : bits_to_float(uint32_t{bits} << 16);
        }
        return;
    }
    const BlockShape shape = block_shape(format);
    Block block;
    for (int first = 0; first < inputs; first += shape.inputs, row += shape.bytes) {
        read_block(format, row, block);
        const float d = half_to_float(block.d), m = half_to_float(block.m);
        for (int i = 0; i < shape.inputs; ++i)
            weights[first + i] =
                d * block.scale[i / 16] * (block.quant[i] - shape.offset) - m * block.minimum[i / kGroup];
    }
}

void quantise_row_q8_0(const float* weights, int inputs, uint8_t* row) {
    for (int first = 0; first < inputs; first += kGroup, row += 34) {
        float largest = 0;
        for (int i = 0; i < kGroup; ++i) largest = std::max(largest, std::fabs(weights[first + i]));
        const uint16_t scale = float_to_half(largest / 127);
        const float rounded = half_to_float(scale);
        std::memcpy(row, &scale, sizeof scale);
        for (int i = 0; i < kGroup; ++i) {
            const float steps = rounded > 0 ? std::nearbyint(weights[first + i] / rounded) : 0;
            row[2 + i] = static_cast<uint8_t>(static_cast<int8_t>(std::clamp(steps, -127.f, 127.f)));
        }
    }
}

float half_to_float(uint16_t bits) {
    const uint32_t sign = uint32_t{bits} >> 15 << 31;
    const uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
    if (exponent == 31) return bits_to_float(sign | 0x7f800000 | fraction << 13);
    if (exponent > 0) return bits_to_float(sign | (exponent + 112) << 23 | fraction << 13);
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;  // subnormal
    return sign ? -magnitude : magnitude;
}

uint16_t float_to_half(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    const uint16_t sign = bits >> 16 & 0x8000;
    const float magnitude = std::fabs(value);
    if (std::isnan(value)) return sign | 0x7e00;
    if (magnitude >= 65520.f) return sign | 0x7c00;
    if (magnitude < 0x1p-14f) return sign | static_cast<uint16_t>(std::nearbyint(magnitude * 0x1p24f));
    const uint32_t rounded = (bits & 0x7fffffff) + 0xfff + (bits >> 13 & 1);  // ties to even
    return sign | static_cast<uint16_t>((rounded >> 13) - (112 << 10));
}

}  // namespace rejoinder
