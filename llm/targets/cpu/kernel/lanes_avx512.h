// Sixteen lanes on AVX-512 with VNNI: one register each. Include after switching the compiler's target on.
//
// The three lanes_*.h files offer the same operations; the kernel is a template over them. Integer results
// are equal in all three; floating-point ones may round differently from one to another, never from one
// block width to another.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace rejoinder {

struct Avx512 {
    using Bytes = __m512i;   // 64 unsigned bytes
    using Ints = __m512i;    // 16 int32
    using Floats = __m512;   // 16 float32
    using FewRows = Avx512;  // the lanes for products of up to kRowsAtOnce rows
    static constexpr int kRowsAtOnce = 8;

    // ---- bytes
    static Bytes load_bytes(const uint8_t* p) { return _mm512_loadu_si512(p); }
    static Bytes low_halves(Bytes v) { return _mm512_and_si512(v, _mm512_set1_epi8(15)); }
    static Bytes high_halves(Bytes v) {
        return _mm512_and_si512(_mm512_srli_epi16(v, 4), _mm512_set1_epi8(15));
    }
    // v | (bits << by, or >> -by, kept where mask is set)
    template <int by, int mask>
    static Bytes with_bits(Bytes v, Bytes bits) {
        const Bytes moved =
            by >= 0 ? _mm512_slli_epi16(bits, by >= 0 ? by : 0) : _mm512_srli_epi16(bits, by < 0 ? -by : 0);
        return _mm512_ternarylogic_epi32(v, moved, _mm512_set1_epi8(mask), 0xF8);
    }
    // Not into the first cache: waiting for memory it would hold one of the few places that loads need.
    static void prefetch(const uint8_t* p) { _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T2); }

    // ---- integers
    static Ints ints(int32_t v) { return _mm512_set1_epi32(v); }
    // sum + four products a lane: weights' bytes (at most `bits` bits) times four signed activations
    template <int bits>
    static Ints dot4(Ints sum, Bytes weights, const int8_t* activations) {
        int32_t four;
        __builtin_memcpy(&four, activations, sizeof four);
        return _mm512_dpbusd_epi32(sum, weights, _mm512_set1_epi32(four));
    }
    static int32_t sum(Ints v) { return _mm512_reduce_add_epi32(v); }
    static void store_bytes(int8_t* p, Ints v) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(v));
    }

    // ---- floats
    static Floats zero() { return _mm512_setzero_ps(); }
    static Floats floats(float v) { return _mm512_set1_ps(v); }
    static Floats floats(Ints v) { return _mm512_cvtepi32_ps(v); }
    static Ints nearest(Floats v) { return _mm512_cvtps_epi32(v); }
    static Floats load(const float* p) { return _mm512_loadu_ps(p); }
    static void store(float* p, Floats v) { _mm512_storeu_ps(p, v); }
    static Floats load_halves(const uint8_t* p) {
        return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    }
    static Floats load_uint8(const uint8_t* p) {
        return floats(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
    }
    static Floats load_int8(const uint8_t* p) {
        return floats(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
    }
    static Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
    static Floats sub(Floats a, Floats b) { return _mm512_sub_ps(a, b); }
    static Floats mul(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
    static Floats div(Floats a, Floats b) { return _mm512_div_ps(a, b); }
    static Floats mul_add(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }     // a * b + c
    static Floats minus_mul(Floats c, Floats a, Floats b) { return _mm512_fnmadd_ps(a, b, c); }  // c - a * b
    static Floats max(Floats a, Floats b) { return _mm512_max_ps(a, b); }
    static Floats min(Floats a, Floats b) { return _mm512_min_ps(a, b); }
    static Floats whole(Floats v) { return _mm512_roundscale_ps(v, 0); }  // to nearest integer
    static Floats times_power_of_2(Floats v, Floats n) { return _mm512_scalef_ps(v, n); }
    static float sum(Floats v) { return _mm512_reduce_add_ps(v); }
    static float largest(Floats v) { return _mm512_reduce_max_ps(v); }
    // Largest magnitude of both; NaN where any is (magnitudes order as their bits do, NaN above infinity).
    static float largest_magnitude(Floats a, Floats b) {
        const __m512i mask = _mm512_set1_epi32(0x7fffffff);
        const __m512i bits = _mm512_max_epi32(_mm512_and_si512(_mm512_castps_si512(a), mask),
                                              _mm512_and_si512(_mm512_castps_si512(b), mask));
        const int32_t largest = _mm512_reduce_max_epi32(bits);
        float value;
        __builtin_memcpy(&value, &largest, sizeof value);
        return value;
    }
    // the first n lanes of a, the others of b; n is 1 to 16
    static Floats first(int n, Floats a, Floats b) {
        return _mm512_mask_mov_ps(b, static_cast<__mmask16>((1u << n) - 1), a);
    }
};

}  // namespace rejoinder
