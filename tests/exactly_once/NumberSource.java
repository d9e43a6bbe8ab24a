import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.source.ExactlyOnceSupport;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/** Writes the numbers from 0 on to a topic, a few every few milliseconds, up to the number `count`. */
public final class NumberSource extends SourceConnector {
    private Map<String, String> settings;

    @Override
    public void start(Map<String, String> given) {
        settings = given;
    }

    @Override
    public Class<? extends Task> taskClass() {
        return Numbers.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int most) {
        return List.of(settings);
    }

    @Override
    public ExactlyOnceSupport exactlyOnceSupport(Map<String, String> given) {
        return ExactlyOnceSupport.SUPPORTED;
    }

    @Override
    public ConfigDef config() {
        return new ConfigDef()
            .define("topic", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "where to")
            .define("count", ConfigDef.Type.LONG, ConfigDef.Importance.HIGH, "how many");
    }

    @Override
    public void stop() {}

    @Override
    public String version() {
        return "1";
    }

    /** Goes on after the last number whose offset is committed. */
    public static final class Numbers extends SourceTask {
        private static final Map<String, ?> PARTITION = Map.of("of", "numbers");
        private static final int AT_ONCE = 10;
        private static final long PAUSE_MS = 20;

        private String topic;
        private long count;
        private long next;

        @Override
        public void start(Map<String, String> settings) {
            topic = settings.get("topic");
            count = Long.parseLong(settings.get("count"));
            Map<String, Object> last = context.offsetStorageReader().offset(PARTITION);
            next = last == null ? 0 : (Long) last.get("number") + 1;
        }

        @Override
        public List<SourceRecord> poll() throws InterruptedException {
            Thread.sleep(PAUSE_MS);
            List<SourceRecord> records = new ArrayList<>();
            for (int i = 0; i < AT_ONCE && next < count; i++, next++) {
                Map<String, Long> offset = Map.of("number", next);
                String number = String.valueOf(next);
                records.add(new SourceRecord(PARTITION, offset, topic, Schema.STRING_SCHEMA, number));
            }
            return records.isEmpty() ? null : records;
        }

        @Override
        public void stop() {}

        @Override
        public String version() {
            return "1";
        }
    }
}
