// What the classes of hsa_serializer.hpp stand on: statuses and errors, plain types, and how exceptions are kept from
// C. To be included through hsa_serializer.hpp.

#ifndef HSA_SERIALIZER_BASE_HPP
#define HSA_SERIALIZER_BASE_HPP

#include "hsa_serializer.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace hsa_serializer {

/// What a call came to.
using status = hsa_serializer_status_t;
using report = hsa_serializer_report_t;
using event = hsa_serializer_event_t;
using in_flight = hsa_serializer_in_flight_t;
using barrier_state = hsa_serializer_barrier_state_t;

/// The text of a status.
inline const char *text_of(status code) noexcept { return hsa_serializer_status_string(code); }

/// Whether the library is one that this header goes with.
inline bool is_compatible() noexcept {
    const std::uint32_t version = hsa_serializer_version_number();
    const std::uint32_t major = version >> 16, minor = version >> 8 & 0xff;
    return major == HSA_SERIALIZER_VERSION_MAJOR &&
           (major == 0 ? minor == HSA_SERIALIZER_VERSION_MINOR : minor >= HSA_SERIALIZER_VERSION_MINOR);
}

/// What slow calls throw.
class error : public std::runtime_error {
  public:
    error(status code, const char *call)
        : std::runtime_error(std::string(call) + ": " + text_of(code)), code_(code),
          runtime_status_(refused(code) ? hsa_serializer_last_runtime_status() : 0) {}

    status code() const noexcept { return code_; }
    /// The `hsa_status_t` with which the runtime refused something, where the code says that it did; else 0.
    std::uint32_t runtime_status() const noexcept { return runtime_status_; }

  private:
    static bool refused(status code) noexcept {
        return code == HSA_SERIALIZER_NO_SIGNAL || code == HSA_SERIALIZER_HANDLER_REFUSED ||
               code == HSA_SERIALIZER_BAD_AGENT;
    }

    status code_;
    std::uint32_t runtime_status_;
};

enum class signal_kind : std::uint32_t {
    for_gpu = HSA_SERIALIZER_SIGNAL_FOR_GPU,
    for_host = HSA_SERIALIZER_SIGNAL_FOR_HOST,
};

enum class outcome : std::uint32_t {
    cleared = HSA_SERIALIZER_OUTCOME_CLEARED,
    superseded = HSA_SERIALIZER_OUTCOME_SUPERSEDED,
    forced = HSA_SERIALIZER_OUTCOME_FORCED,
};

enum class drain_state : std::uint32_t {
    armed = HSA_SERIALIZER_DRAIN_ARMED,
    outstanding = HSA_SERIALIZER_DRAIN_OUTSTANDING,
    drained = HSA_SERIALIZER_DRAIN_DRAINED,
};

enum class change : std::uint32_t {
    unchanged = HSA_SERIALIZER_UNCHANGED,
    changed = HSA_SERIALIZER_CHANGED,
    kept = HSA_SERIALIZER_KEPT,
};

enum class on_misuse : std::uint32_t {
    release = HSA_SERIALIZER_ON_MISUSE_RELEASE,
    go_on = HSA_SERIALIZER_ON_MISUSE_GO_ON,
};

enum class stall_policy : std::uint32_t {
    tell = HSA_SERIALIZER_STALL_REPORT,
    release = HSA_SERIALIZER_STALL_RELEASE,
};

/// What a transition did, and the number that belongs to it (see hsa_serializer_change_t).
struct transition {
    change did = change::unchanged;
    std::uint64_t count = 0;
};

/// What a shutdown still waits for.
struct remaining {
    std::vector<in_flight> queues;
    std::uint64_t handlers = 0;
    std::uint64_t barriers = 0;
    std::uint64_t deferred = 0;
    std::uint64_t calls = 0;
};

/// Something that stands still; see hsa_serializer_stall_t.
struct stall {
    bool is_barrier = false;
    bool released = false;
    std::uint32_t epoch = 0;
    std::chrono::nanoseconds lasted{};
    std::vector<hsa_serializer_queue_wait_t> waits_for;
    std::vector<hsa_serializer_held_back_t> holds_back;
    std::uint64_t holder = 0;
    std::uint64_t dispatch = 0;
    std::vector<std::uint64_t> waiting;
    std::string text;
};

/// hsa_serializer_statistics_t, with its times.
struct counters : hsa_serializer_statistics_t {
    std::chrono::nanoseconds serialized_for() const noexcept { return time(serialized); }
    std::chrono::nanoseconds barriers_armed_for() const noexcept { return time(barriers_armed); }
    std::chrono::nanoseconds barriers_armed_at_most() const noexcept { return time(barriers_armed_most); }
    std::chrono::nanoseconds token_waited_for() const noexcept { return time(token_waited); }
    std::chrono::nanoseconds token_waited_at_most() const noexcept { return time(token_waited_most); }

  private:
    static std::chrono::nanoseconds time(std::uint64_t ns) noexcept {
        return std::chrono::nanoseconds(static_cast<std::chrono::nanoseconds::rep>(ns));
    }
};

/// The receipt of one dispatch, to be kept with the kernel and used once. 16 bytes; a null one stands for a kernel
/// that was not counted, and completing it does nothing.
class ticket {
  public:
    constexpr ticket() noexcept : raw_{none, 0} {}
    constexpr explicit ticket(hsa_serializer_ticket_t raw) noexcept : raw_(raw) {}

    constexpr explicit operator bool() const noexcept { return raw_.queue_id != none; }
    constexpr std::uint64_t queue_id() const noexcept { return raw_.queue_id; }
    constexpr hsa_serializer_ticket_t raw() const noexcept { return raw_; }

  private:
    /// No queue's: ids count up.
    static constexpr std::uint64_t none = ~std::uint64_t{0};
    hsa_serializer_ticket_t raw_;
};

/// An AQL packet as the library sees it, for hosts that have no type of their own.
struct alignas(64) aql_packet {
    std::uint8_t bytes[64];
};

/// The packets to be written in front of a kernel, in order. No memory is allocated for them.
///
/// Packet: any type of 64 bytes that can be copied as bytes, such as HSA's hsa_barrier_and_packet_t.
template <class Packet> class packet_list {
    static_assert(sizeof(Packet) == 64 && std::is_trivially_copyable_v<Packet>, "an AQL packet");

  public:
    static constexpr std::size_t capacity = HSA_SERIALIZER_MAX_PACKETS;

    const Packet *begin() const noexcept { return items_; }
    const Packet *end() const noexcept { return items_ + size_; }
    const Packet *data() const noexcept { return items_; }
    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }
    const Packet &operator[](std::size_t place) const noexcept { return items_[place]; }

  private:
    friend class queue;
    // Not set to zero first: it is on the way of each dispatch.
    Packet items_[capacity];
    std::size_t size_ = 0;
};

/// What a dispatch has to do.
template <class Packet> struct dispatched {
    /// To be given back when the kernel has completed. Null where it was not counted (the serializer is shut down,
    /// or the queue gone): the kernel is passed on as it is.
    hsa_serializer::ticket ticket;
    /// Whether the kernel, and the last packet of its group, need the barrier bit.
    bool serialized = false;
    packet_list<Packet> packets;
};

namespace detail {

/// HSA_STATUS_ERROR and HSA_STATUS_ERROR_OUT_OF_RESOURCES.
constexpr std::uint32_t hsa_error = 0x1000, hsa_out_of_resources = 0x1008;

inline void check(status code, const char *call) {
    if (code != HSA_SERIALIZER_SUCCESS) throw error(code, call);
}

inline std::uint64_t nanoseconds(std::chrono::nanoseconds time) noexcept {
    return time.count() < 0 ? 0 : static_cast<std::uint64_t>(time.count());
}

/// Runs a callback of the host's that answers an hsa_status_t.
template <class Call> std::uint32_t caught(const Call &call) noexcept {
    try {
        return static_cast<std::uint32_t>(call());
    } catch (const std::bad_alloc &) {
        return hsa_out_of_resources;
    } catch (...) {
        return hsa_error;
    }
}

/// Runs a callback of the host's whose failure nobody could be told.
template <class Call> void swallowed(const Call &call) noexcept {
    try {
        call();
    } catch (...) {
    }
}

/// A function that a C function calls while it is called itself: what it throws comes out of rethrow(), behind C.
template <class Told> class callback {
  public:
    explicit callback(Told told) : told_(std::move(told)) {}

    template <class... Args> static void call(void *self, Args... args) noexcept {
        auto &me = *static_cast<callback *>(self);
        try {
            me.told_(args...);
        } catch (...) {
            me.thrown_ = std::current_exception();
        }
    }
    void rethrow() const {
        if (thrown_) std::rethrow_exception(thrown_);
    }

  private:
    Told told_;
    std::exception_ptr thrown_;
};

inline remaining copied(const hsa_serializer_remaining_t &left) {
    return {{left.queues, left.queues + left.queue_count}, left.handlers, left.barriers, left.deferred, left.calls};
}

inline stall copied(const hsa_serializer_stall_t &found) {
    stall copy;
    copy.is_barrier = found.is_barrier;
    copy.released = found.released;
    copy.epoch = found.epoch;
    copy.lasted = std::chrono::nanoseconds(static_cast<std::chrono::nanoseconds::rep>(found.lasted_ns));
    copy.waits_for.assign(found.waits_for, found.waits_for + found.waits_for_count);
    copy.holds_back.assign(found.holds_back, found.holds_back + found.holds_back_count);
    copy.holder = found.holder;
    copy.dispatch = found.dispatch;
    copy.waiting.assign(found.waiting, found.waiting + found.waiting_count);
    copy.text = found.text;
    return copy;
}

/// Texts of hsa_serializer_text_fn, one after the other.
template <class Call> std::string text(const char *name, const Call &call) {
    std::string all;
    auto add = callback([&all](const char *text, std::size_t length) { all.append(text, length); });
    check(call(&decltype(add)::template call<const char *, std::size_t>, &add), name);
    add.rethrow();
    return all;
}

/// What a function gives that writes as many as there is room for, and says how many there are.
template <class Item, class Call> std::vector<Item> list(const char *name, const Call &call) {
    std::vector<Item> all;
    std::size_t count = 0;
    for (;;) {
        const status code = call(all.data(), all.size(), &count);
        if (code == HSA_SERIALIZER_TOO_SMALL) {
            // There have come to be more; without room it says how many.
            check(call(static_cast<Item *>(nullptr), std::size_t{0}, &count), name);
        } else {
            check(code, name);
            if (count <= all.size()) break;
        }
        all.resize(count);
    }
    all.resize(count);
    return all;
}

/// What the library calls of the host's, kept alive.
struct host {
    std::shared_ptr<void> object;
    host *next = nullptr;
};

/// What a library that was left may still be inside of on another thread is never freed. Who looks for leaks finds it
/// by the list.
inline void keep_for_ever(std::unique_ptr<host> kept) noexcept {
    static std::atomic<host *> all{nullptr};
    host *const it = kept.release();
    // Nobody reads the list: there is nothing to be ordered.
    it->next = all.load(std::memory_order_relaxed);
    while (!all.compare_exchange_weak(it->next, it, std::memory_order_relaxed)) {
    }
}

/// The host of what one object owns in the library, which moves with it, and whether it was left.
class owned_host {
  public:
    owned_host() = default;
    // Relaxed: nobody leaves what is being moved.
    owned_host(owned_host &&other) noexcept
        : host_(std::move(other.host_)), left_(other.left_.load(std::memory_order_relaxed)) {}
    owned_host &operator=(owned_host &&other) noexcept {
        host_ = std::move(other.host_);
        left_.store(other.left_.load(std::memory_order_relaxed), std::memory_order_relaxed);
        return *this;
    }

    void keep_alive(std::shared_ptr<void> object) noexcept { host_->object = std::move(object); }
    // Relaxed: the owner's destructor comes after it, and whoever has left it is through.
    void leave() noexcept { left_.store(true, std::memory_order_relaxed); }
    bool was_left() const noexcept { return left_.load(std::memory_order_relaxed); }
    void let_go() noexcept { host_.reset(); }
    void keep() noexcept { keep_for_ever(std::move(host_)); }

  private:
    std::unique_ptr<host> host_ = std::make_unique<host>();
    std::atomic<bool> left_{false};
};

/// Ends a serializer without waiting; whether nothing of it can call the runtime any more. If not, it was left.
inline bool ended(hsa_serializer_t serializer) noexcept {
    const auto tried = [serializer] {
        return hsa_serializer_try_finish_shutdown(serializer, nullptr, nullptr) == HSA_SERIALIZER_SUCCESS;
    };
    if (tried()) return true;
    static_cast<void>(hsa_serializer_release_all(serializer));
    if (tried()) return true;
    static_cast<void>(hsa_serializer_leave(serializer));
    return false;
}

/// A handle that is given up once.
template <class Handle, status (*end)(Handle)> class owned {
  public:
    owned() noexcept : handle_{0} {}
    explicit owned(Handle handle) noexcept : handle_(handle) {}
    owned(owned &&other) noexcept : handle_(other.release()) {}
    owned &operator=(owned &&other) noexcept {
        if (this != &other) {
            give_up();
            handle_ = other.release();
        }
        return *this;
    }
    ~owned() { give_up(); }

    Handle get() const noexcept { return handle_; }
    Handle release() noexcept { return std::exchange(handle_, Handle{0}); }

  private:
    void give_up() noexcept {
        if (handle_.handle != 0) static_cast<void>(end(release()));
    }
    Handle handle_;
};

inline status end_request(hsa_serializer_request_t request) noexcept {
    return hsa_serializer_request_end(request, nullptr);
}

template <class R, class = void> struct tells_thread : std::false_type {};
template <class R>
struct tells_thread<R, std::void_t<decltype(std::declval<R &>().is_handler_thread())>> : std::true_type {};
template <class R, class = void> struct hears_reports : std::false_type {};
template <class R>
struct hears_reports<R, std::void_t<decltype(std::declval<R &>().report(std::declval<const report &>()))>>
    : std::true_type {};
template <class R, class = void> struct hears_events : std::false_type {};
template <class R>
struct hears_events<R, std::void_t<decltype(std::declval<R &>().event(std::declval<const event &>()))>>
    : std::true_type {};

/// The functions that C calls, over an object of the host's.
template <class R> struct functions {
    static R &of(void *userdata) noexcept { return *static_cast<R *>(userdata); }

    static std::uint32_t create_signal(void *userdata, std::uint32_t kind, std::int64_t initial,
                                       std::uint64_t *signal) noexcept {
        return caught([&] { return of(userdata).create_signal(signal_kind(kind), initial, *signal); });
    }
    static std::uint32_t destroy_signal(void *userdata, std::uint64_t signal) noexcept {
        return caught([&] { return of(userdata).destroy_signal(signal); });
    }
    static void store(void *userdata, std::uint64_t signal, std::int64_t value) noexcept {
        static_assert(noexcept(std::declval<R &>().store(signal, value)),
                      "store() can't say that it has failed: it has to be noexcept");
        of(userdata).store(signal, value);
    }
    static std::int64_t compare_exchange(void *userdata, std::uint64_t signal, std::int64_t expected,
                                         std::int64_t desired) noexcept {
        static_assert(noexcept(std::declval<R &>().compare_exchange(signal, expected, desired)),
                      "compare_exchange() can't say that it has failed: it has to be noexcept");
        return of(userdata).compare_exchange(signal, expected, desired);
    }
    static std::uint32_t watch_ready(void *userdata, std::uint64_t ready, std::uint64_t queue_id) noexcept {
        return caught([&] { return of(userdata).watch_ready(ready, queue_id); });
    }
    static bool is_handler_thread(void *userdata) noexcept {
        bool is = false;
        swallowed([&] { is = of(userdata).is_handler_thread(); });
        return is;
    }
    static void report(void *userdata, const hsa_serializer_report_t *told) noexcept {
        swallowed([&] { of(userdata).report(*told); });
    }
    static void event(void *userdata, const hsa_serializer_event_t *told) noexcept {
        swallowed([&] { of(userdata).event(*told); });
    }

    /// Who is told, where it listens: what nobody hears costs nothing.
    template <class To> static void fill_told(To &to, R *object) noexcept {
        to.userdata = object;
        if constexpr (hears_reports<R>::value) to.report = &report;
        if constexpr (hears_events<R>::value) to.event = &event;
    }
};

} // namespace detail

/// The structure that C wants, over an object of the host's. The object has to live for as long as C says; the
/// classes below see to that. A runtime has
///
///     std::uint32_t create_signal(hsa_serializer::signal_kind kind, std::int64_t initial, std::uint64_t &signal);
///     std::uint32_t destroy_signal(std::uint64_t signal);
///     void store(std::uint64_t signal, std::int64_t value) noexcept;
///     std::int64_t compare_exchange(std::uint64_t signal, std::int64_t expected, std::int64_t desired) noexcept;
///     std::uint32_t watch_ready(std::uint64_t ready, std::uint64_t queue_id);
///
/// and, if it likes, the following. One without them is one that has them and does nothing, but cheaper.
///
///     bool is_handler_thread();
///     void report(const hsa_serializer::report &);
///     void event(const hsa_serializer::event &);
///
/// What each has to do, and when it is called, is said at hsa_serializer_runtime_t. An exception out of a function with
/// a status counts as HSA_STATUS_ERROR (std::bad_alloc: _OUT_OF_RESOURCES), out of is_handler_thread() as false, out of
/// report() and event() as nothing.
template <class R> hsa_serializer_runtime_t adapt(R &object) noexcept {
    using of = detail::functions<R>;
    hsa_serializer_runtime_t runtime{};
    runtime.size = sizeof runtime;
    of::fill_told(runtime, &object);
    runtime.create_signal = &of::create_signal;
    runtime.destroy_signal = &of::destroy_signal;
    runtime.store = &of::store;
    runtime.compare_exchange = &of::compare_exchange;
    runtime.watch_ready = &of::watch_ready;
    if constexpr (detail::tells_thread<R>::value) runtime.is_handler_thread = &of::is_handler_thread;
    return runtime;
}

/// Who is told of nothing.
struct nobody {};

/// The same over the runtime's table; `told` has report() and event(), if it likes, and may be null.
template <class Told = nobody> hsa_serializer_hsa_t adapt_table(const void *table, Told *told = nullptr) noexcept {
    hsa_serializer_hsa_t hsa{};
    hsa.size = sizeof hsa;
    hsa.table = table;
    if (told != nullptr) detail::functions<Told>::fill_told(hsa, told);
    return hsa;
}

} // namespace hsa_serializer

#endif // HSA_SERIALIZER_BASE_HPP
