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
    int rows;             // at most scratch.rows
    int position;         // of the first row
    int layers;           // how many of them run before the final norm
    const float* states;  // [rows, hidden]: normed states to take to the head instead of reading ids, or null
    int first_logits;     // row from which logits are wanted; rows: none
    float* logits;        // [rows - first_logits, stride]
    size_t logits_stride;
    int first_hidden;  // row from which normed hidden states are wanted; rows: none
    float* hidden;     // [rows - first_hidden, hidden]
    int threads;
    std::atomic<bool> finite{true};
};

// Runs one thread's part of a pass. One function for each instruction set; see paths.h.
using PassFunction = void (*)(PassRequest& request, int thread);

}  // namespace rejoinder
