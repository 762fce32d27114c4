// What a pass is asked to do.
#pragma once

#include <algorithm>
#include <atomic>

#include "cache.h"
#include "model.h"
#include "scratch.h"
#include "team.h"

namespace rejoinder {

struct PassRequest {
    const Model& model;
    KeyValueCache& cache;
    Scratch& scratch;
    Barrier& barrier;
    const int32_t* ids;
    int rows;          // at most scratch.rows
    int position;      // of the first row
    int first_logits;  // row from which logits are wanted; rows: none
    float* logits;     // [rows - first_logits, stride]
    size_t logits_stride;
    int threads;
    std::atomic<bool> finite{true};
};

// Runs one thread's part of a pass. One function for each instruction set; see paths.h.
using PassFunction = void (*)(PassRequest& request, int thread);

}  // namespace rejoinder
