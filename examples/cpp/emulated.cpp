// A profiler on the emulated GPU: an application's threads dispatch kernels on several queues, the profiler turns
// serialization on and off meanwhile, a queue is destroyed under load, and everything ends in order. The emulated GPU
// checks that no two kernels overlapped while they were to run one at a time, and that no packet named a signal that
// was gone. The exit code says it.
//
//     cargo build -p hsa-serializer-capi -p softgpu-c
//     c++ -std=c++17 -pthread -Icapi/include -Isoftgpu/c/include examples/cpp/emulated.cpp -o emulated
//         -Ltarget/debug -lhsa_serializer_capi -lsoftgpu_c -Wl,-rpath,$PWD/target/debug     (on the same line)
//     ./emulated 2            seconds
//     ./emulated 0.3 unseen   kernels go round the serializer: the checks have to find that
//
// CMakeLists.txt builds it with the installed package, or with the library of the repository.

#include "profiler.hpp"
#include "soft_machine.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace {

using example::packet;
using profiler = example::profiler<example::soft_machine>;
using duration = std::chrono::duration<double>;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t queue_count = 4, thread_count = 3;
/// So many kernels are in flight at most: the application waits for its own.
constexpr std::uint64_t most_in_flight = 200;

/// An HSA queue of the application's, intercepted by the profiler.
class app_queue {
  public:
    app_queue(example::soft_machine &machine, std::uint64_t agent, profiler &owner, bool unseen)
        : machine_(machine), owner_(owner), unseen_(unseen), state_(owner.add_queue()) {
        if (softgpu_queue_create(machine.gpu(), agent, 0, &app_queue::intercept, this, &handle_) != 0) {
            owner_.queue_destroyed(*state_);
            throw std::runtime_error("the emulated GPU gave no queue");
        }
    }
    app_queue(const app_queue &) = delete;
    app_queue &operator=(const app_queue &) = delete;

    bool submit(const std::vector<packet> &packets) noexcept {
        return softgpu_submit(machine_.gpu(), handle_, packets.data(), packets.size()) == 0;
    }

    /// In order: the runtime's destroy returns, then the serializer is told. (Nobody submits any more: here the
    /// caller's lock sees to it, with HSA it is the application's own duty.)
    ~app_queue() {
        softgpu_queue_destroy(machine_.gpu(), handle_);
        owner_.queue_destroyed(*state_);
    }

  private:
    static void intercept(void *self, const void *packets, std::size_t count, softgpu_writer_t *writer) noexcept {
        auto &me = *static_cast<app_queue *>(self);
        if (me.unseen_) return softgpu_write(writer, packets, count);
        me.owner_.intercept(me.state_, static_cast<const packet *>(packets), count, me.out_);
        softgpu_write(writer, me.out_.data(), me.out_.size());
    }

    example::soft_machine &machine_;
    profiler &owner_;
    bool unseen_;
    std::shared_ptr<profiler::queue> state_;
    std::uint64_t handle_ = 0;
    /// Reused from batch to batch: calls for one queue come one at a time.
    std::vector<packet> out_;
};

struct slot {
    std::mutex lock;
    std::unique_ptr<app_queue> queue;
};

void dispatch_until(const std::atomic<bool> &stop, std::array<slot, queue_count> &slots, const profiler &owner,
                    unsigned seed) {
    std::minstd_rand random(seed);
    for (std::uint32_t number = seed << 24; !stop.load();) {
        if (owner.in_flight() >= most_in_flight) {
            std::this_thread::sleep_for(std::chrono::microseconds(50));
            continue;
        }
        std::vector<packet> batch(1 + random() % 3);
        for (packet &one : batch) softgpu_kernel(&one, number++, 1'000 + random() % 20'000, 0);
        slot &on = slots[random() % queue_count];
        const std::lock_guard<std::mutex> locked(on.lock);
        if (on.queue) on.queue->submit(batch);
    }
}

/// Turns it on or off, and tells the emulated GPU's checks.
void set(profiler &owner, softgpu_t *gpu, std::uint64_t agent, bool serialized) {
    softgpu_mode_begins(gpu, agent, serialized);
    try {
        owner.set(serialized);
        softgpu_mode_is(gpu, agent, serialized);
    } catch (const hsa_serializer::error &e) {
        // No signal could be had: nothing has changed, and the application goes on.
        softgpu_mode_failed(gpu, agent);
        std::fprintf(stderr, "%s\n", e.what());
    }
}

void print_line(void *, const char *text) { std::fprintf(stderr, "%s\n", text); }

bool run(duration lasts, bool unseen) {
    softgpu_t *const gpu = softgpu_create(1, 1, 1);
    if (gpu == nullptr) throw std::runtime_error("the emulated GPU did not start");
    const std::uint64_t agent = softgpu_agent(gpu, 0);
    bool good = true;
    {
        example::soft_machine machine(gpu);
        profiler owner(machine, hsa_serializer::profiler_serializer(std::make_shared<example::soft_runtime>(gpu)));
        std::array<slot, queue_count> slots;
        for (slot &one : slots) one.queue = std::make_unique<app_queue>(machine, agent, owner, unseen);

        std::atomic<bool> stop{false};
        std::vector<std::thread> threads;
        for (unsigned n = 1; n <= thread_count; ++n) {
            threads.emplace_back([&, n] { dispatch_until(stop, slots, owner, n); });
        }
        // On and off under load; now and then a queue goes, with what it holds, and another one comes.
        const auto end = std::chrono::steady_clock::now() + lasts;
        for (std::size_t n = 0; std::chrono::steady_clock::now() < end; ++n) {
            set(owner, gpu, agent, n % 2 == 0);
            std::this_thread::sleep_for(milliseconds(2));
            if (n % 16 == 15) {
                slot &one = slots[n / 16 % queue_count];
                const std::lock_guard<std::mutex> locked(one.lock);
                one.queue.reset();
                one.queue = std::make_unique<app_queue>(machine, agent, owner, unseen);
            }
        }
        set(owner, gpu, agent, false);
        // What was in flight up to here has completed, while the application goes on.
        for (const auto &stuck : owner.serializer().drain(seconds(30))) {
            std::fprintf(stderr, "queue %#llx: %llu in flight\n", static_cast<unsigned long long>(stuck.queue_id),
                         static_cast<unsigned long long>(stuck.dispatches));
            good = false;
        }
        stop.store(true);
        for (std::thread &thread : threads) thread.join();
        good = softgpu_wait_idle(gpu, 60'000'000'000, print_line, nullptr) && good;

        const auto done = owner.serializer().statistics();
        for (slot &one : slots) one.queue.reset();
        good = owner.finish(seconds(30)) && good;
        std::printf("%llu kernels, %llu of them serialized, %llu transitions, %.1f ms serialized, "
                    "%llu barriers waited for a packet to execute\n",
                    static_cast<unsigned long long>(owner.kernels()),
                    static_cast<unsigned long long>(owner.serialized()),
                    static_cast<unsigned long long>(done.transitions),
                    static_cast<double>(done.serialized_for().count()) / 1e6,
                    static_cast<unsigned long long>(done.retired_after_drain));
        good = good && (unseen || (owner.serialized() > 0 && owner.serialized() < owner.kernels())) && done.misuse == 0;
    }
    softgpu_checks_t checks{};
    softgpu_checks(gpu, agent, &checks);
    std::printf("%llu kernels ran, %llu violations, %llu signals left\n",
                static_cast<unsigned long long>(checks.ended), static_cast<unsigned long long>(checks.violations),
                static_cast<unsigned long long>(checks.live_signals));
    softgpu_violations(gpu, print_line, nullptr);
    good = good && checks.ended > 0 && checks.violations == 0 && checks.live_signals == 0;
    return softgpu_destroy(gpu) && good;
}

} // namespace

int main(int argc, char **argv) {
    try {
        const bool good = run(duration(argc > 1 ? std::atof(argv[1]) : 2.0),
                              argc > 2 && std::string(argv[2]) == "unseen");
        std::puts(good ? "ok" : "FAILED");
        return good ? EXIT_SUCCESS : EXIT_FAILURE;
    } catch (const std::exception &e) {
        std::fprintf(stderr, "FAILED: %s\n", e.what());
        return EXIT_FAILURE;
    }
}
