package com.example.assistant;

import android.app.Activity;
import android.content.res.AssetFileDescriptor;
import android.os.Bundle;
import android.widget.TextView;
import java.io.File;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import org.pytorch.executorch.extension.llm.LlmCallback;
import org.pytorch.executorch.extension.llm.LlmModule;

/** Answers one question with the model among the app's assets. */
public final class MainActivity extends Activity {
  private static final int MAX_TOKENS = 24;

  @Override
  protected void onCreate(Bundle state) {
    super.onCreate(state);
    TextView view = new TextView(this);
    setContentView(view);
    new Thread(() -> answer("What is the capital of France?", view)).start();
  }

  private void answer(String question, TextView view) {
    try {
      LlmModule module = new LlmModule(model().getPath(), small("tokenizer.json").getPath(), 0.0f);
      module.load();
      module.generate(
          question,
          MAX_TOKENS,
          new LlmCallback() {
            @Override
            public void onResult(String piece) {
              runOnUiThread(() -> view.append(piece));
            }

            @Override
            public void onStats(String stats) {}
          });
    } catch (IOException error) {
      runOnUiThread(() -> view.setText(error.toString()));
    }
  }

  /**
   * The program as a file, which is what LlmModule takes. It is stored uncompressed, so the kernel
   * copies it from the APK without a pass through the heap. A native app can map it where it lies:
   * it begins at a multiple of the page size.
   */
  private File model() throws IOException {
    File file = new File(getFilesDir(), "model.pte");
    try (AssetFileDescriptor asset = getAssets().openFd("model.pte")) {
      if (file.length() != asset.getLength()) {
        try (FileInputStream in = asset.createInputStream();
            FileOutputStream out = new FileOutputStream(file)) {
          in.getChannel()
              .transferTo(asset.getStartOffset(), asset.getLength(), out.getChannel());
        }
      }
    }
    return file;
  }

  private File small(String name) throws IOException {
    File file = new File(getFilesDir(), name);
    try (InputStream in = getAssets().open(name);
        FileOutputStream out = new FileOutputStream(file)) {
      byte[] buffer = new byte[1 << 16];
      for (int count = in.read(buffer); count >= 0; count = in.read(buffer)) {
        out.write(buffer, 0, count);
      }
    }
    return file;
  }
}
