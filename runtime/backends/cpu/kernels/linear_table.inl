// The kernels of a path as a table.

template <DType F, Activations A, int rows>
constexpr MultiplyTile tile_kernel() {
  if constexpr (rows == 0)
    return nullptr;
  else if constexpr (A == Activations::int8)
    return multiply_int8_tile<F, rows>;
  else
    return multiply_tile<F, A, rows>;
}
template <DType F, Activations A>
MultiplyTile kernel_of_shape(int shape) {
  constexpr LinearShapes s = kShapes[size_t(A)];
  static constexpr MultiplyTile kernels[6] = {
      tile_kernel<F, A, s.rows[0]>(), tile_kernel<F, A, s.rows[1]>(),
      tile_kernel<F, A, s.rows[2]>(), tile_kernel<F, A, s.rows[3]>(),
      tile_kernel<F, A, s.rows[4]>(), tile_kernel<F, A, s.rows[5]>()};
  return kernels[shape];
}
template <DType F>
MultiplyTile quantised_kernel(Activations activations, int shape) {
  if (activations == Activations::int8) return kernel_of_shape<F, Activations::int8>(shape);
  if (activations == Activations::f32) return kernel_of_shape<F, Activations::f32>(shape);
  return nullptr;
}
MultiplyTile kernel_for(DType format, Activations activations, int shape) {
  switch (format) {
    case DType::f32:
    case DType::f16:
      if (activations != Activations::f32) return nullptr;
      return format == DType::f32 ? kernel_of_shape<DType::f32, Activations::f32>(shape)
                                  : kernel_of_shape<DType::f16, Activations::f32>(shape);
    case DType::bf16:
      if (activations == Activations::int8) return nullptr;
      return activations == Activations::bf16
                 ? kernel_of_shape<DType::bf16, Activations::bf16>(shape)
                 : kernel_of_shape<DType::bf16, Activations::f32>(shape);
    case DType::q8_0:
      return quantised_kernel<DType::q8_0>(activations, shape);
    case DType::q4_0:
      return quantised_kernel<DType::q4_0>(activations, shape);
    case DType::q4_1:
      return quantised_kernel<DType::q4_1>(activations, shape);
    case DType::q4_k:
      return quantised_kernel<DType::q4_k>(activations, shape);
    case DType::q6_k:
      return quantised_kernel<DType::q6_k>(activations, shape);
    case DType::i32:
      return nullptr;
  }
  return nullptr;
}

const LinearPath linear{{kShapes[0], kShapes[1], kShapes[2]},
                        {32 * sizeof(float), 16 * sizeof(Pair), 32 + 16},
                        {pack_f32, pack_bf16, pack_int8},
                        kernel_for,
                        finish_tile};
