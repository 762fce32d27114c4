#include "packing.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace rejoinder {

namespace {

// One output's 32 quants of one group into the planes of its chunk.
void pack_group(int bits, const uint8_t* quant, int row, uint8_t* group) {
    for (int e = 0; e < 4; ++e) {
        const int byte = 4 * row + e;
        if (bits == 8) {
            for (int j = 0; j < 8; ++j) group[j * kLine + byte] = quant[4 * j + e];
            continue;
        }
        for (int i = 0; i < 4; ++i)
            group[i * kLine + byte] = (quant[8 * i + e] & 15) | (quant[8 * i + 4 + e] & 15) << 4;
        uint8_t* upper = group + 4 * kLine;
        if (bits == 5)
            for (int j = 0; j < 8; ++j) upper[byte] |= (quant[4 * j + e] >> 4) << j;
        if (bits == 6)
            for (int half = 0; half < 2; ++half)
                for (int j = 0; j < 4; ++j)
                    upper[half * kLine + byte] |= (quant[16 * half + 4 * j + e] >> 4) << (2 * j);
    }
}

void put_half(uint8_t* table, int index, uint16_t half) {
    std::memcpy(table + 2 * index, &half, sizeof half);
}

// One output's scales of one block into the scale tables of its chunk. `first`: the block's first group
// there.
void pack_scales(const Layout& layout, const Block& block, int first, int row, uint8_t* scales) {
    switch (layout.scaling) {
        case Scaling::Halves: put_half(scales, first * kTile + row, block.d); break;
        case Scaling::HalvesAndMinimums:
            put_half(scales, first * kTile + row, block.d);
            put_half(scales, (layout.groups + first) * kTile + row, block.m);
            break;
        case Scaling::GroupsOf32:
            for (int group = 0; group < 8; ++group) {
                scales[group * kTile + row] = static_cast<uint8_t>(block.scale[2 * group]);
                scales[(8 + group) * kTile + row] = static_cast<uint8_t>(block.minimum[group]);
            }
            put_half(scales + 16 * kTile, row, block.d);
            put_half(scales + 18 * kTile, row, block.m);
            break;
        case Scaling::GroupsOf16:
            for (int half = 0; half < 16; ++half)
                scales[half * kTile + row] = static_cast<uint8_t>(block.scale[half]);
            put_half(scales + 16 * kTile, row, block.d);
            break;
    }
}

void pack_row(Format format, const uint8_t* bytes, int inputs, int row, uint8_t* tile) {
    const Layout layout = layout_of(format);
    const BlockShape shape = block_shape(format);
    Block block;
    for (int first = 0; first < inputs; first += shape.inputs, bytes += shape.bytes) {
        read_block(format, bytes, block);
        uint8_t* chunk = tile + size_t(first / layout.chunk_inputs()) * layout.chunk_bytes;
        const int group = first % layout.chunk_inputs() / kGroup;
        for (int g = 0; g < shape.inputs / kGroup; ++g)
            pack_group(layout.bits, block.quant + g * kGroup, row, chunk + (group + g) * layout.group_bytes);
        pack_scales(layout, block, group, row, chunk + layout.scales_at);
    }
}

}  // namespace

void pack(Format format, const uint8_t* rows, int outputs, int inputs, uint8_t* tiles) {
    const BlockShape shape = block_shape(format);
    const size_t row_bytes = size_t(inputs) / shape.inputs * shape.bytes;
    const size_t tile_bytes = packed_bytes(format, kTile, inputs);
    std::memset(tiles, 0, packed_bytes(format, outputs, inputs));
    std::vector<float> weights(inputs);
    std::vector<uint8_t> quantised(size_t(inputs) / kGroup * block_shape(Format::Q8_0).bytes);
    for (int output = 0; output < outputs; ++output) {
        const uint8_t* row = rows + output * row_bytes;
        uint8_t* tile = tiles + output / kTile * tile_bytes;
        if (is_quantised(format)) {
            pack_row(format, row, inputs, output % kTile, tile);
        } else {
            dequantise_row(format, row, inputs, weights.data());
            quantise_row_q8_0(weights.data(), inputs, quantised.data());
            pack_row(Format::Q8_0, quantised.data(), inputs, output % kTile, tile);
        }
    }
}

}  // namespace rejoinder
