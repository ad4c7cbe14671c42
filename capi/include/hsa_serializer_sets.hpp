// Several agents, and barriers by themselves. To be included through hsa_serializer.hpp.

#ifndef HSA_SERIALIZER_SETS_HPP
#define HSA_SERIALIZER_SETS_HPP

#ifndef HSA_SERIALIZER_HPP
#error "include hsa_serializer.hpp"
#endif

#include <functional>
#include <mutex>

namespace hsa_serializer {

/// The agents of the process, with a serializer each, made when an agent is first touched.
///
/// The destructor ends each serializer as that of class serializer does, and then gives the handle up: nobody touches
/// agents any more. What it says of static storage and of leave() holds here, too.
class agents {
  public:
    /// `make` gives the runtime of an agent (see adapt()), or null, or throws: of() comes to HSA_SERIALIZER_BAD_AGENT
    /// then. It may be called more than once for an agent, and by several threads at once.
    template <class R>
    explicit agents(std::function<std::shared_ptr<R>(std::uint64_t agent)> make, const options &how = {}) {
        auto maker = std::make_shared<maker_of<R>>();
        maker->make = std::move(make);
        const hsa_serializer_options_t raw = how.raw();
        detail::check(hsa_serializer_agents_create(&raw, &maker_of<R>::call, maker.get(), &handle_),
                      "hsa_serializer_agents_create");
        host_.keep_alive(std::move(maker));
    }

    /// Over AMD's runtime, by its table, which is read now.
    template <class Told = nobody>
    static agents over_hsa(const void *table, std::shared_ptr<Told> told = nullptr, const options &how = {}) {
        agents made;
        const hsa_serializer_hsa_t hsa = adapt_table(table, told.get());
        const hsa_serializer_options_t raw = how.raw();
        made.host_.keep_alive(std::move(told));
        detail::check(hsa_serializer_agents_create_hsa(&raw, &hsa, &made.handle_),
                      "hsa_serializer_agents_create_hsa");
        return made;
    }

    agents(agents &&other) noexcept
        : handle_(std::exchange(other.handle_, {0})), host_(std::move(other.host_)) {}
    agents &operator=(agents &&other) noexcept {
        if (this != &other) {
            end();
            handle_ = std::exchange(other.handle_, {0});
            host_ = std::move(other.host_);
        }
        return *this;
    }
    ~agents() { end(); }

    hsa_serializer_agents_t handle() const noexcept { return handle_; }

    /// The agent's serializer, made if this is the first touch.
    serializer_ref of(std::uint64_t agent) const {
        hsa_serializer_t found;
        detail::check(hsa_serializer_agents_of(handle_, agent, &found), "hsa_serializer_agents_of");
        return serializer_ref(found);
    }
    /// The agent's serializer, if it was touched; else a null one. For interceptors: no lock, and it makes nothing.
    serializer_ref get(std::uint64_t agent) const noexcept {
        hsa_serializer_t found{0};
        static_cast<void>(hsa_serializer_agents_get(handle_, agent, &found));
        return serializer_ref(found);
    }
    /// The agents that were touched, the latest first.
    std::vector<std::uint64_t> list() const {
        return detail::list<std::uint64_t>("hsa_serializer_agents_list", [this](auto *to, auto room, auto *count) {
            return hsa_serializer_agents_list(handle_, to, room, count);
        });
    }

    /// Serializes these agents, or all, those that come later among them.
    [[nodiscard]] request_guard request(const std::vector<std::uint64_t> &these) const {
        hsa_serializer_request_t made;
        detail::check(hsa_serializer_agents_request(handle_, these.data(), these.size(), &made),
                      "hsa_serializer_agents_request");
        return request_guard(made);
    }
    [[nodiscard]] request_guard request_all() const {
        hsa_serializer_request_t made;
        detail::check(hsa_serializer_agents_request_all(handle_, &made), "hsa_serializer_agents_request_all");
        return request_guard(made);
    }

    /// Leaves every serializer that was made.
    void leave() const {
        host_.leave();
        for (const std::uint64_t agent : list()) static_cast<void>(hsa_serializer_leave(get(agent).handle()));
    }

  private:
    template <class R> struct maker_of {
        std::function<std::shared_ptr<R>(std::uint64_t)> make;
        std::mutex lock;
        std::vector<std::shared_ptr<R>> made;

        static std::uint32_t call(void *self, std::uint64_t agent, hsa_serializer_runtime_t *runtime) noexcept {
            auto &me = *static_cast<maker_of *>(self);
            return detail::caught([&]() -> std::uint32_t {
                std::shared_ptr<R> one = me.make(agent);
                if (one == nullptr) return detail::hsa_error;
                *runtime = adapt(*one);
                const std::lock_guard<std::mutex> locked(me.lock);
                me.made.push_back(std::move(one));
                return 0;
            });
        }
    };

    agents() = default;

    void end() noexcept {
        if (handle_.handle == 0) return;
        bool left = host_.was_left();
        detail::swallowed([&] {
            // What can't be listed for want of memory is not ended either: the host is kept.
            const bool was_left = std::exchange(left, true);
            bool all_ended = true;
            for (const std::uint64_t agent : list()) {
                const serializer_ref one = get(agent);
                // One that got no signal when it was touched has no handle: it ends with the agents.
                if (!was_left && one && !detail::ended(one.handle())) all_ended = false;
            }
            left = was_left || !all_ended;
        });
        const bool destroyed = hsa_serializer_agents_destroy(handle_) == HSA_SERIALIZER_SUCCESS;
        if (left || !destroyed) host_.keep();
        handle_ = {0};
    }

    hsa_serializer_agents_t handle_{0};
    mutable detail::owned_host host_;
};

/// A barrier of a set, to be looked at. It goes its way by itself, whatever becomes of this.
class barrier_handle {
  public:
    explicit barrier_handle(hsa_serializer_barrier_t handle) noexcept : owned_(handle) {}

    barrier_state state() const {
        barrier_state now{};
        detail::check(hsa_serializer_barrier_state(owned_.get(), &now), "hsa_serializer_barrier_state");
        return now;
    }
    drain_state drain_queue(std::uint64_t queue_id) const {
        std::uint32_t drain = 0;
        detail::check(hsa_serializer_barrier_drain_queue(owned_.get(), queue_id, &drain),
                      "hsa_serializer_barrier_drain_queue");
        return drain_state(drain);
    }

  private:
    detail::owned<hsa_serializer_barrier_t, hsa_serializer_barrier_destroy> owned_;
};

/// Barriers over a set of queues, without serialization.
///
/// The destructor never waits. Where a queue of the set is not gone, the set is left to itself, and its runtime's
/// object is kept for ever: say destroyed() of all queues before.
class barrier_set {
  public:
    /// See adapt() for what a runtime has; its watch_ready() is not called. Null comes to HSA_SERIALIZER_NULL_POINTER.
    template <class R>
    explicit barrier_set(std::shared_ptr<R> runtime, const options &how = {}) {
        if (runtime == nullptr) throw error(HSA_SERIALIZER_NULL_POINTER, "hsa_serializer_barrier_set_create");
        const hsa_serializer_runtime_t functions = adapt(*runtime);
        const hsa_serializer_options_t raw = how.raw();
        host_.keep_alive(std::move(runtime));
        detail::check(hsa_serializer_barrier_set_create(&raw, &functions, &handle_),
                      "hsa_serializer_barrier_set_create");
    }

    template <class Told = nobody>
    static barrier_set over_hsa(const void *table, std::uint64_t agent, std::shared_ptr<Told> told = nullptr,
                                const options &how = {}) {
        barrier_set made;
        const hsa_serializer_hsa_t hsa = adapt_table(table, told.get());
        const hsa_serializer_options_t raw = how.raw();
        made.host_.keep_alive(std::move(told));
        detail::check(hsa_serializer_barrier_set_create_hsa(&raw, &hsa, agent, &made.handle_),
                      "hsa_serializer_barrier_set_create_hsa");
        return made;
    }

    barrier_set(barrier_set &&other) noexcept
        : handle_(std::exchange(other.handle_, {0})), host_(std::move(other.host_)) {}
    barrier_set &operator=(barrier_set &&other) noexcept {
        if (this != &other) {
            end();
            handle_ = std::exchange(other.handle_, {0});
            host_ = std::move(other.host_);
        }
        return *this;
    }
    ~barrier_set() { end(); }

    hsa_serializer_barrier_set_t handle() const noexcept { return handle_; }

    [[nodiscard]] queue add_queue() const {
        hsa_serializer_queue_t added;
        detail::check(hsa_serializer_barrier_set_queue_add(handle_, &added), "hsa_serializer_barrier_set_queue_add");
        return queue(added);
    }
    /// Once for each ticket. A null one does nothing.
    [[nodiscard]] status complete(ticket done) const noexcept {
        return done ? hsa_serializer_barrier_set_complete(handle_, done.raw()) : HSA_SERIALIZER_SUCCESS;
    }

    /// Arms a barrier: what is dispatched from now on waits, on the GPU, for what is in flight. `on_end` (which may be
    /// empty) is called once, on the thread that ends it, which may be this one, before arm() returns: it may call what
    /// that thread may, and nothing that waits. What it throws is forgotten.
    barrier_handle arm(std::function<void(outcome)> on_end = {}) const {
        using function = std::function<void(outcome)>;
        const auto call = [](void *userdata, std::uint32_t how) noexcept {
            const std::unique_ptr<function> end(static_cast<function *>(userdata));
            detail::swallowed([&] { (*end)(outcome(how)); });
        };
        auto told = on_end ? std::make_unique<function>(std::move(on_end)) : nullptr;
        hsa_serializer_barrier_t armed;
        const status code = hsa_serializer_barrier_set_arm(
            handle_, told ? hsa_serializer_end_fn(call) : nullptr, told.get(), &armed);
        // From success on it is the library's; where that has panicked, nobody knows whose it is.
        if (code == HSA_SERIALIZER_SUCCESS || code == HSA_SERIALIZER_PANIC) static_cast<void>(told.release());
        detail::check(code, "hsa_serializer_barrier_set_arm");
        return barrier_handle(armed);
    }

    counters statistics() const {
        counters all{};
        all.size = sizeof(hsa_serializer_statistics_t);
        detail::check(hsa_serializer_barrier_set_statistics(handle_, &all), "hsa_serializer_barrier_set_statistics");
        return all;
    }

    /// Ends the set; whether that was possible: all queues are gone, and all signals are destroyed. Any number of
    /// times until it is true.
    bool try_finish() {
        const status code = hsa_serializer_barrier_set_destroy(handle_);
        if (code == HSA_SERIALIZER_NOT_FINISHED) return false;
        detail::check(code, "hsa_serializer_barrier_set_destroy");
        handle_ = {0};
        host_.let_go();
        return true;
    }

  private:
    barrier_set() = default;

    void end() noexcept {
        if (handle_.handle == 0) return;
        if (hsa_serializer_barrier_set_destroy(handle_) != HSA_SERIALIZER_SUCCESS) {
            host_.keep();
        }
        handle_ = {0};
    }

    hsa_serializer_barrier_set_t handle_{0};
    detail::owned_host host_;
};

} // namespace hsa_serializer

#endif // HSA_SERIALIZER_SETS_HPP
