package org.shingle.kafka;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.shingle.Options;
import org.shingle.Resources;
import org.shingle.Shingle;

/**
 * What the open stores of one application in this process share. The application is known by the
 * directory above its tasks. The first store that opens makes it, and the last one closes it.
 */
final class Instance {
    private static final Map<Path, Instance> INSTANCES = new HashMap<>();

    private final Path directory;
    private final Resources resources;
    private int users;

    private Instance(Path directory, ShingleConfig config) {
        this.directory = directory;
        this.resources = config.resources();
    }

    /** The instance with tasks in a directory, to be released. */
    static Instance acquire(Path directory, ShingleConfig config) {
        synchronized (INSTANCES) {
            Instance instance = INSTANCES.get(directory);
            if (instance == null) {
                instance = new Instance(directory, config);
                INSTANCES.put(directory, instance);
            }
            instance.users++;
            return instance;
        }
    }

    void release() {
        synchronized (INSTANCES) {
            users--;
            if (users == 0) {
                INSTANCES.remove(directory);
                resources.close();
            }
        }
    }

    Shingle open(Path path, Options options) {
        return Shingle.open(path, options.resources(resources));
    }
}
