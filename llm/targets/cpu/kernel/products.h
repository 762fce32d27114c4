// Products of packed weights with quantised activations: the part that takes nearly all the time.
//
// One tile of 16 outputs is multiplied with up to kRowsAtOnce rows while it streams through the registers
// once. Each (row, output) sum is built in one fixed order, group after group, whatever the number of rows:
//
//     total += (sum of integer products, exact) * weight scale * activation scale  -  minimum * activation sum
//
// so a row's result has the same bits in every block.
#pragma once

#include "activations.h"
#include "packing.h"

namespace rejoinder {

namespace products {

// Bytes ahead of the loads to fetch from memory. With few rows the arithmetic is short and memory is the
// limit; with many the stream is slower and has to be asked for earlier.
constexpr int prefetch_distance(int rows) { return rows <= 4 ? 2368 : 4736; }

// The weights of eight inputs: `step` 0 to 3 of a group, four inputs in each result.
template <class V, int bits, int step>
inline void load_weights(const uint8_t* group, typename V::Bytes& first, typename V::Bytes& second) {
    if constexpr (bits == 8) {
        first = V::load_bytes(group + 2 * step * kLine);
        second = V::load_bytes(group + (2 * step + 1) * kLine);
        return;
    }
    const auto pairs = V::load_bytes(group + step * kLine);
    first = V::low_halves(pairs);
    second = V::high_halves(pairs);
    if constexpr (bits == 5) {  // bit 2 * step and the next, to bit 4
        const auto fifth = V::load_bytes(group + 4 * kLine);
        first = V::template with_bits<4 - 2 * step, 0x10>(first, fifth);
        second = V::template with_bits<3 - 2 * step, 0x10>(second, fifth);
    }
    if constexpr (bits == 6) {  // two bits each, to bits 4 and 5
        const auto upper = V::load_bytes(group + (4 + step / 2) * kLine);
        first = V::template with_bits<4 - 4 * (step % 2), 0x30>(first, upper);
        second = V::template with_bits<2 - 4 * (step % 2), 0x30>(second, upper);
    }
}

template <class V, int bits, int rows, int step>
inline void add_step(const uint8_t* group, const int8_t* x, size_t stride, typename V::Ints* sums) {
    typename V::Bytes first, second;
    load_weights<V, bits, step>(group, first, second);
#pragma GCC unroll 8
    for (int row = 0; row < rows; ++row) {
        const int8_t* inputs = x + row * stride + 8 * step;
        sums[row] = V::template dot4<bits>(sums[row], first, inputs);
        sums[row] = V::template dot4<bits>(sums[row], second, inputs + 4);
    }
}

template <class V, int bytes, int ahead>
inline void prefetch(const uint8_t* group) {
#pragma GCC unroll 8
    for (int line = 0; line < bytes / kLine; ++line) V::prefetch(group + ahead + line * kLine);
}

// The scales of one group (or half group) of a chunk, and its minimums, as floats for the 16 outputs.
template <class V, Format format>
struct Scales {
    static constexpr Layout layout = layout_of(format);
    const uint8_t* table;
    typename V::Floats d, m;

    explicit Scales(const uint8_t* chunk) : table(chunk + layout.scales_at) {
        if constexpr (layout.scaling == Scaling::GroupsOf32 || layout.scaling == Scaling::GroupsOf16)
            d = V::load_halves(table + 16 * kTile);
        if constexpr (layout.scaling == Scaling::GroupsOf32) m = V::load_halves(table + 18 * kTile);
    }
    typename V::Floats scale(int index) const {
        if constexpr (layout.scaling == Scaling::GroupsOf32) return V::mul(d, V::load_uint8(table + index * kTile));
        else if constexpr (layout.scaling == Scaling::GroupsOf16) return V::mul(d, V::load_int8(table + index * kTile));
        else return V::load_halves(table + 2 * index * kTile);
    }
    typename V::Floats minimum(int group) const {
        if constexpr (layout.scaling == Scaling::GroupsOf32) return V::mul(m, V::load_uint8(table + (8 + group) * kTile));
        else return V::load_halves(table + 2 * (layout.groups + group) * kTile);
    }
};

// out[row][0..15] = one tile times `rows` rows of activations, from row `first_row` on.
template <class V, Format format, int rows>
inline void multiply_tile(const uint8_t* tile, int chunks, const Activations& x, int first_row, float* out,
                          size_t out_stride) {
    constexpr Layout layout = layout_of(format);
    constexpr bool halved = layout.scaling == Scaling::GroupsOf16;
    constexpr bool has_minimums = layout.scaling == Scaling::GroupsOf32 || layout.scaling == Scaling::HalvesAndMinimums;
    const int8_t* quant = x.quant(first_row);
    const float *scale = x.scale(first_row), *sum = x.sum(first_row);
    const int32_t* start = halved ? x.half_start(first_row) : x.start(layout.offset, first_row);
    const size_t stride = x.quant(1) - x.quant(0), scale_stride = x.scale(1) - x.scale(0);
    const size_t start_stride = x.half_start(1) - x.half_start(0);

    typename V::Floats totals[rows];
    for (int row = 0; row < rows; ++row) totals[row] = V::zero();
    for (int chunk = 0; chunk < chunks; ++chunk, tile += layout.chunk_bytes) {
        const Scales<V, format> scales(tile);
        for (int g = 0; g < layout.groups; ++g) {
            const uint8_t* weights = tile + g * layout.group_bytes;
            const int group = chunk * layout.groups + g;
            const int8_t* inputs = quant + size_t(group) * kGroup;
            prefetch<V, layout.group_bytes, prefetch_distance(rows)>(weights);
            typename V::Ints sums[rows];
            if constexpr (halved) {
                typename V::Floats scaled[rows];
#pragma GCC unroll 8
                for (int row = 0; row < rows; ++row) sums[row] = V::ints(start[row * start_stride + 2 * group]);
                add_step<V, layout.bits, rows, 0>(weights, inputs, stride, sums);
                add_step<V, layout.bits, rows, 1>(weights, inputs, stride, sums);
                const auto first = scales.scale(2 * g);
#pragma GCC unroll 8
                for (int row = 0; row < rows; ++row) {
                    scaled[row] = V::mul(V::floats(sums[row]), first);
                    sums[row] = V::ints(start[row * start_stride + 2 * group + 1]);
                }
                add_step<V, layout.bits, rows, 2>(weights, inputs, stride, sums);
                add_step<V, layout.bits, rows, 3>(weights, inputs, stride, sums);
                const auto second = scales.scale(2 * g + 1);
#pragma GCC unroll 8
                for (int row = 0; row < rows; ++row) {
                    scaled[row] = V::mul_add(V::floats(sums[row]), second, scaled[row]);
                    totals[row] = V::mul_add(scaled[row], V::floats(scale[row * scale_stride + group]), totals[row]);
                }
            } else {
#pragma GCC unroll 8
                for (int row = 0; row < rows; ++row)
                    sums[row] = V::ints(layout.offset ? start[row * start_stride + group] : 0);
                add_step<V, layout.bits, rows, 0>(weights, inputs, stride, sums);
                add_step<V, layout.bits, rows, 1>(weights, inputs, stride, sums);
                add_step<V, layout.bits, rows, 2>(weights, inputs, stride, sums);
                add_step<V, layout.bits, rows, 3>(weights, inputs, stride, sums);
                const auto weight_scale = scales.scale(g);
#pragma GCC unroll 8
                for (int row = 0; row < rows; ++row) {
                    const auto scaled = V::mul(V::floats(sums[row]), weight_scale);
                    totals[row] = V::mul_add(scaled, V::floats(scale[row * scale_stride + group]), totals[row]);
                }
                if constexpr (has_minimums) {
                    const auto minimum = scales.minimum(g);
#pragma GCC unroll 8
                    for (int row = 0; row < rows; ++row)
                        totals[row] = V::minus_mul(totals[row], minimum, V::floats(sum[row * scale_stride + group]));
                }
            }
        }
    }
    for (int row = 0; row < rows; ++row) V::store(out + row * out_stride, totals[row]);
}

template <class V, Format format, int rows>
__attribute__((noinline)) void multiply_tiles(const Matrix& matrix, const Activations& x, int first_row, float* out,
                                              size_t out_stride, int first_tile, int last_tile) {
    const int chunks = chunks_of(layout_of(format), matrix.inputs);
    const size_t tile_bytes = size_t(chunks) * layout_of(format).chunk_bytes;
    for (int tile = first_tile; tile < last_tile; ++tile)
        multiply_tile<V, format, rows>(matrix.tiles + tile * tile_bytes, chunks, x, first_row,
                                       out + tile * kTile, out_stride);
}

template <class V, Format format>
void multiply_rows(const Matrix& matrix, const Activations& x, int first_row, int rows, float* out,
                   size_t out_stride, int first_tile, int last_tile) {
    switch (rows) {
#define REJOINDER_ROWS(n) \
    case n: \
        if constexpr (n <= V::kRowsAtOnce) \
            multiply_tiles<V, format, n>(matrix, x, first_row, out, out_stride, first_tile, last_tile); \
        break;
        REJOINDER_ROWS(1) REJOINDER_ROWS(2) REJOINDER_ROWS(3) REJOINDER_ROWS(4)
        REJOINDER_ROWS(5) REJOINDER_ROWS(6) REJOINDER_ROWS(7) REJOINDER_ROWS(8)
#undef REJOINDER_ROWS
    }
}

// Tiles outside, rows inside: with more rows than fit at once, two tiles stay in the cache for all of them.
template <class V, Format format>
void multiply_format(const Matrix& matrix, const Activations& x, int first_row, int rows, float* out,
                     size_t out_stride, int first_tile, int last_tile) {
    const int tiles_at_once = rows <= V::kRowsAtOnce ? last_tile - first_tile : 2;
    for (int tile = first_tile; tile < last_tile; tile += tiles_at_once) {
        const int end = tile + tiles_at_once < last_tile ? tile + tiles_at_once : last_tile;
        for (int row = 0; row < rows; row += V::kRowsAtOnce) {
            const int count = rows - row < V::kRowsAtOnce ? rows - row : V::kRowsAtOnce;
            multiply_rows<V, format>(matrix, x, first_row + row, count, out + row * out_stride, out_stride, tile, end);
        }
    }
}

}  // namespace products

// out[i][o] = sum over inputs of matrix[o][input] * x[first_row + i][input], for outputs of tiles
// [first_tile, last_tile). `out`: float32 with `out_stride` floats from row to row, whole tiles of them.
template <class V>
void multiply(const Matrix& matrix, const Activations& x, int first_row, int rows, float* out, size_t out_stride,
              int first_tile, int last_tile) {
    if (rows == 0 || first_tile >= last_tile) return;
    switch (matrix.format) {
#define REJOINDER_FORMAT(f) \
    case Format::f: \
        products::multiply_format<V, Format::f>(matrix, x, first_row, rows, out, out_stride, first_tile, last_tile); \
        break;
        REJOINDER_FORMAT(Q4_0) REJOINDER_FORMAT(Q4_1) REJOINDER_FORMAT(Q5_0) REJOINDER_FORMAT(Q4_K)
        REJOINDER_FORMAT(Q5_K) REJOINDER_FORMAT(Q6_K)
        default:  // Q8_0, and floats, which were packed as Q8_0
            products::multiply_format<V, Format::Q8_0>(matrix, x, first_row, rows, out, out_stride, first_tile, last_tile);
#undef REJOINDER_FORMAT
    }
}

}  // namespace rejoinder
