import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.Stores;

/**
 * Counts numbers by their last digit, exactly once, through a repartition topic and a store, until it is told to
 * end: by a byte on its standard input, or by the end of that.
 *
 * <p>Arguments: bootstrap servers, application id, group protocol, folder for its state. It reads ID-in and writes
 * each digit's new count to ID-out.
 */
public final class CountOnce {
    public static void main(String[] args) throws Exception {
        String id = args[1];
        Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, id);
        settings.put(StreamsConfig.GROUP_PROTOCOL_CONFIG, args[2]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, args[3]);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");

        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(id + "-in")
            .map((key, number) -> KeyValue.pair(number.substring(number.length() - 1), number))
            .groupByKey(Grouped.as("by-digit"))
            .aggregate(
                () -> "0",
                (digit, number, count) -> String.valueOf(Long.parseLong(count) + 1),
                Materialized.as(Stores.inMemoryKeyValueStore("counts")))
            .toStream()
            .to(id + "-out");

        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.start();
        System.in.read();
        boolean ended = streams.close(Duration.ofSeconds(30));
        System.exit(ended ? 0 : 1);
    }
}
