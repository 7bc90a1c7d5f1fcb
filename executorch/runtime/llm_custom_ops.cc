// Kernels of the operators that `custom_ops` puts into a program: llama::custom_sdpa and
// llama::update_cache, with the arguments that ExecuTorch's LLM extension gives them.
//
// The wheel has these kernels only in a library for Python, which needs libtorch. Here they are
// over the headers of the runtime alone, and register themselves when the app starts.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include <executorch/extension/kernel_util/make_boxed_from_unboxed_functor.h>
#include <executorch/runtime/core/exec_aten/exec_aten.h>
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>
#include <executorch/runtime/kernel/kernel_runtime_context.h>
#include <executorch/runtime/kernel/thread_parallel_interface.h>
#include <executorch/runtime/platform/log.h>

namespace rules_executorch {
namespace {

using executorch::aten::BFloat16;
using executorch::aten::Half;
using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using executorch::runtime::Error;
using executorch::runtime::KernelRuntimeContext;
using executorch::runtime::resize_tensor;

// The order of dimensions of a contiguous tensor; the kernels index with it.
bool IsContiguous(const Tensor& tensor) {
  int64_t stride = 1;
  for (int dim = tensor.dim() - 1; dim >= 0; --dim) {
    if (tensor.size(dim) != 1 && tensor.strides()[dim] != stride) return false;
    stride *= tensor.size(dim);
  }
  return true;
}

// Lets the method fail with a sentence in the log.
bool Require(KernelRuntimeContext& context, bool holds, const char* what) {
  if (!holds) {
    ET_LOG(Error, "%s", what);
    context.fail(Error::InvalidArgument);
  }
  return holds;
}

// value and cache: (1, sequence, heads, head size). Writes value at start_pos; out is not used.
Tensor& UpdateCacheOut(
    KernelRuntimeContext& context,
    const Tensor& value,
    Tensor& cache,
    const int64_t start_pos,
    Tensor& out) {
  if (!Require(
            context,
            value.dim() == 4 && cache.dim() == 4 && value.size(0) == 1 && cache.size(0) == 1 &&
            value.size(2) == cache.size(2) && value.size(3) == cache.size(3) &&
            value.scalar_type() == cache.scalar_type() && IsContiguous(value) &&
            IsContiguous(cache),
            "llama::update_cache takes a contiguous value and cache with the same heads.")) {
    return out;
  }
  if (!Require(
            context,
            start_pos >= 0 && start_pos + value.size(1) <= cache.size(1),
            "llama::update_cache writes beyond the end of the cache.")) {
    return out;
  }
  const size_t row = value.size(2) * value.size(3) * value.element_size();
  std::memcpy(
      static_cast<char*>(cache.mutable_data_ptr()) + start_pos * row,
      value.const_data_ptr(),
      value.size(1) * row);
  return out;
}

// Eight sums side by side, which a compiler turns into vector instructions without being allowed
// to change the order of additions.
template <typename T>
float Dot(const float* query, const T* key, int64_t size) {
  float sums[8] = {};
  int64_t i = 0;
  for (; i + 8 <= size; i += 8) {
    for (int lane = 0; lane < 8; ++lane) {
      sums[lane] += query[i + lane] * static_cast<float>(key[i + lane]);
    }
  }
  float sum = ((sums[0] + sums[4]) + (sums[1] + sums[5])) +
      ((sums[2] + sums[6]) + (sums[3] + sums[7]));
  for (; i < size; ++i) sum += query[i] * static_cast<float>(key[i]);
  return sum;
}

struct Attention {
  int64_t heads;         // of query
  int64_t kv_heads;
  int64_t query_length;
  int64_t keys;          // positions that may be attended to
  int64_t size;          // of a head
  int64_t start_pos;
  bool causal;
  float scale;
  const Tensor* mask;    // additive, float, (query_length, >= keys), or null
};

// One query position of one head.
template <typename T>
void Attend(
    const Attention& attention,
    int64_t head,
    int64_t position,
    const T* query,
    const T* key,
    const T* value,
    T* out,
    std::vector<float>& scratch) {
  const int64_t size = attention.size;
  const int64_t kv_head = head / (attention.heads / attention.kv_heads);
  const int64_t step = attention.kv_heads * size;
  const int64_t offset = (position * attention.heads + head) * size;
  const int64_t keys = attention.causal
      ? std::min(attention.keys, attention.start_pos + position + 1)
      : attention.keys;
  const float* mask = attention.mask
      ? attention.mask->const_data_ptr<float>() + position * attention.mask->size(1)
      : nullptr;

  scratch.resize(2 * size + keys);
  float* scaled = scratch.data();
  float* sums = scaled + size;
  float* scores = sums + size;
  for (int64_t i = 0; i < size; ++i) {
    scaled[i] = static_cast<float>(query[offset + i]) * attention.scale;
  }
  float largest = -std::numeric_limits<float>::infinity();
  for (int64_t k = 0; k < keys; ++k) {
    const bool hidden = mask && mask[k] == -std::numeric_limits<float>::infinity();
    scores[k] = hidden ? mask[k]
                       : Dot(scaled, key + k * step + kv_head * size, size) + (mask ? mask[k] : 0);
    largest = std::max(largest, scores[k]);
  }
  std::fill(sums, sums + size, 0.0f);
  float total = 0.0f;
  if (largest != -std::numeric_limits<float>::infinity()) {
    for (int64_t k = 0; k < keys; ++k) {
      const float weight = std::exp(scores[k] - largest);
      if (weight == 0.0f) continue;
      total += weight;
      const T* row = value + k * step + kv_head * size;
      for (int64_t i = 0; i < size; ++i) sums[i] += weight * static_cast<float>(row[i]);
    }
  }
  // A position that attends to nothing gets zeros.
  const float factor = total > 0.0f ? 1.0f / total : 0.0f;
  for (int64_t i = 0; i < size; ++i) out[offset + i] = static_cast<T>(sums[i] * factor);
}

template <typename T>
bool AttendAll(
    const Attention& attention,
    const Tensor& query,
    const Tensor& key,
    const Tensor& value,
    Tensor& out) {
  const T* queries = query.const_data_ptr<T>();
  const T* keys = key.const_data_ptr<T>();
  const T* values = value.const_data_ptr<T>();
  T* outs = out.mutable_data_ptr<T>();
  return executorch::extension::parallel_for(
      0, attention.heads * attention.query_length, 1, [&](int64_t begin, int64_t end) {
        std::vector<float> scratch;
        for (int64_t i = begin; i < end; ++i) {
          // All positions of a head in a row, which read the same keys and values.
          Attend(
              attention,
              i / attention.query_length,
              i % attention.query_length,
              queries,
              keys,
              values,
              outs,
              scratch);
        }
      });
}

// query: (1, sequence, heads, head size); key and value: the cache, (1, positions, heads of keys,
// head size), filled up to start_pos + sequence. Without a mask those positions are attended to,
// each query's own and earlier ones if is_causal; with one, all that it does not hide.
Tensor& CustomSdpaOut(
    KernelRuntimeContext& context,
    const Tensor& query,
    const Tensor& key,
    const Tensor& value,
    const int64_t start_pos,
    const std::optional<Tensor>& attn_mask,
    const double dropout_p,
    const bool is_causal,
    const std::optional<double> scale,
    Tensor& out) {
  if (!Require(
            context,
            query.dim() == 4 && key.dim() == 4 && value.dim() == 4 && query.size(0) == 1 &&
            key.size(0) == 1 && value.size(0) == 1 && key.size(1) == value.size(1) &&
            key.size(2) == value.size(2) && key.size(3) == query.size(3) &&
            value.size(3) == query.size(3) && key.size(2) > 0 &&
            query.size(2) % key.size(2) == 0,
            "llama::custom_sdpa takes one sequence, and heads of keys that divide its own.")) {
    return out;
  }
  if (!Require(
            context,
            key.scalar_type() == query.scalar_type() &&
            value.scalar_type() == query.scalar_type() &&
            out.scalar_type() == query.scalar_type() && IsContiguous(query) &&
            IsContiguous(key) && IsContiguous(value) && dropout_p == 0.0,
            "llama::custom_sdpa takes contiguous tensors of one dtype, and no dropout.")) {
    return out;
  }
  if (!Require(
            context,
            start_pos >= 0 && start_pos + query.size(1) <= key.size(1),
            "llama::custom_sdpa reads beyond the end of the cache.")) {
    return out;
  }
  const bool masked = attn_mask.has_value();
  if (masked) {
    const Tensor& mask = attn_mask.value();
    if (!Require(
              context,
              !is_causal && mask.dim() == 2 && mask.scalar_type() == ScalarType::Float &&
              mask.size(0) == query.size(1) && mask.size(1) == key.size(1) &&
              IsContiguous(mask),
              "llama::custom_sdpa takes a mask of float32 over all positions, or is causal.")) {
      return out;
    }
  }
  if (!Require(
            context,
            resize_tensor(out, query.sizes()) == Error::Ok,
            "llama::custom_sdpa has no room for its output.")) {
    return out;
  }

  const Attention attention{
      query.size(2),
      key.size(2),
      query.size(1),
      masked ? key.size(1) : start_pos + query.size(1),
      query.size(3),
      start_pos,
      is_causal,
      static_cast<float>(scale.has_value() ? scale.value() : 1.0 / std::sqrt(query.size(3))),
      masked ? &attn_mask.value() : nullptr,
  };
  bool done = false;
  switch (query.scalar_type()) {
    case ScalarType::Float:
      done = AttendAll<float>(attention, query, key, value, out);
      break;
    case ScalarType::Half:
      done = AttendAll<Half>(attention, query, key, value, out);
      break;
    case ScalarType::BFloat16:
      done = AttendAll<BFloat16>(attention, query, key, value, out);
      break;
    default:
      break;
  }
  if (!Require(
            context,
            done,
            "llama::custom_sdpa computes in float32, float16 and bfloat16.")) {
    return out;
  }
  return out;
}

EXECUTORCH_LIBRARY(llama, "custom_sdpa.out", CustomSdpaOut);
EXECUTORCH_LIBRARY(llama, "update_cache.out", UpdateCacheOut);

}  // namespace
}  // namespace rules_executorch
