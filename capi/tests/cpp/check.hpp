// Tests: TEST(name) { ... }, and main() of check.cpp, which runs those that are named, or all.

#ifndef CHECK_HPP
#define CHECK_HPP

#include <hsa_serializer.hpp>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <vector>

namespace check {

struct test {
    const char *name;
    void (*run)();
    /// Run only when it is named: it ends the process.
    bool exits;
};

inline std::vector<test> &all() {
    static std::vector<test> tests;
    return tests;
}

struct registered {
    registered(const char *name, void (*run)(), bool exits) { all().push_back({name, run, exits}); }
};

/// Ends the process at once: other threads may be at work.
[[noreturn]] inline void failed(const char *file, int line, const std::string &what) {
    std::fprintf(stderr, "FAILED at %s:%d: %s\n", file, line, what.c_str());
    std::fflush(nullptr);
    std::_Exit(1);
}

template <class T> std::string shown(const T &value) {
    std::ostringstream out;
    if constexpr (std::is_enum_v<T>) {
        out << static_cast<std::int64_t>(value);
    } else {
        out << value;
    }
    return out.str();
}

template <class A, class B> void equal(const A &a, const B &b, const char *text, const char *file, int line) {
    if (!(a == b)) failed(file, line, std::string(text) + ": " + shown(a) + " is not " + shown(b));
}

/// The code with which a call throws; success if it does not.
template <class Call> hsa_serializer::status thrown_by(const Call &call) {
    try {
        call();
    } catch (const hsa_serializer::error &e) {
        return e.code();
    }
    return HSA_SERIALIZER_SUCCESS;
}

} // namespace check

#define TEST_THAT(name, exits)                                                                                         \
    static void name();                                                                                                \
    static const check::registered name##_is_registered(#name, name, exits);                                           \
    static void name()
#define TEST(name) TEST_THAT(name, false)
/// One that ends the process, with 0 if all is well.
#define TEST_EXIT(name) TEST_THAT(name, true)

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) check::failed(__FILE__, __LINE__, #condition);                                               \
    } while (false)

#define CHECK_EQ(a, b) check::equal((a), (b), #a " == " #b, __FILE__, __LINE__)
#define CHECK_OK(call) CHECK_EQ((call), HSA_SERIALIZER_SUCCESS)
#define CHECK_THROWS(code, ...) CHECK_EQ(check::thrown_by([&] { __VA_ARGS__; }), (code))

#endif // CHECK_HPP
