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

/**
 * Debezium's connector for Oracle in its embedded engine, until standard input ends: one value a
 * line, as JSON, in the second argument's file; in the third one's each record with its topic and
 * key, tombstones too.
 */
public class DebeziumOracle {
  public static void main(String[] arguments) throws Exception {
    Properties properties = new Properties();
    try (FileReader file = new FileReader(arguments[0])) {
      properties.load(file);
    }
    try (BufferedWriter events = Files.newBufferedWriter(Path.of(arguments[1]));
        BufferedWriter records = Files.newBufferedWriter(Path.of(arguments[2]))) {
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
                    synchronized (events) {
                      try {
                        records.write(
                            "{\"topic\":\"" + event.destination() + "\",\"key\":" + event.key()
                                + ",\"value\":" + event.value() + "}");
                        records.newLine();
                        records.flush();
                        if (event.value() != null) {
                          events.write(event.value());
                          events.newLine();
                          events.flush();
                        }
                      } catch (java.io.IOException error) {
                        throw new java.io.UncheckedIOException(error);
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
