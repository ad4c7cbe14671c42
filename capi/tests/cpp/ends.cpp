// The end: said, forgotten, by force, and that of the process.

#include "profiler.hpp"
#include "soft_machine.hpp"
#include "stage.hpp"

using namespace stage;

TEST(an_end_that_was_said_frees_the_runtime) {
    auto machine = std::make_shared<runtime>();
    const std::weak_ptr<runtime> alive = machine;
    {
        serializer ended(machine);
        const queue q0 = ended.add_queue();
        CHECK(q0.id() != 0);
        ended.enable();
        finish(ended, *machine);
        CHECK_EQ(machine->live(), 0U);
        machine.reset();
        CHECK(!alive.expired());
    }
    CHECK(alive.expired());
}

namespace {

struct listening : runtime {
    void event(const hsa_serializer::event &told) { let_through |= told.kind == HSA_SERIALIZER_EVENT_LET_THROUGH; }
    bool let_through = false;
};

} // namespace

/// Nothing is in flight: the destructor ends it, without waiting, and without the kill switch.
TEST(an_end_that_was_forgotten_of_an_idle_serializer) {
    auto machine = std::make_shared<listening>();
    const std::weak_ptr<runtime> alive = machine;
    {
        serializer forgotten(machine);
        for (int n = 0; n < 5; ++n) {
            forgotten.enable();
            forgotten.disable();
        }
    }
    CHECK_EQ(machine->live(), 0U);
    CHECK(!machine->let_through);
    machine.reset();
    CHECK(alive.expired());
}

/// Kernels wait for their turn: they are let through, nothing waits for them, and what another thread may still be
/// inside of stays.
TEST(an_end_that_was_forgotten_with_kernels_queued) {
    auto machine = std::make_shared<runtime>();
    const std::weak_ptr<runtime> alive = machine;
    std::optional<sent> d1, d2;
    hsa_serializer_t handle;
    {
        serializer forgotten(machine);
        handle = forgotten.handle();
        queue q0 = forgotten.add_queue(), q1 = forgotten.add_queue();
        forgotten.enable();
        d1.emplace(*machine, q0);
        d2.emplace(*machine, q1);
        d1->arrive();
        d1->start();
        d2->arrive();
        CHECK(!d2->is_granted());
        CHECK_EQ(machine->value(d2->escape), 1);
    }
    CHECK_EQ(machine->value(d2->escape), 0);
    const std::uint64_t calls = machine->calls();
    // What comes late, by handle, ticket and id.
    const serializer_ref late(handle);
    CHECK_EQ(late.complete(d1->receipt()), HSA_SERIALIZER_STALE_HANDLE);
    CHECK_THROWS(HSA_SERIALIZER_STALE_HANDLE, late.enable());
    CHECK(!late.is_enabled());
    for (const auto &watched : machine->watched()) CHECK(!ready(watched.first));
    CHECK_EQ(machine->calls(), calls);
    machine.reset();
    CHECK(!alive.expired());
}

TEST(a_serializer_that_was_left_calls_nothing) {
    auto machine = std::make_shared<runtime>();
    const std::weak_ptr<runtime> alive = machine;
    std::uint64_t calls;
    {
        serializer left(machine);
        queue q0 = left.add_queue();
        left.enable();
        const sent d1(*machine, q0);
        left.leave();
        calls = machine->calls();
        CHECK_THROWS(HSA_SERIALIZER_LEFT, static_cast<void>(left.drain(std::chrono::seconds(1))));
    }
    CHECK_EQ(machine->calls(), calls);
    machine.reset();
    CHECK(!alive.expired());
}

TEST(a_shutdown_says_what_it_waits_for) {
    auto machine = std::make_shared<runtime>();
    serializer waits(machine);
    queue q0 = waits.add_queue();
    dispatched<aql_packet> refused;
    {
        queue gone = waits.add_queue();
        waits.enable();
        CHECK_OK(gone.dispatch(refused));
        CHECK(refused.ticket && refused.serialized && !refused.packets.empty());
        CHECK_OK(gone.destroyed());
        waits.disable();
    }
    const sent d1(*machine, q0), d2(*machine, q0);
    const auto left = waits.finish_shutdown(std::chrono::milliseconds(5));
    CHECK(left.has_value());
    CHECK_EQ(left->queues.size(), 1U);
    CHECK_EQ(left->queues[0].queue_id, q0.id());
    CHECK_EQ(left->queues[0].dispatches, 2U);
    CHECK_EQ(q0.dispatch(refused), HSA_SERIALIZER_SHUT_DOWN);
    CHECK(!refused.ticket && !refused.serialized && refused.packets.empty());
    // A kernel that was not counted is completed like any other, by who keeps no account of it.
    CHECK_OK(waits.complete(refused.ticket));
    CHECK_OK(waits.complete(d1.receipt()));
    CHECK_OK(waits.complete(d2.receipt()));
    finish(waits, *machine);
}

namespace {

/// Counts what the serializer calls.
class counted_runtime : public example::soft_runtime {
  public:
    using soft_runtime::soft_runtime;

    std::uint32_t destroy_signal(std::uint64_t signal) {
        ++calls;
        return soft_runtime::destroy_signal(signal);
    }
    void store(std::uint64_t signal, std::int64_t value) noexcept {
        ++calls;
        soft_runtime::store(signal, value);
    }
    std::int64_t compare_exchange(std::uint64_t signal, std::int64_t expected, std::int64_t desired) noexcept {
        ++calls;
        return soft_runtime::compare_exchange(signal, expected, desired);
    }

    std::atomic<std::uint64_t> calls{0};
};

using profiler = example::profiler<example::soft_machine>;

/// A queue of the emulated GPU's, with kernels on it.
struct app_queue {
    app_queue(softgpu_t *machine, profiler &by) : gpu(machine), owner(by), state(by.add_queue()) {
        CHECK_EQ(softgpu_queue_create(gpu, softgpu_agent(gpu, 0), 0, &app_queue::intercept, this, &handle), 0U);
    }
    void submit(std::size_t kernels, std::uint64_t lasts_ns) {
        std::vector<example::packet> batch(kernels);
        for (example::packet &one : batch) softgpu_kernel(&one, 1, lasts_ns, 0);
        CHECK_EQ(softgpu_submit(gpu, handle, batch.data(), batch.size()), 0U);
    }
    static void intercept(void *self, const void *given, std::size_t count, softgpu_writer_t *writer) noexcept {
        auto &me = *static_cast<app_queue *>(self);
        std::vector<example::packet> out;
        me.owner.intercept(me.state, static_cast<const example::packet *>(given), count, out);
        softgpu_write(writer, out.data(), out.size());
    }

    softgpu_t *gpu;
    profiler &owner;
    std::shared_ptr<profiler::queue> state;
    std::uint64_t handle = 0;
};

} // namespace

/// After a drain, no kernel of before is without its completion; after the end, the runtime is not called any more.
TEST(s70_what_has_returned_calls_nobody) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        softgpu_t *const gpu = softgpu_create(seed, 1, 2);
        {
            example::soft_machine machine(gpu);
            auto runtime = std::make_shared<counted_runtime>(gpu);
            profiler owner(machine, profiler_serializer(runtime));
            app_queue q0(gpu, owner), q1(gpu, owner);
            for (int n = 0; n < 10; ++n) {
                owner.set(n % 2 == 0);
                q0.submit(3, 20'000);
                q1.submit(3, 20'000);
            }
            CHECK(owner.serializer().drain(std::chrono::seconds(60)).empty());
            CHECK_EQ(owner.serializer().statistics().completions, 60U);
            CHECK(owner.finish(std::chrono::seconds(60)));
            const std::uint64_t calls = runtime->calls;
            CHECK(calls > 0);
            q0.submit(3, 20'000);
            CHECK(softgpu_wait_idle(gpu, 20'000'000'000, nullptr, nullptr));
            CHECK_EQ(runtime->calls, calls);
            for (app_queue *one : {&q0, &q1}) {
                CHECK_EQ(softgpu_queue_destroy(gpu, one->handle), 0U);
                owner.queue_destroyed(*one->state);
            }
            CHECK(owner.finish(std::chrono::seconds(60)));
            CHECK_EQ(runtime->calls, calls);
        }
        softgpu_checks_t checks;
        softgpu_checks(gpu, softgpu_agent(gpu, 0), &checks);
        CHECK_EQ(checks.violations, 0U);
        CHECK_EQ(checks.live_signals, 0U);
        CHECK(softgpu_destroy(gpu));
    }
}

namespace {

/// Serialized kernels are queued behind one that never ends: the runtime's threads go on while the process ends.
void leave_work(softgpu_t *gpu, profiler &owner) {
    owner.set(true);
    // Not to be freed: the queues are the runtime's, to the end.
    auto *const q0 = new app_queue(gpu, owner);
    auto *const q1 = new app_queue(gpu, owner);
    q0->submit(1, SOFTGPU_FOREVER);
    for (int n = 0; n < 20; ++n) q1->submit(2, 30'000);
    softgpu_checks_t checks;
    CHECK(within(std::chrono::seconds(20), [&] {
        softgpu_checks(gpu, softgpu_agent(gpu, 0), &checks);
        return checks.started > 0;
    }));
}

} // namespace

/// Everything is in static storage, and goes at the process's end, while handlers run.
TEST_EXIT(s72_exit_with_work_queued_and_a_static_serializer) {
    softgpu_t *const gpu = softgpu_create(1, 1, 2);
    static example::soft_machine machine(gpu);
    // Flights use it, and there is no last one: it stays. Its serializer goes.
    static serializer one(std::make_shared<example::soft_runtime>(gpu));
    one.enable();
    static queue q0 = one.add_queue(), q1 = one.add_queue();
    const auto intercept = [](void *self, const void *given, std::size_t count, softgpu_writer_t *writer) noexcept {
        dispatched<example::packet> dispatch;
        const status code = static_cast<queue *>(self)->dispatch(dispatch);
        CHECK(code == HSA_SERIALIZER_SUCCESS || code == HSA_SERIALIZER_SHUT_DOWN);
        softgpu_write(writer, dispatch.packets.data(), dispatch.packets.size());
        softgpu_write(writer, given, count);
    };
    for (queue *on : {&q0, &q1}) {
        std::uint64_t handle;
        CHECK_EQ(softgpu_queue_create(gpu, softgpu_agent(gpu, 0), 0, intercept, on, &handle), 0U);
        for (int n = 0; n < 20; ++n) {
            example::packet kernel;
            softgpu_kernel(&kernel, 1, 50'000, 0);
            CHECK_EQ(softgpu_submit(gpu, handle, &kernel, 1), 0U);
        }
    }
    std::exit(0);
}

/// Nobody says anything.
TEST_EXIT(s72_exit_without_a_word) {
    softgpu_t *const gpu = softgpu_create(2, 1, 2);
    static auto *const machine = new example::soft_machine(gpu);
    static auto *const owner =
        new profiler(*machine, profiler_serializer(std::make_shared<example::soft_runtime>(gpu)));
    leave_work(gpu, *owner);
    std::exit(0);
}

/// The runtime is gone when the static object goes: it was left before.
TEST_EXIT(s72_exit_after_the_runtime_has_gone) {
    softgpu_t *const gpu = softgpu_create(3, 1, 2);
    static example::soft_machine machine(gpu);
    static auto *const owner =
        new profiler(machine, profiler_serializer(std::make_shared<example::soft_runtime>(gpu)));
    static serializer idle(std::make_shared<example::soft_runtime>(gpu));
    idle.enable();
    static const queue q0 = idle.add_queue();
    CHECK(q0.id() != 0);
    leave_work(gpu, *owner);
    owner->serializer().release_all();
    owner->serializer().leave();
    idle.leave();
    CHECK(softgpu_destroy(gpu));
    std::exit(0);
}
