// The pass on AVX2 with FMA and F16C.
//
// Everything that is not a template over the lanes is included before the compiler's target is switched, so
// that nothing another file also instantiates is compiled for instructions that the processor may lack.
#if defined(__x86_64__)

#include "paths.h"

#pragma GCC target("avx2,fma,f16c")
#include "lanes_avx2.h"
#include "pass.h"

namespace rejoinder {

void run_pass_avx2(PassRequest& request, int thread) { Pass<Avx2>(request, thread).run(); }

}  // namespace rejoinder

#endif
