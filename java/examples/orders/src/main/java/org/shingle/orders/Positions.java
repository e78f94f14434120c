package org.shingle.orders;

import java.util.stream.Collectors;
import org.apache.kafka.streams.query.Position;

/** Positions as text: {@code topic/partition=offset}, separated by commas. */
public final class Positions {
    private Positions() {}

    /** The text of a position. */
    public static String text(Position position) {
        return position.getTopics().stream().sorted()
                .flatMap(topic -> position.getPartitionPositions(topic).entrySet().stream()
                        .map(entry -> topic + "/" + entry.getKey() + "=" + entry.getValue()))
                .collect(Collectors.joining(","));
    }

    /** The position of a text. */
    public static Position of(String text) {
        Position position = Position.emptyPosition();
        for (String part : text.split(",")) {
            if (!part.isEmpty()) {
                String[] names = part.split("[/=]");
                position.withComponent(
                        names[0], Integer.parseInt(names[1]), Long.parseLong(names[2]));
            }
        }
        return position;
    }
}
