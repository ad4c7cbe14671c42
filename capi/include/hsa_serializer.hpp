// C++17 over hsa_serializer.h: objects that give up what they hold, exceptions where that is no harm, standard types.
//
// HOT CALLS (dispatch, complete, ready, a queue gone) are noexcept and return a status: [[nodiscard]], as C's.
// SLOW CALLS throw hsa_serializer::error. What their C functions say holds for them: from where each may be called,
// and which status it comes to. They can throw std::bad_alloc, too, where they return texts or lists.
//
// HANDLES. serializer_ref and what other calls take by value is a number, and never another object's: one that is
// gone does no harm. What owns something can be moved and not copied. A moved-from object is null: to be destroyed or
// assigned to; its calls come to HSA_SERIALIZER_NULL_HANDLE.
//
// THREADS. Calls of one object come from several threads at once where its C functions may. Moving, assigning and
// destroying an object is for one thread, while no other uses it: give interceptors and handlers a serializer_ref.
//
// CALLBACKS of the host's are called from the library's C code: an exception of theirs goes no further than this
// header. What becomes of it is said at each.
//
// | file | holds |
// |---|---|
// | hsa_serializer_base.hpp | statuses, errors, plain types, tickets, packets; a runtime of the host's |
// | hsa_serializer.hpp | serializers and their queues, requests, cuts, stalls; it includes the others |
// | hsa_serializer_sets.hpp | several agents; barriers by themselves |
// | hsa_serializer_profiler.hpp | two classes in the shape that profilers have |

#ifndef HSA_SERIALIZER_HPP
#define HSA_SERIALIZER_HPP

#include "hsa_serializer_base.hpp"

namespace hsa_serializer {

/// A domain of reclamation. Serializers that were made with it keep it.
class domain {
  public:
    domain() {
        hsa_serializer_domain_t made;
        detail::check(hsa_serializer_domain_create(&made), "hsa_serializer_domain_create");
        owned_ = detail::owned<hsa_serializer_domain_t, hsa_serializer_domain_destroy>(made);
    }

    hsa_serializer_domain_t handle() const noexcept { return owned_.get(); }
    std::uint64_t pending() const {
        std::uint64_t pending = 0;
        detail::check(hsa_serializer_domain_pending(handle(), &pending), "hsa_serializer_domain_pending");
        return pending;
    }

  private:
    detail::owned<hsa_serializer_domain_t, hsa_serializer_domain_destroy> owned_;
};

/// How a serializer is made where the defaults do not do.
struct options {
    /// Null: the process's domain. It may go when the serializer is made.
    const hsa_serializer::domain *domain = nullptr;
    /// For snapshots to name it; 0: not said.
    std::uint64_t agent = 0;
    hsa_serializer::on_misuse on_misuse = hsa_serializer::on_misuse::release;

    hsa_serializer_options_t raw() const noexcept {
        hsa_serializer_options_t raw{};
        raw.size = sizeof raw;
        if (domain != nullptr) raw.domain = domain->handle();
        raw.agent = agent;
        raw.on_misuse = static_cast<std::uint32_t>(on_misuse);
        return raw;
    }
};

/// The dispatching half of a queue, of a serializer or of a barrier set. The host keeps it in its own queue, where
/// the interceptor finds it.
///
/// dispatch(), try_dispatch(), gap() and count_in_flight() are for the queue's interceptor: one call at a time, which
/// HSA sees to. Beside them, any thread may say destroyed().
///
/// The destructor does nothing: only the host knows when none of the HSA queue's packets can execute any more.
/// Where destroyed() was not said, what the queue has in flight is waited for, until the serializer ends.
class queue {
  public:
    queue() noexcept : handle_{0} {}
    explicit queue(hsa_serializer_queue_t handle) noexcept : handle_(handle) {}
    queue(queue &&other) noexcept : handle_(std::exchange(other.handle_, {0})) {}
    queue &operator=(queue &&other) noexcept {
        const auto handle = std::exchange(other.handle_, {0});
        handle_ = handle;
        return *this;
    }

    hsa_serializer_queue_t handle() const noexcept { return handle_; }
    explicit operator bool() const noexcept { return handle_.handle != 0; }

    /// What handlers, events, reports, stalls and tickets call it; 0 of a null queue.
    std::uint64_t id() const noexcept {
        std::uint64_t id = 0;
        static_cast<void>(hsa_serializer_queue_id(handle_, &id));
        return id;
    }

    /// hsa_serializer_dispatch(): the point of no return. If it does not come to success, `to` says that nothing was
    /// counted, and the kernel is passed on as it is.
    template <class Packet> [[nodiscard]] status dispatch(dispatched<Packet> &to) noexcept {
        hsa_serializer_dispatch_t raw;
        return take(hsa_serializer_dispatch(handle_, to.packets.items_, to.packets.capacity, &raw), raw, to);
    }

    /// hsa_serializer_try_dispatch(): HSA_SERIALIZER_LIMIT where so many are in flight.
    template <class Packet>
    [[nodiscard]] status try_dispatch(dispatched<Packet> &to, std::uint64_t limit) noexcept {
        hsa_serializer_dispatch_t raw;
        return take(hsa_serializer_try_dispatch(handle_, to.packets.items_, to.packets.capacity, limit, &raw), raw,
                    to);
    }

    /// hsa_serializer_gap(). The last packet is the marker: it needs a completion signal.
    template <class Packet> [[nodiscard]] status gap(dispatched<Packet> &to) noexcept {
        hsa_serializer_marker_t raw{};
        const status code = hsa_serializer_gap(handle_, to.packets.items_, to.packets.capacity, &raw);
        return take(code, hsa_serializer_dispatch_t{raw.ticket, raw.packets, false}, to);
    }

    /// How many dispatches have not completed.
    [[nodiscard]] status count_in_flight(std::uint64_t &count) const noexcept {
        return hsa_serializer_queue_in_flight(handle_, &count);
    }

    /// hsa_serializer_queue_destroyed(): after `hsa_queue_destroy` or `hsa_queue_inactivate` *returned*, or the
    /// queue's error callback was called. Once.
    [[nodiscard]] status destroyed() noexcept { return hsa_serializer_queue_destroyed(handle_); }

  private:
    template <class Packet>
    static status take(status code, const hsa_serializer_dispatch_t &raw, dispatched<Packet> &to) noexcept {
        const bool counted = code == HSA_SERIALIZER_SUCCESS;
        to.ticket = counted ? ticket(raw.ticket) : ticket();
        to.serialized = counted && raw.serialized;
        to.packets.size_ = counted ? raw.packets : 0;
        return code;
    }

    hsa_serializer_queue_t handle_;
};

/// A queue's ready signal fired: what a runtime's handler calls, with the id that watch_ready() was given, and whose
/// answer it returns. See hsa_serializer_ready().
[[nodiscard]] inline bool ready(std::uint64_t queue_id) noexcept { return hsa_serializer_ready(queue_id); }

/// Kernels are serialized for as long as it lives, whoever else wants it or not.
///
/// Its end takes the transition lock: it dies where hsa_serializer_enable() may be called.
class request_guard {
  public:
    request_guard() noexcept = default;
    explicit request_guard(hsa_serializer_request_t handle) noexcept : owned_(handle) {}

    hsa_serializer_request_t handle() const noexcept { return owned_.get(); }
    /// Ends it now, and says what that did. Once.
    transition end() {
        hsa_serializer_transition_t did{};
        detail::check(hsa_serializer_request_end(owned_.release(), &did), "hsa_serializer_request_end");
        return {change(did.change), did.count};
    }

  private:
    detail::owned<hsa_serializer_request_t, detail::end_request> owned_;
};

/// What was in flight at one moment. Later work goes on waiting for that when this goes.
class cut_guard {
  public:
    explicit cut_guard(hsa_serializer_cut_t handle) noexcept : owned_(handle) {}

    /// The queues that are not through yet.
    std::vector<in_flight> queues() const {
        return detail::list<in_flight>("hsa_serializer_cut_in_flight", [this](auto *to, auto room, auto *count) {
            return hsa_serializer_cut_in_flight(owned_.get(), to, room, count);
        });
    }

    /// Lets go what waits for it, though something of it is in flight; whether that was needed. Once.
    bool withdraw() {
        bool needed = false;
        detail::check(hsa_serializer_cut_withdraw(owned_.release(), &needed), "hsa_serializer_cut_withdraw");
        return needed;
    }

  private:
    detail::owned<hsa_serializer_cut_t, hsa_serializer_cut_end> owned_;
};

/// What looks for stalls. One check() at a time.
class stall_watch {
  public:
    explicit stall_watch(hsa_serializer_stall_watch_t handle) noexcept : owned_(handle) {}

    /// What has stood still for longer than was allowed. On a thread of the host's own, every second or so.
    std::vector<stall> check(std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now()) {
        std::vector<stall> found;
        auto add = detail::callback(
            [&found](const hsa_serializer_stall_t *stall) { found.push_back(detail::copied(*stall)); });
        const auto since = std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch());
        detail::check(hsa_serializer_stall_watch_check(owned_.get(), detail::nanoseconds(since),
                                                       &decltype(add)::template call<const hsa_serializer_stall_t *>,
                                                       &add, nullptr),
                      "hsa_serializer_stall_watch_check");
        add.rethrow();
        return found;
    }

  private:
    detail::owned<hsa_serializer_stall_watch_t, hsa_serializer_stall_watch_destroy> owned_;
};

/// A serializer by its handle, to be copied: what interceptors, handlers and other threads have of one. It keeps
/// nothing alive. Of a serializer that was destroyed, calls come to HSA_SERIALIZER_STALE_HANDLE.
class serializer_ref {
  public:
    serializer_ref() noexcept : handle_{0} {}
    explicit serializer_ref(hsa_serializer_t handle) noexcept : handle_(handle) {}

    hsa_serializer_t handle() const noexcept { return handle_; }
    explicit operator bool() const noexcept { return handle_.handle != 0; }

    /// hsa_serializer_complete(): once for each ticket. A null one does nothing.
    [[nodiscard]] status complete(ticket done) const noexcept {
        return done ? hsa_serializer_complete(handle_, done.raw()) : HSA_SERIALIZER_SUCCESS;
    }
    [[nodiscard]] status check(ticket asked) const noexcept { return hsa_serializer_check(handle_, asked.raw()); }
    /// Whether a dispatch begun now would be serialized; after the end, whether the last one would. Wait-free; from
    /// anywhere.
    bool is_enabled() const noexcept {
        std::uint32_t mode = HSA_SERIALIZER_DISABLED;
        return hsa_serializer_mode(handle_, &mode) == HSA_SERIALIZER_SUCCESS && mode == HSA_SERIALIZER_ENABLED;
    }

    /// Before the first packet of the HSA queue is intercepted.
    [[nodiscard]] queue add_queue() const {
        hsa_serializer_queue_t added;
        detail::check(hsa_serializer_queue_add(handle_, &added), "hsa_serializer_queue_add");
        return queue(added);
    }

    /// The host's own switch.
    transition enable() const { return turn(hsa_serializer_enable, "hsa_serializer_enable"); }
    transition disable() const { return turn(hsa_serializer_disable, "hsa_serializer_disable"); }
    /// Requests by hand; each acquire() is given back by one release().
    transition acquire() const { return turn(hsa_serializer_acquire, "hsa_serializer_acquire"); }
    transition release() const { return turn(hsa_serializer_release, "hsa_serializer_release"); }
    [[nodiscard]] request_guard request() const {
        hsa_serializer_request_t made;
        detail::check(hsa_serializer_request(handle_, &made), "hsa_serializer_request");
        return request_guard(made);
    }
    std::uint64_t requests() const {
        std::uint64_t count = 0;
        detail::check(hsa_serializer_requests(handle_, &count), "hsa_serializer_requests");
        return count;
    }

    /// Waits for what is in flight; empty if that has completed, else who is stuck.
    [[nodiscard]] std::vector<in_flight> drain(std::chrono::nanoseconds timeout) const {
        std::vector<in_flight> stuck;
        auto add = detail::callback(
            [&stuck](const in_flight *list, std::size_t count) { stuck.assign(list, list + count); });
        const status code =
            hsa_serializer_drain(handle_, detail::nanoseconds(timeout),
                                 &decltype(add)::template call<const in_flight *, std::size_t>, &add);
        add.rethrow();
        if (code != HSA_SERIALIZER_TIMED_OUT) detail::check(code, "hsa_serializer_drain");
        return stuck;
    }
    [[nodiscard]] cut_guard cut() const {
        hsa_serializer_cut_t made;
        detail::check(hsa_serializer_cut(handle_, &made), "hsa_serializer_cut");
        return cut_guard(made);
    }
    [[nodiscard]] stall_watch watch_stalls(std::chrono::nanoseconds after, stall_policy policy) const {
        hsa_serializer_stall_watch_t made;
        detail::check(hsa_serializer_stall_watch_create(handle_, detail::nanoseconds(after),
                                                        static_cast<std::uint32_t>(policy), &made),
                      "hsa_serializer_stall_watch_create");
        return stall_watch(made);
    }

    counters statistics() const {
        counters all{};
        all.size = sizeof(hsa_serializer_statistics_t);
        detail::check(hsa_serializer_statistics(handle_, &all), "hsa_serializer_statistics");
        return all;
    }
    std::string snapshot() const {
        return detail::text("hsa_serializer_snapshot_text", [this](hsa_serializer_text_fn write, void *to) {
            return hsa_serializer_snapshot_text(handle_, write, to);
        });
    }
    void collect() const { detail::check(hsa_serializer_collect(handle_), "hsa_serializer_collect"); }

    /// The first phase of the end.
    void begin_shutdown() const {
        detail::check(hsa_serializer_begin_shutdown(handle_), "hsa_serializer_begin_shutdown");
    }
    /// The second, which waits: nothing, if it has ended; else what it still waits for.
    [[nodiscard]] std::optional<remaining> finish_shutdown(std::chrono::nanoseconds timeout) const {
        return finish("hsa_serializer_finish_shutdown", [&](hsa_serializer_remaining_fn told, void *to) {
            return hsa_serializer_finish_shutdown(handle_, detail::nanoseconds(timeout), told, to);
        });
    }
    [[nodiscard]] std::optional<remaining> try_finish_shutdown() const {
        return finish("hsa_serializer_try_finish_shutdown", [&](hsa_serializer_remaining_fn told, void *to) {
            return hsa_serializer_try_finish_shutdown(handle_, told, to);
        });
    }
    /// The kill switch.
    void release_all() const {
        detail::check(hsa_serializer_release_all(handle_), "hsa_serializer_release_all");
    }

  protected:
    hsa_serializer_t handle_;

  private:
    using turning = status(hsa_serializer_t, hsa_serializer_transition_t *);
    transition turn(turning *how, const char *name) const {
        hsa_serializer_transition_t did{};
        detail::check(how(handle_, &did), name);
        return {change(did.change), did.count};
    }

    template <class Call> std::optional<remaining> finish(const char *name, const Call &call) const {
        std::optional<remaining> left;
        auto copy =
            detail::callback([&left](const hsa_serializer_remaining_t *told) { left = detail::copied(*told); });
        const status code =
            call(&decltype(copy)::template call<const hsa_serializer_remaining_t *>, &copy);
        copy.rethrow();
        if (!left) detail::check(code, name);
        return left;
    }
};

/// The snapshots of all serializers of the process.
inline std::string snapshots() {
    return detail::text("hsa_serializer_snapshots_text", [](hsa_serializer_text_fn write, void *to) {
        return hsa_serializer_snapshots_text(write, to);
    });
}

/// A serializer, disabled at first, and its runtime, which lives until nothing calls it any more.
///
/// The destructor never waits. Where the end was not said (finish_shutdown(), leave()) it says it: if something is
/// still in flight or a handler has not been told to go, everything is let through (release_all()) and then left. So
/// kernels that are queued run; what the runtime has given (signals) is not given back; the runtime's object is
/// kept for ever, since another thread may be inside of a call of it. Who wants more says finish_shutdown() before.
///
/// It calls the runtime. Where HSA may be gone by then (an object in static storage, which the process's end
/// destroys) say leave() while it is there: the destructor calls nothing then.
class serializer : public serializer_ref {
  public:
    /// See adapt() for what a runtime has; null comes to HSA_SERIALIZER_NULL_POINTER.
    template <class R>
    explicit serializer(std::shared_ptr<R> runtime, const options &how = {}) {
        if (runtime == nullptr) throw error(HSA_SERIALIZER_NULL_POINTER, "hsa_serializer_create");
        const hsa_serializer_runtime_t functions = adapt(*runtime);
        const hsa_serializer_options_t raw = how.raw();
        host_.keep_alive(std::move(runtime));
        detail::check(hsa_serializer_create(&raw, &functions, &handle_), "hsa_serializer_create");
    }

    /// hsa_serializer_create_hsa(): over AMD's runtime, by its table. `told` has report() and event(), if it likes.
    template <class Told = nobody>
    static serializer over_hsa(const void *table, std::uint64_t agent, std::shared_ptr<Told> told = nullptr,
                               const options &how = {}) {
        serializer made;
        const hsa_serializer_hsa_t hsa = adapt_table(table, told.get());
        const hsa_serializer_options_t raw = how.raw();
        made.host_.keep_alive(std::move(told));
        detail::check(hsa_serializer_create_hsa(&raw, &hsa, agent, &made.handle_), "hsa_serializer_create_hsa");
        return made;
    }

    serializer(serializer &&other) noexcept
        : serializer_ref(std::exchange(other.handle_, {0})), host_(std::move(other.host_)) {}
    serializer &operator=(serializer &&other) noexcept {
        if (this != &other) {
            end();
            handle_ = std::exchange(other.handle_, {0});
            host_ = std::move(other.host_);
        }
        return *this;
    }
    ~serializer() { end(); }

    /// hsa_serializer_leave(): one atomic step, from anywhere. (Who says it by the handle keeps the runtime alive
    /// himself.)
    void leave() const noexcept {
        host_.leave();
        static_cast<void>(hsa_serializer_leave(handle_));
    }

    /// To be copied, for who does not own it.
    serializer_ref ref() const noexcept { return *this; }

  private:
    serializer() = default;

    void end() noexcept {
        if (handle_.handle == 0) return;
        const bool left = host_.was_left() || !detail::ended(handle_);
        static_cast<void>(hsa_serializer_destroy(handle_));
        if (left) host_.keep();
        handle_ = {0};
    }

    mutable detail::owned_host host_;
};

} // namespace hsa_serializer

#include "hsa_serializer_sets.hpp"

#include "hsa_serializer_profiler.hpp"

#endif // HSA_SERIALIZER_HPP
