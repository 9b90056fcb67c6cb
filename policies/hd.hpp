// HD marks a function that both the host and a GPU compile. One of the project's three macros.
#pragma once

#ifdef __CUDACC__
#define HD __host__ __device__
#else
#define HD
#endif
