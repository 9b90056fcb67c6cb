const VecProbe kVecProbe{
    [](const float* a, float* out) { store(out, exp(load(a))); },
    [](const float* a, const float* b, const float* c, float* out) {
      store(out, fma(load(a), load(b), load(c)));
    },
    [](const float* a, const float* b, float* out) { store(out, max(load(a), load(b))); },
    [](const float* a, const float* b, float* out) { store(out, min(load(a), load(b))); },
    [](const float* a, float* out) { store(out, round(load(a))); },
    [](const float* a, const float* b, uint32_t* below, uint32_t* same, float* least) {
      *below = bits(less(load(a), load(b)));
      *same = bits(equal(load(a), load(b)));
      store(least, select(less(load(a), load(b)), load(a), load(b)));
    },
    [](const float* a, int n, float* loaded, float* stored, uint32_t* mask) {
      store(loaded, load_first(a, n));
      store_first(stored, load(a), n);
      *mask = bits(first(n));
    },
    [](const float* a, float* sum, float* most) {
      *sum = reduce_add(load(a));
      *most = reduce_max(load(a));
    },
    [](const float* a, uint16_t* stored, float* loaded) {
      store_as<DType::bf16>(stored, load(a));
      store(loaded, load_as<DType::bf16>(stored));
    },
    [](const float* a, uint16_t* stored, float* loaded) {
      store_as<DType::f16>(stored, load(a));
      store(loaded, load_as<DType::f16>(stored));
    },
    [](const uint16_t* a, float* out) { store(out, load_as<DType::f16>(a)); },
    [](const float* sum, const uint16_t* pairs, float even, float odd, float* out) {
      store(out, dot(load(sum), load_pairs(pairs), broadcast(make_pair(even, odd))));
    },
};
