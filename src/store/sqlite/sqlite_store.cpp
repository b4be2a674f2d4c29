#include "store/sqlite/sqlite_store.h"
