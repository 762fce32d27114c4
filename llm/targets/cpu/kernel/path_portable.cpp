// The pass in plain C++.
#include "paths.h"

#include "lanes_portable.h"
#include "pass.h"

namespace rejoinder {

void run_pass_portable(PassRequest& request, int thread) { Pass<Portable>(request, thread).run(); }

}  // namespace rejoinder
