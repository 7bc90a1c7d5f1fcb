// The native half of Main.java: runs the program that lies in a direct buffer.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <executorch/extension/data_loader/buffer_data_loader.h>
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>
#include <jni.h>

using executorch::aten::ScalarType;
using executorch::extension::BufferDataLoader;
using executorch::extension::from_blob;
using executorch::extension::Module;

extern "C" JNIEXPORT jlong JNICALL Java_com_example_assistant_Main_argmax(
    JNIEnv* env, jclass, jobject program, jlongArray tokens) {
  const int length = env->GetArrayLength(tokens);
  std::vector<int64_t> ids(length), positions(length);
  env->GetLongArrayRegion(tokens, 0, length, reinterpret_cast<jlong*>(ids.data()));
  std::iota(positions.begin(), positions.end(), 0);

  // `program` has a limit below its capacity; the header of the program says where it ends.
  Module module(std::make_unique<BufferDataLoader>(
      env->GetDirectBufferAddress(program), env->GetDirectBufferCapacity(program)));
  auto input = from_blob(ids.data(), {1, length}, ScalarType::Long);
  auto cache_position = from_blob(positions.data(), {length}, ScalarType::Long);
  const auto result = module.forward({input, cache_position});
  if (!result.ok()) {
    const std::string message =
        "The program did not run: error " + std::to_string(static_cast<int>(result.error())) + ".";
    env->ThrowNew(env->FindClass("java/lang/IllegalStateException"), message.c_str());
    return -1;
  }
  const auto logits = result->at(0).toTensor();
  const float* first = logits.const_data_ptr<float>();
  return std::max_element(first, first + logits.numel()) - first;
}
