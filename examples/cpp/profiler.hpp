// What the two examples share: a profiler of one agent, over hsa_serializer::profiler_serializer.
//
// Machine is where signals are and completions are heard of: the emulated GPU (emulated.cpp), or AMD's runtime
// (hsa_tool.cpp). A real profiler reads counters where this one counts kernels.

#ifndef EXAMPLE_PROFILER_HPP
#define EXAMPLE_PROFILER_HPP

#include <hsa_serializer.hpp>

#include <mutex>
#include <thread>
#include <unordered_set>

namespace example {

/// An AQL packet, by what kernel dispatches and barriers have in common.
struct alignas(64) packet {
    std::uint16_t header;
    std::uint8_t body[54];
    std::uint64_t completion;

    // HSA_PACKET_TYPE_KERNEL_DISPATCH, HSA_PACKET_HEADER_BARRIER.
    bool is_kernel() const noexcept { return (header & 0xff) == 2; }
    void set_barrier_bit() noexcept { header = static_cast<std::uint16_t>(header | 1u << 8); }
};
static_assert(sizeof(packet) == 64);

/// A machine has
///
///     bool create_signal(std::int64_t initial, std::uint64_t &signal) noexcept;
///     void destroy_signal(std::uint64_t signal) noexcept;
///     void store(std::uint64_t signal, std::int64_t value) noexcept;
///     void subtract_one(std::uint64_t signal) noexcept;
///     bool on_below_one(std::uint64_t signal, bool (*handler)(std::int64_t value, void *), void *) noexcept;
template <class Machine> class profiler {
  public:
    class queue;

    profiler(Machine &machine, hsa_serializer::profiler_serializer serializer)
        : machine_(machine), serializer_(std::move(serializer)) {}

    const hsa_serializer::serializer &serializer() const noexcept { return serializer_.all(); }

    /// Before the first packet of the HSA queue is intercepted.
    std::shared_ptr<queue> add_queue() { return std::make_shared<queue>(serializer_.add_queue()); }

    /// The queue's interceptor: `out` gets what is to be written instead of `given`. It never fails: what can't be
    /// measured is passed on as it is.
    void intercept(const std::shared_ptr<queue> &on, const packet *given, std::size_t count,
                   std::vector<packet> &out) noexcept {
        out.clear();
        // Each kernel may get so many packets in front of it.
        out.reserve(count * (1 + hsa_serializer::packet_list<packet>::capacity));
        for (const packet *next = given; next != given + count; ++next) {
            if (next->is_kernel()) {
                kernel(on, *next, out);
            } else {
                out.push_back(*next);
            }
        }
    }

    /// The HSA queue was destroyed: the runtime's function has *returned*.
    void queue_destroyed(queue &gone) noexcept {
        static_cast<void>(serializer_.destroy_queue(gone.half));
        // Kernels that never ran have no end of their own. Their handlers run all the same, and clear up.
        const std::lock_guard<std::mutex> locked(gone.lock);
        for (flight *left : gone.out) {
            left->never_ran = true;
            machine_.store(left->signal, 0);
        }
    }

    hsa_serializer::transition set(bool serialized) {
        return serialized ? serializer_.enable() : serializer_.disable();
    }

    /// Ends it: what is in flight is waited for; what is not through by then is let through. Whether everything ended
    /// by itself. On a thread of the profiler's own.
    bool finish(std::chrono::nanoseconds timeout) {
        const auto end = std::chrono::steady_clock::now() + timeout;
        const auto left = serializer().finish_shutdown(timeout);
        if (left) serializer().release_all();
        // Handlers come behind that: each has a flight, and this object.
        while (in_flight() > 0 && std::chrono::steady_clock::now() < end) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return !left && in_flight() == 0;
    }

    /// Whether the calling thread calls handlers.
    static bool on_handler_thread() noexcept { return calls_handlers(); }
    /// Said on a thread that does.
    static void calls_handlers_here() noexcept { calls_handlers() = true; }

    std::uint64_t in_flight() const noexcept { return in_flight_.load(); }
    std::uint64_t kernels() const noexcept { return kernels_.load(); }
    std::uint64_t serialized() const noexcept { return serialized_.load(); }

  private:
    /// A kernel on its way: what rocprofiler-sdk has as queue_info_session_t.
    struct flight {
        profiler *owner;
        std::shared_ptr<queue> on;
        hsa_serializer::ticket ticket;
        std::uint64_t signal = 0;
        /// The application's own completion signal.
        std::uint64_t forward = 0;
        bool never_ran = false;
    };

  public:
    class queue {
      public:
        explicit queue(hsa_serializer::queue added) : half(std::move(added)) {}

        /// Kernels that were written, and have not ended.
        std::uint64_t under_way() {
            const std::lock_guard<std::mutex> locked(lock);
            return out.size();
        }

      private:
        friend profiler;
        hsa_serializer::queue half;
        /// Held for a moment, and never around a call of the serializer's.
        std::mutex lock;
        std::unordered_set<flight *> out;
    };

  private:
    void kernel(const std::shared_ptr<queue> &on, const packet &given, std::vector<packet> &out) noexcept {
        // What can fail comes before the dispatch.
        flight *const one = prepare(on);
        if (one == nullptr) {
            out.push_back(given);
            return;
        }
        const auto dispatch = serializer_.template kernel_dispatch<packet>(on->half);
        if (!dispatch.ticket) {
            // The profiler has ended. The handler clears up.
            out.push_back(given);
            machine_.store(one->signal, 0);
            return;
        }
        one->ticket = dispatch.ticket;
        one->forward = given.completion;
        ++kernels_;
        if (dispatch.serialized) ++serialized_;

        out.insert(out.end(), dispatch.packets.begin(), dispatch.packets.end());
        packet measured = given;
        measured.completion = one->signal;
        if (dispatch.serialized) measured.set_barrier_bit();
        out.push_back(measured);
    }

    flight *prepare(const std::shared_ptr<queue> &on) noexcept {
        try {
            auto one = std::make_unique<flight>();
            one->owner = this;
            one->on = on;
            if (!machine_.create_signal(1, one->signal)) return nullptr;
            const std::lock_guard<std::mutex> locked(on->lock);
            on->out.insert(one.get());
            if (!machine_.on_below_one(one->signal, &profiler::completed, one.get())) {
                on->out.erase(one.get());
                machine_.destroy_signal(one->signal);
                return nullptr;
            }
            ++in_flight_;
            return one.release();
        } catch (const std::bad_alloc &) {
            return nullptr;
        }
    }

    /// The handler of a kernel's completion signal, called once for each.
    static bool completed(std::int64_t value, void *arg) noexcept {
        calls_handlers_here();
        const std::unique_ptr<flight> one(static_cast<flight *>(arg));
        profiler &owner = *one->owner;
        {
            const std::lock_guard<std::mutex> locked(one->on->lock);
            one->on->out.erase(one.get());
        }
        // Well or badly; of a queue that is gone, and of a kernel that was not counted, it does nothing.
        static_cast<void>(owner.serializer_.kernel_completion_signal(one->ticket));
        owner.machine_.destroy_signal(one->signal);
        // The application last: it may destroy its queue the moment it knows.
        if (one->forward != 0 && !one->never_ran) {
            if (value < 0) {
                owner.machine_.store(one->forward, value);
            } else {
                owner.machine_.subtract_one(one->forward);
            }
        }
        --owner.in_flight_;
        return false;
    }

    static bool &calls_handlers() noexcept {
        thread_local bool calls = false;
        return calls;
    }

    Machine &machine_;
    hsa_serializer::profiler_serializer serializer_;
    std::atomic<std::uint64_t> in_flight_{0};
    std::atomic<std::uint64_t> kernels_{0};
    std::atomic<std::uint64_t> serialized_{0};
};

} // namespace example

#endif // EXAMPLE_PROFILER_HPP
