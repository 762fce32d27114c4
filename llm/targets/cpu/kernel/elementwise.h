// What happens to one row at a time: RMSNorm, rotary embedding, SwiGLU. Each in a fixed order of operations.
#pragma once

#include <cmath>

namespace rejoinder {

// e^v, within 2 units in the last place: v = n ln 2 + r, a polynomial in r (Cephes' expf), times 2^n.
template <class V>
inline typename V::Floats exponential(typename V::Floats v) {
    v = V::min(V::max(v, V::floats(-87.f)), V::floats(88.f));
    const auto n = V::whole(V::mul(v, V::floats(1.44269504f)));
    auto r = V::minus_mul(v, n, V::floats(0.693359375f));
    r = V::minus_mul(r, n, V::floats(-2.12194440e-4f));
    auto p = V::floats(1.9875691500e-4f);
    for (float coefficient :
         {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f})
        p = V::mul_add(p, r, V::floats(coefficient));
    return V::times_power_of_2(V::mul_add(V::mul(p, r), r, V::add(r, V::floats(1.f))), n);
}

// out = x / rms(x) * weight; `size` is a multiple of 16. `out` may be x.
template <class V>
inline void rms_norm(const float* x, const float* weight, int size, float epsilon, float* out) {
    auto squares = V::zero();
    for (int i = 0; i < size; i += 16) squares = V::mul_add(V::load(x + i), V::load(x + i), squares);
    const auto factor = V::floats(1.f / std::sqrt(V::sum(squares) / static_cast<float>(size) + epsilon));
    for (int i = 0; i < size; i += 16)
        V::store(out + i, V::mul(V::mul(V::load(x + i), factor), V::load(weight + i)));
}

template <class V>
inline void add_to(float* x, const float* y, int size) {
    for (int i = 0; i < size; i += 16) V::store(x + i, V::add(V::load(x + i), V::load(y + i)));
}

// Rotates a head's first half against its second by the angles of its position; `size` is a multiple of 32.
template <class V>
inline void rotate(float* head, int size, const float* cosines, const float* sines) {
    float* other = head + size / 2;
    for (int i = 0; i < size / 2; i += 16) {
        const auto a = V::load(head + i), b = V::load(other + i);
        const auto cosine = V::load(cosines + i), sine = V::load(sines + i);
        V::store(head + i, V::minus_mul(V::mul(a, cosine), b, sine));
        V::store(other + i, V::mul_add(b, cosine, V::mul(a, sine)));
    }
}

// gate = gate * sigmoid(gate) * up
template <class V>
inline void swiglu(float* gate, const float* up, int size) {
    for (int i = 0; i < size; i += 16) {
        const auto g = V::load(gate + i);
        const auto silu = V::div(g, V::add(V::floats(1.f), exponential<V>(V::sub(V::zero(), g))));
        V::store(gate + i, V::mul(silu, V::load(up + i)));
    }
}

// Whether no value is infinite or NaN: any of them times zero is NaN, and NaN survives the sum.
template <class V>
inline bool all_finite(const float* x, int size) {
    auto zeros = V::zero();
    int i = 0;
    for (; i + 16 <= size; i += 16) zeros = V::mul_add(V::load(x + i), V::zero(), zeros);
    float rest = V::sum(zeros);
    for (; i < size; ++i) rest += x[i] * 0.f;
    return rest == 0.f;
}

}  // namespace rejoinder
