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
    ahead_ = 0;
}

void Call::copy_out(int positions, float* to) const {
    if (positions < 0 || positions > length_)
        throw std::invalid_argument("cannot copy " + std::to_string(positions) + " of " +
                                    std::to_string(length_) + " positions");
    cache_.copy_out(positions, to);
}

void Call::copy_in(int positions, const float* from) {
    if (length_ != 0) throw std::invalid_argument("only an empty cache can begin with a copy");
    if (positions < 1 || positions > model_->shape.context)
        throw std::invalid_argument("the copied positions do not fit into the context");
    cache_.copy_in(positions, from);
    length_ = positions;
    ahead_ = 0;
}

bool Call::extend(const int32_t* ids, int count, Outputs wanted, int threads) {
    if (!read(ids, count, length_, model_->shape.layers, wanted, threads)) return false;
    length_ += count;
    ahead_ = 0;
    return true;
}

bool Call::peek(const int32_t* ids, int count, int ahead, int layers, Outputs wanted, int threads) {
    if (ahead < 0 || ahead > ahead_) throw std::invalid_argument("a peek goes on where one has left off");
    if (layers < 1 || layers > model_->shape.layers)
        throw std::invalid_argument("the model has no " + std::to_string(layers) + " layers");
    ahead_ = ahead;
    if (!read(ids, count, length_ + ahead, layers, wanted, threads)) return false;
    ahead_ += count;
    return true;
}

bool Call::project(const float* states, int rows, float* logits, size_t stride, int threads) {
    if (rows < 1 || rows > kPassRows || threads < 1) throw std::invalid_argument("rows are out of range");
    prepare(rows, threads);
    PassRequest request{*model_, cache_, *scratch_, team_.barrier(), nullptr, rows,    0,      0,
                        states,  0,      logits,    stride,          rows,    nullptr, threads};
    return run(request);
}

bool Call::read(const int32_t* ids, int count, int position, int layers, Outputs wanted, int threads) {
    const Shape& shape = model_->shape;
    if (count < 1 || std::min(wanted.rows, wanted.hidden_rows) < 0 ||
        std::max(wanted.rows, wanted.hidden_rows) > count || threads < 1)
        throw std::invalid_argument("nothing to extend by, or rows out of range");
    if (count > shape.context - position)
        throw std::invalid_argument("the ids do not fit into the context");
    for (int i = 0; i < count; ++i)
        if (ids[i] < 0 || ids[i] >= shape.vocabulary)
            throw std::invalid_argument("token id " + std::to_string(ids[i]) +
                                        " is outside the vocabulary of " + std::to_string(shape.vocabulary));
    cache_.reserve(position + count);
    prepare(count, threads);
    for (int start = 0; start < count; start += scratch_->rows) {
        const int block = std::min(scratch_->rows, count - start);
        // Rows of this block from which logits and hidden states are wanted.
        const int logits = std::clamp(count - wanted.rows - start, 0, block);
        const int hidden = std::clamp(count - wanted.hidden_rows - start, 0, block);
        PassRequest request{*model_,       cache_,        *scratch_, team_.barrier(), ids + start,
                            block,         position + start, layers, nullptr,         logits,
                            wanted.logits, wanted.stride, hidden,    wanted.hidden,   threads};
        if (!run(request)) return false;
        wanted.logits += (block - logits) * wanted.stride;
        wanted.hidden += size_t(block - hidden) * shape.hidden;
    }
    return true;
}

void Call::prepare(int rows, int threads) {
    if (!scratch_ || scratch_->rows < std::min(rows, kPassRows) || scratch_->threads < threads)
        scratch_ = std::make_unique<Scratch>(model_->shape, rows > 16 ? kPassRows : 16, threads);
}

bool Call::run(PassRequest& request) {
    team_.run(request.threads, [&](int thread) { pass_(request, thread); });
    return request.finite.load();
}

}  // namespace rejoinder
