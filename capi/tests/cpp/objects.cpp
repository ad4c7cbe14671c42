// The objects: moved, null, with callbacks that throw; agents.

#include "stage.hpp"

using namespace stage;

static_assert(std::is_nothrow_move_constructible_v<serializer> && !std::is_copy_constructible_v<serializer>);
static_assert(std::is_nothrow_move_assignable_v<serializer> && !std::is_copy_assignable_v<serializer>);
static_assert(std::is_nothrow_move_constructible_v<queue> && !std::is_copy_constructible_v<queue>);
static_assert(std::is_nothrow_move_constructible_v<request_guard> && !std::is_copy_constructible_v<request_guard>);
static_assert(std::is_nothrow_move_constructible_v<cut_guard> && !std::is_copy_constructible_v<cut_guard>);
static_assert(std::is_nothrow_move_constructible_v<stall_watch> && !std::is_copy_constructible_v<stall_watch>);
static_assert(std::is_nothrow_move_constructible_v<agents> && !std::is_copy_constructible_v<agents>);
static_assert(std::is_nothrow_move_constructible_v<barrier_set> && !std::is_copy_constructible_v<barrier_set>);
static_assert(std::is_nothrow_move_constructible_v<barrier_handle> && !std::is_copy_constructible_v<barrier_handle>);
static_assert(std::is_nothrow_move_constructible_v<domain> && !std::is_copy_constructible_v<domain>);
static_assert(std::is_nothrow_move_constructible_v<profiler_serializer>);
static_assert(std::is_trivially_copyable_v<serializer_ref> && std::is_trivially_copyable_v<ticket>);
static_assert(sizeof(ticket) == 16 && sizeof(serializer_ref) == 8 && sizeof(queue) == 8);
static_assert(noexcept(std::declval<queue &>().dispatch(std::declval<dispatched<aql_packet> &>())));
static_assert(noexcept(std::declval<serializer_ref &>().complete(ticket())));

TEST(the_header_goes_with_the_library) {
    CHECK(is_compatible());
    CHECK_EQ(std::string(text_of(HSA_SERIALIZER_SUCCESS)), std::string(hsa_serializer_status_string(0)));
    const error thrown(HSA_SERIALIZER_FULL, "a_call");
    CHECK_EQ(std::string(thrown.what()), "a_call: " + std::string(text_of(HSA_SERIALIZER_FULL)));
}

TEST(a_serializer_that_is_moved_goes_on) {
    auto machine = std::make_shared<runtime>();
    const std::weak_ptr<runtime> alive = machine;
    {
        serializer first(machine);
        const hsa_serializer_t handle = first.handle();
        first.enable();
        queue q0 = first.add_queue();
        queue moved = std::move(q0);
        CHECK(!q0 && moved);
        serializer second(std::move(first));
        CHECK_EQ(second.handle().handle, handle.handle);
        CHECK(!first);
        CHECK_THROWS(HSA_SERIALIZER_NULL_HANDLE, first.enable());
        CHECK_EQ(q0.destroyed(), HSA_SERIALIZER_NULL_HANDLE);
        CHECK_EQ(q0.id(), 0U);
        CHECK(sent(*machine, moved).serialized());
        CHECK_OK(moved.destroyed());
        machine->run_handlers();

        // What is assigned to ends first.
        auto other = std::make_shared<runtime>();
        const std::weak_ptr<runtime> other_alive = other;
        serializer third(other);
        other.reset();
        third = std::move(second);
        CHECK(other_alive.expired());
        CHECK(third.is_enabled());
        serializer &itself = third;
        third = std::move(itself);
        CHECK(third.is_enabled());
        finish(third, *machine);
    }
    machine.reset();
    CHECK(alive.expired());
}

TEST(a_request_ends_once) {
    auto machine = std::make_shared<runtime>();
    serializer one(machine);
    request_guard outer;
    {
        request_guard inner = one.request();
        outer = std::move(inner);
        CHECK_THROWS(HSA_SERIALIZER_NULL_HANDLE, inner.end());
    }
    CHECK_EQ(one.requests(), 1U);
    CHECK(outer.end().did == change::changed);
    CHECK_THROWS(HSA_SERIALIZER_NULL_HANDLE, outer.end());
    CHECK_EQ(one.requests(), 0U);
    // One that outlives its serializer.
    std::optional<request_guard> late;
    {
        serializer gone(machine);
        late = gone.request();
    }
    late.reset();
}

TEST(cuts_and_drains_say_who_is_stuck) {
    auto machine = std::make_shared<runtime>();
    serializer one(machine);
    std::vector<queue> queues;
    std::vector<sent> kernels;
    for (int n = 0; n < 5; ++n) {
        queues.push_back(one.add_queue());
        kernels.emplace_back(*machine, queues.back());
    }
    cut_guard cut = one.cut();
    CHECK_EQ(cut.queues().size(), 5U);
    const auto stuck = one.drain(std::chrono::milliseconds(2));
    CHECK_EQ(stuck.size(), 5U);
    CHECK_EQ(stuck[0].dispatches, 1U);
    for (std::size_t n = 0; n < 4; ++n) CHECK_OK(one.complete(kernels[n].receipt()));
    CHECK_EQ(cut.queues().size(), 1U);
    CHECK_EQ(cut.queues()[0].queue_id, queues[4].id());
    // The drain's took its place.
    CHECK(!cut.withdraw());
    CHECK_THROWS(HSA_SERIALIZER_NULL_HANDLE, static_cast<void>(cut.queues()));
    cut = one.cut();
    const sent behind(*machine, queues[0]);
    CHECK_EQ(machine->value(behind.transition), 1);
    CHECK(cut.withdraw());
    CHECK_EQ(machine->value(behind.transition), 0);
    CHECK_OK(one.complete(behind.receipt()));
    CHECK_OK(one.complete(kernels[4].receipt()));
    CHECK(one.drain(std::chrono::seconds(-1)).empty());
}

TEST(stalls_are_named) {
    auto machine = std::make_shared<runtime>();
    serializer one(machine);
    queue q0 = one.add_queue(), q1 = one.add_queue();
    stall_watch watch = one.watch_stalls(std::chrono::seconds(1), stall_policy::tell);
    const sent before(*machine, q0);
    one.enable();
    const sent behind(*machine, q1);
    const auto start = std::chrono::steady_clock::now();
    CHECK(watch.check(start).empty());
    const auto found = watch.check(start + std::chrono::seconds(5));
    CHECK_EQ(found.size(), 1U);
    CHECK(found[0].is_barrier && !found[0].released);
    CHECK(found[0].lasted >= std::chrono::seconds(1));
    CHECK_EQ(found[0].waits_for.size(), 1U);
    CHECK_EQ(found[0].waits_for[0].queue_id, q0.id());
    CHECK_EQ(found[0].holds_back.size(), 1U);
    CHECK_EQ(found[0].holds_back[0].queue_id, q1.id());
    CHECK(!found[0].text.empty());
    CHECK_THROWS(HSA_SERIALIZER_BAD_VALUE,
                 static_cast<void>(one.watch_stalls(std::chrono::seconds(1), stall_policy(7))));
}

namespace {

/// A runtime whose every word is an exception.
struct throwing : runtime {
    void report(const hsa_serializer::report &told) {
        ++reports;
        CHECK(told.text != nullptr);
        throw std::runtime_error("a report");
    }
    void event(const hsa_serializer::event &) {
        ++events;
        throw 1;
    }
    bool is_handler_thread() {
        ++asked;
        throw std::string("a thread");
    }
    std::atomic<int> reports{0}, events{0}, asked{0};
};

} // namespace

TEST(exceptions_of_callbacks_stay_inside) {
    auto machine = std::make_shared<throwing>();
    options how;
    how.on_misuse = on_misuse::go_on;
    serializer one(machine, how);
    machine->watch_throws = true;
    CHECK_THROWS(HSA_SERIALIZER_HANDLER_REFUSED, static_cast<void>(one.add_queue()));
    queue q0 = one.add_queue();
    one.enable();
    CHECK(machine->events > 0);
    const sent d1(*machine, q0);
    // It was not granted: misuse, which is reported.
    CHECK_OK(one.complete(d1.receipt()));
    one.collect();
    CHECK(machine->reports > 0);
    CHECK(one.drain(std::chrono::seconds(1)).empty());
    CHECK(machine->asked > 0);
    finish(one, *machine);
}

TEST(a_barriers_callback_that_throws) {
    auto machine = std::make_shared<runtime>();
    barrier_set set(machine);
    queue q0 = set.add_queue();
    int called = 0;
    const barrier_handle at_once = set.arm([&](outcome) {
        ++called;
        throw std::bad_alloc();
    });
    CHECK_EQ(called, 1);
    CHECK(at_once.state().cleared);
    machine->fail_next = runtime::failure::throws;
    CHECK_THROWS(HSA_SERIALIZER_NO_SIGNAL, static_cast<void>(set.arm([&](outcome) { ++called; })));
    CHECK_EQ(called, 1);
    CHECK(!set.try_finish());
    CHECK_OK(q0.destroyed());
    CHECK(within(std::chrono::seconds(10), [&] { return set.try_finish(); }));
    CHECK_EQ(machine->live(), 0U);
    CHECK_THROWS(HSA_SERIALIZER_NULL_HANDLE, static_cast<void>(set.arm()));
}

TEST(agents_are_made_when_they_are_touched) {
    std::map<std::uint64_t, std::shared_ptr<runtime>> machines;
    const auto make = [&](std::uint64_t agent) -> std::shared_ptr<runtime> {
        if (agent == 13) throw std::runtime_error("no such agent");
        if (agent == 14) return nullptr;
        return machines[agent] = std::make_shared<runtime>();
    };
    std::weak_ptr<runtime> alive;
    {
        agents all{std::function<std::shared_ptr<runtime>(std::uint64_t)>(make)};
        CHECK(!all.get(1));
        CHECK_THROWS(HSA_SERIALIZER_BAD_AGENT, all.of(13));
        CHECK_THROWS(HSA_SERIALIZER_BAD_AGENT, all.of(14));
        const serializer_ref first = all.of(1);
        CHECK_EQ(all.get(1).handle().handle, first.handle().handle);
        {
            const request_guard of_all = all.request_all();
            CHECK(first.is_enabled() && all.of(2).is_enabled());
            CHECK((all.list() == std::vector<std::uint64_t>{2, 1}));
            agents moved = std::move(all);
            CHECK_THROWS(HSA_SERIALIZER_NULL_HANDLE, all.of(1));
            all = std::move(moved);
            const request_guard of_one = all.request({1});
            CHECK_EQ(first.requests(), 2U);
        }
        CHECK(!first.is_enabled() && !all.of(2).is_enabled());
        alive = machines[1];
        machines.clear();
        CHECK(!alive.expired());
    }
    CHECK(alive.expired());
}

/// No handle was given for it. With the others' its runtime goes, though a request of all is still there.
TEST(agents_of_which_one_got_no_signal_keep_nothing) {
    std::map<std::uint64_t, std::shared_ptr<runtime>> machines;
    const auto make = [&](std::uint64_t agent) {
        const auto made = machines[agent] = std::make_shared<runtime>();
        if (agent == 2) made->fail_next = runtime::failure::refuses;
        return made;
    };
    for (const bool is_turned_on_later : {false, true}) {
        auto all = std::make_unique<agents>(std::function<std::shared_ptr<runtime>(std::uint64_t)>(make));
        const request_guard outlives = all->request_all();
        CHECK(all->of(1).is_enabled());
        CHECK_THROWS(HSA_SERIALIZER_NO_SIGNAL, all->of(2));
        CHECK(!all->get(2) && all->list().size() == 2);
        if (is_turned_on_later) {
            const request_guard another = all->request_all();
            CHECK(machines[2]->live() > 0);
        }
        const std::weak_ptr<runtime> first = machines[1], second = machines[2];
        machines.clear();
        all.reset();
        CHECK(first.expired() && second.expired());
    }
}

TEST(a_runtime_that_is_null_is_refused) {
    CHECK_THROWS(HSA_SERIALIZER_NULL_POINTER, serializer(std::shared_ptr<runtime>()));
    CHECK_THROWS(HSA_SERIALIZER_NULL_POINTER, barrier_set(std::shared_ptr<runtime>()));
}

TEST(domains_outlive_their_handles) {
    auto machine = std::make_shared<runtime>();
    std::optional<serializer> one;
    {
        const domain own;
        options how;
        how.domain = &own;
        one.emplace(machine, how);
        CHECK_EQ(own.pending(), 0U);
    }
    one->enable();
    finish(*one, *machine);
    CHECK_EQ(machine->live(), 0U);
}
