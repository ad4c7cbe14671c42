#include "check.hpp"

#include <cstring>
#include <unistd.h>

int main(int argc, char **argv) {
    for (const check::test &test : check::all()) {
        bool wanted = argc == 1 && !test.exits;
        for (int n = 1; n < argc; ++n) wanted = wanted || std::strcmp(argv[n], test.name) == 0;
        if (!wanted) continue;
        std::printf("%s ", test.name);
        std::fflush(stdout);
        // A test that stands still dies by the signal, its name being the last that was said.
        alarm(120);
        test.run();
        std::puts("ok");
    }
    return 0;
}
