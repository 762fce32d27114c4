// A few threads that run one pass together, and the barrier they meet at.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace rejoinder {

// Steps between barriers take tens of microseconds, so the threads wait spinning; one that has waited longer
// than that gives its processor away, since the others may need it to arrive.
class Barrier {
public:
    void reset(int threads) { threads_ = threads; }

    void wait() {
        if (threads_ == 1) return;
        const int generation = generation_.load(std::memory_order_relaxed);
        if (arrived_.fetch_add(1, std::memory_order_acq_rel) == threads_ - 1) {
            arrived_.store(0, std::memory_order_relaxed);
            generation_.store(generation + 1, std::memory_order_release);
            return;
        }
        for (int spins = 0; generation_.load(std::memory_order_acquire) == generation; ++spins)
            spins < kSpins ? pause() : std::this_thread::yield();
    }

private:
    static constexpr int kSpins = 2000;

    static void pause() {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }

    alignas(64) std::atomic<int> arrived_{0};
    alignas(64) std::atomic<int> generation_{0};
    int threads_ = 1;
};

// Threads sleep between passes. One user at a time.
class Team {
public:
    Team() = default;
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;
    ~Team() { stop(); }

    Barrier& barrier() { return barrier_; }

    // Runs work(0) here and work(1) .. work(threads - 1) on the team; returns when all have.
    void run(int threads, const std::function<void(int)>& work) {
        if (threads != int(workers_.size()) + 1) {
            stop();
            start(threads);
        }
        {
            std::lock_guard lock(mutex_);
            work_ = &work;
            running_.store(threads - 1, std::memory_order_relaxed);
            ++round_;
        }
        wake_.notify_all();
        work(0);
        while (running_.load(std::memory_order_acquire) > 0) std::this_thread::yield();
    }

private:
    void start(int threads) {
        stopping_ = false;
        barrier_.reset(threads);
        for (int index = 1; index < threads; ++index)
            workers_.emplace_back(&Team::serve, this, index, round_);
    }

    void stop() {
        {
            std::lock_guard lock(mutex_);
            stopping_ = true;
        }
        wake_.notify_all();
        for (std::thread& worker : workers_) worker.join();
        workers_.clear();
    }

    void serve(int index, long seen) {
        while (true) {
            const std::function<void(int)>* work;
            {
                std::unique_lock lock(mutex_);
                wake_.wait(lock, [&] { return stopping_ || round_ != seen; });
                if (stopping_) return;
                seen = round_;
                work = work_;
            }
            (*work)(index);
            running_.fetch_sub(1, std::memory_order_release);
        }
    }

    std::vector<std::thread> workers_;
    std::mutex mutex_;
    std::condition_variable wake_;
    const std::function<void(int)>* work_ = nullptr;
    std::atomic<int> running_{0};
    long round_ = 0;
    bool stopping_ = false;
    Barrier barrier_;
};

}  // namespace rejoinder
