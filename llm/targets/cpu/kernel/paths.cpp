#include "paths.h"

#include <algorithm>
#include <stdexcept>

namespace rejoinder {

std::vector<std::string> supported_paths() {
    std::vector<std::string> paths;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vnni"))
        paths.push_back("avx512-vnni");
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c"))
        paths.push_back("avx2");
#endif
    paths.push_back("portable");
    return paths;
}

PassFunction path_named(const std::string& name) {
    const std::vector<std::string> paths = supported_paths();
    if (std::find(paths.begin(), paths.end(), name) == paths.end()) {
        std::string known;
        for (const std::string& path : paths) known += (known.empty() ? "" : ", ") + path;
        throw std::invalid_argument("this processor has no path called " + name + "; it has " + known);
    }
#if defined(__x86_64__)
    if (name == "avx512-vnni") return run_pass_avx512;
    if (name == "avx2") return run_pass_avx2;
#endif
    return run_pass_portable;
}

}  // namespace rejoinder
