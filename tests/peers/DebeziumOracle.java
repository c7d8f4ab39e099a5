import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.io.BufferedWriter;
import java.io.FileReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/** Debezium's connector for Oracle in its embedded engine: one event a line, as JSON, until standard input ends. */
public class DebeziumOracle {
  public static void main(String[] arguments) throws Exception {
    Properties properties = new Properties();
    try (FileReader file = new FileReader(arguments[0])) {
      properties.load(file);
    }
    try (BufferedWriter events = Files.newBufferedWriter(Path.of(arguments[1]))) {
      DebeziumEngine<ChangeEvent<String, String>> engine =
          DebeziumEngine.create(Json.class)
              .using(properties)
              .using((DebeziumEngine.CompletionCallback) (ok, message, error) -> {
                System.err.println("engine ended: " + message + " " + error);
                if (!ok) {
                  Runtime.getRuntime().halt(1);
                }
              })
              .notifying(
                  event -> {
                    if (event.value() != null) {
                      synchronized (events) {
                        try {
                          events.write(event.value());
                          events.newLine();
                          events.flush();
                        } catch (java.io.IOException error) {
                          throw new java.io.UncheckedIOException(error);
                        }
                      }
                    }
                  })
              .build();
      ExecutorService executor = Executors.newSingleThreadExecutor();
      executor.execute(engine);
      while (System.in.read() >= 0) {}
      engine.close();
      executor.shutdown();
      executor.awaitTermination(30, TimeUnit.SECONDS);
    }
  }
}
