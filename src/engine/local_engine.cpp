#include "engine/local_engine.h"
