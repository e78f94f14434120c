package org.shingle.orders;

import java.nio.file.Path;
import java.util.List;
import kafka.Kafka;
import kafka.tools.StorageTool;

/**
 * A Kafka node in a process of its own: formats its folder where that is new, then serves.
 *
 * <p>Arguments: the file with its properties, the id of the cluster.
 */
public final class Broker {
    private Broker() {}

    /** Runs it. */
    public static void main(String[] arguments) {
        Child.endWithParent();
        Path properties = Path.of(arguments[0]);
        List<String> format = List.of("format", "--ignore-formatted",
                "--cluster-id", arguments[1], "--config", properties.toString());
        int status = StorageTool.execute(format.toArray(String[]::new), System.out);
        if (status != 0) {
            throw new IllegalStateException("the folder of " + properties + " cannot be formatted");
        }
        Kafka.main(new String[] {properties.toString()});
    }
}
