import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.util.ArrayDeque;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.jar.JarFile;

/** The steps of prefix.sh that need Java's own formats. Run from source by the Java of the prefix. */
final class PrefixTool {
  public static void main(String[] args) throws Exception {
    switch (args[0]) {
      case "classpath" -> classpath(Path.of(args[1]), args[2], Path.of(args[3]));
      case "truststore" -> truststore(Path.of(args[1]), Path.of(args[2]));
      default -> throw new IllegalArgumentException("unknown command " + args[0]);
    }
  }

  /**
   * Rewrites the list of jars that Debian's Bazel starts with, from paths of an installed system to paths in the prefix,
   * and adds the jars that are named only in the Class-Path of another jar's manifest: without those the server
   * starts, and every call to it fails.
   */
  private static void classpath(Path root, String prefix, Path list) throws Exception {
    ArrayDeque<Path> queue = new ArrayDeque<>();
    for (String line : Files.readString(list).split("[\n:]")) {
      if (!line.isBlank()) {
        queue.add(Path.of(line.strip()));
      }
    }
    LinkedHashSet<Path> seen = new LinkedHashSet<>();
    while (!queue.isEmpty()) {
      Path jar = queue.remove().normalize();
      Path unpacked = root.resolve(Path.of("/").relativize(jar));
      if (!Files.isRegularFile(unpacked) || !seen.add(jar)) {
        continue;
      }
      try (JarFile file = new JarFile(unpacked.toFile())) {
        String entries =
            file.getManifest() == null
                ? null
                : file.getManifest().getMainAttributes().getValue("Class-Path");
        for (String entry : entries == null ? new String[0] : entries.strip().split("\\s+")) {
          if (!entry.isEmpty()) {
            queue.add(jar.resolveSibling(entry.replaceFirst("^file:", "")));
          }
        }
      }
    }
    List<String> lines = seen.stream().map(jar -> prefix + jar).toList();
    Files.writeString(list, String.join("\n", lines) + "\n");
  }

  private static void truststore(Path bundle, Path out) throws Exception {
    KeyStore store = KeyStore.getInstance("PKCS12");
    store.load(null, null);
    int count = 0;
    try (InputStream in = Files.newInputStream(bundle)) {
      for (Certificate certificate : CertificateFactory.getInstance("X.509").generateCertificates(in)) {
        store.setCertificateEntry("ca-" + count++, certificate);
      }
    }
    try (OutputStream to = Files.newOutputStream(out)) {
      store.store(to, "changeit".toCharArray());
    }
  }
}
