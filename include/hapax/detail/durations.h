// Durations and time points of <chrono>, without its calendars and formats where the library has them apart: they take
// a fifth of the time that it takes to compile hapax/hapax.h.
#pragma once

#if __has_include(<bits/chrono.h>)
#include <bits/chrono.h>
#else
#include <chrono>
#endif
