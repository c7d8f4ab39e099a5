import io.debezium.config.Configuration;
import io.debezium.connector.oracle.OracleConnectorConfig;
import io.debezium.connector.oracle.logminer.parser.LogMinerDmlEntry;
import io.debezium.connector.oracle.logminer.parser.LogMinerDmlParser;
import io.debezium.relational.Column;
import io.debezium.relational.Table;
import io.debezium.relational.TableEditor;
import io.debezium.relational.TableId;
import java.io.BufferedWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Types;
import java.util.Arrays;
import java.util.List;

/**
 * How many redo statements does Debezium's own parser read in a second, and which values does it read?
 *
 * Arguments: a file of statements, one a line; a file for the values; seconds to warm up; passes to measure; column names.
 * Prints the median pass's statements per second. The file of values has a line per statement: old values, then new values,
 * each behind a unit separator, null as the letter NUL.
 */
public final class DebeziumParser {

    private static final char SEPARATOR = '\u001f';
    private static final char NULL = '\u0000';

    private DebeziumParser() {
    }

    public static void main(String[] arguments) throws Exception {
        List<String> statements = Files.readAllLines(Path.of(arguments[0]), StandardCharsets.UTF_8);
        long warmUpNanos = (long) (Double.parseDouble(arguments[2]) * 1e9);
        int passes = Integer.parseInt(arguments[3]);
        Table table = table(Arrays.copyOfRange(arguments, 4, arguments.length));
        LogMinerDmlParser parser = new LogMinerDmlParser(new OracleConnectorConfig(Configuration.create()
                .with("topic.prefix", "benchmark")
                .with("database.dbname", "BENCHMARK")
                .build()));
        writeValues(parser, table, statements, Path.of(arguments[1]));
        long start = System.nanoTime();
        while (System.nanoTime() - start < warmUpNanos) {
            parseAll(parser, table, statements);
        }
        double[] rates = new double[passes];
        for (int pass = 0; pass < passes; pass++) {
            long began = System.nanoTime();
            parseAll(parser, table, statements);
            rates[pass] = statements.size() * 1e9 / (System.nanoTime() - began);
        }
        Arrays.sort(rates);
        System.out.println(rates[passes / 2]);
    }

    private static Table table(String[] names) {
        TableEditor editor = Table.editor().tableId(new TableId("BENCHMARK", "SHOP", "ORDERS"));
        for (int index = 0; index < names.length; index++) {
            editor.addColumn(Column.editor().name(names[index]).position(index + 1).jdbcType(Types.VARCHAR)
                    .type("VARCHAR2").optional(true).create());
        }
        return editor.create();
    }

    /** Parses every statement; the sum keeps the compiler from leaving work out. */
    private static long parseAll(LogMinerDmlParser parser, Table table, List<String> statements) {
        long values = 0;
        for (String statement : statements) {
            LogMinerDmlEntry entry = parser.parse(statement, table);
            values += entry.getOldValues().length + entry.getNewValues().length;
        }
        return values;
    }

    private static void writeValues(LogMinerDmlParser parser, Table table, List<String> statements, Path path) throws Exception {
        try (BufferedWriter writer = Files.newBufferedWriter(path, StandardCharsets.UTF_8)) {
            for (String statement : statements) {
                LogMinerDmlEntry entry = parser.parse(statement, table);
                for (Object[] values : List.of(entry.getOldValues(), entry.getNewValues())) {
                    for (int index = 0; index < table.columns().size(); index++) {
                        Object value = index < values.length ? values[index] : null;
                        writer.write(value == null ? String.valueOf(NULL) : value.toString());
                        writer.write(SEPARATOR);
                    }
                }
                writer.write('\n');
            }
        }
    }
}
