// The last steps of every chain.

// Rows outside: neighbouring panels fill whole stretches of a row, while the rows of a wide y may
// all fall into one set of the cache.
template <Activation after>
void finish_tile_with(const LinearEnd& end, const float* sums, int shape, int count,
                      int64_t first_row, int rows, int64_t column, int64_t columns) {
  for (int r = 0; r < rows; r++) {
    const int64_t row = (first_row + r) * end.stride;
    for (int p = 0; p < count; p++) {
      const int64_t at = column + p * 16;
      const int width = int(columns - at < 16 ? columns - at : 16);
      Lanes v = load(sums + (p * shape + r) * 16);
      if (end.bias) v = v + load_first(end.bias + at, width);
      v = activate<after>(v);
      if (end.residual) v = v + load_first(end.residual + row + at, width);
      if (width == 16)
        store(end.out + row + at, v);
      else
        store_first(end.out + row + at, v, width);
    }
  }
}
void finish_tile(const LinearEnd& end, const float* sums, int shape, int count, int64_t first_row,
                 int rows, int64_t column, int64_t columns) {
  const auto with = [&]<Activation after>() {
    finish_tile_with<after>(end, sums, shape, count, first_row, rows, column, columns);
  };
  switch (end.after) {
    case Activation::none:
      return with.template operator()<Activation::none>();
    case Activation::relu:
      return with.template operator()<Activation::relu>();
    case Activation::silu:
      return with.template operator()<Activation::silu>();
    case Activation::gelu:
      return with.template operator()<Activation::gelu>();
    case Activation::gelu_tanh:
      return with.template operator()<Activation::gelu_tanh>();
  }
}
