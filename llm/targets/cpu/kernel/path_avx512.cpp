// The pass on AVX-512 with VNNI, without and with AMX, which share the products of few rows.
//
// Everything that is not a template over the lanes is included before the compiler's target is switched, so
// that nothing another file also instantiates is compiled for instructions that the processor may lack.
#if defined(__x86_64__)

#include "paths.h"

#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c,amx-tile,amx-int8")
#include "lanes_avx512.h"
#include "products_amx.h"
#include "pass.h"

namespace rejoinder {

void run_pass_amx(PassRequest& request, int thread) { Pass<Avx512Amx>(request, thread).run(); }

void run_pass_avx512(PassRequest& request, int thread) { Pass<Avx512>(request, thread).run(); }

}  // namespace rejoinder

#endif
