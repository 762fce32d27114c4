// Sixteen lanes in plain C++, for any processor; compilers turn most of it into what vectors they have.
// Operations as in lanes_avx512.h, with a product and a sum rounded apart instead of a fused one.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>

#include "formats.h"

namespace rejoinder {

struct Portable {
    struct Bytes {
        uint8_t at[64];
    };
    struct Ints {
        int32_t at[16];
    };
    struct Floats {
        float at[16];
    };
    using FewRows = Portable;  // the lanes for products of up to kRowsAtOnce rows
    static constexpr int kRowsAtOnce = 2;

    // ---- bytes
    static Bytes load_bytes(const uint8_t* p) {
        Bytes v;
        __builtin_memcpy(v.at, p, sizeof v.at);
        return v;
    }
    static Bytes low_halves(Bytes v) {
        for (uint8_t& byte : v.at) byte &= 15;
        return v;
    }
    static Bytes high_halves(Bytes v) {
        for (uint8_t& byte : v.at) byte >>= 4;
        return v;
    }
    template <int by, int mask>
    static Bytes with_bits(Bytes v, Bytes bits) {
        for (int i = 0; i < 64; ++i)
            v.at[i] |= (by >= 0 ? bits.at[i] << (by >= 0 ? by : 0) : bits.at[i] >> (by < 0 ? -by : 0)) & mask;
        return v;
    }
    static void prefetch(const uint8_t* p) { __builtin_prefetch(p); }

    // ---- integers
    static Ints ints(int32_t value) {
        return lanes<Ints>([=](int) { return value; });
    }
    template <int bits>
    static Ints dot4(Ints sum, const Bytes& weights, const int8_t* x) {
        for (int i = 0; i < 16; ++i)
            sum.at[i] += weights.at[4 * i] * x[0] + weights.at[4 * i + 1] * x[1] +
                         weights.at[4 * i + 2] * x[2] + weights.at[4 * i + 3] * x[3];
        return sum;
    }
    static int32_t sum(const Ints& v) {
        int32_t total = 0;
        for (int32_t value : v.at) total += value;
        return total;
    }
    static void store_bytes(int8_t* p, const Ints& v) {
        for (int i = 0; i < 16; ++i) p[i] = static_cast<int8_t>(v.at[i]);
    }

    // ---- floats
    static Floats zero() { return floats(0.f); }
    static Floats floats(float value) {
        return lanes<Floats>([=](int) { return value; });
    }
    static Floats floats(const Ints& v) {
        return lanes<Floats>([&](int i) { return static_cast<float>(v.at[i]); });
    }
    static Ints nearest(const Floats& v) {
        return lanes<Ints>([&](int i) { return static_cast<int32_t>(std::nearbyintf(v.at[i])); });
    }
    static Floats load(const float* p) {
        return lanes<Floats>([=](int i) { return p[i]; });
    }
    static void store(float* p, const Floats& v) { __builtin_memcpy(p, v.at, sizeof v.at); }
    static Floats load_halves(const uint8_t* p) {
        return lanes<Floats>([=](int i) {
            uint16_t bits;
            __builtin_memcpy(&bits, p + 2 * i, sizeof bits);
            return half_to_float(bits);
        });
    }
    static Floats load_uint8(const uint8_t* p) {
        return lanes<Floats>([=](int i) { return static_cast<float>(p[i]); });
    }
    static Floats load_int8(const uint8_t* p) {
        return lanes<Floats>([=](int i) { return static_cast<float>(static_cast<int8_t>(p[i])); });
    }
    static Floats add(const Floats& a, const Floats& b) {
        return lanes<Floats>([&](int i) { return a.at[i] + b.at[i]; });
    }
    static Floats sub(const Floats& a, const Floats& b) {
        return lanes<Floats>([&](int i) { return a.at[i] - b.at[i]; });
    }
    static Floats mul(const Floats& a, const Floats& b) {
        return lanes<Floats>([&](int i) { return a.at[i] * b.at[i]; });
    }
    static Floats div(const Floats& a, const Floats& b) {
        return lanes<Floats>([&](int i) { return a.at[i] / b.at[i]; });
    }
    static Floats mul_add(const Floats& a, const Floats& b, const Floats& c) { return add(mul(a, b), c); }
    static Floats minus_mul(const Floats& c, const Floats& a, const Floats& b) { return sub(c, mul(a, b)); }
    static Floats max(const Floats& a, const Floats& b) {
        return lanes<Floats>([&](int i) { return a.at[i] > b.at[i] ? a.at[i] : b.at[i]; });
    }
    static Floats min(const Floats& a, const Floats& b) {
        return lanes<Floats>([&](int i) { return a.at[i] < b.at[i] ? a.at[i] : b.at[i]; });
    }
    static Floats whole(const Floats& v) {
        return lanes<Floats>([&](int i) { return std::nearbyintf(v.at[i]); });
    }
    static Floats times_power_of_2(const Floats& v, const Floats& n) {
        return lanes<Floats>([&](int i) { return std::ldexp(v.at[i], static_cast<int>(n.at[i])); });
    }
    static float sum(const Floats& v) {
        float total = 0;
        for (float value : v.at) total += value;
        return total;
    }
    static float largest(const Floats& v) {
        float best = v.at[0];
        for (float value : v.at) best = value > best ? value : best;
        return best;
    }
    static float largest_magnitude(const Floats& a, const Floats& b) {
        uint32_t largest = 0;
        for (const Floats* v : {&a, &b})
            for (float value : v->at) {
                uint32_t bits;
                __builtin_memcpy(&bits, &value, sizeof bits);
                bits &= 0x7fffffff;
                largest = bits > largest ? bits : largest;
            }
        float value;
        __builtin_memcpy(&value, &largest, sizeof value);
        return value;
    }
    static Floats first(int n, const Floats& a, const Floats& b) {
        return lanes<Floats>([&](int i) { return i < n ? a.at[i] : b.at[i]; });
    }

private:
    template <class Lanes, class Make>
    static Lanes lanes(Make make) {
        Lanes result;
        for (int i = 0; i < 16; ++i) result.at[i] = make(i);
        return result;
    }
};

}  // namespace rejoinder
