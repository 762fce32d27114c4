#include "paths.h"

#include <algorithm>
#include <stdexcept>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace rejoinder {

namespace {

#if defined(__x86_64__)

bool has_avx512_vnni() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vnni");
}

// Tiles need the processor, and the kernel's leave to keep their large state for this process.
bool has_amx_int8() {
    unsigned eax, ebx, ecx, edx;
    constexpr unsigned kTile = 1u << 24, kInt8 = 1u << 25;
    if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) || !(edx & kTile) || !(edx & kInt8)) return false;
#if defined(__linux__)
    constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
    return false;
#endif
}

#endif

}  // namespace

std::vector<std::string> supported_paths() {
    std::vector<std::string> paths;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (has_avx512_vnni() && has_amx_int8()) paths.push_back("amx");
    if (has_avx512_vnni()) paths.push_back("avx512-vnni");
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
    if (name == "amx") return run_pass_amx;
    if (name == "avx512-vnni") return run_pass_avx512;
    if (name == "avx2") return run_pass_avx2;
#endif
    return run_pass_portable;
}

}  // namespace rejoinder
