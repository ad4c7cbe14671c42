// Two classes in the shape that profilers have today (rocprofiler-sdk's hsa_barrier and profiler_serializer), over
// this library: docs/migrating.md shows the replacement. To be included through hsa_serializer.hpp.
//
// The shape differs in one thing. What a kernel was counted as is in its ticket, which goes out with the kernel's
// packets and comes back with its completion: a host keeps it where it keeps what it knows of the kernel (in
// rocprofiler-sdk, queue_info_session_t). A queue alone does not say it: kernels of one queue complete in any order,
// and one that was dispatched serialized completes as such, whatever the mode is by then.
//
// Everything that a host intercepts goes through here, whether or not it is to be measured: a kernel that is not
// counted is one that a transition does not wait for.

#ifndef HSA_SERIALIZER_PROFILER_HPP
#define HSA_SERIALIZER_PROFILER_HPP

#ifndef HSA_SERIALIZER_HPP
#error "include hsa_serializer.hpp"
#endif

namespace hsa_serializer {

/// A barrier that can be set again and again: what is dispatched after set_barrier() waits, on the GPU, for what was
/// dispatched before. It counts by itself, over the queues that were added to it.
///
/// THREADS. Everything from any thread, but enqueue_packet(): in the queue's interceptor.
/// LIFETIME. remove_queue() of each queue before the barrier goes; see barrier_set.
class barrier {
  public:
    /// `finished` is called once for each set_barrier(), with how it ended: everything that it waited for has
    /// completed (cleared); it was set again before any kernel came, and the later one waits for the same (superseded);
    /// or misuse was noticed, and everything was let through (forced). See barrier_set::arm() for what it may do.
    ///
    /// See adapt() for what a runtime has.
    template <class R>
    barrier(std::shared_ptr<R> runtime, std::function<void(outcome)> finished, const options &how = {})
        : barrier(barrier_set(std::move(runtime), how), std::move(finished)) {}
    barrier(barrier_set set, std::function<void(outcome)> finished)
        : set_(std::move(set)), told_(std::make_shared<told>()) {
        told_->finished = std::move(finished);
    }

    /// Before the first packet of the HSA queue is intercepted. The host keeps it in its own queue.
    [[nodiscard]] queue add_queue() const { return set_.add_queue(); }

    /// Sets it, over all queues.
    void set_barrier() {
        if (told_ == nullptr) throw error(HSA_SERIALIZER_NULL_HANDLE, "hsa_serializer_barrier_set_arm");
        told_->set.fetch_add(1);
        try {
            set_.arm([told = told_](outcome how) {
                told->ended.fetch_add(1);
                if (told->finished) told->finished(how);
            });
        } catch (...) {
            told_->ended.fetch_add(1);
            throw;
        }
    }

    /// Counts one kernel. The packet, if there is one, has to be written in front of it. `counted` goes with the
    /// kernel to register_completion(); it is null where the queue or the barrier has ended.
    template <class Packet>
    [[nodiscard]] static std::optional<Packet> enqueue_packet(queue &queue, ticket &counted) noexcept {
        dispatched<Packet> dispatch;
        static_cast<void>(queue.dispatch(dispatch));
        counted = dispatch.ticket;
        if (dispatch.packets.empty()) return std::nullopt;
        return dispatch.packets[0];
    }

    /// A kernel has completed, well or badly. Once for each ticket. Whether everything that was waited for is through.
    bool register_completion(ticket counted) noexcept {
        static_cast<void>(set_.complete(counted));
        return complete();
    }

    /// None of the HSA queue's packets executes any more (see queue::destroyed()): it is not waited for.
    [[nodiscard]] status remove_queue(queue &queue) noexcept { return queue.destroyed(); }

    /// Whether every barrier that was set has ended, or none was set.
    bool complete() const noexcept {
        // Moved from: nobody sets it.
        if (told_ == nullptr) return true;
        // In this order: it never says so while one is set that was set before the call.
        const std::uint64_t ended = told_->ended.load();
        return ended == told_->set.load();
    }

    const barrier_set &set() const noexcept { return set_; }

  private:
    /// What callbacks use that may come when the barrier is gone.
    struct told {
        std::function<void(outcome)> finished;
        std::atomic<std::uint64_t> set{0};
        std::atomic<std::uint64_t> ended{0};
    };

    barrier_set set_;
    std::shared_ptr<told> told_;
};

/// Serializes the kernels of one agent.
///
/// THREADS. kernel_dispatch() in the queue's interceptor; everything else from any thread. enable(), disable(),
/// add_queue() take the transition lock: under no lock that an interceptor, a handler or a callback takes. The others
/// take none.
/// LIFETIME. As that of class serializer, whose destructor's words hold here. Calls of handlers that come late go by
/// numbers (queue_ready(), tickets), and find nothing.
class profiler_serializer {
  public:
    /// See adapt() for what a runtime has.
    template <class R>
    explicit profiler_serializer(std::shared_ptr<R> runtime, const options &how = {})
        : serializer_(std::move(runtime), how) {}
    /// Over AMD's runtime, by serializer::over_hsa().
    explicit profiler_serializer(serializer made) noexcept : serializer_(std::move(made)) {}

    /// Before the first packet of the HSA queue is intercepted. The host keeps it in its own queue.
    [[nodiscard]] queue add_queue() const { return serializer_.add_queue(); }

    /// What has to be written in front of a kernel, and its ticket. After this the kernel has to be written: what can
    /// fail comes before. If it is serialized, its packet and the last one of its group need the barrier bit.
    template <class Packet> [[nodiscard]] static dispatched<Packet> kernel_dispatch(queue &queue) noexcept {
        dispatched<Packet> dispatch;
        static_cast<void>(queue.dispatch(dispatch));
        return dispatch;
    }

    /// A kernel, and the host's packets behind it, have completed, well or badly. Once for each ticket, before the
    /// application is told. A kernel that never runs is not completed: its queue is destroyed.
    [[nodiscard]] status kernel_completion_signal(ticket dispatched) const noexcept {
        return serializer_.complete(dispatched);
    }

    /// The queue's ready signal fired; whether the handler stays registered. Of a serializer over the runtime's table
    /// the library has handlers of its own: nobody calls it.
    [[nodiscard]] static bool queue_ready(std::uint64_t queue_id) noexcept { return ready(queue_id); }

    /// Kernels run one at a time, or as the application wrote them. No queues are named: all that were added.
    transition enable() const { return serializer_.enable(); }
    transition disable() const { return serializer_.disable(); }

    /// The HSA queue is destroyed: after `hsa_queue_destroy` *returned* (see queue::destroyed()). Kernels of it that
    /// never ran are not completed; the others go on without it.
    [[nodiscard]] status destroy_queue(queue &queue) const noexcept { return queue.destroyed(); }

    /// The rest of what a serializer can do.
    const serializer &all() const noexcept { return serializer_; }

  private:
    serializer serializer_;
};

} // namespace hsa_serializer

#endif // HSA_SERIALIZER_PROFILER_HPP
