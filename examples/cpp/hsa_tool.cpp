// The same profiler as a tool of AMD's HSA runtime: HSA_TOOLS_LIB names it, the runtime loads it into any program and
// gives it its tables. Every queue is intercepted; a thread turns serialization on and off.
//
//     cargo build -p hsa-serializer-capi
//     c++ -std=c++17 -pthread -fPIC -shared -Icapi/include examples/cpp/hsa_tool.cpp -o libhsa_tool.so
//         -Ltarget/debug -lhsa_serializer_capi -Wl,-rpath,$PWD/target/debug     (on the same line)
//     HSA_TOOLS_LIB=$PWD/libhsa_tool.so PROGRAM
//     HSA_TOOLS_LIB=$PWD/libhsa_tool.so cargo xtask softgpu -- PROGRAM          (on the emulated GPU)
//
// HSA_EXAMPLE_TOGGLE_US=N: on and off every N microseconds; 0: it stays on. The default is 2000.
//
// It is a skeleton: what a whole profiler does besides is in docs/integrating.md under "On AMD's runtime" (times of
// kernels handed on to the application's signals, the order of its completions).

#include "profiler.hpp"

// Without it the header looks for its neighbours in a directory of the source tree.
#define AMD_INTERNAL_BUILD
#include <hsa/hsa_api_trace.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <map>

namespace {

using example::packet;

class hsa_machine {
  public:
    explicit hsa_machine(const HsaApiTableContainer &api) noexcept : api_(api) {}

    bool create_signal(std::int64_t initial, std::uint64_t &signal) noexcept {
        hsa_signal_t made{};
        const bool good = api_.core.hsa_signal_create_fn(initial, 0, nullptr, &made) == HSA_STATUS_SUCCESS;
        signal = made.handle;
        return good && signal != 0;
    }
    void destroy_signal(std::uint64_t signal) noexcept { api_.core.hsa_signal_destroy_fn({signal}); }
    void store(std::uint64_t signal, std::int64_t value) noexcept {
        api_.core.hsa_signal_store_screlease_fn({signal}, value);
    }
    void subtract_one(std::uint64_t signal) noexcept { api_.core.hsa_signal_subtract_screlease_fn({signal}, 1); }
    bool on_below_one(std::uint64_t signal, bool (*handler)(std::int64_t, void *), void *arg) noexcept {
        return api_.amd_ext.hsa_amd_signal_async_handler_fn({signal}, HSA_SIGNAL_CONDITION_LT, 1, handler, arg) ==
               HSA_STATUS_SUCCESS;
    }

  private:
    const HsaApiTableContainer &api_;
};

using profiler = example::profiler<hsa_machine>;

/// What is told of what should not have happened.
struct printer {
    void report(const hsa_serializer::report &told) { std::fprintf(stderr, "hsa_tool: %s\n", told.text); }
};

/// A queue of the application's.
struct intercepted {
    profiler &owner;
    std::shared_ptr<profiler::queue> state;
    /// The application's, with its data, for when the queue fails.
    void (*callback)(hsa_status_t, hsa_queue_t *, void *);
    void *data;
    std::uint32_t ring = 0;
    /// Reused from batch to batch: calls for one queue come one at a time.
    std::vector<packet> out = {};
};

/// What lives between the first hsa_init and the last hsa_shut_down.
class session {
  public:
    explicit session(HsaApiTable *table) : machine_(api_), table_(table) {
        // What the runtime has, before our functions take places in it.
        copyTables(table, &api_.root);
        const char *const given = std::getenv("HSA_EXAMPLE_TOGGLE_US");
        toggle_ = std::chrono::microseconds(given != nullptr ? std::atoll(given) : 2000);
    }

    const HsaApiTableContainer &api() const noexcept { return api_; }

    void start() {
        table_->core_->hsa_init_fn = init;
        table_->core_->hsa_shut_down_fn = shut_down;
        table_->core_->hsa_queue_create_fn = queue_create;
        table_->core_->hsa_queue_destroy_fn = queue_destroy;
        table_->core_->hsa_queue_inactivate_fn = queue_inactivate;
        if (toggle_.count() > 0) toggler_ = std::thread([this] { toggle(); });
    }

    void user() { ++users_; }
    /// Whether it was the last.
    bool user_gone() { return --users_ == 0; }

    hsa_status_t create(hsa_agent_t agent, std::uint32_t size, hsa_queue_type32_t type,
                        void (*callback)(hsa_status_t, hsa_queue_t *, void *), void *data, std::uint32_t privately,
                        std::uint32_t group, hsa_queue_t **made) {
        profiler *const owner = of(agent);
        // A queue as any other, or the runtime's own answer.
        if (owner == nullptr) {
            return api_.core.hsa_queue_create_fn(agent, size, type, callback, data, privately, group, made);
        }
        auto ours = std::make_unique<intercepted>(intercepted{*owner, owner->add_queue(), callback, data});
        hsa_status_t status;
        {
            // Version 6.1.2 loses its heap where two threads create queues of one agent at a time.
            static std::mutex creating;
            const std::lock_guard<std::mutex> locked(creating);
            // Packets multiply: a kernel of ours may be five.
            std::uint32_t longest = size;
            api_.core.hsa_agent_get_info_fn(agent, HSA_AGENT_INFO_QUEUE_MAX_SIZE, &longest);
            status = api_.amd_ext.hsa_amd_queue_intercept_create_fn(agent, std::min(longest, size * 8), type, failed,
                                                                ours.get(), privately, group, made);
        }
        if (status == HSA_STATUS_SUCCESS) {
            ours->ring = (*made)->size;
            status = api_.amd_ext.hsa_amd_queue_intercept_register_fn(*made, intercept, ours.get());
            if (status != HSA_STATUS_SUCCESS) api_.core.hsa_queue_destroy_fn(*made);
        }
        if (status != HSA_STATUS_SUCCESS) {
            ours->owner.queue_destroyed(*ours->state);
            return status;
        }
        const std::lock_guard<std::mutex> locked(lock_);
        queues_.emplace(*made, std::move(ours));
        return status;
    }

    /// In order; under no lock, since the runtime's destroy waits for its handlers' thread.
    hsa_status_t destroy(hsa_queue_t *queue) {
        // Taken out before: the address is another one's as soon as it is destroyed.
        std::unique_lock<std::mutex> locked(lock_);
        auto ours = queues_.extract(queue);
        locked.unlock();
        const hsa_status_t status = api_.core.hsa_queue_destroy_fn(queue);
        if (ours.empty()) return status;
        if (status == HSA_STATUS_SUCCESS) {
            // From here on none of its packets executes, and its interceptor is not called.
            ours.mapped()->owner.queue_destroyed(*ours.mapped()->state);
        } else {
            // The queue lives, and goes on calling its interceptor.
            locked.lock();
            queues_.insert(std::move(ours));
        }
        return status;
    }

    hsa_status_t inactivate(hsa_queue_t *queue) {
        const hsa_status_t status = api_.core.hsa_queue_inactivate_fn(queue);
        const std::lock_guard<std::mutex> locked(lock_);
        const auto found = queues_.find(queue);
        if (status == HSA_STATUS_SUCCESS && found != queues_.end()) {
            found->second->owner.queue_destroyed(*found->second->state);
        }
        return status;
    }

    /// The runtime is about to be shut down: afterwards nothing of ours calls it.
    void end() {
        {
            const std::lock_guard<std::mutex> locked(stop_lock_);
            stop_ = true;
        }
        stopped_.notify_all();
        if (toggler_.joinable()) toggler_.join();
        std::uint64_t kernels = 0, serialized = 0, transitions = 0;
        bool good = true;
        for (auto &[agent, owner] : profilers_) {
            transitions += owner->serializer().statistics().transitions;
            // Queues that the application has left are the runtime's to destroy; what runs on them is not waited for
            // much longer than it may take.
            if (!owner->finish(std::chrono::milliseconds(500))) {
                owner->serializer().leave();
                good = false;
            }
            kernels += owner->kernels();
            serialized += owner->serialized();
        }
        std::fprintf(stderr, "hsa_tool: %llu kernels, %llu serialized, %llu transitions%s\n",
                     static_cast<unsigned long long>(kernels), static_cast<unsigned long long>(serialized),
                     static_cast<unsigned long long>(transitions), good ? "" : ", not all of it ended");
    }

  private:
    /// Null where there can't be one: of an agent that is no GPU.
    profiler *of(hsa_agent_t agent) {
        const std::lock_guard<std::mutex> locked(lock_);
        const auto found = profilers_.find(agent.handle);
        if (found != profilers_.end()) return found->second.get();
        try {
            auto made = hsa_serializer::serializer::over_hsa(&api_.root, agent.handle, std::make_shared<printer>());
            auto owner =
                std::make_unique<profiler>(machine_, hsa_serializer::profiler_serializer(std::move(made)));
            owner->set(on_);
            // The thread that calls handlers may call one of the application's first.
            api_.amd_ext.hsa_amd_async_function_fn([](void *) { profiler::calls_handlers_here(); }, nullptr);
            return profilers_.emplace(agent.handle, std::move(owner)).first->second.get();
        } catch (const hsa_serializer::error &e) {
            std::fprintf(stderr, "hsa_tool: %s\n", e.what());
            return nullptr;
        }
    }

    void toggle() {
        std::unique_lock<std::mutex> waiting(stop_lock_);
        while (!stopped_.wait_for(waiting, toggle_, [this] { return stop_; })) {
            // Never around what an interceptor takes: this lock is none of those.
            const std::lock_guard<std::mutex> locked(lock_);
            on_ = !on_;
            for (auto &[agent, owner] : profilers_) {
                try {
                    owner->set(on_);
                } catch (const hsa_serializer::error &e) {
                    std::fprintf(stderr, "hsa_tool: %s\n", e.what());
                }
            }
        }
    }

    static void intercept(const void *packets, std::uint64_t count, std::uint64_t, void *data,
                          hsa_amd_queue_intercept_packet_writer write) noexcept {
        auto &ours = *static_cast<intercepted *>(data);
        // The application has waited for as many slots as it writes; ours are more. What does not fit waits in memory,
        // which versions before 6.0 don't survive. A handler's thread waits for nothing that it would have to end.
        constexpr std::uint64_t each = 1 + hsa_serializer::packet_list<packet>::capacity;
        for (std::uint64_t before; (before = ours.state->under_way()) > 0 && !profiler::on_handler_thread();) {
            if ((before + count) * each < ours.ring) break;
            std::this_thread::sleep_for(std::chrono::microseconds(20));
        }
        ours.owner.intercept(ours.state, static_cast<const packet *>(packets), count, ours.out);
        // All in one call: versions before 6.0 can't bear a second one.
        write(ours.out.data(), ours.out.size());
    }

    /// The queue's error callback: none of its packets executes any more.
    static void failed(hsa_status_t status, hsa_queue_t *queue, void *data) {
        intercepted &ours = *static_cast<intercepted *>(data);
        ours.owner.queue_destroyed(*ours.state);
        // The last of all: it may destroy the queue.
        if (ours.callback != nullptr) ours.callback(status, queue, ours.data);
    }

    static hsa_status_t init() noexcept;
    static hsa_status_t shut_down() noexcept;
    static hsa_status_t queue_create(hsa_agent_t, std::uint32_t, hsa_queue_type32_t,
                                     void (*)(hsa_status_t, hsa_queue_t *, void *), void *, std::uint32_t,
                                     std::uint32_t, hsa_queue_t **) noexcept;
    static hsa_status_t queue_destroy(hsa_queue_t *) noexcept;
    static hsa_status_t queue_inactivate(hsa_queue_t *) noexcept;

    HsaApiTableContainer api_;
    hsa_machine machine_;
    HsaApiTable *const table_;
    std::chrono::microseconds toggle_;
    std::atomic<std::uint64_t> users_{1};

    /// Of what follows. No interceptor and no handler takes it.
    std::mutex lock_;
    bool on_ = true;
    std::map<std::uint64_t, std::unique_ptr<profiler>> profilers_;
    std::map<hsa_queue_t *, std::unique_ptr<intercepted>> queues_;

    std::mutex stop_lock_;
    std::condition_variable stopped_;
    bool stop_ = false;
    std::thread toggler_;
};

/// Never destroyed: a program may end without shutting the runtime down, while the runtime's threads are in here.
session *current = nullptr;

template <class Call> hsa_status_t guarded(const Call &call) noexcept {
    if (current == nullptr) return HSA_STATUS_ERROR_NOT_INITIALIZED;
    try {
        return call(*current);
    } catch (const std::exception &e) {
        std::fprintf(stderr, "hsa_tool: %s\n", e.what());
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    }
}

hsa_status_t session::init() noexcept {
    return guarded([](session &the) {
        const hsa_status_t status = the.api().core.hsa_init_fn();
        if (status == HSA_STATUS_SUCCESS) the.user();
        return status;
    });
}

hsa_status_t session::shut_down() noexcept {
    return guarded([](session &the) {
        if (the.user_gone()) the.end();
        return the.api().core.hsa_shut_down_fn();
    });
}

hsa_status_t session::queue_create(hsa_agent_t agent, std::uint32_t size, hsa_queue_type32_t type,
                                   void (*callback)(hsa_status_t, hsa_queue_t *, void *), void *data,
                                   std::uint32_t privately, std::uint32_t group, hsa_queue_t **queue) noexcept {
    if (queue == nullptr) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
    return guarded(
        [&](session &the) { return the.create(agent, size, type, callback, data, privately, group, queue); });
}

hsa_status_t session::queue_destroy(hsa_queue_t *queue) noexcept {
    return guarded([&](session &the) { return the.destroy(queue); });
}

hsa_status_t session::queue_inactivate(hsa_queue_t *queue) noexcept {
    return guarded([&](session &the) { return the.inactivate(queue); });
}

} // namespace

/// At the end of an hsa_init that starts the runtime. One that comes after a shutting down finds a session that has
/// ended, and gets another one.
extern "C" __attribute__((visibility("default"))) bool OnLoad(HsaApiTable *table, std::uint64_t, std::uint64_t,
                                                             const char *const *) {
    // Each table's version is its size. AMD's copyTables() trusts that it knows them all.
    if (table->version.minor_id != sizeof(HsaApiTable) || table->core_->version.minor_id != sizeof(CoreApiTable) ||
        table->amd_ext_->version.minor_id != sizeof(AmdExtTable)) {
        std::fprintf(stderr, "hsa_tool: it was built with the headers of another version of the runtime\n");
        return false;
    }
    try {
        current = new session(table);
        current->start();
        return true;
    } catch (const std::exception &e) {
        std::fprintf(stderr, "hsa_tool: %s\n", e.what());
        return false;
    }
}

/// When the runtime is shut down. By then hsa_shut_down, which is replaced, has ended everything.
extern "C" __attribute__((visibility("default"))) void OnUnload() {}
