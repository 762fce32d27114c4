// Products of packed weights with quantised activations: the part that takes nearly all the time.
//
// One tile of 16 outputs is multiplied with up to kRowsAtOnce rows while it streams through the registers
// once. Each (row, output) sum is built in one fixed order, group after group, whatever the number of rows:
//
//     total += (sum of integer products, exact) * weight scale * activation scale  -  minimum * activation
//     sum
//
// so a row's result has the same bits in every block.
#pragma once

#include <type_traits>

#include "activations.h"
#include "packing.h"

namespace rejoinder {

namespace products {

// Bytes ahead of the loads to fetch from memory: about two chunks, whatever the number of rows.
constexpr int kPrefetchDistance = 4736;

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

template <class V, int bytes>
inline void prefetch(const uint8_t* group) {
#pragma GCC unroll 8
    for (int line = 0; line < bytes / kLine; ++line) V::prefetch(group + kPrefetchDistance + line * kLine);
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
        if constexpr (layout.scaling == Scaling::GroupsOf32)
            return V::mul(d, V::load_uint8(table + index * kTile));
        else if constexpr (layout.scaling == Scaling::GroupsOf16)
            return V::mul(d, V::load_int8(table + index * kTile));
        else
            return V::load_halves(table + 2 * index * kTile);
    }
    typename V::Floats minimum(int group) const {
        if constexpr (layout.scaling == Scaling::GroupsOf32)
            return V::mul(m, V::load_uint8(table + (8 + group) * kTile));
        else
            return V::load_halves(table + 2 * (layout.groups + group) * kTile);
    }
};

// What a group's integer sums start from and are multiplied with, for a block of rows.
template <class V, Format format>
struct RowTerms {
    static constexpr Layout layout = layout_of(format);
    static constexpr bool halved = layout.scaling == Scaling::GroupsOf16;
    const float *scales, *sums;
    const int32_t* starts;
    size_t scale_stride, start_stride;

    RowTerms(const Activations& x, int first_row)
        : scales(x.scale(first_row)),
          sums(x.sum(first_row)),
          starts(halved ? x.half_start(first_row) : x.start(layout.offset, first_row)),
          scale_stride(x.scale(1) - x.scale(0)),
          start_stride(x.half_start(1) - x.half_start(0)) {}

    // `index`: a group, or a half group where the format scales those.
    typename V::Ints start(int row, int index) const {
        return V::ints(layout.offset ? starts[row * start_stride + index] : 0);
    }
    typename V::Floats scale(int row, int group) const {
        return V::floats(scales[row * scale_stride + group]);
    }
    typename V::Floats sum(int row, int group) const { return V::floats(sums[row * scale_stride + group]); }
};

// Adds one group's integer sums, scaled, to the totals. `sums(row)`: the sums of the group, or of its first
// half where the format scales halves; `high(row)`: those of the second half.
template <class V, Format format, int rows, class Sums, class HighSums>
inline void add_group(typename V::Floats* totals, Sums sums, HighSums high, const Scales<V, format>& scales,
                      const RowTerms<V, format>& terms, int g, int group) {
    constexpr Scaling scaling = layout_of(format).scaling;
    constexpr bool halved = scaling == Scaling::GroupsOf16;
    constexpr bool has_minimums = scaling == Scaling::GroupsOf32 || scaling == Scaling::HalvesAndMinimums;
    const auto first = scales.scale(halved ? 2 * g : g), second = halved ? scales.scale(2 * g + 1) : first;
    const auto minimum = has_minimums ? scales.minimum(g) : first;
#pragma GCC unroll 16
    for (int row = 0; row < rows; ++row) {
        auto scaled = V::mul(V::floats(sums(row)), first);
        if constexpr (halved) scaled = V::mul_add(V::floats(high(row)), second, scaled);
        totals[row] = V::mul_add(scaled, terms.scale(row, group), totals[row]);
        if constexpr (has_minimums) totals[row] = V::minus_mul(totals[row], minimum, terms.sum(row, group));
    }
}

// out[row][0..15] = one tile times `rows` rows of activations, from row `first_row` on.
template <class V, Format format, int rows>
inline void multiply_tile(const uint8_t* tile, int chunks, const Activations& x, int first_row, float* out,
                          size_t out_stride) {
    constexpr Layout layout = layout_of(format);
    constexpr bool halved = RowTerms<V, format>::halved;
    const RowTerms<V, format> terms(x, first_row);
    const size_t stride = x.quant(1) - x.quant(0);
    const int8_t* inputs = x.quant(first_row);

    typename V::Floats totals[rows];
    for (int row = 0; row < rows; ++row) totals[row] = V::zero();
    for (int chunk = 0; chunk < chunks; ++chunk, tile += layout.chunk_bytes) {
        const Scales<V, format> scales(tile);
        for (int g = 0; g < layout.groups; ++g, inputs += kGroup) {
            const uint8_t* weights = tile + g * layout.group_bytes;
            const int group = chunk * layout.groups + g;
            prefetch<V, layout.group_bytes>(weights);
            typename V::Ints sums[rows], high[rows];
#pragma GCC unroll 8
            for (int row = 0; row < rows; ++row) sums[row] = terms.start(row, halved ? 2 * group : group);
            add_step<V, layout.bits, rows, 0>(weights, inputs, stride, sums);
            add_step<V, layout.bits, rows, 1>(weights, inputs, stride, sums);
            if constexpr (halved) {
#pragma GCC unroll 8
                for (int row = 0; row < rows; ++row) high[row] = terms.start(row, 2 * group + 1);
            }
            add_step<V, layout.bits, rows, 2>(weights, inputs, stride, halved ? high : sums);
            add_step<V, layout.bits, rows, 3>(weights, inputs, stride, halved ? high : sums);
            add_group<V, format, rows>(
                totals, [&](int row) { return sums[row]; }, [&](int row) { return high[row]; }, scales, terms,
                g, group);
        }
    }
    for (int row = 0; row < rows; ++row) V::store(out + row * out_stride, totals[row]);
}

template <class V, Format format, int rows>
__attribute__((noinline)) void multiply_tiles(const Matrix& matrix, const Activations& x, int first_row,
                                              float* out, size_t out_stride, int first_tile, int last_tile) {
    const int chunks = chunks_of(layout_of(format), matrix.inputs);
    const size_t tile_bytes = size_t(chunks) * layout_of(format).chunk_bytes;
    for (int tile = first_tile; tile < last_tile; ++tile)
        multiply_tile<V, format, rows>(matrix.tiles + tile * tile_bytes, chunks, x, first_row,
                                       out + tile * kTile, out_stride);
}

template <class V, Format format>
void multiply_rows(const Matrix& matrix, const Activations& x, int first_row, int rows, float* out,
                   size_t out_stride, int first_tile, int last_tile) {
    const auto multiply = [&](auto count) {
        if constexpr (count <= V::kRowsAtOnce)
            multiply_tiles<V, format, count>(matrix, x, first_row, out, out_stride, first_tile, last_tile);
    };
    switch (rows) {
        case 1: return multiply(std::integral_constant<int, 1>{});
        case 2: return multiply(std::integral_constant<int, 2>{});
        case 3: return multiply(std::integral_constant<int, 3>{});
        case 4: return multiply(std::integral_constant<int, 4>{});
        case 5: return multiply(std::integral_constant<int, 5>{});
        case 6: return multiply(std::integral_constant<int, 6>{});
        case 7: return multiply(std::integral_constant<int, 7>{});
        case 8: return multiply(std::integral_constant<int, 8>{});
    }
}

// A hook for lanes that multiply many rows in another way: returns how many leading rows it has done, with
// the same operations on floats, so with the same bits.
template <class V, Format format>
struct LeadingRows {
    static int multiply(const Matrix&, const Activations&, int, int, float*, size_t, int, int) { return 0; }
};

// Tiles outside, rows inside: with more rows than fit at once, two tiles stay in the cache for all of them.
template <class V, Format format>
void multiply_format(const Matrix& matrix, const Activations& x, int first_row, int rows, float* out,
                     size_t out_stride, int first_tile, int last_tile) {
    const int tiles_at_once = rows <= V::kRowsAtOnce ? last_tile - first_tile : 2;
    for (int tile = first_tile; tile < last_tile; tile += tiles_at_once) {
        const int end = tile + tiles_at_once < last_tile ? tile + tiles_at_once : last_tile;
        const int done =
            LeadingRows<V, format>::multiply(matrix, x, first_row, rows, out, out_stride, tile, end);
        for (int row = done; row < rows; row += V::kRowsAtOnce) {
            const int count = rows - row < V::kRowsAtOnce ? rows - row : V::kRowsAtOnce;
            multiply_rows<typename V::FewRows, format>(matrix, x, first_row + row, count,
                                                       out + row * out_stride, out_stride, tile, end);
        }
    }
}

}  // namespace products

// out[i][o] = sum over inputs of matrix[o][input] * x[first_row + i][input], for outputs of tiles
// [first_tile, last_tile). `out`: float32 with `out_stride` floats from row to row, whole tiles of them.
template <class V>
void multiply(const Matrix& matrix, const Activations& x, int first_row, int rows, float* out,
              size_t out_stride, int first_tile, int last_tile) {
    if (rows == 0 || first_tile >= last_tile) return;
    const auto multiply_as = [&](auto format) {
        products::multiply_format<V, format>(matrix, x, first_row, rows, out, out_stride, first_tile,
                                             last_tile);
    };
    switch (matrix.format) {
        case Format::Q4_0: return multiply_as(std::integral_constant<Format, Format::Q4_0>{});
        case Format::Q4_1: return multiply_as(std::integral_constant<Format, Format::Q4_1>{});
        case Format::Q5_0: return multiply_as(std::integral_constant<Format, Format::Q5_0>{});
        case Format::Q4_K: return multiply_as(std::integral_constant<Format, Format::Q4_K>{});
        case Format::Q5_K: return multiply_as(std::integral_constant<Format, Format::Q5_K>{});
        case Format::Q6_K: return multiply_as(std::integral_constant<Format, Format::Q6_K>{});
        default: return multiply_as(std::integral_constant<Format, Format::Q8_0>{});  // and floats, packed so
    }
}

}  // namespace rejoinder
