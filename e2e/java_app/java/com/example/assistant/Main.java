package com.example.assistant;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.ReadableByteChannel;
import java.util.Arrays;

/** Feeds token ids to the model in the jar and prints the id with the largest logit. */
public final class Main {
  /** The runtime wants a program aligned to 16 bytes; vector instructions like 64. */
  private static final int ALIGNMENT = 64;

  private Main() {}

  /**
   * The index of the largest logit after the last token.
   *
   * @param program a direct buffer, aligned to 16 bytes, that is not changed
   * @param tokens ids of tokens, from the first position
   * @throws IllegalStateException if the runtime refuses the program or the tokens
   */
  private static native long argmax(ByteBuffer program, long[] tokens);

  public static void main(String[] arguments) throws IOException {
    if (arguments.length == 0) {
      System.err.println("usage: app TOKEN...");
      System.exit(2);
    }
    System.loadLibrary("assistant_jni");
    long[] tokens = Arrays.stream(arguments).mapToLong(Long::parseLong).toArray();
    System.out.println("argmax " + argmax(resource("/assistant/model.pte"), tokens));
  }

  private static ByteBuffer resource(String name) throws IOException {
    try (InputStream stream = Main.class.getResourceAsStream(name)) {
      if (stream == null) {
        throw new IOException("The jar has no " + name + ".");
      }
      // Of an uncompressed entry this is its whole size; a slice loses less than that at each end.
      ByteBuffer buffer = ByteBuffer.allocateDirect(stream.available() + 2 * ALIGNMENT);
      buffer = buffer.alignedSlice(ALIGNMENT);
      ReadableByteChannel channel = Channels.newChannel(stream);
      while (channel.read(buffer) > 0) {}
      return buffer.flip();
    }
  }
}
