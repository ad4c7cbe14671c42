/* The runtime's table of functions, for C: AMD's hsa_api_trace.h, which describes it, is C++.
 *
 * Each table is a 16-byte version and then pointers to functions; the version's minor number is the table's size in
 * bytes. What is here is what a serializing profiler needs and holds for ROCr 5.0 to 6.2. The functions that it does
 * not replace are called by their names.
 */
#ifndef HSA_TABLE_H
#define HSA_TABLE_H

#include <hsa/hsa.h>
#include <stddef.h>
#include <stdint.h>

struct hsa_table {
    uint32_t major, size, step, reserved;
    void (*functions[])(void);
};

struct hsa_tables {
    uint32_t major, size, step, reserved;
    struct hsa_table *core, *amd_ext;
};

/* In the core table, whose order has stayed. */
enum { HSA_INIT = 0, HSA_SHUT_DOWN = 1, HSA_QUEUE_CREATE = 7, HSA_QUEUE_DESTROY = 9, HSA_QUEUE_INACTIVATE = 10 };
/* In AMD's extension until ROCr 5.5; two slots later since 5.6. */
enum { HSA_AMD_QUEUE_INTERCEPT_CREATE = 35, HSA_AMD_QUEUE_INTERCEPT_REGISTER = 36 };

typedef void (*hsa_amd_queue_intercept_packet_writer)(const void *packets, uint64_t count);
typedef void (*hsa_amd_queue_intercept_handler)(const void *packets, uint64_t count, uint64_t index, void *data,
                                                hsa_amd_queue_intercept_packet_writer writer);

typedef void (*hsa_queue_error_callback)(hsa_status_t status, hsa_queue_t *source, void *data);
typedef hsa_status_t (*hsa_init_fn)(void);
typedef hsa_status_t (*hsa_queue_fn)(hsa_queue_t *queue);
/* hsa_queue_create and hsa_amd_queue_intercept_create. */
typedef hsa_status_t (*hsa_queue_create_fn)(hsa_agent_t agent, uint32_t size, hsa_queue_type32_t type,
                                            hsa_queue_error_callback callback, void *data,
                                            uint32_t private_segment_size, uint32_t group_segment_size,
                                            hsa_queue_t **queue);
typedef hsa_status_t (*hsa_queue_intercept_register_fn)(hsa_queue_t *queue, hsa_amd_queue_intercept_handler handler,
                                                        void *data);

/* Where a function's pointer is; null if the table ends before it, or has an order that is not known. */
static inline void (**hsa_table_slot(struct hsa_table *table, size_t slot))(void) {
    if (!table || sizeof *table + (slot + 1) * sizeof table->functions[0] > table->size) return NULL;
    return table->functions[slot] ? &table->functions[slot] : NULL;
}

static inline void (**hsa_core_slot(struct hsa_tables *tables, size_t slot))(void) {
    return hsa_table_slot(tables->core, slot);
}

static inline void (**hsa_amd_ext_slot(struct hsa_tables *tables, size_t slot))(void) {
    struct hsa_table *table = tables->amd_ext;
    if (!table) return NULL;
    /* Between the two orders lie sizes of which nobody can tell. */
    if (table->size > 424 && table->size < 456) return NULL;
    return hsa_table_slot(table, table->size >= 456 ? slot + 2 : slot);
}

#endif
