// Sixteen lanes on AVX2, FMA and F16C: two registers each. Include after switching the compiler's target on.
// Operations as in lanes_avx512.h.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace rejoinder {

struct Avx2 {
    struct Bytes {
        __m256i low, high;
    };
    struct Ints {
        __m256i low, high;
    };
    struct Floats {
        __m256 low, high;
    };
    using FewRows = Avx2;                  // the lanes for products of up to kRowsAtOnce rows
    static constexpr int kRowsAtOnce = 4;  // sixteen registers hold no more sums

    // ---- bytes
    static Bytes load_bytes(const uint8_t* p) { return {load256(p), load256(p + 32)}; }
    static Bytes low_halves(Bytes v) {
        const __m256i mask = _mm256_set1_epi8(15);
        return {_mm256_and_si256(v.low, mask), _mm256_and_si256(v.high, mask)};
    }
    static Bytes high_halves(Bytes v) {
        return low_halves({_mm256_srli_epi16(v.low, 4), _mm256_srli_epi16(v.high, 4)});
    }
    template <int by, int mask>
    static Bytes with_bits(Bytes v, Bytes bits) {
        return {with_bits_half<by, mask>(v.low, bits.low), with_bits_half<by, mask>(v.high, bits.high)};
    }
    static void prefetch(const uint8_t* p) { _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0); }

    // ---- integers
    static Ints ints(int32_t v) { return {_mm256_set1_epi32(v), _mm256_set1_epi32(v)}; }
    template <int bits>
    static Ints dot4(Ints sum, Bytes weights, const int8_t* activations) {
        int32_t four;
        __builtin_memcpy(&four, activations, sizeof four);
        const __m256i x = _mm256_set1_epi32(four);
        return {dot4_half<bits>(sum.low, weights.low, x), dot4_half<bits>(sum.high, weights.high, x)};
    }
    static int32_t sum(Ints v) {
        const __m256i eight = _mm256_add_epi32(v.low, v.high);
        __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
        four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
        return _mm_cvtsi128_si32(_mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1)));
    }
    static void store_bytes(int8_t* p, Ints v) {
        const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(v.low, v.high), 0xd8);
        const __m128i bytes =
            _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
    }

    // ---- floats
    static Floats zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
    static Floats floats(float v) { return {_mm256_set1_ps(v), _mm256_set1_ps(v)}; }
    static Floats floats(Ints v) { return {_mm256_cvtepi32_ps(v.low), _mm256_cvtepi32_ps(v.high)}; }
    static Ints nearest(Floats v) { return {_mm256_cvtps_epi32(v.low), _mm256_cvtps_epi32(v.high)}; }
    static Floats load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
    static void store(float* p, Floats v) {
        _mm256_storeu_ps(p, v.low);
        _mm256_storeu_ps(p + 8, v.high);
    }
    static Floats load_halves(const uint8_t* p) {
        return {_mm256_cvtph_ps(load128(p)), _mm256_cvtph_ps(load128(p + 16))};
    }
    static Floats load_uint8(const uint8_t* p) {
        const __m128i v = load128(p);
        return floats(Ints{_mm256_cvtepu8_epi32(v), _mm256_cvtepu8_epi32(_mm_srli_si128(v, 8))});
    }
    static Floats load_int8(const uint8_t* p) {
        const __m128i v = load128(p);
        return floats(Ints{_mm256_cvtepi8_epi32(v), _mm256_cvtepi8_epi32(_mm_srli_si128(v, 8))});
    }
    static Floats add(Floats a, Floats b) {
        return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
    }
    static Floats sub(Floats a, Floats b) {
        return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
    }
    static Floats mul(Floats a, Floats b) {
        return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
    }
    static Floats div(Floats a, Floats b) {
        return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
    }
    static Floats mul_add(Floats a, Floats b, Floats c) {
        return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
    }
    static Floats minus_mul(Floats c, Floats a, Floats b) {
        return {_mm256_fnmadd_ps(a.low, b.low, c.low), _mm256_fnmadd_ps(a.high, b.high, c.high)};
    }
    static Floats max(Floats a, Floats b) {
        return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
    }
    static Floats min(Floats a, Floats b) {
        return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
    }
    static Floats whole(Floats v) {
        constexpr int nearest_quietly = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
        return {_mm256_round_ps(v.low, nearest_quietly), _mm256_round_ps(v.high, nearest_quietly)};
    }
    // n is a whole number from -126 to 127
    static Floats times_power_of_2(Floats v, Floats n) {
        return {scale_half(v.low, n.low), scale_half(v.high, n.high)};
    }
    static float sum(Floats v) {
        const __m256 eight = _mm256_add_ps(v.low, v.high);
        __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
        four = _mm_add_ps(four, _mm_movehl_ps(four, four));
        return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
    }
    static float largest(Floats v) {
        const __m256 eight = _mm256_max_ps(v.low, v.high);
        __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
        four = _mm_max_ps(four, _mm_movehl_ps(four, four));
        return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
    }
    static float largest_magnitude(Floats a, Floats b) {
        const __m256i eight = _mm256_max_epi32(_mm256_max_epi32(magnitude(a.low), magnitude(a.high)),
                                               _mm256_max_epi32(magnitude(b.low), magnitude(b.high)));
        __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
        four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
        return _mm_cvtss_f32(_mm_castsi128_ps(_mm_max_epi32(four, _mm_shuffle_epi32(four, 0xb1))));
    }
    static Floats first(int n, Floats a, Floats b) {
        const __m256i count = _mm256_set1_epi32(n), lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        const __m256i low = _mm256_cmpgt_epi32(count, lanes);
        const __m256i high = _mm256_cmpgt_epi32(count, _mm256_add_epi32(lanes, _mm256_set1_epi32(8)));
        return {_mm256_blendv_ps(b.low, a.low, _mm256_castsi256_ps(low)),
                _mm256_blendv_ps(b.high, a.high, _mm256_castsi256_ps(high))};
    }

private:
    static __m256i load256(const uint8_t* p) {
        return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    }
    static __m256i magnitude(__m256 v) {
        return _mm256_and_si256(_mm256_castps_si256(v), _mm256_set1_epi32(0x7fffffff));
    }
    static __m128i load128(const uint8_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }

    template <int by, int mask>
    static __m256i with_bits_half(__m256i v, __m256i bits) {
        const __m256i moved =
            by >= 0 ? _mm256_slli_epi16(bits, by >= 0 ? by : 0) : _mm256_srli_epi16(bits, by < 0 ? -by : 0);
        return _mm256_or_si256(v, _mm256_and_si256(moved, _mm256_set1_epi8(mask)));
    }
    // maddubs adds two products in 16 bits, saturating: 2 * 63 * 127 fits, 2 * 255 * 127 does not. Eight-bit
    // weights are therefore made signed, and their signs moved to the activations: 2 * 128 * 127 fits; the
    // packed offset of 128, which the caller takes off, is put back as 128 times the activations.
    template <int bits>
    static __m256i dot4_half(__m256i sum, __m256i weights, __m256i x) {
        const __m256i ones = _mm256_set1_epi16(1);
        if constexpr (bits < 8)
            return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(weights, x), ones));
        const __m256i centred = _mm256_xor_si256(weights, _mm256_set1_epi8(-128));
        const __m256i products = _mm256_maddubs_epi16(_mm256_abs_epi8(centred), _mm256_sign_epi8(x, centred));
        const __m256i four_sums = _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), x), ones);
        return _mm256_add_epi32(
            sum, _mm256_add_epi32(_mm256_madd_epi16(products, ones), _mm256_slli_epi32(four_sums, 7)));
    }
    static __m256 scale_half(__m256 v, __m256 n) {
        const __m256i exponent =
            _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
        return _mm256_mul_ps(v, _mm256_castsi256_ps(exponent));
    }
};

}  // namespace rejoinder
