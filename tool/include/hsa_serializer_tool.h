/* What a program may call of libhsa_serializer_tool.so. docs/tool.md says how it finds these functions. */
#ifndef HSA_SERIALIZER_TOOL_H
#define HSA_SERIALIZER_TOOL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kernels are no longer serialized, or are from now on: on every GPU, for every thread. The last word counts,
 * before hsa_init as well. Neither waits for a kernel, and both may be called from any thread, but not in a
 * POSIX signal handler. 0; or -1 in a child of the process, or where the runtime has no signal left: then
 * nothing has changed. */
int hsa_serializer_tool_pause(void);
int hsa_serializer_tool_resume(void);

/* The same, by roctx's names; `thread` is ignored. Where the tool stands before roctx (LD_PRELOAD), roctx's own
 * are called as well. */
int roctxProfilerPause(uint64_t thread);
int roctxProfilerResume(uint64_t thread);

#ifdef __cplusplus
}
#endif

#endif
