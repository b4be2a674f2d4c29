#include "store/memory/memory_store.h"
