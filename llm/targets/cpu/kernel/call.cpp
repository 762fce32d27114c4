#include "call.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace rejoinder {

void Call::truncate(int length) {
    if (length < 0 || length > length_)
        throw std::invalid_argument("cannot truncate " + std::to_string(length_) + " positions to " +
                                    std::to_string(length));
    length_ = length;
}

bool Call::extend(const int32_t* ids, int count, int rows, float* logits, size_t stride, int threads) {
    const Shape& shape = model_->shape;
    if (count < 1 || rows < 0 || rows > count || threads < 1)
        throw std::invalid_argument("nothing to extend by, or rows out of range");
    if (count > shape.context - length_) throw std::invalid_argument("the ids do not fit into the context");
    for (int i = 0; i < count; ++i)
        if (ids[i] < 0 || ids[i] >= shape.vocabulary)
            throw std::invalid_argument("token id " + std::to_string(ids[i]) +
                                        " is outside the vocabulary of " + std::to_string(shape.vocabulary));
    cache_.reserve(length_ + count);
    if (!scratch_ || scratch_->rows < std::min(count, kPassRows) || scratch_->threads < threads)
        scratch_ = std::make_unique<Scratch>(shape, count > 16 ? kPassRows : 16, threads);

    for (int start = 0; start < count; start += scratch_->rows) {
        const int block = std::min(scratch_->rows, count - start);
        const int first =
            std::clamp(count - rows - start, 0, block);  // row of this block from which logits are wanted
        if (!run(ids + start, block, length_ + start, first, logits, stride, threads)) return false;
        logits += (block - first) * stride;
    }
    length_ += count;
    return true;
}

bool Call::run(const int32_t* ids, int rows, int position, int first_logits, float* logits, size_t stride,
               int threads) {
    PassRequest request{*model_,  cache_,       *scratch_, team_.barrier(), ids,    rows,
                        position, first_logits, logits,    stride,          threads};
    team_.run(threads, [&](int thread) { pass_(request, thread); });
    return request.finite.load();
}

}  // namespace rejoinder
