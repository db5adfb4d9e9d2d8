/* The interface "counter", version 2. */
#ifndef COUNTER_H
#define COUNTER_H

#include <stdint.h>

struct counter {
    uint64_t (*next)(void);
};

#endif
