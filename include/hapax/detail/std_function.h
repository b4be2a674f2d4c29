// std::function, without the rest of <functional> where the library has it apart: see durations.h.
#pragma once

#if __has_include(<bits/std_function.h>)
#include <bits/std_function.h>
#else
#include <functional>
#endif
