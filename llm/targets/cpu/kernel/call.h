// One call: a cache with a position, the buffers of its passes, and the threads that run them.
#pragma once

#include <cstdint>
#include <memory>

#include "request.h"

namespace rejoinder {

// What is wanted of the rows that a call reads: the last ones' logits and hidden states.
struct Outputs {
    int rows;       // with logits
    float* logits;  // [rows, stride], stride a multiple of 16
    size_t stride;
    int hidden_rows;  // with hidden states
    float* hidden;    // [hidden_rows, hidden]: the last layer's output after the final norm
};

class Call {
public:
    Call(std::shared_ptr<const Model> model, PassFunction pass)
        : model_(std::move(model)), pass_(pass), cache_(model_->shape) {}

    int length() const { return length_; }
    size_t bytes() const { return cache_.bytes() + (scratch_ ? scratch_->bytes() : 0); }
    const Shape& shape() const { return model_->shape; }

    // Throws std::invalid_argument unless 0 <= length <= length().
    void truncate(int length);

    // Appends `count` ids. Returns false, and appends nothing, when a logit is not finite. Throws
    // std::invalid_argument for ids outside the vocabulary or a count that does not fit.
    bool extend(const int32_t* ids, int count, Outputs wanted, int threads);

    // Floats that one position has in the cache.
    size_t position_floats() const { return cache_.position_floats(); }

    // Keys and values of the first `positions`; see KeyValueCache. Throws std::invalid_argument unless there
    // are as many.
    void copy_out(int positions, float* to) const;

    // Begins with `positions` that another call of this model has copied out. Throws std::invalid_argument
    // unless this one is empty and they fit.
    void copy_in(int positions, const float* from);

    // Runs the first `layers` alone over ids that are not appended: they lie `ahead` positions after the end,
    // where an earlier peek has left off. The keys and values that it leaves there are those that `extend`
    // will write anew. Otherwise as `extend`.
    bool peek(const int32_t* ids, int count, int ahead, int layers, Outputs wanted, int threads);

    // Takes hidden states [rows, hidden] to the head: logits [rows, stride]. False: one is not finite.
    bool project(const float* states, int rows, float* logits, size_t stride, int threads);

private:
    bool read(const int32_t* ids, int count, int position, int layers, Outputs wanted, int threads);
    void prepare(int rows, int threads);
    bool run(PassRequest& request);

    std::shared_ptr<const Model> model_;
    PassFunction pass_;
    KeyValueCache cache_;
    std::unique_ptr<Scratch> scratch_;
    Team team_;
    int length_ = 0;
    int ahead_ = 0;  // positions after the end that a peek has filled
};

}  // namespace rejoinder
