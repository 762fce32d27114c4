// The instruction sets the pass is compiled for, and which of them this processor has.
#pragma once

#include <string>
#include <vector>

#include "request.h"

namespace rejoinder {

#if defined(__x86_64__)
void run_pass_amx(PassRequest& request, int thread);
void run_pass_avx512(PassRequest& request, int thread);
void run_pass_avx2(PassRequest& request, int thread);
#endif
void run_pass_portable(PassRequest& request, int thread);

// Best first: "amx", "avx512-vnni", "avx2", "portable".
std::vector<std::string> supported_paths();

// Throws std::invalid_argument for a name this processor does not support.
PassFunction path_named(const std::string& name);

}  // namespace rejoinder
