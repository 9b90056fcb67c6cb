// <immintrin.h> without g++ 12's false alarms: its AVX-512 functions take an uninitialised register
// where an instruction's result does not depend on it.
#pragma once
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop
