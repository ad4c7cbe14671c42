// A tool, to be loaded before another one, whose runtime refuses to destroy a queue for the first time.
#include "../../../examples/c/hsa_table.h"

static hsa_queue_fn destroy;

static hsa_status_t refuses(hsa_queue_t *queue) {
    static int calls;
    return calls++ == 0 ? HSA_STATUS_ERROR : destroy(queue);
}

bool OnLoad(void *table, uint64_t version, uint64_t failed_count, const char *const *failed) {
    (void)version, (void)failed_count, (void)failed;
    void (**slot)(void) = hsa_core_slot(table, HSA_QUEUE_DESTROY);
    if (!slot) return false;
    destroy = (hsa_queue_fn)*slot;
    *slot = (void (*)(void))refuses;
    return true;
}

void OnUnload(void) {}
