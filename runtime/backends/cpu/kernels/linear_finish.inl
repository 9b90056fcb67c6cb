// The last steps of every chain.

template <Activation after>
void finish_tile_with(const LinearEnd& end, const float* sums, int shape, int count,
                      int64_t first_row, int rows, int64_t column, int64_t columns) {
  for (int p = 0; p < count; p++, column += 16, sums += shape * 16) {
    const int width = int(columns - column < 16 ? columns - column : 16);
    const Lanes bias = end.bias ? load_first(end.bias + column, width) : zero();
    for (int r = 0; r < rows; r++) {
      const int64_t at = (first_row + r) * end.stride + column;
      Lanes v = load(sums + r * 16);
      if (end.bias) v = v + bias;
      v = activate<after>(v);
      if (end.residual) v = v + load_first(end.residual + at, width);
      if (width == 16)
        store(end.out + at, v);
      else
        store_first(end.out + at, v, width);
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
