// The pass on AVX-512 with VNNI, and AMX for blocks of sixteen rows; see path_avx512.cpp on the order of
// includes.
#if defined(__x86_64__)

#include "paths.h"

#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c,amx-tile,amx-int8")
#include "lanes_avx512.h"
#include "products_amx.h"
#include "pass.h"

namespace rejoinder {

void run_pass_amx(PassRequest& request, int thread) { Pass<Avx512Amx>(request, thread).run(); }

}  // namespace rejoinder

#endif
