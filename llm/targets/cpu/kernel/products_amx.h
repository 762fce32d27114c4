// Products of many rows on AMX: a tile instruction multiplies 16 rows with 16 outputs over a group of inputs.
//
// The layout of the packed quants is that of the instruction's second operand, once they are unpacked to
// bytes. Integer sums are exact, and what follows them is the same code as for few rows, so the bits are the
// same. Several groups cannot share one tile instruction, as each has its own scales.
#pragma once

#include "lanes_avx512.h"
#include "products.h"
#include "scratch.h"

namespace rejoinder {

struct Avx512Amx : Avx512 {};

namespace products {

constexpr int kTileRows = 16;

// GCC's tile intrinsics do not tell the compiler how much memory they read, so stores before them could be
// taken for dead or moved behind them.
inline void finish_stores(const void* memory) { asm volatile("" : : "r"(memory) : "memory"); }

// Tile registers 0-3 take sums, 4 and 5 activations, 6 and 7 weights. Their numbers are literals below, as
// the compiler's intrinsics paste them into the instruction's text. `inputs`: of one product, a group or
// half.
inline void configure_tiles(int inputs) {
    struct alignas(64) {
        uint8_t palette = 1, start_row = 0, reserved[14] = {};
        uint16_t row_bytes[16] = {64, 64, 64, 64};
        uint8_t rows[16] = {kTileRows, kTileRows, kTileRows, kTileRows};
    } shapes;
    for (int tile : {4, 5}) shapes.rows[tile] = kTileRows, shapes.row_bytes[tile] = uint16_t(inputs);
    for (int tile : {6, 7}) shapes.rows[tile] = uint8_t(inputs / 4), shapes.row_bytes[tile] = kLine;
    finish_stores(&shapes);
    _tile_loadconfig(&shapes);
}

// One tile of outputs times many rows, a batch of groups at a time: unpack the batch, and for each block of
// 16 rows let the tile instructions make all its integer sums, then add those up. A tile instruction takes
// long to finish, and what it reads or writes cannot be forwarded from or to a neighbouring instruction; in
// batches the waits are shared.
template <Format format>
class TileProduct {
    using V = Avx512;
    using GroupSums = int32_t[kTileRows * kTile];
    static constexpr Layout layout = layout_of(format);
    static constexpr bool halved = RowTerms<V, format>::halved;
    static constexpr int kBatch = 8, kHalves = halved ? 2 : 1;

public:
    // out[row][0..15] for `rows` rows, a multiple of 16 and at most kPassRows.
    void multiply(const uint8_t* tile, int chunks, const Activations& x, int first_row, int rows, float* out,
                  size_t out_stride) {
        for (int row = 0; row < rows; ++row) V::store(totals_[row], V::zero());
        const int groups = chunks * layout.groups;
        for (int first = 0; first < groups; first += kBatch) {
            const int count = std::min(kBatch, groups - first);
            for (int i = 0; i < count; ++i) unpack(quants_of(tile, first + i), bytes_[i]);
            for (int row = 0; row < rows; row += kTileRows) {
                finish_stores(bytes_);
                make_sums(x, first_row + row, first, count);
                add_sums(tile, x, first_row + row, first, count, totals_ + row);
            }
        }
        for (int row = 0; row < rows; ++row) V::store(out + row * out_stride, V::load(totals_[row]));
    }

private:
    static const uint8_t* chunk_of(const uint8_t* tile, int group) {
        return tile + size_t(group / layout.groups) * layout.chunk_bytes;
    }
    static const uint8_t* quants_of(const uint8_t* tile, int group) {
        return chunk_of(tile, group) + group % layout.groups * layout.group_bytes;
    }

    // A group's quants as bytes, eight loads one after another.
    static void unpack(const uint8_t* group, uint8_t* bytes) {
        prefetch<V, layout.group_bytes>(group);
        __m512i v[8];
        load_weights<V, layout.bits, 0>(group, v[0], v[1]);
        load_weights<V, layout.bits, 1>(group, v[2], v[3]);
        load_weights<V, layout.bits, 2>(group, v[4], v[5]);
        load_weights<V, layout.bits, 3>(group, v[6], v[7]);
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) _mm512_store_si512(bytes + i * kLine, v[i]);
    }

    void make_sums(const Activations& x, int row, int first, int count) {
        const int8_t* inputs = x.quant(row) + size_t(first) * kGroup;
        const size_t stride = x.quant(1) - x.quant(0);
        for (int i = 0; i < count; i += 2, inputs += 2 * kGroup) {  // chunks hold an even number of groups
            _tile_zero(0);
            _tile_zero(1);
            _tile_loadd(4, inputs, stride);
            _tile_loadd(6, bytes_[i], kLine);
            _tile_loadd(5, inputs + kGroup, stride);
            _tile_loadd(7, bytes_[i + 1], kLine);
            _tile_dpbsud(0, 4, 6);
            _tile_dpbsud(1, 5, 7);
            _tile_stored(0, sums_[0][i], kLine);
            _tile_stored(1, sums_[0][i + 1], kLine);
            if constexpr (halved) {
                _tile_zero(2);
                _tile_zero(3);
                _tile_loadd(4, inputs + kGroup / 2, stride);
                _tile_loadd(6, bytes_[i] + 4 * kLine, kLine);
                _tile_loadd(5, inputs + kGroup + kGroup / 2, stride);
                _tile_loadd(7, bytes_[i + 1] + 4 * kLine, kLine);
                _tile_dpbsud(2, 4, 6);
                _tile_dpbsud(3, 5, 7);
                _tile_stored(2, sums_[1][i], kLine);
                _tile_stored(3, sums_[1][i + 1], kLine);
            }
        }
    }

    void add_sums(const uint8_t* tile, const Activations& x, int first_row, int first, int count,
                  float (*totals)[kTile]) {
        const RowTerms<V, format> terms(x, first_row);
        __m512 total[kTileRows];
#pragma GCC unroll 16
        for (int row = 0; row < kTileRows; ++row) total[row] = V::load(totals[row]);
        for (int i = 0; i < count; ++i) {
            const int group = first + i;
            const auto sum = [&](int half, int row, int index) {
                const __m512i product = _mm512_load_si512(sums_[half][i] + row * kTile);
                return layout.offset ? _mm512_add_epi32(product, terms.start(row, index)) : product;
            };
            add_group<V, format, kTileRows>(
                total, [&](int row) { return sum(0, row, halved ? 2 * group : group); },
                [&](int row) { return sum(kHalves - 1, row, 2 * group + 1); },
                Scales<V, format>(chunk_of(tile, group)), terms, group % layout.groups, group);
        }
#pragma GCC unroll 16
        for (int row = 0; row < kTileRows; ++row) V::store(totals[row], total[row]);
    }

    alignas(64) uint8_t bytes_[kBatch][8 * kLine];
    alignas(64) GroupSums sums_[kHalves][kBatch];
    alignas(64) float totals_[kPassRows][kTile];
};

template <Format format>
struct LeadingRows<Avx512Amx, format> {
    static int multiply(const Matrix& matrix, const Activations& x, int first_row, int rows, float* out,
                        size_t out_stride, int first_tile, int last_tile) {
        const int leading = rows / kTileRows * kTileRows;
        if (leading == 0) return 0;
        const int chunks = chunks_of(layout_of(format), matrix.inputs);
        const size_t tile_bytes = size_t(chunks) * layout_of(format).chunk_bytes;
        TileProduct<format> product;
        configure_tiles(layout_of(format).scaling == Scaling::GroupsOf16 ? kGroup / 2 : kGroup);
        for (int tile = first_tile; tile < last_tile; ++tile)
            product.multiply(matrix.tiles + tile * tile_bytes, chunks, x, first_row, leading,
                             out + tile * kTile, out_stride);
        _tile_release();
        return leading;
    }
};

}  // namespace products

}  // namespace rejoinder
