// One call: a cache with a position, the buffers of its passes, and the threads that run them.
#pragma once

#include <cstdint>
#include <memory>

#include "request.h"

namespace rejoinder {

class Call {
public:
    Call(std::shared_ptr<const Model> model, PassFunction pass)
        : model_(std::move(model)), pass_(pass), cache_(model_->shape) {}

    int length() const { return length_; }
    size_t bytes() const { return cache_.bytes() + (scratch_ ? scratch_->bytes() : 0); }
    const Shape& shape() const { return model_->shape; }

    // Throws std::invalid_argument unless 0 <= length <= length().
    void truncate(int length);

    // Appends `count` ids, writing the logits of the last `rows` of them: [rows, stride], stride a multiple
    // of 16. Returns false, and appends nothing, when a logit is not finite. Throws std::invalid_argument for
    // ids outside the vocabulary or a count that does not fit.
    bool extend(const int32_t* ids, int count, int rows, float* logits, size_t stride, int threads);

private:
    bool run(const int32_t* ids, int rows, int position, int first_logits, float* logits, size_t stride,
             int threads);

    std::shared_ptr<const Model> model_;
    PassFunction pass_;
    KeyValueCache cache_;
    std::unique_ptr<Scratch> scratch_;
    Team team_;
    int length_ = 0;
};

}  // namespace rejoinder
