// How weights lie in memory for the products, and the packing into that layout.
//
// A matrix [outputs, inputs] is cut into tiles of 16 outputs; a tile is cut along its inputs into chunks,
// stored one after another, so a tile is one sequential stream. A chunk is
//
//     | quants of group 0 | quants of group 1 | ... | scales of all its groups |
//
// The quants of a group of 32 inputs, for 16 outputs (rows r = 0..15), in loads of 64 bytes, byte 4r + e:
//
//     8 bits   load j = 0..7     input 4j + e
//     4 bits   load i = 0..3     input 8i + e in the low half, input 8i + 4 + e in the high half
//     5 bits   as 4 bits, then one load with every fifth bit: bit j of its byte is that of input 4j + e
//     6 bits   as 4 bits, then two loads with the upper two bits: in load h, bits 2j and 2j + 1 of the byte
//              are those of input 16h + 4j + e
//
// so that one 64-byte vector holds, for each of 16 outputs, four neighbouring inputs: what a 4-way integer
// dot product multiplies with four broadcast activations. The scales keep the file's own numbers:
//
//     Halves             a chunk has 2 groups:  half d[2][16]
//     HalvesAndMinimums  a chunk has 2 groups:  half d[2][16], half m[2][16]
//     GroupsOf32         a chunk has 8 groups:  uint8 scale[8][16], uint8 minimum[8][16], half d[16], half
//     m[16] GroupsOf16         a chunk has 8 groups:  int8 scale[16][16], half d[16]
//
// and each chunk is padded to whole cache lines. Missing outputs and inputs are zeros.
#pragma once

#include "formats.h"

namespace rejoinder {

constexpr int kTile = 16;          // outputs of a tile
constexpr int kLine = 64;          // bytes of a cache line, and of a vector load
constexpr int kLayoutVersion = 1;  // raise it whenever a byte of the layout changes

enum class Scaling { Halves, HalvesAndMinimums, GroupsOf32, GroupsOf16 };

struct Layout {
    int bits;
    int offset;
    Scaling scaling;
    int groups;       // of 32 inputs, in a chunk
    int group_bytes;  // the quants of one group
    int scales_at;    // byte where a chunk's scales start
    int chunk_bytes;

    constexpr int chunk_inputs() const { return groups * kGroup; }
};

constexpr Layout make_layout(int bits, int offset, Scaling scaling) {
    const bool super = scaling == Scaling::GroupsOf32 || scaling == Scaling::GroupsOf16;
    const int groups = super ? 8 : 2;
    const int group_bytes = bits * kTile * kGroup / 8;
    const int scale_bytes = scaling == Scaling::Halves              ? groups * kTile * 2
                            : scaling == Scaling::HalvesAndMinimums ? groups * kTile * 4
                            : scaling == Scaling::GroupsOf32        ? groups * kTile * 2 + kTile * 4
                                                                    : groups * kTile * 2 + kTile * 2;
    const int bytes = groups * group_bytes + scale_bytes;
    return {bits,
            offset,
            scaling,
            groups,
            group_bytes,
            groups * group_bytes,
            (bytes + kLine - 1) / kLine * kLine};
}

// The layout a file's format is packed into. Floats are quantised to Q8_0 first.
constexpr Layout layout_of(Format format) {
    switch (format) {
        case Format::Q4_0: return make_layout(4, 8, Scaling::Halves);
        case Format::Q4_1: return make_layout(4, 0, Scaling::HalvesAndMinimums);
        case Format::Q5_0: return make_layout(5, 16, Scaling::Halves);
        case Format::Q4_K: return make_layout(4, 0, Scaling::GroupsOf32);
        case Format::Q5_K: return make_layout(5, 0, Scaling::GroupsOf32);
        case Format::Q6_K: return make_layout(6, 32, Scaling::GroupsOf16);
        default: return make_layout(8, 128, Scaling::Halves);
    }
}

constexpr int tiles_of(int outputs) { return (outputs + kTile - 1) / kTile; }
constexpr int chunks_of(const Layout& layout, int inputs) {
    return (inputs + layout.chunk_inputs() - 1) / layout.chunk_inputs();
}

inline size_t packed_bytes(Format format, int outputs, int inputs) {
    const Layout layout = layout_of(format);
    return size_t(tiles_of(outputs)) * chunks_of(layout, inputs) * layout.chunk_bytes;
}

// A packed matrix; whoever made it keeps the tiles alive.
struct Matrix {
    Format format = Format::F32;
    int outputs = 0, inputs = 0;
    const uint8_t* tiles = nullptr;

    explicit operator bool() const { return tiles != nullptr; }
};

// Packs a matrix of `outputs` rows of `inputs` weights in the file's blocks. `tiles`: packed_bytes() of them.
void pack(Format format, const uint8_t* rows, int outputs, int inputs, uint8_t* tiles);

}  // namespace rejoinder
