// std::unique_ptr and std::shared_ptr, without the rest of <memory> where the library has them apart: see durations.h.
#pragma once

#if __has_include(<bits/std_function.h>) && __has_include(<bits/shared_ptr.h>)
#include <bits/unique_ptr.h>
// After it.
#include <bits/shared_ptr.h>
#else
#include <memory>
#endif
