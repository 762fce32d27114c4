// Activations of a block of rows, quantised to int8 in groups of 32.
//
// A group's scale is its largest magnitude / 127. One scale a row would be too coarse (single inputs of the
// down projection reach thousands of times the median), and one a tensor would let a row change its
// neighbours. Beside the integers lie what products need a group's sum for:
//   * weights are stored unsigned; their offset is taken off by starting the integer sum at -offset * sum,
//   * a format with minimums takes minimum * (scale * sum) off.
#pragma once

#include <cstdint>

#include "formats.h"
#include "memory.h"

namespace rejoinder {

class Activations {
public:
    Activations() = default;
    Activations(int rows, int inputs)
        : stride_((inputs + 63) / 64 * 64),  // chunks hold two groups at least; the rest stays zero
          quant_(size_t(rows) * stride_),
          scale_(size_t(rows) * stride_ / kGroup),
          sum_(size_t(rows) * stride_ / kGroup),
          start_(size_t(rows) * stride_ / kGroup * kStarts) {}

    const int8_t* quant(int row) const { return quant_.data() + size_t(row) * stride_; }
    const float* scale(int row) const { return scale_.data() + size_t(row) * groups(); }
    const float* sum(int row) const {
        return sum_.data() + size_t(row) * groups();
    }  // scale times the integers' sum
    // -offset times the sum of a group's integers, for offsets 8, 16 and 128
    const int32_t* start(int offset, int row) const {
        return start_.data() + (size_t(row) * kStarts + (offset == 8 ? 0 : offset == 16 ? 1 : 2)) * groups();
    }
    // -32 times the sum of each half of a group
    const int32_t* half_start(int row) const {
        return start_.data() + (size_t(row) * kStarts + 3) * groups();
    }
    size_t bytes() const { return quant_.bytes() + scale_.bytes() + sum_.bytes() + start_.bytes(); }

    int8_t* quant(int row) { return quant_.data() + size_t(row) * stride_; }
    float* scale(int row) { return scale_.data() + size_t(row) * groups(); }
    float* sum(int row) { return sum_.data() + size_t(row) * groups(); }
    // Stores what products start from, given the sums of the two halves of a group's integers.
    void set_starts(int row, int group, int32_t low, int32_t high) {
        int32_t* start = start_.data() + size_t(row) * kStarts * groups();
        start[group] = -8 * (low + high);
        start[groups() + group] = -16 * (low + high);
        start[2 * groups() + group] = -128 * (low + high);
        start[3 * groups() + 2 * group] = -32 * low;
        start[3 * groups() + 2 * group + 1] = -32 * high;
    }

private:
    static constexpr int kStarts = 5;  // integers a group: three offsets, two halves

    int groups() const { return stride_ / kGroup; }

    int stride_ = 0;
    Array<int8_t> quant_;
    Array<float> scale_, sum_;
    Array<int32_t> start_;
};

}  // namespace rejoinder
