// Aligned, zeroed storage in large pages where the system has them.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <utility>

namespace rejoinder {

template <class T>
class Array {
public:
    Array() = default;
    explicit Array(size_t count) : count_(count) {
        if (count == 0) return;
        bytes_ = (count * sizeof(T) + kPage - 1) / kPage * kPage;
        void* start = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (start == MAP_FAILED) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
        if (bytes_ >= kLargePage) madvise(start, bytes_, MADV_HUGEPAGE);  // a hint; refusal costs nothing
#endif
        data_ = static_cast<T*>(start);
    }
    Array(Array&& other) noexcept { swap(other); }
    Array& operator=(Array&& other) noexcept {
        swap(other);
        return *this;
    }
    ~Array() {
        if (data_) munmap(data_, bytes_);
    }

    T* data() const { return data_; }
    T& operator[](size_t index) const { return data_[index]; }
    size_t size() const { return count_; }
    size_t bytes() const { return bytes_; }

private:
    static constexpr size_t kPage = 4096, kLargePage = 2 << 20;

    void swap(Array& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(count_, other.count_);
        std::swap(bytes_, other.bytes_);
    }

    T* data_ = nullptr;
    size_t count_ = 0, bytes_ = 0;
};

}  // namespace rejoinder
